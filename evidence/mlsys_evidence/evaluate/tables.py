"""The report as tables for pages."""

from collections.abc import Callable, Mapping

from mlsys.formatting import natural
from mlsys.tables import Table
from mlsys_evidence.evaluate.report import Prediction, Score, Validation


def percent_cell(value: float | None, sign: bool = False) -> str:
    """Return a number of per cent as a cell; a dash where there is none, and no digits of what is off by tenfold."""
    if value is None:
        return "—"
    if value > 1000:
        return ">1000%"
    whole = round(value)
    return f"{whole:+d}%" if sign and whole else f"{whole}%"


def error_table(scores: Mapping[str, Score], caption: str) -> Table:
    """Return rows, errors and ranges of each group, in the words of the command ``mlsys validate``.

    Parameters
    ----------
    scores
        By the name of the group, as :meth:`Validation.scores` returns them.
    caption
        Above the table.
    """
    heads = ("group", "rows", "done", "median", "p90", "bias", "in 2×", "inside", "width")
    rows = [
        (
            name,
            part.rows,
            part.expressible,
            percent_cell(part.median_ape),
            percent_cell(part.p90_ape),
            percent_cell(part.bias, sign=True),
            percent_cell(part.within_factor_two),
            percent_cell(part.coverage),
            "—" if part.width is None else f"{part.width:.2g}×",
        )
        for name, part in scores.items()
    ]
    return Table(caption, heads, rows)


def bound_table(validation: Validation) -> Table:
    """Return why measurements beat the roofline of dense peaks, and how many."""
    counts: dict[str, int] = {}
    for each in validation.predictions:
        if each.excuse:
            counts[each.excuse] = counts.get(each.excuse, 0) + 1
    rows = [(count, reason) for reason, count in sorted(counts.items(), key=lambda item: -item[1])]
    return Table("Measurements faster than the roofline, and what explains them", ("rows", "explanation"), rows)


def reason_table(validation: Validation, most: int = 12) -> Table:
    """Return why rows are not expressible, the most frequent reasons first."""
    reasons = list(validation.reasons().items())
    rows = [(count, reason) for reason, count in reasons[:most]]
    rest = sum(count for _, count in reasons[most:])
    if rest:
        rows.append((rest, f"{len(reasons) - most} other reasons, listed by the command mlsys validate"))
    return Table("Measurements that no model of ours expresses", ("rows", "reason"), rows)


def worst_table(validation: Validation, most: int = 5, keep: Callable[[Prediction], bool] = lambda each: True) -> Table:
    """Return the rows furthest off, one of each machine and network."""
    rows: list[tuple[str, ...]] = []
    seen = set()
    for each in validation.worst(len(validation.predictions)):
        if (each.row.device, each.row.model) in seen or not keep(each):
            continue
        seen.add((each.row.device, each.row.model))
        unit = each.row.unit.replace("us", "µs")
        measured, predicted = (f"{natural(value)} {unit}" for value in (each.row.value, each.value))
        off = f"{max(each.ratio, 1 / each.ratio):.1f}×"
        rows.append((each.row.device, each.row.model or each.row.seq_or_shape, measured, predicted, off))
        if len(rows) == most:
            break
    return Table("The rows furthest off", ("machine", "work", "measured", "predicted", "off"), rows)
