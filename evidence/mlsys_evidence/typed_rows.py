"""Typed rows: what was measured, in columns that the schema names, with the citation beside them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.errors import did_you_mean
from mlsys.files import csv_text
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware
from mlsys.inputs import csv_records, read_text, yaml_of
from mlsys.models.estimate.lowering import Format

SCHEMA = Path(__file__).parent / "data" / "schema.yaml"
_SETS = ("libraries", "features")
_FLOATS = ("share", "weight_bytes", "value_bytes")
_OTHERS = ("row", "numbers")


@dataclass(frozen=True, eq=False)
class TypedRow:
    """One measurement in typed columns; ``schema.yaml`` says what each column, number and feature means.

    Attributes
    ----------
    row
        The citation: value, unit, number of devices and sweep are read from it, and none of its words.
    kind, operation
        The kind of workload that it is counted under, and which question it is.
    refused
        Why no model can express it; empty if one may.
    device, share, processor, board
        Id of the device in the catalogue; the part of it that worked; ``"cpu"`` if the CPU of a system on chip did; and
        of an energy the device whose board was metered.
    computes, weight_bytes, value_bytes, vector_unit
        Number format of the arithmetic, bytes of a weight and of an activation, whether vector units computed.
    batch, network, label
        Samples at once; the name of the network; and the name in the source, where that is another.
    software, version, release, dated
        Kind of software; its name and version; the version of its main program; when it was built.
    launch_mode, tf32, algorithm, quantizer, scheme, kernels, widths
        How kernels are launched, what TF32 replaces, which algorithms and kernels ran, and the widths of dense layers.
    libraries, features
        Libraries that the software names, and what else is known of the run.
    numbers
        Sizes and counts by name: ``m``, ``n``, ``k``, ``tokens``, ``threads``, ….
    """

    row: Row
    kind: str = ""
    operation: str = ""
    refused: str = ""
    device: str = ""
    share: float = 1.0
    processor: str = ""
    board: str = ""
    computes: str = ""
    weight_bytes: float = 0.0
    value_bytes: float = 0.0
    vector_unit: bool = False
    batch: int | None = None
    network: str = ""
    label: str = ""
    software: str = ""
    version: str = ""
    release: str = ""
    dated: str = ""
    launch_mode: str = ""
    tf32: str = ""
    algorithm: str = ""
    quantizer: str = ""
    scheme: str = ""
    widths: str = ""
    kernels: str = ""
    libraries: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    numbers: Mapping[str, float] = field(default_factory=lambda: FrozenDict({}))

    @cached_property
    def machine(self) -> Device:
        """The device of the catalogue."""
        return Hardware[self.device]

    @cached_property
    def format(self) -> Format:
        """The number formats."""
        return Format(self.computes, self.weight_bytes, self.value_bytes, self.vector_unit)

    @cached_property
    def released(self) -> tuple[int, ...]:
        """The version of the main program as numbers; empty where it is not known."""
        return tuple(int(part) for part in self.release.split(".")) if self.release else ()

    def has(self, name: str) -> bool:
        """Return whether a feature is known of the run, or its software names a library."""
        return name in self.features or name in self.libraries

    def number(self, name: str) -> int:
        """Return a whole number.

        Raises
        ------
        Inexpressible
            If the row does not have it; the text is the reason.
        """
        if name not in self.numbers:
            raise Inexpressible(f"{schema()['numbers'][name]} not stated")
        return int(self.numbers[name])

    def get(self, name: str, otherwise: float = 0.0) -> float:
        """Return a number, or ``otherwise`` if the row does not have it."""
        return self.numbers.get(name, otherwise)

    def samples(self, otherwise: int | None = None) -> int:
        """Return the batch, or ``otherwise`` where the row does not state it.

        Raises
        ------
        Inexpressible
            If neither is given.
        """
        if self.batch is not None:
            return self.batch
        if otherwise is None:
            raise Inexpressible("batch not stated")
        return otherwise


@lru_cache(maxsize=1)
def schema() -> FrozenDict[str, Any]:
    """Return the columns of a typed row, and the meaning of each number, library and feature."""
    return FrozenDict(yaml_of(read_text(SCHEMA)))


@lru_cache(maxsize=1)
def _accepted() -> dict[str, Any]:
    """Return the schema as sets, which thousands of rows are compared with."""
    known = schema()
    choices = {name: frozenset(words) for name, words in known["choices"].items()}
    return {"choices": choices} | {name: frozenset(known[name]) for name in (*_SETS, "numbers")}


_COLUMNS = tuple(entry.name for entry in fields(TypedRow) if entry.name not in _OTHERS)


def columns() -> tuple[str, ...]:
    """Return the names of the columns of a file of typed rows."""
    return ("id", *_COLUMNS, *schema()["numbers"])


def check(typed: TypedRow) -> None:
    """Raise if a typed row has a word or a number that the schema does not have.

    Raises
    ------
    ValueError
        Naming the column, what was given, and what is accepted.
    """
    known = _accepted()
    for name, choices in known["choices"].items():
        given = getattr(typed, name)
        if given and given not in choices:
            accepted = ", ".join(schema()["choices"][name])
            raise ValueError(f"`{name}` must be empty or one of {accepted}: got {given!r}")
    for name in _SETS:
        for each in sorted(getattr(typed, name) - known[name]):
            raise ValueError(f"`{name}` has the unknown word {each!r}.{did_you_mean(each, list(known[name]))}")
    for name, number in typed.numbers.items():
        if name not in known["numbers"]:
            raise ValueError(f"`{name}` is no column of the schema.{did_you_mean(name, list(known['numbers']))}")
        if not (math.isfinite(number) and number >= 0):
            raise ValueError(f"`{name}` must be a number from zero on: got {number!r}")
    if typed.batch is not None and typed.batch < 1:
        raise ValueError(f"`batch` must be a whole number above zero: got {typed.batch!r}")
    if not typed.refused and not typed.operation:
        raise ValueError("`operation` must not be empty where `refused` is")


def typed_text(rows: Iterable[TypedRow]) -> str:
    """Return typed rows as CSV text, a line each."""
    first, *others = columns()
    return csv_text(
        ({first: typed.row.id} | {name: _cell(typed, name) for name in others} for typed in rows), columns()
    )


def _cell(typed: TypedRow, name: str) -> str:
    if name not in _COLUMNS:
        return repr(typed.numbers[name]) if name in typed.numbers else ""
    content = getattr(typed, name)
    if name in _SETS:
        return "; ".join(sorted(content))
    if name in _FLOATS:
        return f"{content!r}" if content != _DEFAULTS[name] else ""
    if name == "vector_unit":
        return "yes" if content else ""
    return "" if content is None else str(content)


_DEFAULTS = {entry.name: entry.default for entry in fields(TypedRow)}


def read_typed(path: Path, rows: Iterable[Row]) -> list[TypedRow]:
    """Return the typed rows of a file, each with its citation.

    Parameters
    ----------
    path
        As :func:`typed_text` writes it.
    rows
        The citations, in the same order.

    Raises
    ------
    ValueError
        If a column, an id, a word or a number is not one of the schema.
    """
    (_, names), *records = csv_records(path) or [(1, [])]
    if tuple(names) != columns():
        unknown = sorted(set(names) ^ set(columns()))
        raise ValueError(f"{path}: line 1: columns differ from the schema: {', '.join(unknown) or 'their order'}")
    split = len(_COLUMNS) + 1
    typed = []
    for (line, cells), row in zip(records, rows, strict=True):
        if cells[0] != row.id:
            raise ValueError(f"{path}: line {line}: `id` must be {row.id!r}, got {cells[0]!r}: run the ingest again")
        given = {name: _value(name, text) for name, text in zip(names[1:split], cells[1:split], strict=True) if text}
        numbers = {name: _number(text) for name, text in zip(names[split:], cells[split:], strict=True) if text}
        each = TypedRow(row, **given, numbers=FrozenDict(numbers))
        try:
            check(each)
        except ValueError as error:
            raise ValueError(f"{path}: line {line}: {error}") from None
        typed.append(each)
    return typed


def _value(name: str, text: str) -> Any:
    if name in _SETS:
        return _words(text)
    if name in _FLOATS:
        return _number(text)
    if name == "vector_unit":
        return text == "yes"
    return int(text) if name == "batch" else text


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split("; "))


@lru_cache(maxsize=1 << 14)
def _number(text: str) -> float:
    return int(text) if text.isdigit() else float(text)
