"""Errors of the estimates by class of device: in the fit, held out, and on sources never used in a fit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys_evidence.evaluate.blind_evaluation import completed_blind_evaluations, first_answers
from mlsys_evidence.evaluate.report import Prediction, Score, score, validate
from mlsys_evidence.evaluate.ten_sample_study import ten_back
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.rows import shipped_rows

# Fewest answered rows for which a median is shown.
FEWEST = 8
# The first held-out evaluation that was answered with ranges of today's form.
_BY_THIS_LAW = 5


def _fitted() -> Iterable[Prediction]:
    return validate(shipped_rows()).predictions


def _sweep() -> Iterable[Prediction]:
    return held_out_predictions("sweep")


def _device() -> Iterable[Prediction]:
    return held_out_predictions("device")


def blind_predictions() -> tuple[Prediction, ...]:
    """Return the first answers to rows of sources never used in a fit, since ranges have today's form.

    Examples
    --------
    >>> len(blind_predictions()) > 900
    True
    """
    return tuple(
        each for number in completed_blind_evaluations() if number >= _BY_THIS_LAW for each in first_answers(number)
    )


_PARTS: tuple[Callable[[], Iterable[Prediction]], ...] = (_fitted, _sweep, _device, blind_predictions)


@dataclass(frozen=True)
class ClassScores:
    """Errors of the estimates for one class of device.

    Attributes
    ----------
    name
        Of the class, or ``"all"``.
    fitted, sweep, device, blind
        With all rows in the fit; with the whole sweep, and with the whole device held out of it; and on sources never
        used in a fit, as answered once before the measured values were looked at.
    """

    name: str
    fitted: Score
    sweep: Score
    device: Score
    blind: Score


@remembered
@traced
def class_scores() -> tuple[ClassScores, ...]:
    """Return the scores of each class of device, most rows first, and of all at the end."""
    return _grouped(lambda each: each.row.device_class)


@remembered
@traced
def group_scores() -> tuple[ClassScores, ...]:
    """Return the scores of each class of device and kind of work, in alphabetical order, and of all at the end."""
    *groups, whole = _grouped(lambda each: f"{each.row.device_class}: {each.kind}")
    return (*sorted(groups, key=lambda each: each.name), whole)


def _grouped(key: Callable[[Prediction], str]) -> tuple[ClassScores, ...]:
    listed = [list(part()) for part in _PARTS]
    counts: dict[str, int] = {}
    for each in listed[0]:
        counts[key(each)] = counts.get(key(each), 0) + 1
    names = [*sorted(counts, key=lambda name: -counts[name]), "all"]
    return tuple(
        ClassScores(name, *(score([e for e in part if name in ("all", key(e))]) for part in listed)) for name in names
    )


def class_errors() -> dict[str, dict[str, list[float]]]:
    """Return the absolute errors of single rows as parts of the published value, by class and by what the fit had seen.

    Examples
    --------
    >>> errors = class_errors()["CPU"]
    >>> list(errors)
    ['in the fit', 'device held out', 'unseen source']
    """
    parts = {"in the fit": _fitted(), "device held out": _device(), "unseen source": blind_predictions()}
    errors: dict[str, dict[str, list[float]]] = {each.name: {name: [] for name in parts} for each in class_scores()}
    for name, part in parts.items():
        for each in part:
            if each.answered:
                errors[each.row.device_class][name].append(each.error)
                errors["all"][name].append(each.error)
    return errors


def percent_cell(value: float | None) -> str:
    """Return a percentage as a cell: a dash where there is none, and no digits of what is off by tenfold."""
    if value is None:
        return "—"
    return ">1000%" if value > 1000 else f"{value:.0f}%"


def _median(part: Score) -> str:
    return percent_cell(part.median_ape) if part.expressible >= FEWEST else "—"


@tabled
def answer_table() -> Table:
    """Return the median errors by class as a table; ``in range`` is of held-out devices."""
    heads = ("class", "rows", "in the fit", "sweep held out", "device held out", "in range", "unseen source")
    rows = [
        (
            each.name,
            each.fitted.rows,
            *map(_median, (each.fitted, each.sweep, each.device)),
            percent_cell(each.device.coverage),
            _median(each.blind),
        )
        for each in class_scores()
    ]
    return Table("Median error of the published value, by class of device", heads, rows)


@tabled
def group_table() -> Table:
    """Return the errors by class of device and kind of work as a table, for groups with eight held-out rows or more.

    ``p90``, ``in range`` and ``width`` are of held-out devices; ``ten rows`` is the median error of a held-out device
    after ten of its rows were handed back.
    """
    heads = ("group", "rows", "in the fit", "sweep held out", "device held out", "p90", "in range", "width", "ten rows")
    after = {group.group: f"{group.after:.0%}" for group in ten_back()}
    rows = [
        (
            each.name,
            each.fitted.rows,
            *map(_median, (each.fitted, each.sweep, each.device)),
            percent_cell(each.device.p90_ape),
            percent_cell(each.device.coverage),
            f"{each.device.width:.2g}×",
            after.get(each.name, "—"),
        )
        for each in group_scores()
        if each.device.expressible >= FEWEST and each.device.width is not None
    ]
    return Table("Median error of the published value, by class of device and kind of work", heads, rows)
