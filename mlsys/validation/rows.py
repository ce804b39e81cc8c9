"""Published measurements as they were published, one row each."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from mlsys.frozen import FrozenDict

__all__ = ["Row", "cited_rows", "read_rows", "shipped_rows", "sources"]

_DATA = Path(__file__).parent / "data"
REQUIRED = ("device", "device_class", "workload", "precision", "seq_or_shape", "metric", "value", "unit")


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes
    ----------
    id
        Its name in the file.
    device, device_class, n_devices
        What was measured, in the words of the source; and how many worked together, 0 where not stated.
    workload, model, precision, batch, seq_or_shape
        What it did, in the words of the source.
    metric, value, unit
        What was measured.
    software
        Which library or runtime did it.
    source, source_path
        Where it was published: a key of :func:`sources` or an address, and the place in it.
    quality
        ``"primary"``, ``"secondary"`` or ``"suspect"``.
    group
        The sweep it belongs to: rows of one sweep are never parted between fit and test.
    note
        What else the source says of it.
    """

    id: str
    device: str
    device_class: str
    n_devices: int
    workload: str
    model: str
    precision: str
    batch: str
    seq_or_shape: str
    metric: str
    value: float
    unit: str
    software: str
    source: str
    source_path: str
    quality: str
    group: str
    note: str


def read_rows(path: Path) -> list[Row]:
    """Return the measurements in a CSV file.

    Parameters
    ----------
    path
        A file whose first line names at least the columns device, device_class, workload,
        precision, seq_or_shape, metric, value and unit.

    Raises
    ------
    ValueError
        If a column is missing, there is no row, or a value is no positive number; the
        message lists every such line.
    """
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        heads = reader.fieldnames or []
        missing = [name for name in REQUIRED if name not in heads]
        if missing:
            raise ValueError(
                f"{path}: columns missing: {', '.join(missing)}; found: {', '.join(heads) or 'none'}. "
                f"The first line must name at least {', '.join(REQUIRED)}"
            )
        records = list(reader)
    if not records:
        raise ValueError(f"{path}: no rows under the first line")
    faults: list[str] = []
    rows = []
    for number, record in enumerate(records, start=2):
        if None in record or None in record.values():
            faults.append(f"line {number}: wanted {len(heads)} cells, as the first line has")
            continue
        try:
            rows.append(_row(number, record))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    if faults:
        shown = "\n  ".join(faults[:20]) + (f"\n  and {len(faults) - 20} more" if len(faults) > 20 else "")
        raise ValueError(f"{path}: {len(faults)} bad row{'s' if len(faults) > 1 else ''}\n  {shown}")
    return rows


def _row(number: int, record: dict[str, str]) -> Row:
    text = {entry.name: (record.get(entry.name) or "").strip() for entry in fields(Row)}
    try:
        value = float(text["value"])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and (value > 0 or (value == 0 and text["unit"] == "%"))):
        raise ValueError(
            f"`value` must be a number above zero in {text['unit'] or 'its unit'}, got {record['value']!r}"
        )
    devices = _devices(text["n_devices"])
    for name in ("device", "workload", "metric", "unit"):
        if not text[name]:
            raise ValueError(f"`{name}` must not be empty")
    plain = {name: content for name, content in text.items() if name not in ("value", "n_devices", "id")}
    return Row(id=text["id"] or f"row{number}", n_devices=devices, value=value, **plain)


def _devices(text: str) -> int:
    """Return how many devices worked; 0 for the question mark of a source that does not say."""
    if text == "?":
        return 0
    try:
        number = float(text or "1")
    except ValueError:
        number = math.nan
    if not (number >= 1 and number == math.floor(number)):
        raise ValueError(f"`n_devices` must be a whole number above zero, or ? where not stated, got {text!r}")
    return int(number)


@lru_cache(maxsize=1)
def shipped_rows() -> tuple[Row, ...]:
    """Return the measurements that come with the package.

    Examples
    --------
    >>> rows = shipped_rows()
    >>> all(row.source in sources() for row in rows)
    True
    """
    return tuple(read_rows(_DATA / "measured.csv"))


@lru_cache(maxsize=1)
def cited_rows() -> tuple[Row, ...]:
    """Return the few measurements that are single facts of sources which cannot be redistributed.

    They speak where no shipped row does, so that no setting is left to guesses; they are in
    the fit and in no score.
    """
    return tuple(read_rows(_DATA / "cited.csv"))


@lru_cache(maxsize=1)
def sources() -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, address, licence and attribution of each source of the shipped rows."""
    import yaml

    with (_DATA / "sources.yaml").open(encoding="utf-8") as stream:
        read = yaml.safe_load(stream)
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})
