"""How wrong the estimates are, by class of machine: in the fit, outside of it, and on strangers' measurements."""

from collections.abc import Iterable
from dataclasses import dataclass

from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys_evidence.evaluate.blind_evaluation import first_answers, held_examinations
from mlsys_evidence.evaluate.report import Prediction, Score, score, validate
from mlsys_evidence.evaluate.tables import percent_cell
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.rows import shipped_rows

# Rows from which a median says something.
FEWEST = 8
# The first examination that was answered with the ranges by the law that stands.
_BY_THIS_LAW = 5


@dataclass(frozen=True)
class ClassScores:
    """How wrong estimates of one class of machine are.

    Attributes
    ----------
    name
        Of the class, or ``"all"``.
    fitted, sweep, device, blind
        With all rows in the fit; with the whole sweep, and with the whole machine left out of it; and of
        measurements of strangers, as the examinations since the law of ranges stands were answered, once each.
    """

    name: str
    fitted: Score
    sweep: Score
    device: Score
    blind: Score


@remembered
@traced
def class_scores() -> tuple[ClassScores, ...]:
    """Return the scores of each class of machine, most rows first, and of all at the end."""
    parts: tuple[Iterable[Prediction], ...] = (
        validate(shipped_rows()).predictions,
        held_out_predictions("sweep"),
        held_out_predictions("device"),
        [each for number in held_examinations() if number >= _BY_THIS_LAW for each in first_answers(number)],
    )
    listed = [list(part) for part in parts]
    counts: dict[str, int] = {}
    for each in listed[0]:
        counts[each.row.device_class] = counts.get(each.row.device_class, 0) + 1
    names = [*sorted(counts, key=lambda name: -counts[name]), "all"]
    return tuple(
        ClassScores(name, *(score([e for e in part if name in ("all", e.row.device_class)]) for part in listed))
        for name in names
    )


@tabled
def answer_table() -> Table:
    """Return the median errors as a table; ranges are those of machines left out."""
    heads = ("machine", "in the fit", "sweep unseen", "machine unseen", "strangers", "inside", "width", "rows")
    rows = [
        (
            each.name,
            percent_cell(each.fitted.median_ape),
            percent_cell(each.sweep.median_ape),
            percent_cell(each.device.median_ape),
            percent_cell(each.blind.median_ape) if each.blind.expressible >= FEWEST else "—",
            percent_cell(each.device.coverage),
            "—" if each.device.width is None else f"{each.device.width:.2g}×",
            each.fitted.rows,
        )
        for each in class_scores()
    ]
    return Table("Median error of the published value, by class of machine", heads, rows)
