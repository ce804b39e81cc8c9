"""Published measurements as rows of a CSV file."""

import csv
import io
import math
import re
from collections import Counter
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.amounts import parsed_number
from mlsys.errors import did_you_mean
from mlsys.faults import short
from mlsys.inputs import read_text
from mlsys.units import UndefinedUnitError, ureg

# Marks a record with too many or too few cells.
_RAGGED = "\0cells"
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Columns that files of measurements may have in addition to those of a row.
EXTRA = ("source_type", "confidence", "licence")
# Counted things that are not units of the registry.
_COUNTED = ("%", "x", "PEs", "CPU ticks", "fps", "FPS", "qps", "QPS")
REQUIRED = ("device", "device_class", "workload", "precision", "seq_or_shape", "metric", "value", "unit")
# With one of these columns, a file needs no free-text description of the workload.
TYPED, IN_WORDS = ("network", "operator"), ("workload", "seq_or_shape")
ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
"""Operators that stream arrays, and how many arrays each reads or writes."""
_CHOICES = {"operator": tuple(ARRAYS), "processor": ("cpu", "cuda"), "tf32": ("none", "convolutions")}
_WHOLE = ("elements", "image", "tokens", "threads")
_PARTS = ("spread", "busy", "clock_mhz")


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes
    ----------
    id
        Identifier in the file.
    device, device_class, n_devices
        The device in the words of the source; and the number of devices, 0 if not stated.
    workload, model, precision, batch, seq_or_shape
        The workload, in the words of the source.
    metric, value, unit
        The measured quantity.
    software
        Library or runtime.
    source, source_path
        Publication: a key of :func:`sources` or an address, and the place in it.
    quality
        ``"primary"``, ``"secondary"`` or ``"suspect"``.
    group
        The sweep of the row: rows of one sweep are never split between fit and test.
    note
        Further remarks of the source.
    line
        Line in its file, for errors; 0 if not from a file.
    network
        Name of the network in the catalogue, with ``image`` or ``tokens``.
    operator
        ``"copy"``, ``"scale"``, ``"add"`` or ``"triad"`` of arrays of ``elements`` numbers each.
    elements, image, tokens
        Length of an array, pixels along the side of an image, tokens of a sequence.
    stack
        Software of a network: ``"eager"`` for eager PyTorch, ``"compiled"``, ``"ncnn"``, …; with ``software`` as its
        version.
    processor, threads
        ``"cpu"`` or ``"cuda"``, and number of CPU threads.
    tf32
        ``"convolutions"`` if FP32 convolutions may be computed in TF32; ``"none"`` if not.
    spread
        Interquartile range of the samples, over their median.
    busy
        Share of CPU time that the program's threads had.
    clock_mhz
        Clock after the measurement.
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
    line: int = field(default=0, compare=False)
    network: str = ""
    operator: str = ""
    elements: int | None = None
    image: int | None = None
    tokens: int | None = None
    stack: str = ""
    processor: str = ""
    threads: int | None = None
    tf32: str = ""
    spread: float | None = None
    busy: float | None = None
    clock_mhz: float | None = None

    @property
    def typed(self) -> bool:
        """Whether typed columns describe the measurement, so that no free text is read."""
        return bool(self.network or self.operator)

    @property
    def measured_by(self) -> str:
        """The source without its version and host, as named in the tables of the fit; MLPerf's rounds are one source.

        Examples
        --------
        >>> from dataclasses import replace
        >>> row = Row(*[""] * 3, 1, *[""] * 6, 1.0, *[""] * 7)
        >>> replace(row, source="https://github.com/Tencent/ncnn@a4d2ea1").measured_by
        'Tencent/ncnn'
        >>> replace(row, source="mlcommons/inference_results_v4.1").measured_by  # one rule book, one load generator
        'mlcommons/inference_results'
        """
        return _measured_by(self.source)


@lru_cache(maxsize=1024)
def _measured_by(source: str) -> str:
    return re.sub(r"^(https?://)?github\.com/|@.*|(?<=_results)_v[\d.]+$", "", source)


COLUMNS = tuple(entry.name for entry in fields(Row) if entry.name != "line")


def unread_columns(path: Path, *, measured: bool = True) -> list[str]:
    """Return the columns of a CSV file that are not columns of measurements.

    Raises
    ------
    ValueError
        If one of them is a misspelt required column.
    """
    columns = columns_of(path, measured=measured)
    unread = [name for name in columns if name not in (*COLUMNS, *EXTRA)]
    for name in unread:
        meant = did_you_mean(name, [column for column in COLUMNS if column not in columns])
        if meant:
            raise ValueError(f"{path}: line 1: unknown column {name!r}.{meant}")
    return unread


