"""Finding and comparing devices, without noting a use of their facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from mlsys.door import checked_number, positive
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.formatting import natural
from mlsys.hardware.device import Device
from mlsys.precision import precision_name
from mlsys.tables import Table
from mlsys.units import Quantity

__all__ = ["COLUMNS", "comparison", "confidence", "find", "listing", "records"]

# What a listing shows of each device, and the unit it shows it in.
COLUMNS = {
    "peak": "TFLOP/s",
    "bandwidth": "GB/s",
    "capacity": "GB",
    "ridge": "FLOP/byte",
    "tdp": "W",
}


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
        Where to look.
    text
        Part of the id, an alias, the name or the architecture; capitals do not matter.
    kind
        ``GPU``, ``TPU``, ``NPU``, ``CPU``, ``MCU`` or ``SoC``.
    vendor
        As written in the catalogue; capitals do not matter.
    precision
        A precision that the device must have a peak for.
    min_peak
        Least dense rate, FLOP/s, in ``precision`` or else in the headline precision.
    min_bandwidth
        Least bandwidth of the main memory, byte/s.
    since, until
        First and last year of release.

    Raises
    ------
    UnknownNameError
        If no device at all has this kind or vendor, or the precision does not exist.
    ArgumentUnitError, ArgumentError
        If a bound lacks its unit or is not positive, or the years are the wrong way round.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> from mlsys.units import Q_
    >>> [device.id for device in find(Hardware.Cloud, "tpu", min_bandwidth=Q_(2, "TB/s"))]
    ['TPUv5p']
    """
    everything = list(devices)
    wanted = precision_name(precision) if precision else None
    _one_of("kind", kind, {device.kind for device in everything})
    _one_of("vendor", vendor, {device.vendor for device in everything})
    for name, bound, unit in (("min_peak", min_peak, "FLOP/s"), ("min_bandwidth", min_bandwidth, "byte/s")):
        if bound is not None:
            checked_number("find", name, bound, positive(unit), {})
    if since is not None and until is not None and since > until:
        raise ArgumentError(f"find(): `since` must not be after `until`, got {since} and {until}. Exchange them")
    tests: list[Callable[[Device], bool]] = [
        lambda device: text.lower() in " ".join((device.id, *device.aliases, device.name, device.architecture)).lower(),
        lambda device: kind is None or device.kind.lower() == kind.lower(),
        lambda device: vendor is None or device.vendor.lower() == vendor.lower(),
        lambda device: wanted is None or wanted in device.precisions,
        lambda device: since is None or device.release_year >= since,
        lambda device: until is None or device.release_year <= until,
        lambda device: min_peak is None or device.fastest(wanted) >= min_peak,
        lambda device: min_bandwidth is None or _at_least(device.glance()["bandwidth"], min_bandwidth),
    ]
    return [device for device in everything if all(test(device) for test in tests)]


def _at_least(value: Quantity | None, bound: Quantity) -> bool:
    return value is not None and bool(value >= bound)


def _one_of(argument: str, given: str | None, known: set[str]) -> None:
    if given is not None and given.lower() not in {name.lower() for name in known}:
        raise UnknownNameError(
            f"find(): no device has the {argument} {given!r}. There are: {', '.join(sorted(known))}."
            + did_you_mean(given, known)
        )


def shown(value: Quantity | None, unit: str) -> str:
    """Return a figure in ``unit`` for a table, or a dash where it is unknown."""
    return "—" if value is None else natural(float(value.m_as(unit)))


