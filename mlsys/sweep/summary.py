"""A sweep in a page of text."""

from __future__ import annotations

from collections import Counter

from mlsys.formatting import natural
from mlsys.sweep.table import Row, SweepTable, costs
from mlsys.tables import Table
from mlsys.units import Q_

__all__ = ["label", "summary"]

_REASONS = 5


def summary(found: SweepTable) -> str:
    """Return the best device of each model, the Pareto fronts, and why points have no answer."""
    answered = sum(error is None for error in found.columns["error"])
    lines = [
        f"{len(found):,} points, {answered:,} answered: {len(found.models)} models, "
        f"{len(set(found.columns['device']))} devices",
        "",
        repr(_best(found)),
    ]
    for against in ("energy", "price"):
        rows = [(model, row) for model in found.models for row in found.pareto(model, against)]
        if rows:
            lines += ["", repr(_front(against, rows))]
    reasons = Counter(error for error in found.columns["error"] if error)
    if reasons:
        lines += ["", f"No answer for {reasons.total():,} points:"]
        lines += [f"  {count:,} × {reason}" for reason, count in reasons.most_common(_REASONS)]
        if len(reasons) > _REASONS:
            lines.append(f"  and {len(reasons) - _REASONS} other reasons, in the column `error`")
    return "\n".join(lines)


def label(row: Row) -> str:
    """Return what tells a point of one model from another one on the same device."""
    sizes = (("sequence", row.sequence), ("image", row.image), ("", row.phase))
    named = [f"{name} {value}".strip() for name, value in sizes if value is not None]
    return ", ".join((row.precision, f"batch {row.batch}", *named, *(() if row.fusion == "on" else ("unfused",))))


def _best(found: SweepTable) -> Table:
    heads = ("model", "device", "point", "estimate", "at least", "samples/s", "held by")
    rows = [
        (
            row.model,
            row.device,
            label(row),
            f"{Q_(row.estimate_seconds, 's').to_compact():.3g}",
            f"{Q_(row.bound_seconds, 's').to_compact():.3g}",
            natural(row.samples_per_second or 0.0),
            row.held_by or "",
        )
        for row in found.best()
    ]
    return Table("Highest rate among what fits", heads, rows)


def _front(against: str, chosen: list[tuple[str, Row]]) -> Table:
    unit, what = ("J", "J/sample at the design power") if against == "energy" else ("USD", "USD for the device")
    rows = []
    for model, row in chosen:
        time, cost = costs(row, against)
        rows.append((model, row.device, label(row), f"{Q_(time, 's').to_compact():.3g}", natural(cost)))
    title = "Neither faster for each sample nor cheaper is possible: time against " + (
        "energy" if unit == "J" else "price"
    )
    return Table(title, ("model", "device", "point", "time/sample", what), rows)
