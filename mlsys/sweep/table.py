"""Results of a sweep: one row per point, in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.files import csv_text
from mlsys.formatting import natural
from mlsys.frozen import FrozenDict
from mlsys.provenance import Fact, Step
from mlsys.tables import Table
from mlsys.unit_checks import checked_choice
from mlsys.units import Q_, Quantity

_FRONT = 40  # maximum lines of a table
_REASONS = 5


class SweepRow(NamedTuple):
    """One point: its settings, and the answer or the reason why there is none.

    Attributes
    ----------
    id
        Content id: of the point, the facts of the device and the code that evaluates it.
    model, source, sequence, image, phase, fusion, precision, batch
        The network. ``source`` says where it comes from.
    device, device_class, kind, setting, calibration
        The device, its group and kind, the kind of software, and the setting whose fitted parameters were used.
    bound_seconds, bound_by
        Least time by the roofline.
    estimate_seconds, limited_by
        Calibrated time, and the cause of most of it.
    low_seconds, high_seconds
        80 % interval of the time; neither end is below the bound.
    samples_per_second
        Batch over estimated time.
    flops, bytes, weight_bytes, operators
        Work, compulsory traffic, the weight part of it, and the number of operators.
    utilisation
        Attained fraction of the dense peak.
    needed_bytes, capacity_bytes, fits
        Stored weights and the largest working set of an operator (for decoding also the whole KV cache): the least main
        memory; its capacity; and whether that suffices.
    design_energy_joules
        Estimated time at the thermal design power: an upper estimate, not a model of energy.
    price_usd
        As recorded for the device.
    error
        Why there is no answer; None if there is one.
    """

    id: str
    model: str
    source: str
    sequence: int | None
    image: int | None
    phase: str | None
    fusion: str
    precision: str
    batch: int
    device: str
    device_class: str
    kind: str
    setting: str | None
    calibration: str | None
    bound_seconds: float | None
    bound_by: str | None
    estimate_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    limited_by: str | None
    samples_per_second: float | None
    flops: float | None
    bytes: float | None
    weight_bytes: float | None
    operators: int | None
    utilisation: float | None
    needed_bytes: float | None
    capacity_bytes: float | None
    fits: bool | None
    design_energy_joules: float | None
    price_usd: float | None
    error: str | None


class Column(NamedTuple):
    """Name, type and unit of a column; an empty unit for texts, counts and pure numbers."""

    name: str
    type: type
    unit: str


_UNITS = {
    "sequence": "token", "image": "pixel", "bound_seconds": "s", "estimate_seconds": "s", "low_seconds": "s",
    "high_seconds": "s", "samples_per_second": "1/s",
    "flops": "FLOP", "bytes": "byte", "weight_bytes": "byte", "needed_bytes": "byte", "capacity_bytes": "byte",
    "design_energy_joules": "J", "price_usd": "USD",
}  # fmt: skip


def _columns() -> tuple[Column, ...]:
    hints = get_type_hints(SweepRow)
    plain = {name: next(kind for kind in (str, bool, int, float) if kind in (hint, *_parts(hint))) for name, hint in
             hints.items()}  # fmt: skip
    return tuple(Column(name, plain[name], _UNITS.get(name, "")) for name in SweepRow._fields)


def _parts(hint: Any) -> tuple[Any, ...]:
    return tuple(getattr(hint, "__args__", ()))


COLUMNS = _columns()
Cost = Literal["energy", "price"]
_COST_COLUMNS: dict[Cost, str] = {"energy": "design_energy_joules", "price": "price_usd"}


@dataclass(frozen=True)
class SweepTable:
    """The points of a sweep in order, as columns.

    Attributes
    ----------
    columns
        One tuple of values for each name of :class:`SweepRow`; None where there is no value.
    provenance
        Version, date, hashes of the catalogue and of the code, and the specification.
    facts
        Facts that were read for each device; empty if the rows come from a folder.
    """

    columns: FrozenDict[str, tuple[Any, ...]]
    provenance: FrozenDict[str, str]
    facts: FrozenDict[str, tuple[Fact, ...]] = field(default_factory=lambda: FrozenDict({}), compare=False, repr=False)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[Any]],
        provenance: Mapping[str, str] | None = None,
        facts: Mapping[str, tuple[Fact, ...]] | None = None,
    ) -> SweepTable:
        """Return a table of columns given as sequences."""
        plain = FrozenDict({column.name: tuple(columns[column.name]) for column in COLUMNS})
        return cls(plain, FrozenDict(provenance or {}), FrozenDict(facts or {}))

    def __len__(self) -> int:
        return len(self.columns["id"])

    def __iter__(self) -> Iterator[SweepRow]:
        return map(SweepRow._make, zip(*(self.columns[name] for name in SweepRow._fields), strict=True))

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
        kind = next(column.type for column in COLUMNS if column.name == name)
        if kind in (int, float):
            return np.array([np.nan if value is None else value for value in self.columns[name]], dtype=float)
        return np.array(self.columns[name], dtype=object)

    def quantity(self, name: str) -> Quantity:
        """Return a numeric column with its unit, and with the facts of the table's devices.

        Examples
        --------
        >>> from mlsys.sweep import SweepSpec, sweep
        >>> table = sweep(SweepSpec(models=["resnet50"], devices=["A100"], batches=[32]))
        >>> print(f"{table.quantity('bound_seconds')[0].to('ms'):.2f}")
        1.05 ms
        >>> [fact.name for fact in table.quantity("bound_seconds").facts][:1]
        ['A100_80GB/peaks/fp16/matrix/dense']
        """
        unit = next((column.unit for column in COLUMNS if column.name == name and column.type in (int, float)), None)
        values = self.column(name)
        if unit is None:
            raise ArgumentError(f"quantity(): `name` must be a column of numbers, got {name!r}. Use column({name!r})")
        here = dict.fromkeys(self.columns["device"])
        facts = [fact for device in here for fact in self.facts.get(device, ())]
        words = {"column": name, "devices": next(iter(here)) if len(here) == 1 else f"{len(here)} devices"}
        # The exact subset of facts is not determined: that would need many points to be timed again for each.
        result = Q_(values, "" if unit == "pixel" else unit)
        result._origin = Step.told("sweep", words, (), facts) if facts else None
        return result

    def where(self, keep: Callable[[SweepRow], bool]) -> SweepTable:
        """Return the rows for which ``keep`` is true, in order."""
        rows = [row for row in self if keep(row)]
        columns = {name: [getattr(row, name) for row in rows] for name in SweepRow._fields}
        return SweepTable.of(columns, self.provenance, self.facts)

    @property
    def answered(self) -> SweepTable:
        """The rows that have an answer."""
        return self.where(lambda row: row.error is None)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the networks, in order."""
        return tuple(dict.fromkeys(self.columns["model"]))

    def best(self) -> tuple[SweepRow, ...]:
        """Return, for each model, the point of the highest rate among those that fit in memory."""
        fastest: dict[str, SweepRow] = {}
        for row in self:
            if row.error is None and row.fits is not False and row.samples_per_second is not None:
                held = fastest.get(row.model)
                if held is None or row.samples_per_second > (held.samples_per_second or 0.0):
                    fastest[row.model] = row
        return tuple(fastest[model] for model in self.models if model in fastest)

    def pareto(self, model: str, against: Cost = "energy") -> tuple[SweepRow, ...]:
        """Return the Pareto-optimal points of a model in time and cost, fastest first.

        Parameters
        ----------
        model
            One of ``models``.
        against
            ``"energy"``, at the design power and per sample, or ``"price"``, of the device.

        Returns
        -------
        tuple of Row
            By time per sample; points that do not fit or lack the cost are omitted.

        Raises
        ------
        UnknownNameError
            If the sweep has no such model, or there is no such cost.
        """
        if model not in self.models:
            raise UnknownNameError(
                f"pareto(): no model {model!r} in this sweep.{did_you_mean(model, self.models)} "
                f"It has: {', '.join(self.models)}"
            )
        checked_choice("pareto", "against", against, get_args(Cost))
        usable = [
            (*costs(row, against), row)
            for row in self
            if row.model == model and row.error is None and row.fits is not False and None not in costs(row, against)
        ]
        front: list[SweepRow] = []
        least = float("inf")
        for _, cost, row in sorted(usable, key=lambda entry: entry[:2]):
            if cost < least:
                front.append(row)
                least = cost
        return tuple(front)

    def csv(self) -> str:
        """Return the rows as CSV; an empty cell is no value."""
        own = self.provenance.get("user_overrides", "")
        if own:
            return csv_text(
                ({**row._asdict(), "user_overrides": own} for row in self), (*SweepRow._fields, "user_overrides")
            )
        return csv_text((row._asdict() for row in self), SweepRow._fields)

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys sweep --json``: provenance, and one record per point."""
        return {"provenance": dict(self.provenance), "points": [row._asdict() for row in self]}

    def explain(self) -> str:
        """Return the best device of each model, the Pareto fronts and the reasons of missing answers, as text."""
        return _summary(self)


def costs(row: SweepRow, against: Cost) -> tuple[Any, Any]:
    """Return seconds per sample, and joules per sample or dollars; None if unknown."""
    time = None if row.estimate_seconds is None else row.estimate_seconds / row.batch
    cost = getattr(row, _COST_COLUMNS[against])
    return time, cost if cost is None or against == "price" else cost / row.batch


def _summary(sweep_table: SweepTable) -> str:
    """Return the best device of each model, the Pareto fronts, and why points have no answer."""
    answered = sum(error is None for error in sweep_table.columns["error"])
    lines = [
        f"{len(sweep_table):,} points, {answered:,} answered: {len(sweep_table.models)} models, "
        f"{len(set(sweep_table.columns['device']))} devices",
        "",
        repr(_best(sweep_table)),
    ]
    for against in get_args(Cost):
        rows = [(model, row) for model in sweep_table.models for row in sweep_table.pareto(model, against)]
        if rows:
            lines += ["", repr(_front(against, rows[:_FRONT]))]
        if len(rows) > _FRONT:
            lines.append(f"and {len(rows) - _FRONT:,} more, shown by `pareto()` and `--figure`")
    reasons = Counter(error for error in sweep_table.columns["error"] if error)
    if reasons:
        lines += ["", f"No answer for {reasons.total():,} points:"]
        lines += [f"  {count:,} × {reason}" for reason, count in reasons.most_common(_REASONS)]
        if len(reasons) > _REASONS:
            lines.append(f"  and {len(reasons) - _REASONS} other reasons, in the column `error`")
    return "\n".join(lines)


def label(row: SweepRow) -> str:
    """Return a label that distinguishes a point from others of its model on the same device."""
    sizes = (("sequence", row.sequence), ("image", row.image), ("", row.phase))
    named = [f"{name} {value}".strip() for name, value in sizes if value is not None]
    return ", ".join((row.precision, f"batch {row.batch}", *named, *(() if row.fusion == "on" else ("unfused",))))


def _best(sweep_table: SweepTable) -> Table:
    columns = ("model", "device", "point", "estimate", "80 % range", "at least", "samples/s", "limited by")
    rows = [
        (
            row.model,
            row.device,
            label(row),
            f"{Q_(row.estimate_seconds, 's').to_compact():.3g}",
            _range(row),
            f"{Q_(row.bound_seconds, 's').to_compact():.3g}",
            natural(row.samples_per_second or 0.0),
            row.limited_by or "",
        )
        for row in sweep_table.best()
    ]
    return Table("Highest rate among points that fit in memory", columns, rows)


def _range(row: SweepRow, samples: int = 1) -> str:
    """Return the 80 % range of a time as text, divided by a number of samples."""
    low, high = (Q_((end or 0.0) / samples, "s").to_compact() for end in (row.low_seconds, row.high_seconds))
    return f"{low:.3g} to {high:.3g}"


def _front(against: Cost, chosen: list[tuple[str, SweepRow]]) -> Table:
    unit, what = ("J", "J/sample at the design power") if against == "energy" else ("USD", "USD for the device")
    rows = []
    for model, row in chosen:
        time, cost = costs(row, against)
        rows.append((model, row.device, label(row), f"{Q_(time, 's').to_compact():.3g}", _range(row, row.batch),
                     natural(cost)))  # fmt: skip
    title = "Pareto front: time against " + ("energy" if unit == "J" else "price")
    return Table(title, ("model", "device", "point", "time/sample", "80 % range", what), rows)
