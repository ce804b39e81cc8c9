"""Ranges for who never measured a setting: slower rather than faster, and faster only as far as the bound leaves."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.calibration.case import Case
from mlsys.models.estimate import CaseBatch, calibrated_times
from mlsys.models.estimate.library import fitted
from mlsys.models.estimate.ranges import ALL_SOURCES, Range, fitted_ranges, range_of, unknown_source_interval
from mlsys_evidence.evaluate.blind_evaluation import first_answers, reached_again, unseen_shares_outside
from mlsys_evidence.evaluate.report import Prediction, score, validate
from mlsys_evidence.fit.substitutes import stand_ins
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

SETTING, DEVICE = "compiled network on GPU", "A100_80GB"
KNOWN = Range(0.7, 1.4, "of sweeps")
_TIMES = st.floats(1e-6, 1e3)
_OVER = st.floats(1.0, 1e4)  # an estimate over its bound


@pytest.fixture(scope="module")
def case() -> Case:
    return next(interpret(row) for row in shipped_rows() if row.source == "baidu-research/DeepBench")


@given(_TIMES, _OVER, st.floats(0.05, 1.0))
def test_an_unseen_source_is_never_expected_below_the_bound_nor_sooner_than_known_sources_are_late(
    seconds: float, over: float, spread: float
) -> None:
    reach = unknown_source_interval(KNOWN, spread, seconds, seconds / over)
    assert 1 / over <= reach.low * 1.000001 <= 1.000002
    assert reach.low**2 >= 1 / over / 1.000001, "in logarithms no more than half of the way down to the bound"
    assert reach.high > KNOWN.high


@given(_TIMES, _OVER, st.floats(1.01, 10.0))
def test_what_is_less_known_shorter_or_farther_from_its_bound_is_told_no_narrower(
    seconds: float, over: float, times: float
) -> None:
    here = unknown_source_interval(KNOWN, 0.2, seconds, seconds / over)
    farther = unknown_source_interval(KNOWN, 0.2, seconds, seconds / over / times)
    shorter = unknown_source_interval(KNOWN, 0.2, seconds / times, seconds / times / over)
    vaguer = unknown_source_interval(KNOWN, 0.2 * times, seconds, seconds / over)
    assert farther.low <= here.low and farther.high == pytest.approx(here.high)
    assert shorter.high >= here.high and shorter.low == pytest.approx(here.low)
    assert vaguer.high > here.high


def test_the_range_is_wider_for_who_never_measured_the_setting() -> None:
    entry = fitted_ranges()[SETTING]
    known = range_of(SETTING, DEVICE, "resnet50", source=entry["sources"][0])
    another = range_of(SETTING, DEVICE, "resnet50", source="a reader")
    assert another.low < known.low < 1 < known.high < another.high
    assert range_of(SETTING, DEVICE, "resnet50", source=ALL_SOURCES) == known
    assert range_of(SETTING, DEVICE, "resnet50") == another, "who asks is nobody whose habits are known"


def test_the_range_says_in_words_why_it_is_wide() -> None:
    known = range_of(SETTING, DEVICE, "resnet50", source=ALL_SOURCES).why
    plain = range_of(SETTING, DEVICE, "resnet50", seconds=1e-2, bound=1e-3).why
    short = range_of(SETTING, DEVICE, "resnet50", seconds=2e-5, bound=2e-6).why
    near = range_of(SETTING, DEVICE, "resnet50", seconds=1e-2, bound=9e-3).why
    nobody, brief, below = "the measuring source is unknown", "times this short", "half of the gap to the bound"
    assert [[words in why for words in (nobody, brief, below)] for why in (known, plain, short, near)] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
        [True, False, True],
    ]
    unseen = range_of("ncnn network on CPU", "nobody's", "no such network").why
    for words in ("machine", "network", "family of networks"):
        assert f"never measured: this {words};" in unseen
    assert nobody in unseen


def test_blind_evaluations_give_the_range_of_unseen_sources() -> None:
    """Set by the second and third blind evaluation, tested on the fourth, each answered with the laws of its hour."""
    assert all(0.01 < missed < 0.13 for missed in unseen_shares_outside((2, 3)))
    first, again = score(first_answers(4)), score(reached_again(4))
    assert first.source_coverage is not None and again.source_coverage is not None
    assert first.source_coverage < 70 and 78 < again.source_coverage < 88


def test_the_ranges_of_unseen_sources_say_more_than_constant_ends() -> None:
    """The score of intervals of Gneiting and Raftery (2007): width, and ten times what lies beyond, at 80 %.

    Against the two factors that hold as many rows of the second and third blind evaluation as today's ranges do.
    """
    result, fourth = (_logarithms([each for number in numbers for each in reached_again(number)]) for numbers in _APART)
    off, weights = result[:, 0], result[:, 3] / result[:, 3].sum()
    order = np.argsort(off)
    faster, slower = unseen_shares_outside((2, 3))
    ends = np.interp([faster, 1 - slower], np.cumsum(weights[order]), off[order])
    blunt = np.column_stack([fourth[:, 0], np.tile(ends, (len(fourth), 1)), fourth[:, 3]])
    assert _score(fourth) < 0.98 * _score(blunt)


_APART = ((2, 3), (4,))


def _logarithms(answers: list[Prediction]) -> np.ndarray:
    """Return measured over told time, both ends over it, and the weight of each row: the root of its source's."""
    done = [each for each in answers if each.answered]
    sources = [each.row.measured_by for each in done]
    lines = []
    for each, source in zip(done, sources, strict=True):
        low, high = sorted((math.log(each.low / each.value), math.log(each.high / each.value)))
        down, up = (-high, -low) if "/s" in each.row.unit else (low, high)
        lines.append((-math.log(each.ratio), down, up, sources.count(source) ** -0.5))
    return np.array(lines)