def columns_of(path: Path, *, measured: bool = True) -> list[str]:
    """Return the column names in the first line of a CSV file."""
    return _records(path, measured)[0]


def read_rows(path: Path, *, measured: bool = True) -> list[Row]:
    """Return the measurements in a CSV file.

    Parameters
    ----------
    path
        A file whose first line names at least the columns device, device_class, workload,
        precision, seq_or_shape, metric, value and unit; with a column network or operator, workload and seq_or_shape
        may be absent.
    measured
        Whether to read values; False for a list of possible measurements, each with a value of one unit.

    Raises
    ------
    ValueError
        If a column is missing, there are no rows, or a value is not a positive number; the message lists every such
        line.
    """
    columns, records = _records(path, measured)
    if not records:
        raise ValueError(f"{path}: no rows after the first line")
    faults: list[str] = []
    rows = []
    seen: dict[str, int] = {}
    for number, record in records:
        if _RAGGED in record:
            faults.append(f"line {number}: expected {len(columns)} cells, as in the first line, got {record[_RAGGED]}")
            continue
        try:
            row = _row(number, record if measured else record | {"value": "1"})
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if row.id in seen:
            faults.append(f"line {number}: duplicate `id` {row.id!r}, first in line {seen[row.id]}; ids must differ")
            continue
        seen[row.id] = number
        rows.append(row)
    if faults:
        shown = "\n  ".join(faults[:20]) + (f"\n  and {len(faults) - 20} more" if len(faults) > 20 else "")
        if len(faults) == 1:
            raise ValueError(f"{path}: 1 bad row, {faults[0]}")
        raise ValueError(f"{path}: {len(faults)} bad rows\n  {shown}")
    return rows


