"""Conversion of a measured row to the machine and the work that the models time."""

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, cast

from mlsys.calibration.case import Case, Inexpressible, without_zeros
from mlsys.calibration.engines import engine_for, moving_engine, on_threads, with_narrow_convolutions
from mlsys.calibration.named_devices import device_named
from mlsys.calibration.rows import ARRAYS, Row
from mlsys.calibration.values import bytes_a_second, seconds_each
from mlsys.errors import ArgumentError, did_you_mean
from mlsys.hardware import Device
from mlsys.mapping.fusion import as_run, has_convolutions
from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.eager import of_network, run_as
from mlsys.models.estimate.library import fitted
from mlsys.models.estimate.lowering import Format, part_in_convolutions
from mlsys.models.estimate.running import kernels_run, usual_running
from mlsys.models.estimate.weight_residency import resident
from mlsys.provenance import remembered
from mlsys.workloads import Network, load

READERS = "mlsys.row_readers"
"""Entry points of this group read rows with free-text columns."""

_FORMATS = {
    "fp32": Format("fp32", 4, 4, True),
    "tf32": Format("tf32", 4, 4),
    "fp16": Format("fp16", 2, 2),
    "bf16": Format("bf16", 2, 2),
    "int8": Format("int8", 1, 1),
}


@lru_cache(maxsize=1)
def _free_text_reader() -> Callable[[Row], Case] | None:
    """Return a reader of free-text rows, if a distribution that provides one is installed."""
    found = next(iter(entry_points(group=READERS)), None)
    return cast(Callable[[Row], Case], found.load()) if found else None


def interpret(row: Row) -> Case:
    """Return a row as a case: from its typed columns, or from free text if mlsys-evidence is installed.

    Raises
    ------
    Inexpressible
        If no model can express it, with the reason.
    """
    if row.typed:
        return typed_case(row)
    reader = _free_text_reader()
    if reader is None:
        raise Inexpressible(
            "`workload`, `model` and `seq_or_shape` are free text. Write the columns that `mlsys measure` writes, with "
            "`network` or `operator`; or, to have free text read, type: pip install mlsys-evidence"
        )
    return reader(row)


def typed_case(row: Row) -> Case:
    """Return a row with typed columns as a case.

    Raises
    ------
    Inexpressible
        If the catalogue has no such device or network, or nothing was fitted to such software.
    """
    answer = _answer(row)
    if isinstance(answer, str):
        raise Inexpressible(answer)
    return answer


@remembered
def _answer(row: Row) -> Case | str:
    try:
        return _network(row) if row.network else _stream(row)
    except (ArgumentError, Inexpressible, LookupError) as reason:
        return str(reason)


def _device(row: Row, *, cpu: bool = False) -> Device:
    device = device_named(row.device, cpu=cpu)
    if device is None:
        raise Inexpressible(f"no {'CPU of ' if cpu else ''}{row.device} in the catalogue")
    return device


def _format(row: Row) -> Format:
    fmt = _FORMATS.get(row.precision.lower())
    if fmt is None:
        raise Inexpressible(f"`precision` must be {', '.join(_FORMATS)}, got {row.precision!r}")
    return fmt


def _stream(row: Row) -> Case:
    """Return the case of arrays that are read and written once."""
    if row.elements is None:
        raise Inexpressible(f"`elements` must be the length of an array where `operator` is {row.operator}")
    device, value = _device(row), _format(row).value
    moved = ARRAYS[row.operator] * row.elements * value
    work = Work.of([Kernel(VECTOR, flops=moved / 16, moved=moved)])
    seconds, setting = moved / bytes_a_second(row), f"stream on {device.kind}"
    engine = moving_engine(device)
    return Case(
        row, "copy and stream", setting, device.id, engine, work, seconds, True, cached=False,
        version=without_zeros(row.software),
    )  # fmt: skip


def _network(row: Row) -> Case:
    """Return the case of one forward pass of a network, run as by `mlsys analyze`."""
    on_cpu = row.processor == "cpu"
    device, fmt = _device(row, cpu=on_cpu), _format(row)
    batch = _batch(row)
    sizes: dict[str, Any] = {"image": row.image, "sequence": row.tokens}
    sizes = {name: size for name, size in sizes.items() if size is not None}
    network = load(row.network, batch=batch, precision="fp16", **sizes)
    assert isinstance(network, Network)
    if row.tf32 == "convolutions" and fmt.computes == "fp32" and device.has_peak("tf32", unit="matrix"):
        fmt = with_narrow_convolutions(fmt, device, lambda: part_in_convolutions(network))
    engine = engine_for(device, fmt.computes, vector_unit=fmt.vector_unit)
    if on_cpu and row.threads:
        engine = on_threads(engine, device, row.threads, batch)
    setting = _setting(row, "CPU" if on_cpu else device.kind, fmt)
    kernels = as_run(network, run_as(setting))
    work = resident(kernels_run(kernels, usual_running(setting, device, engine), fmt).work, device)
    setting = of_network(setting, has_convolutions(network))
    seconds, inverse = seconds_each(row, batch * max(1, row.n_devices))
    return Case(
        row, "network inference", setting, device.id, engine, work, seconds, inverse, network=row.network,
        version=without_zeros(row.software),
    )  # fmt: skip


def _batch(row: Row) -> int:
    try:
        return int(row.batch or 1)
    except ValueError as error:
        raise Inexpressible(f"`batch` must be a whole number, or empty for 1, got {row.batch!r}") from error


def _setting(row: Row, kind: str, fmt: Format) -> str:
    """Return the setting of a row's software on a kind of machine."""
    if not row.stack:
        raise Inexpressible("`stack` must name the software of the network: eager for eager PyTorch, compiled, ncnn, …")
    # If only convolutions use a narrow format, the other products run on units that multiply no faster than they add.
    stack = "eager small units" if row.stack == "eager" and kind == "GPU" and fmt.convolutions > 1 else row.stack
    setting = f"{stack} network on {kind}"
    if setting not in fitted():
        ending = f" network on {kind}"
        known = [name.removesuffix(ending) for name in fitted() if name.endswith(ending)]
        raise Inexpressible(f"`stack` {row.stack!r} was never fitted on a {kind}.{did_you_mean(row.stack, known)}")
    return setting
