"""Tables of devices: listing, comparison, memory levels, machine-readable records, and confidence of the values.

No function here records a use of a fact: a list of devices is not a claim about them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from mlsys.formatting import natural, significant
from mlsys.hardware.device import Device
from mlsys.hardware.parts import OperatingPoint
from mlsys.tables import Table
from mlsys.units import Quantity

# Columns of a listing, and the unit of each.
COLUMNS = {
    "peak": "TFLOP/s",
    "bandwidth": "GB/s",
    "capacity": "GB",
    "ridge": "FLOP/byte",
    "tdp": "W",
}


def _shown(value: Quantity | None, unit: str) -> str:
    """Return a value in ``unit`` as text for a table, or a dash if it is unknown."""
    return "—" if value is None else natural(float(value.m_as(unit)))


def listing(devices: Sequence[Device]) -> Table:
    """Return a table with one row per device.

    Parameters
    ----------
    devices
        Devices to list; peaks are dense, in each device's headline precision.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> listing([Hardware.Cloud.V100]).rows[0][:6]
    ('V100', 'NVIDIA V100 SXM2 32 GB', 'GPU', '2017', 'fp16', '125')
    """
    columns = ("id", "name", "kind", "year", "precision", *(f"{name}, {unit}" for name, unit in COLUMNS.items()))
    rows = []
    for device in devices:
        figures = device.glance()
        values = [_shown(figures[name], unit) for name, unit in COLUMNS.items()]
        rows.append((device.id, device.name, device.kind, str(device.release_year), device.headline, *values))
    caption = f"{len(rows)} device{'' if len(rows) == 1 else 's'}"
    return Table(caption, columns, rows, kind="mlsys-catalogue", printed=(0, 4, 5, 6, 8))


def comparison(devices: Sequence[Device]) -> Table:
    """Return a table with one column per device: every dense peak, then memory and power.

    Parameters
    ----------
    devices
        Devices to compare.

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
        ("year", *(str(device.release_year) for device in devices)),
    ]
    for precision in precisions:
        has = [device.fastest(precision) if precision in device.precisions else None for device in devices]
        rows.append((f"{precision}, TFLOP/s", *(_shown(rate, "TFLOP/s") for rate in has)))
    for name, unit in COLUMNS.items():
        if name != "peak":
            rows.append((f"{name}, {unit}", *(_shown(device.glance()[name], unit) for device in devices)))
    for name, unit in _POWER_AND_PRICE.items():
        has = [_power_and_price(device)[name] for device in devices]
        if any(value is not None for value in has):
            rows.append((f"{name}, {unit}", *(_shown(value, unit) for value in has)))
    return Table("Dense peaks; main memory", ("", *(device.id for device in devices)), rows)


# Inputs of placement and of the edge optimiser besides speed; few vendors publish them.
_POWER_AND_PRICE = {"active": "W", "idle": "W", "price": "USD"}


def _power_and_price(device: Device) -> dict[str, Quantity | None]:
    return {"active": device._active_power, "idle": device._idle_power, "price": device._price}


def groundwork(devices: Iterable[Device]) -> Table:
    """Return a table of power, price, clocks and links, with one row per device; ``~`` marks an assumed value.

    Parameters
    ----------
    devices
        Devices to list.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> groundwork([Hardware.Edge.RaspberryPi4]).rows[0][:4]
    ('RaspberryPi4', '5.89 W', '1.60 W', '35 USD')
    """
    rows = []
    for device in devices:
        points = "; ".join(
            f"{_recorded(point._clock)} at {_recorded(point._voltage)}" for point in _ends(device.points)
        )
        links = "; ".join(
            f"{link.name} {_recorded(link._per_direction)}, {_recorded(link._latency)}"
            for link in device.links.values()
        )
        rows.append(
            (device.id, *(_recorded(value) for value in _power_and_price(device).values()), points or "—", links or "—")
        )
    columns = ("device", "active power", "idle power", "price", "slowest and fastest clock", "links, each direction")
    return Table(f"{len(rows)} devices, ~ assumed", columns, rows)


def _ends(points: Sequence[OperatingPoint]) -> Sequence[OperatingPoint]:
    return points if len(points) < 2 else (points[0], points[-1])


def _recorded(value: Quantity | None) -> str:
    """Return a recorded value in its own unit, to three digits, with ``~`` in front if it is assumed."""
    if value is None:
        return "—"
    (fact,) = value.facts
    return f"{'~' if fact.confidence == 'assumed' else ''}{natural(float(value.magnitude))} {value.units:~P}"