def _score(lines: np.ndarray) -> float:
    off, down, up, weights = lines.T
    beyond = np.maximum(down - off, 0) + np.maximum(off - up, 0)
    return float(np.average(up - down + 10 * beyond, weights=weights))


def test_every_source_counts_the_same_in_the_coverage_of_sources() -> None:
    """One source with nine rows inside, another with one outside: ninety percent of rows, half of the sources."""
    one = next(each for each in validate(shipped_rows()[:50]).predictions if each.answered)
    mine, other = (replace(one, row=replace(one.row, source=name)) for name in ("somebody/one", "somebody/other"))
    inside = replace(mine, low=0.5 * mine.row.value, high=2 * mine.row.value)
    outside = replace(other, low=2 * other.row.value, high=3 * other.row.value)
    whole = score([*[inside] * 9, outside])
    assert (whole.coverage, whole.source_coverage) == (90, 50)


def test_rows_of_another_source_are_answered_alike_with_a_wider_range() -> None:
    row = next(row for row in shipped_rows() if row.source == "huggingface/pytorch-image-models")
    for same in (row.source, f"github.com/{row.source}@0123abc", f"https://github.com/{row.source}"):
        assert replace(row, source=same).measured_by == row.measured_by
    own, other = validate([row, replace(row, source="example.org/mine")]).predictions
    assert own.value == other.value
    assert other.low < own.value < own.high <= other.high
    assert other.high / other.low > own.high / own.low


def test_what_a_stand_in_is_off_by_is_told_for_each_kind_of_work(case: Case) -> None:
    """Two settings whose rows take twice and half of what the other says; of a third kind, eight times."""
    own = fitted()[case.setting]
    stack = CaseBatch.of([(case.engine, case.work, case.cached)])
    result = max(float(calibrated_times(stack, own.vectorised()[None])[0]), case.at_least)
    twice, half = (replace(case, seconds=result * times, kind="gemm") for times in (2.0, 0.5))
    many = {f"library {version} gemm on CPU": [twice, half] * 3 for version in range(8)}
    assert stand_ins(many, dict.fromkeys(many, own)) == {"gemm": pytest.approx(math.log(2))}
    slow = replace(twice, seconds=8 * result, kind="attention")
    far = {f"library {version} attention on CPU": [slow] for version in (1, 2)}
    both = stand_ins(many | far, dict.fromkeys(many | far, own))
    assert both["gemm"] < 1.3 * math.log(2) < math.log(4) < both["attention"] < math.log(8)