def _records(path: Path, measured: bool = True) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the column names, and each record with the number of its first line.

    Raises
    ------
    ValueError
        If a column is missing or duplicated, or a field is longer than the limit of 128 KiB.
    """
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""))
    columns: list[str] = []
    records: list[tuple[int, dict[str, str]]] = []
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not columns:
                columns = [cell.strip() for cell in cells]
            elif cells:
                record: dict[str, str] = dict(zip(columns, cells, strict=False))
                if len(cells) != len(columns):
                    record[_RAGGED] = str(len(cells))
                records.append((line, record))
    except csv.Error as error:
        column = _long_column(text, before, columns)
        raise ValueError(f"{path}: line {before + 1}{column}: {error}. A field holds at most 128 KiB") from error
    twice = sorted(name for name, times in Counter(columns).items() if times > 1)
    if twice:
        raise ValueError(f"{path}: line 1: duplicate columns: {', '.join(twice)}. Give each column its own name")
    needless = {*(() if measured else ("value",)), *(IN_WORDS if set(columns) & set(TYPED) else ())}
    required = [name for name in REQUIRED if name not in needless]
    missing = [name for name in required if name not in columns]
    if not columns:
        raise ValueError(f"{path}: the file is empty. The first line must name at least {', '.join(required)}")
    if missing:
        other = next((name for mark, name in _SEPARATORS.items() if len(columns) == 1 and mark in columns[0]), "")
        if not other and set(required) <= {name.lower() for name in columns}:
            raise ValueError(f"{path}: line 1: write column names in lower case: {', '.join(required)}")
        raise ValueError(
            f"{path}: line 1: the cells are separated by {other}: save the file with commas"
            if other
            else f"{path}: line 1: columns missing: {', '.join(missing)}; found: {short(columns)}. "
            f"The first line must name at least {', '.join(required)}"
        )
    return columns, records


def _long_column(text: str, before: int, columns: list[str]) -> str:
    """Return the name of the column whose field is too long, on the line after ``before``."""
    line = text.split("\n")[before] if before < text.count("\n") + 1 else ""
    longest = max(enumerate(line.split(",")), key=lambda pair: len(pair[1]))[0]
    return f", column `{columns[longest]}`" if longest < len(columns) else ""


def _as_written(text: str) -> str:
    """Return a hint for a value with a decimal comma or with a unit; empty otherwise."""
    if re.fullmatch(r"\d+,\d+", text):
        return f": write {text.replace(',', '.')}, with a point"
    written = re.fullmatch(r"([\d.]+) ?[A-Za-zµ%/]+", text)
    return f": write {written.group(1)}, and the unit in its own column" if written else ""


def _row(number: int, record: dict[str, str]) -> Row:
    text = {name: (record.get(name) or "").strip() for name in COLUMNS}
    try:
        value = parsed_number(text["value"])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and (value > 0 or (value == 0 and text["unit"] == "%"))):
        raise ValueError(
            f"`value` must be a number above zero in {text['unit'] or 'its unit'}, got {record['value']!r}"
            + _as_written(text["value"])
        )
    devices = _devices(text["n_devices"])
    typed = _typed(text)
    for name in ("device", "workload", "metric", "unit"):
        if not text[name] and not (name == "workload" and (text["network"] or text["operator"])):
            raise ValueError(f"`{name}` must not be empty")
    if not _is_unit(text["unit"]):
        raise ValueError(
            f"`unit` must be one of time, rate, bandwidth, energy or power, such as ms, got {text['unit']!r}"
        )
    _batch(text["batch"])
    plain: dict[str, Any] = {
        name: content for name, content in text.items() if name not in ("value", "n_devices", "id", *typed)
    }
    return Row(id=text["id"] or f"row{number}", n_devices=devices, value=value, line=number, **plain, **typed)


def _typed(text: dict[str, str]) -> dict[str, Any]:
    """Return the typed columns; raise if a number or a choice is invalid."""
    for name, choices in _CHOICES.items():
        if text[name] not in ("", *choices):
            raise ValueError(f"`{name}` must be {' or '.join(choices)}, or empty, got {text[name]!r}")
    if text["network"] and text["operator"]:
        raise ValueError(f"`operator` must be empty where `network` is not, got {text['operator']!r}")
    numbers: dict[str, Any] = dict.fromkeys((*_WHOLE, *_PARTS))
    for name in numbers:
        if not text[name]:
            continue
        try:
            number = parsed_number(text[name])
        except ValueError:
            number = math.nan
        least = 1 if name in _WHOLE else 0
        if not (least <= number < _MOST_NUMBER) or (name in _WHOLE and number != math.floor(number)):
            kind = "whole number above zero" if name in _WHOLE else "number from zero on"
            raise ValueError(f"`{name}` must be a {kind}, or empty, got {text[name]!r}")
        numbers[name] = int(number) if name in _WHOLE else number
    return numbers


@lru_cache(maxsize=256)
def _is_unit(text: str) -> bool:
    """Return whether a word is a unit that rows may have; rates may count anything per second."""
    if "/" in text or text in _COUNTED:
        return True
    try:
        return set(ureg.Unit(text).dimensionality) != {"[length]"}
    except (UndefinedUnitError, ValueError, TypeError, AttributeError, SyntaxError):
        return False


# Largest batch of any machine.
MOST_BATCH = 10**9
_MOST_NUMBER = 1e15


def _batch(text: str) -> None:
    """Raise if a batch is not a positive whole number; words such as ``micro 4`` and an empty cell are accepted."""
    match = re.match(r"\s*([-+]?(?:\d[\d.,]*(?:[eE][-+]?\d+)?|nan|inf\w*))\b", text, re.IGNORECASE)
    if match is None:
        if re.fullmatch(r"[A-Za-z_]+", text):  # a remark such as "unlimited queue (max in-flight)" is accepted
            raise ValueError(f"`batch` must be a whole number above zero, or empty if not stated, got {text!r}")
        return
    try:
        number = float(match.group(1).rstrip(",.").replace(",", ""))
        if "," in match.group(1).rstrip(","):
            number = parsed_number(match.group(1).rstrip(",."))  # commas between thousands only
    except ValueError as error:
        raise ValueError(f"`batch` must be a whole number from 1 to 10⁹, got {text!r}") from error
    if not (1 <= number <= MOST_BATCH and number == math.floor(number)):
        raise ValueError(f"`batch` must be a whole number from 1 to 10⁹, got {text!r}")


def _devices(text: str) -> int:
    """Return the number of devices; 0 for a question mark, if the source does not state it."""
    if text == "?":
        return 0
    try:
        number = parsed_number(text or "1")
    except ValueError:
        number = math.nan
    if not (number >= 1 and number == math.floor(number)):
        raise ValueError(f"`n_devices` must be a whole number above zero, or ? if not stated, got {text!r}")
    return int(number)
