"""Searching devices by their properties, without recording a use of their facts."""

from collections.abc import Callable, Iterable

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.hardware.device import Device
from mlsys.precision import precision_name
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Quantity


def find(
    devices: Iterable[Device],
    text: str = "",
    *,
    kind: str | None = None,
    vendor: str | None = None,
    precision: str | None = None,
    min_peak: Quantity | None = None,
    min_bandwidth: Quantity | None = None,
    since: int | None = None,
    until: int | None = None,
) -> list[Device]:
    """Return the devices that meet every criterion, in the order of the catalogue.

    Parameters
    ----------
    devices
        Devices to search.
    text
        Part of the id, an alias, the name or the architecture; case-insensitive.
    kind
        ``GPU``, ``TPU``, ``NPU``, ``CPU``, ``MCU`` or ``SoC``.
    vendor
        As written in the catalogue; case-insensitive.
    precision
        A precision that the device must have a peak for.
    min_peak
        Minimum dense rate, FLOP/s, in ``precision`` or by default in the headline precision.
    min_bandwidth
        Minimum bandwidth of the main memory, byte/s.
    since, until
        First and last year of release.

    Raises
    ------
    UnknownNameError
        If no device at all has this kind or vendor, or the precision does not exist.
    ArgumentUnitError, ArgumentError
        If a bound lacks its unit or is not positive, or ``since`` is after ``until``.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> from mlsys.units import Q_
    >>> [device.id for device in find(Hardware.Cloud, "tpu", min_bandwidth=Q_(2, "TB/s"), until=2024)]
    ['TPUv5p']
    """
    candidates = list(devices)
    format_name = None if precision is None else precision_name(precision)
    _one_of("kind", kind, {device.kind for device in candidates})
    _one_of("vendor", vendor, {device.vendor for device in candidates})
    for name, bound, unit in (("min_peak", min_peak, "FLOP/s"), ("min_bandwidth", min_bandwidth, "byte/s")):
        if bound is not None:
            checked_number("find", name, bound, positive(unit), {})
    if not isinstance(text, str) or (text and not text.strip()):
        raise ArgumentError(f"find(): `text` must be part of a name, got {text!r}")
    for name, year in (("since", since), ("until", until)):
        if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
            raise ArgumentError(f"find(): `{name}` must be a year, such as 2020, got {year!r}")
    if since is not None and until is not None and since > until:
        raise ArgumentError(f"find(): `since` must not be after `until`, got {since} and {until}. Swap them")
    tests: list[Callable[[Device], bool]] = [
        lambda device: text.lower() in " ".join((device.id, *device.aliases, device.name, device.architecture)).lower(),
        lambda device: kind is None or device.kind.lower() == kind.lower(),
        lambda device: vendor is None or device.vendor.lower() == vendor.lower(),
        lambda device: format_name is None or format_name in device.precisions,
        lambda device: since is None or device.release_year >= since,
        lambda device: until is None or device.release_year <= until,
        lambda device: min_peak is None or device.fastest(format_name) >= min_peak,
        lambda device: min_bandwidth is None or _at_least(device.glance()["bandwidth"], min_bandwidth),
    ]
    return [device for device in candidates if all(test(device) for test in tests)]


def _at_least(value: Quantity | None, bound: Quantity) -> bool:
    return value is not None and bool(value >= bound)


def _one_of(argument: str, given: str | None, known: set[str]) -> None:
    if given is not None and given.lower() not in {name.lower() for name in known}:
        raise UnknownNameError(
            f"find(): no device has the {argument} {given!r}. There are: {', '.join(sorted(known))}."
            + did_you_mean(given, known)
        )