def levels(devices: Sequence[Device]) -> Table:
    """Return a table with one row per memory level of each device, from the outermost to the innermost.

    Parameters
    ----------
    devices
        Devices to list. Size and latency are those of one instance, bandwidth is the sum over all
        instances; ``usable`` is given where a program may allocate less than the size. A column without
        any known value is omitted.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> levels([Hardware.Cloud.A100]).rows[2]
    ('', 'L1', '108', '192 KiB', '164 KiB', '19,490 GB/s', '23.5 ns')
    """
    rows = []
    for device in devices:
        for number, level in enumerate(device.memory.values()):
            divisor = level.instances if level.scope == "device" else 1
            multiplier = level.instances if level.scope == "unit" else 1
            speed = None if level._bandwidth is None else level._bandwidth * multiplier
            rows.append(
                (
                    "" if number else device.name if device.generic else device.id,
                    level.name,
                    natural(level.instances),
                    _compact(level.capacity / divisor) if level.has_capacity else "—",
                    "" if level._usable is None else _compact(level._usable / divisor),
                    "—" if speed is None else _rate(speed),
                    "—" if level._latency is None else f"{natural(float(level._latency.m_as('ns')))} ns",
                )
            )
    columns = ("device", "level", "instances", "size of each", "usable", "total bandwidth", "latency")
    known = [column for column in zip(columns, *rows, strict=True) if set(column[1:]) - {"", "—"}]
    columns, *rows = zip(*known, strict=True)
    return Table(f"Memory levels of {len(devices)} device{'' if len(devices) == 1 else 's'}", columns, rows)


def _rate(speed: Quantity) -> str:
    """Return a bandwidth as text to four digits, in GB/s, or in TB/s from 100,000 GB/s."""
    unit = "GB/s" if speed.m_as("GB/s") < 1e5 else "TB/s"
    return f"{natural(float(f'{speed.m_as(unit):.4g}'))} {unit}"


def _compact(size: Quantity) -> str:
    """Return a size as text to four digits, in the binary or decimal unit in which it is shortest."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if size.m_as(unit) >= 1), "byte")
    if not float(size.m_as(unit)).is_integer():  # capacities of DRAM are decimal
        decimal = {"GiB": "GB", "MiB": "MB", "KiB": "kB"}.get(unit, unit)
        unit = unit if (8 * size.m_as(unit)).is_integer() else decimal
    return f"{natural(float(f'{size.m_as(unit):.4g}'))} {unit}"


def records(devices: Sequence[Device]) -> list[dict[str, object]]:
    """Return one dictionary per device, with numbers in full precision, for JSON or CSV.

    Parameters
    ----------
    devices
        Devices to describe; all dictionaries have the same keys, with None for unknown values.

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


def device_record(device: Device) -> dict[str, object]:
    """Return one device as plain data, for JSON: every recorded value with its unit and its source.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> device_record(Hardware.Cloud.V100)["values"][0]["source"][:6]
    'NVIDIA'
    """
    values = []
    for quantity in device.recorded():
        (fact,) = quantity.facts
        values.append(
            {
                "name": fact.name.removeprefix(f"{device.id}/"),
                "value": quantity.magnitude,
                "unit": f"{quantity.units:~P}",
                "source": fact.source,
                "date": str(fact.date),
                "confidence": fact.confidence,
                "uncertainty": fact.uncertainty,
            }
        )
    return {
        "id": device.id, "name": device.name, "kind": device.kind, "vendor": device.vendor,
        "release_year": device.release_year, "values": values,
    }  # fmt: skip


def _number(value: Quantity | None, unit: str) -> float | None:
    return None if value is None else significant(value.m_as(unit), 9)


def confidence(devices: Iterable[Device]) -> Table:
    """Return a table that counts the recorded values by field and by confidence grade.

    Parameters
    ----------
    devices
        Devices whose recorded values are counted.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> confidence([Hardware.Cloud.V100]).columns
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
    shown = [grade for grade in _GRADES if grade != "assumed" or every[grade]]
    rows = [
        (field, *(grades[grade] for grade in shown), grades.total())
        for field, grades in [*sorted(counts.items()), ("all", every)]
    ]
    return Table("Confidence of the values", ("field", *shown, "all"), rows)


_GRADES = ("verified", "secondary", "derived", "unverified", "assumed")
