"""Which of two devices is faster: the ratio of two times has a range of its own."""

import math

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.models.analysis import analyze
from mlsys.models.estimate.ranges import ALL_SOURCES, speed_range
from mlsys.workloads import zoo
from mlsys_evidence.evaluate.pairwise_ranking import left_out_pairs, pairs_compared, pairs_of


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_the_range_of_a_ratio_holds_four_in_five_whatever_two_machines_share(shared: float) -> None:
    """Lognormal errors of two machines, and what a source adds to both: drawn, not derived."""
    draw = np.random.default_rng(3)
    reach = math.exp(1.2816 * 0.3), math.exp(1.2816 * 0.1)
    habits = draw.normal(0, shared, 20_000)
    first, other = (habits + draw.normal(0, math.log(each) / 1.2816, 20_000) for each in reach)
    low, high = speed_range((1 / reach[0], reach[0]), (1 / reach[1], reach[1]))
    assert np.mean((first - other > math.log(low)) & (first - other < math.log(high))) == pytest.approx(0.8, abs=0.01)


def test_the_range_of_a_ratio_turned_over_is_the_other_turned_over() -> None:
    first, other = (0.6, 1.9), (0.8, 1.1)
    low, high = speed_range(first, other)
    assert speed_range(other, first) == pytest.approx((1 / high, 1 / low))
    assert speed_range(first, (1.0, 1.0)) == pytest.approx(first), "of a machine that is known, nothing is added"


def test_two_devices_are_separated_by_their_ratio_in_both_orders() -> None:
    work = zoo.network("resnet50", batch=32, precision="fp16")
    a100, h100, t4 = (analyze(Hardware[name], work, samples=32, source=ALL_SOURCES) for name in ("A100", "H100", "T4"))
    speed, low, high = h100.speed_over(t4)
    assert low < speed < high and speed == pytest.approx(float((t4.estimate / h100.estimate).m_as("")))
    back, least, most = t4.speed_over(h100)
    assert (back, least, most) == pytest.approx((1 / speed, 1 / high, 1 / low))
    assert h100.differs_from(t4) and t4.differs_from(h100) and not a100.differs_from(a100)
    assert a100.overlaps(a100) and not h100.overlaps(t4) and not t4.overlaps(h100)
    (low_a, high_a), (low_t, high_t) = a100.range, t4.range
    assert a100.speed_over(t4)[1] > float((low_t / high_a).m_as("")), "narrower than the two ranges make together"
    assert a100.speed_over(t4)[2] < float((high_t / low_a).m_as(""))


def test_measured_ratios_lie_in_their_range_whether_the_source_is_known_or_not() -> None:
    found = pairs_compared()
    left, unseen = found["all, left out"], found["all blind evaluations"]
    assert 75 < left.covered < 85
    assert unseen.covered > 75, "the model has seen the first two blind evaluations since, so more ratios lie inside"
    for each in (left, unseen):
        assert each.right_if_separated > 90 > each.right
        assert each.separated > 1.15 * each.disjoint, "disjoint ranges are too strict a test of which is faster"
    assert abs(left.together) < 0.2, "errors of held-out devices are nearly uncorrelated"
    assert unseen.together > 0.4, "an unseen source has the same bias on all its devices"


def test_a_pair_differs_in_its_machine_alone() -> None:
    for one, other in left_out_pairs()[::200]:
        mine, its = one.each.row, other.each.row
        assert (mine.model, mine.batch, mine.seq_or_shape, mine.metric) == (
            its.model,
            its.batch,
            its.seq_or_shape,
            its.metric,
        )
        assert one.each.case is not None and other.each.case is not None
        assert one.each.case.twin != other.each.case.twin and one.each.case.setting == other.each.case.setting
        assert len(pairs_of([one, other])) == 1 and not pairs_of([one, one])
