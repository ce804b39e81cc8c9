"""Tables of points: rows of one type in columns, with units, provenance and the facts behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.files import csv_text
from mlsys.frozen import FrozenDict
from mlsys.provenance import Fact, Step
from mlsys.units import Q_, Quantity

_REASONS = 5
Row = TypeVar("Row")


class Column(NamedTuple):
    """Name, type and unit of a column; an empty unit for texts, counts and pure numbers."""

    name: str
    type: type
    unit: str


def columns_of(row: Any, units: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns of a named tuple, with the given units."""
    hints = get_type_hints(row)
    kinds = {
        name: next(kind for kind in (str, bool, int, float) if kind in (hint, *get_args(hint)))
        for name, hint in hints.items()
    }
    return tuple(Column(name, kinds[name], units.get(name, "")) for name in row._fields)


@dataclass(frozen=True)
class PointTable(Generic[Row]):
    """Points in order, as columns.

    Attributes
    ----------
    columns
        One tuple of values for each name of the row; None where there is no value.
    provenance
        Version, date, hashes of the catalogue and of the code, and the specification.
    facts
        Facts that were read for each device or system; empty if the rows come from a folder.
    """

    ROW: ClassVar[type[Any]]
    COLUMNS: ClassVar[tuple[Column, ...]]
    OWNER: ClassVar[str]

    columns: FrozenDict[str, tuple[Any, ...]]
    provenance: FrozenDict[str, str]
    facts: FrozenDict[str, tuple[Fact, ...]] = field(default_factory=lambda: FrozenDict({}), compare=False, repr=False)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[Any]],
        provenance: Mapping[str, str] | None = None,
        facts: Mapping[str, tuple[Fact, ...]] | None = None,
    ) -> Self:
        """Return a table of columns given as sequences."""
        plain = FrozenDict({column.name: tuple(columns[column.name]) for column in cls.COLUMNS})
        return cls(plain, FrozenDict(provenance or {}), FrozenDict(facts or {}))

    def __len__(self) -> int:
        return len(self.columns["id"])

    def __iter__(self) -> Iterator[Row]:
        make: Any = self.ROW
        return cast("Iterator[Row]", map(make._make, zip(*self.columns.values(), strict=True)))

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as an array; missing numbers are NaN.

        Raises
        ------
        UnknownNameError
            If there is no such column.
        """
        if name not in self.columns:
            raise UnknownNameError(
                f"column(): unknown column {name!r}.{did_you_mean(name, self.columns)} Known: {', '.join(self.columns)}"
            )
        kind = next(column.type for column in self.COLUMNS if column.name == name)
        if kind in (int, float):
            return np.array([np.nan if value is None else value for value in self.columns[name]], dtype=float)
        return np.array(self.columns[name], dtype=object)

    def quantity(self, name: str) -> Quantity:
        """Return a numeric column with its unit, and with the facts of the table's devices or systems."""
        unit = next(
            (column.unit for column in self.COLUMNS if column.name == name and column.type in (int, float)), None
        )
        values = self.column(name)
        if unit is None:
            raise ArgumentError(f"quantity(): `name` must be a column of numbers, got {name!r}. Use column({name!r})")
        here = dict.fromkeys(self.columns[self.OWNER])
        facts = [fact for owner in here for fact in self.facts.get(owner, ())]
        owners = f"{self.OWNER}s"
        words = {"column": name, owners: next(iter(here)) if len(here) == 1 else f"{len(here)} {owners}"}
        # The exact subset of facts is not determined: that would need many points to be timed again for each.
        result = Q_(values, "" if unit == "pixel" else unit)
        result._origin = Step.from_facts("sweep", words, (), facts) if facts else None
        return result

    def where(self, keep: Callable[[Row], bool]) -> Self:
        """Return the rows for which ``keep`` is true, in order."""
        rows = [row for row in self if keep(row)]
        columns = {name: [getattr(row, name) for row in rows] for name in self.columns}
        return self.of(columns, self.provenance, self.facts)

    @property
    def answered(self) -> Self:
        """The rows that have an answer."""
        return self.where(lambda row: getattr(row, "error", None) is None)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the networks, in order."""
        return tuple(dict.fromkeys(self.columns["model"]))

    def csv(self) -> str:
        """Return the rows as CSV; the cell of a missing value is empty."""
        names = tuple(self.columns)
        rows = (dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True))
        own = self.provenance.get("user_overrides", "")
        if own:
            return csv_text(({**row, "user_overrides": own} for row in rows), (*names, "user_overrides"))
        return csv_text(rows, names)

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys sweep --json``: provenance, and one record per point."""
        rows = zip(*self.columns.values(), strict=True)
        points = [dict(zip(self.columns, row, strict=True)) for row in rows]
        return {"provenance": dict(self.provenance), "points": points}

    def explain(self) -> str:
        """Return the table in words."""
        raise NotImplementedError

    def _check_model(self, where: str, model: str) -> None:
        if model not in self.models:
            raise UnknownNameError(
                f"{where}(): no model {model!r} in this sweep.{did_you_mean(model, self.models)} "
                f"It has: {', '.join(self.models)}"
            )


def reasons_of(errors: Iterable[str | None]) -> list[str]:
    """Return why points have no answer, the most frequent reasons first, as lines of text."""
    reasons = Counter(error for error in errors if error)
    if not reasons:
        return []
    lines = ["", f"No answer for {reasons.total():,} points:"]
    lines += [f"  {count:,} × {reason}" for reason, count in reasons.most_common(_REASONS)]
    if len(reasons) > _REASONS:
        lines.append(f"  and {len(reasons) - _REASONS} other reasons, in the column `error`")
    return lines
