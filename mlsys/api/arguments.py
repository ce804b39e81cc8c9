"""Shared arguments of the everyday calls: a device or its name, and a network or anything that ``load`` accepts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mlsys.choices import Phase
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.hardware import Hardware
from mlsys.hardware.device import Device
from mlsys.precision import precision_name
from mlsys.workloads.argument_checks import spelled
from mlsys.workloads.operator import Network
from mlsys.workloads.resolve import load
from mlsys.workloads.stated_precision import stated_precision
from mlsys.workloads.workload import Workload


def device_of(device: Device | str) -> Device:
    """Return a device, or the device of the catalogue with this name.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such device.
    ArgumentError
        If it is neither a device nor a name.

    Examples
    --------
    >>> device_of("A100").name
    'NVIDIA A100 80 GB SXM4'
    """
    if isinstance(device, Device):
        return device
    if not isinstance(device, str):
        raise ArgumentError(f"`device` must be a device or its name, such as 'A100', got {short(device)}")
    try:
        return Hardware[device]
    except UnknownNameError:
        words = [word for known in Hardware for word in (known.id, *known.aliases)]
        raise UnknownNameError(
            f"unknown device {short(device)}.{did_you_mean(device, words)} `mlsys devices` lists all"
        ) from None


@dataclass(frozen=True)
class NetworkRequest:
    """Requested sizes and number format of a network; None leaves each at its default.

    Attributes
    ----------
    batch, sequence, image, phase, precision, sizes, shape, option, weight_format, kv_format
        As for :func:`mlsys.workloads.load`.
    """

    batch: int | None = None
    sequence: int | None = None
    image: int | None = None
    phase: Phase | None = None
    precision: str | None = None
    sizes: Mapping[str, int] | None = None
    shape: tuple[int, ...] | None = None
    option: str = "`{}`"
    weight_format: str | None = None
    kv_format: str | None = None

    def unused(self, where: str, but: Iterable[str] = ()) -> None:
        """Refuse all network arguments except some.

        Raises
        ------
        ArgumentError
            If one of them was given.
        """
        for name in (field.name for field in fields(self) if field.name != "option"):
            if getattr(self, name) is not None and name not in but:
                raise ArgumentError(f"{spelled(self.option, name)} applies to a network, not to {where}")

    def arithmetic(self, network: Network | str | Path, default: str) -> str | None:
        """Return the format of the arithmetic; None where operators built by hand specify their own.

        It is the requested format, else that of the network, else ``default``.

        Examples
        --------
        >>> NetworkRequest().arithmetic("resnet50", "fp16"), NetworkRequest().arithmetic(load("resnet50"), "fp16")
        ('fp16', 'fp16')
        >>> NetworkRequest().arithmetic(load("resnet50", precision="int8"), "fp16")
        'int8'
        """
        if not isinstance(network, (Network, str, Path)):
            raise ArgumentError(
                f"`network` must be a network or an argument of load(), such as 'resnet50', got {short(network)}"
            )
        if self.precision is not None:
            return precision_name(self.precision)
        if isinstance(network, Workload):
            return default if network.default_format else network.precision
        if isinstance(network, Network):
            return None
        return stated_precision(network) or default

    def network(self, network: Network | str | Path, default: str | None = None, *, recounted: bool = False) -> Network:
        """Return the network at the requested sizes and in the requested format.

        Parameters
        ----------
        network
            A network, or anything that :func:`mlsys.workloads.load` accepts.
        default
            Number format if neither the caller nor the network specifies one; None keeps that of ``load``.
        recounted
            Whether the caller recounts the bytes of operators built by hand in the requested format.

        Raises
        ------
        UnknownNameError
            If the network, number format or size is unknown.
        ArgumentError
            If an argument does not apply to the network.
        """
        if isinstance(network, (str, Path)):
            usual = None if default is None or stated_precision(network) is not None else default
            options: dict[str, Any] = {**vars(self), "precision": self.precision or usual}
            return load(network, **options)
        if not isinstance(network, Network):
            raise ArgumentError(
                f"`network` must be a network or an argument of load(), such as 'resnet50', got {short(network)}"
            )
        return self._changed(network, default, recounted)

    def _changed(self, network: Network, default: str | None, recounted: bool) -> Network:
        """Return a network object at the requested sizes and in the requested format."""
        for name in ("phase", "shape", "sizes", "weight_format", "kv_format"):
            if getattr(self, name) is not None:
                raise ArgumentError(
                    f"{spelled(self.option, name)} applies to networks loaded by name, got the network "
                    f"{network.name!r}. Write e.g. load('llama-3-8b', phase='decode')"
                )
        sizes = {name: getattr(self, name) for name in ("batch", "sequence", "image")}
        sizes = {name: size for name, size in sizes.items() if size is not None}
        if not isinstance(network, Workload):
            if sizes:
                raise ArgumentError(
                    f"{', '.join(map(self.option.format, sizes))} cannot change {network.name!r}, whose operators were "
                    "built by hand. Build them at that size, or load it by name, e.g. load('resnet50', batch=8)"
                )
            if recounted or self.precision is None or precision_name(self.precision) == network.precision:
                return network
            return Workload.from_network(network).stored_as(self.precision)  # raises: built in another format
        if sizes and any(network.sizes.get(name) != size for name, size in sizes.items()):
            network = network.at(**sizes)
        wanted = self.precision or (default if network.default_format else None)
        if wanted is None or precision_name(wanted) == network.precision:
            return network
        if not network.is_convertible and (recounted or self.precision is None):
            return network
        return network.stored_as(wanted)
