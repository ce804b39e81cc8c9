"""How much wider a range is for a source that the fit never saw, from what was answered blindly.

Rows of one source are off together, so that a hundred of them say little about the next source. The score of a row of
a blind evaluation is how many times as wide its range, in logarithms, would have to be to hold it. Of S sources each
weighs 1/(S + 1), shared among its rows, and the source that comes next weighs as much, beyond them all: the quantile
of these scores holds four rows in five of that source (conformal prediction with hierarchical data: Y. Lee, R. Barber
and R. Willett, arXiv:2306.06342). A kind of work of few sources is drawn towards what most kinds need, and a kind of
work on one class of machine towards that kind on all: with few sources, the range is wider.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlsys.files import Drafts
from mlsys.models.estimate.range_keys import work_on
from mlsys.models.estimate.ranges import ALL_KINDS, COVERAGE, ENOUGH_SOURCES, range_without_time
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows, completed_blind_evaluations, first_answers
from mlsys_evidence.evaluate.report import Prediction, validate
from mlsys_evidence.fit.fitted_files import save_sources

# Number of sources that the factor of other work counts for.
PRIOR_SOURCES = 5.0


@dataclass(frozen=True)
class BlindScore:
    """A row that was answered blindly.

    Attributes
    ----------
    source
        Source of the measurement.
    kind, work
        Its kind of work, and that with its class of machine.
    score
        How many times as wide its range, in logarithms, would have to be to hold it.
    """

    source: str
    kind: str
    work: str
    score: float


def wanted_factor(sources: Iterable[Sequence[float]]) -> float:
    """Return the score that four rows in five of the next source lie below.

    With so few sources that it may lie beyond all of them, the largest that was seen.

    Examples
    --------
    >>> wanted_factor([[0.5, 0.7], [1.0], [3.0]]), round(wanted_factor([[part / 99] for part in range(100)]), 2)
    (3.0, 0.81)
    """
    scores = [list(own) for own in sources]
    values = np.concatenate(scores)
    weights = np.concatenate([np.full(len(own), 1 / len(own)) for own in scores]) / (len(scores) + 1)
    order = np.argsort(values, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[order]), COVERAGE - 1e-9))
    return float(values[order][min(at, len(values) - 1)])


def blind_scores(numbers: Sequence[int] = ()) -> list[BlindScore]:
    """Return the first answers to the blind evaluations, scored by the ranges of today without their factors."""
    scores = []
    for number in numbers or completed_blind_evaluations():
        now = validate(blind_evaluation_rows(number)).predictions
        for first, today in zip(first_answers(number), now, strict=True):
            if today.case is not None and first.answered:
                scores.append(_blind_score(first, today))
    return scores


def _blind_score(first: Prediction, today: Prediction) -> BlindScore:
    case = today.case
    assert case is not None
    seconds = max(first.ratio * case.seconds, today.bound)
    known = range_without_time(
        case.setting,
        case.twin,
        case.network,
        version=case.version,
        source=first.row.measured_by,
        work=case.kind,
    )
    reach = replace(known, factor=1.0).at(seconds, today.bound or None)
    off = math.log(case.seconds / seconds)
    score = off / math.log(reach.high if off > 0 else reach.low)
    return BlindScore(first.row.measured_by, case.kind, work_on(case.kind, case.setting, case.twin), score)


def source_factors(rows: Sequence[BlindScore]) -> dict[str, tuple[float, int]]:
    """Return, by kind of work and by kind on a class of machine, the factor of a range's logarithms, and the sources.

    Under :data:`~mlsys.models.estimate.ranges.ALL_KINDS`, the factor of a kind without blind answers.
    """
    kinds = {kind: _by_source(each for each in rows if each.kind == kind) for kind in {each.kind for each in rows}}
    own = [wanted_factor(known.values()) for known in kinds.values() if len(known) >= ENOUGH_SOURCES]
    most = max(float(np.quantile(own, COVERAGE)), 1.0)
    factors = {ALL_KINDS: (most, 0)}
    for kind, known in sorted(kinds.items()):
        factors[kind] = (_drawn(known, most), len(known))
        for work in sorted({each.work for each in rows if each.kind == kind}):
            here = _by_source(each for each in rows if each.work == work)
            factors[work] = (_drawn(here, factors[kind][0]), len(here))
    return factors


def held_left_out(rows: Sequence[BlindScore]) -> list[bool]:
    """Return whether each row lies in its range, widened by the factors of all other sources."""
    factors = {
        own: source_factors([each for each in rows if each.source != own]) for own in {row.source for row in rows}
    }
    held = []
    for each in rows:
        known = factors[each.source]
        kind = next(kind for kind in (each.work, each.kind, ALL_KINDS) if kind in known)
        held.append(each.score <= known[kind][0])
    return held


def save_source_factors(files: Drafts) -> None:
    """Draft the factors from the blind evaluations."""
    save_sources(source_factors(blind_scores()), files)


def _by_source(rows: Iterable[BlindScore]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for each in rows:
        scores.setdefault(each.source, []).append(each.score)
    return scores


def _drawn(known: Mapping[str, Sequence[float]], towards: float) -> float:
    own = len(known) * math.log(wanted_factor(known.values())) + PRIOR_SOURCES * math.log(towards)
    return max(math.exp(own / (len(known) + PRIOR_SOURCES)), 1.0)
