"""``mlsys.analyze``: bottleneck analysis of a network on a device."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import Phase
from mlsys.hardware.device import Device
from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.model import analyze as estimate
from mlsys.models.analysis.network_run import DEFAULT_PRECISION
from mlsys.models.estimate.eager import run_as
from mlsys.models.software import SoftwareStack, software_of
from mlsys.workloads.operator import Network


def analyze(
    device: Device | str,
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    software: SoftwareStack | str | None = None,
    fusion: bool = True,
    samples: int | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    source: str = "",
    option: str = "`{}`",
) -> Analysis:
    """Return the time of a network on a device by operator and cause, as the command ``mlsys analyze`` does.

    Parameters
    ----------
    device
        A device or its name in the catalogue.
    network
        A network, or anything that :func:`mlsys.workloads.load` accepts: the name of a network, a
        ``package.module:factory``, the ``config.json`` of a transformers model, or an ONNX file.
    batch, sequence, image, phase, sizes, shape, weight_format, kv_format
        As for :func:`mlsys.workloads.load`. A network that is already loaded is rebuilt at other sizes.
    precision
        Number format of every value and of the arithmetic; defaults to that of the network, else FP16.
    software
        Software that runs the network, such as ``SoftwareStack("eager")``, or its name, such as ``"eager network on
        GPU"``; defaults to the typical software for such work on such a device.
    fusion
        Whether to fuse operators, as a compiler does. Eager software on GPUs never does. A fused network stays fused.
    samples
        Inputs per pass; defaults to the batch of the network.
    source
        Who measures, as for :func:`mlsys.models.analysis.analyze`.
    option
        Format in which errors write the name of an argument.

    Returns
    -------
    Analysis
        Its ``record()`` is what ``mlsys analyze --json`` prints.

    Raises
    ------
    UnknownNameError
        If the device, network, number format or software is unknown.
    ArgumentError
        If an argument does not apply to the network.

    Examples
    --------
    >>> answer = analyze("A100", "resnet50", batch=32)
    >>> print(f"at least {answer.bound.to('ms'):.2f}, limited by {answer.limited_by}, {len(answer.operators)} kernels")
    at least 1.05 ms, limited by compute, 54 kernels
    """
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option, weight_format, kv_format)
    (twin,), loaded, arithmetic = prepared([device], network, request)
    return analysis_of(twin, loaded, arithmetic, software, fusion, samples, source)


def prepared(
    devices: Iterable[Device | str], network: Network | str | Path, request: NetworkRequest
) -> tuple[list[Device], Network, str | None]:
    """Return the devices, the network as loaded for them, and the format of the arithmetic."""
    twins = [device_of(device) for device in devices]
    arithmetic = request.arithmetic(network, DEFAULT_PRECISION)
    if arithmetic is not None:
        for twin in twins:
            twin.peak(arithmetic)  # a missing peak is reported before the network is read
    return twins, request.network(network, DEFAULT_PRECISION, recounted=True), arithmetic


def analysis_of(
    device: Device,
    network: Network,
    precision: str | None,
    software: SoftwareStack | str | None,
    fusion: bool,
    samples: int | None,
    source: str,
) -> Analysis:
    """Return the analysis of a network loaded for a device, fused as by its software unless ``fusion`` is False."""
    stack = software_of(device, software, network.kind, precision or network.precision)
    mapping = network if not fusion and run_as(str(stack)) != "one by one" else None
    return estimate(device, network, mapping, precision=precision, software=stack, samples=samples, source=source)