def listing(devices: Sequence[Device]) -> Table:
    """Return a table with one line for each device.

    Parameters
    ----------
    devices
        Devices to list; peaks are dense, in each device's headline precision.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> listing([Hardware.Cloud.V100]).rows[0][:6]
    ('V100', 'NVIDIA V100 SXM2 32 GB', 'GPU', 2017, 'fp16', '125')
    """
    heads = ("id", "name", "kind", "year", "precision", *(f"{name}, {unit}" for name, unit in COLUMNS.items()))
    rows = []
    for device in devices:
        figures = device.glance()
        values = [shown(figures[name], unit) for name, unit in COLUMNS.items()]
        rows.append((device.id, device.name, device.kind, device.release_year, device.headline, *values))
    caption = f"{len(rows)} device{'' if len(rows) == 1 else 's'}"
    return Table(caption, heads, rows, kind="mlsys-catalogue", printed=(0, 3, 4, 5, 6, 7, 8))


def comparison(devices: Sequence[Device]) -> Table:
    """Return a table with one column for each device: every dense peak, then memory and power.

    Parameters
    ----------
    devices
        Devices to set side by side.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> table = comparison([Hardware.Cloud.V100, Hardware.Cloud.A100])
    >>> [row for row in table.rows if row[0] == "tf32, TFLOP/s"]
    [('tf32, TFLOP/s', '—', '156')]
    """
    precisions = dict.fromkeys(precision for device in devices for precision in device.precisions)
    rows: list[tuple[object, ...]] = [
        ("kind", *(device.kind for device in devices)),
        ("year", *(device.release_year for device in devices)),
    ]
    for precision in precisions:
        has = [device.fastest(precision) if precision in device.precisions else None for device in devices]
        rows.append((f"{precision}, TFLOP/s", *(shown(rate, "TFLOP/s") for rate in has)))
    for name, unit in COLUMNS.items():
        if name != "peak":
            rows.append((f"{name}, {unit}", *(shown(device.glance()[name], unit) for device in devices)))
    return Table("Dense peaks; main memory", ("", *(device.id for device in devices)), rows)


def records(devices: Sequence[Device]) -> list[dict[str, object]]:
    """Return one dictionary for each device, with full-precision numbers, for machines to read.

    Parameters
    ----------
    devices
        Devices to describe; every dictionary has the same keys, None where unknown.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> records([Hardware.Cloud.MI300X])[0]["fp16, TFLOP/s"]
    1307.4
    """
    precisions = dict.fromkeys(precision for device in devices for precision in device.precisions)
    rows = []
    for device in devices:
        rates = {name: device.fastest(name) if name in device.precisions else None for name in precisions}
        figures = device.glance()
        row: dict[str, object] = {
            "id": device.id,
            "name": device.name,
            "kind": device.kind,
            "vendor": device.vendor,
            "year": device.release_year,
            "headline": device.headline,
        }
        row |= {f"{name}, TFLOP/s": _number(rate, "TFLOP/s") for name, rate in rates.items()}
        row |= {f"{name}, {unit}": _number(figures[name], unit) for name, unit in COLUMNS.items() if name != "peak"}
        rows.append(row)
    return rows


def _number(value: Quantity | None, unit: str) -> float | None:
    return None if value is None else float(f"{value.m_as(unit):.9g}")


def confidence(devices: Iterable[Device]) -> Table:
    """Return how well the recorded values are known: a line for each field, a column for each grade.

    Parameters
    ----------
    devices
        Devices whose every recorded value is counted.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> confidence([Hardware.Cloud.V100]).heads
    ('field', 'verified', 'secondary', 'derived', 'unverified', 'all')
    """
    counts: dict[str, Counter[str]] = {}
    for device in devices:
        for value in device.recorded():
            (fact,) = value.facts
            _, section, *rest = fact.name.split("/")
            what = rest[-1] if rest else section
            field = {"peaks": "peak rate", "memory": f"memory {what}", "links": f"link {what}"}.get(section, what)
            counts.setdefault(field.replace("_", " "), Counter())[fact.confidence] += 1
    every = sum(counts.values(), Counter())
    rows = [
        (field, *(grades[grade] for grade in _GRADES), grades.total())
        for field, grades in [*sorted(counts.items()), ("all", every)]
    ]
    return Table("How well the values are known", ("field", *_GRADES, "all"), rows)


_GRADES = ("verified", "secondary", "derived", "unverified")
