"""Results of a sweep: one row per point, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from mlsys.formatting import natural
from mlsys.sweep.point_table import Column, PointTable, columns_of, reasons_of
from mlsys.tables import Table
from mlsys.unit_checks import checked_choice
from mlsys.units import Q_

_FRONT = 40  # maximum lines of a table


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


_UNITS = {
    "sequence": "token", "image": "pixel", "bound_seconds": "s", "estimate_seconds": "s", "low_seconds": "s",
    "high_seconds": "s", "samples_per_second": "1/s",
    "flops": "FLOP", "bytes": "byte", "weight_bytes": "byte", "needed_bytes": "byte", "capacity_bytes": "byte",
    "design_energy_joules": "J", "price_usd": "USD",
}  # fmt: skip


COLUMNS = columns_of(SweepRow, _UNITS)
Cost = Literal["energy", "price"]
_COST_COLUMNS: dict[Cost, str] = {"energy": "design_energy_joules", "price": "price_usd"}


@dataclass(frozen=True)
class SweepTable(PointTable[SweepRow]):
    """The points of a sweep in order, as columns.

    Attributes
    ----------
    columns
        One tuple of values for each name of :class:`SweepRow`; None where there is no value.
    provenance
        Version, date, hashes of the catalogue and of the code, and the specification.
    facts
        Facts that were read for each device; empty if the rows come from a folder.

    Examples
    --------
    >>> from mlsys.sweep import SweepSpec, sweep
    >>> table = sweep(SweepSpec(models=["resnet50"], devices=["A100"], batches=[32]))
    >>> print(f"{table.quantity('bound_seconds')[0].to('ms'):.2f}")
    1.05 ms
    >>> [fact.name for fact in table.quantity("bound_seconds").facts][:1]
    ['A100_80GB/peaks/fp16/matrix/dense']
    """

    ROW: ClassVar[type[Any]] = SweepRow
    COLUMNS: ClassVar[tuple[Column, ...]] = COLUMNS
    OWNER: ClassVar[str] = "device"

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
        self._check_model("pareto", model)
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
    lines += reasons_of(sweep_table.columns["error"])
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
