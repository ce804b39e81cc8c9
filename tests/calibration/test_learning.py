"""What rows teach is what Bayes' theorem says, and ten rows bring unseen machines nearer."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration import averaging
from mlsys.calibration.averaging import _solved, shrinkage_weight
from mlsys.calibration.case import Case
from mlsys.calibration.learning import OF_BUILDS, OF_POWERS, OF_VERSIONS, learn
from mlsys.models.estimate.library import plain_of
from mlsys.models.estimate.ranges import Range, after_ten
from mlsys_evidence.evaluate.ten_sample_study import _reach, _shapes, study_ten
from mlsys_evidence.fit.power import measured_powers
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def test_effects_are_the_mean_of_what_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two effects on a fine grid, weighed by prior times likelihood of normal scatter: no linear algebra."""
    monkeypatch.setattr(averaging, "TAILS", 1e9)  # Student's t with no tails is normal
    design = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    y, width, scatter = np.array([0.3, 0.1, 0.5]), np.array([0.4, 0.2]), 0.15
    (answer,), *_ = _solved(design, y, width[None], np.array([scatter]))
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 801), np.linspace(-1, 1, 801), indexing="ij"), -1).reshape(-1, 2)
    log = -0.5 * ((grid / width) ** 2).sum(1) - 0.5 * (((y - grid @ design.T) / scatter) ** 2).sum(1)
    weight = np.exp(log - log.max())
    assert answer == pytest.approx(weight @ grid / weight.sum(), abs=2e-3)


def test_the_likelier_scatter_has_the_greater_evidence() -> None:
    rng = np.random.default_rng(3)
    design, width = np.ones((10, 1)), np.array([0.3])
    for true, other in ((0.05, 0.4), (0.4, 0.05)):
        y = 0.2 + rng.normal(0, true, 10)
        _, (likelier, other_evidence), *_ = _solved(design, y, np.stack([width, width]), np.array([true, other]))
        assert likelier > other_evidence


def test_what_each_row_is_told_by_the_others_is_what_leaving_it_out_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solved anew without each row, against the closed form."""
    monkeypatch.setattr(averaging, "TAILS", 1e9)
    rng = np.random.default_rng(8)
    design, y, widths, scatter = rng.normal(size=(7, 3)), rng.normal(0, 0.3, 7), np.array([[0.4, 0.2, 0.1]]), 0.15
    *_, open_, apart = _solved(design, y, widths, np.array([scatter]))
    for row in range(7):
        others = np.delete(np.arange(7), row)
        (answer,), *_ = _solved(design[others], y[others], widths, np.array([scatter]))
        between = (design * widths**2) @ design.T
        across = between[row, others]
        whole = between[np.ix_(others, others)] + scatter**2 * np.eye(6)
        assert apart[0, row] == pytest.approx(y[row] - design[row] @ answer)
        assert open_[0, row] == pytest.approx(between[row, row] - across @ np.linalg.solve(whole, across))


@pytest.mark.parametrize("rows", [5, 10, 20])
def test_the_spread_of_further_rows_is_told_whatever_their_number(rows: int) -> None:
    """Rows with a scale, two software and a scatter: a further one lies within the spread that the others tell."""
    rng, inside = np.random.default_rng(rows), []
    for _ in range(600):
        software = rng.integers(0, 2, rows + 1)
        design = np.column_stack([np.ones(rows + 1), software == 0, software == 1]).astype(float)
        widths = np.array([0.4, 0.25, 0.25])
        y = design @ rng.normal(0, widths) + rng.normal(0, 0.15, rows + 1)
        effects, spread = averaging.averaged(design[:rows], y[:rows], [widths], (0.1, 0.2))
        inside.append(abs(y[rows] - design[rows] @ effects) < 1.2816 * spread)
    assert 0.73 < np.mean(inside) < 0.87


def test_a_range_of_ones_own_lies_between_what_others_and_what_ones_own_rows_tell() -> None:
    usual = Range(0.5, 2.0, "of others")
    spread_of_two = np.log(2) / 1.2816
    assert (after_ten(usual, spread_of_two).low, after_ten(usual, spread_of_two).high) == pytest.approx((0.5, 2.0))
    reaches = [after_ten(usual, spread).high for spread in (0.01, 0.1, spread_of_two, 1.0)]
    assert reaches == sorted(reaches) and reaches[1] > np.exp(1.2816 * 0.1) and reaches[3] < np.exp(1.2816)
    lopsided = after_ten(Range(0.8, 3.2, "of others"), spread_of_two)
    assert lopsided.low * lopsided.high == pytest.approx(1.0), "which side is the machine's habit, and learned"


def _part(y: np.ndarray) -> float:
    """Return how much of a lesson about a scale and one shape of each row counts."""
    design = np.column_stack([np.ones(len(y)), np.linspace(-1, 1, len(y))])
    return shrinkage_weight(design, y, [np.array([0.4, 0.4])], (0.1, 0.3))


def test_a_lesson_that_tells_no_other_row_counts_for_little() -> None:
    """Rows off by one scale teach it; of rows off at random, a lesson tells the others no nearer."""
    draws = np.random.default_rng(5)
    taught = [_part(0.5 + draws.normal(0, 0.05, 10)) for _ in range(20)]
    random = [_part(draws.normal(0, 0.3, 10)) for _ in range(40)]
    assert min(taught) == 1.0
    assert np.mean(random) < 0.55 and max(random) > np.mean(random)
    assert _part(np.array([0.5, 0.4])) == 1.0, "too few to ask"


def test_ten_products_lead_no_consumer_card_astray() -> None:
    """Two cards whose sweeps differ: ten rows of one once took the error from a fifth to a quarter."""
    (group,) = study_ten("^consumer GPU: gemm")
    assert group.after < 1.05 * group.before
    assert group.after < group.scale


def _of_tiny() -> list[Case]:
    cases = [interpret(row) for row in shipped_rows() if "MLPerf Tiny" in row.workload and "STM32L4R5" in row.device]
    return [case for case in cases if case.kind == "energy"][:12]


@pytest.mark.parametrize("drawn", [True, False])
def test_rows_of_a_version_teach_each_other(drawn: bool) -> None:
    """Half of a machine's rows are of a build that leaves its board on: they take 1.7 times as much."""
    cases = [case if drawn else replace(case, power=0.0) for case in _of_tiny()]
    named = [f"X-CUBE-AI {index % 2}" for index in range(len(cases))]
    taken = [1.7 ** (index % 2) for index in range(len(cases))]
    ones = [replace(case, version=name, seconds=s) for case, name, s in zip(cases, named, taken, strict=True)]
    base = np.array([plain_of(case.setting)[0].vectorised() for case in ones])
    learned = learn(ones, np.ones(len(ones)), base)
    thrifty, spender = (learned.versions[ones[index].setting, f"X-CUBE-AI {index}"] for index in (0, 1))
    assert 0.3 < spender - thrifty < np.log(1.7)


def test_builds_differ_by_their_times_and_by_the_power_that_they_leave_on() -> None:
    """The powers alone, each stated by one run, so that no time is in them: about the mean of their board."""
    boards: dict[str, dict[str, list[float]]] = {}
    for power in measured_powers():
        if power.row.device_class == "MCU":
            by = re.search(r"submitter ([^;]+)", power.row.note)
            assert by is not None
            builds = boards.setdefault(power.twin.id, {})
            builds.setdefault(f"{power.row.software}, {by.group(1)}", []).append(np.log(power.watts))
    several = [np.array([np.mean(own) for own in builds.values()]) for builds in boards.values() if len(builds) > 1]
    apart = np.concatenate([builds - builds.mean() for builds in several])
    assert (len(several), len(apart)) == (3, 16)
    assert pytest.approx(np.sqrt((apart**2).sum() / (16 - 3)), rel=0.02) == OF_POWERS
    assert max(OF_VERSIONS) < OF_BUILDS[0] < max(OF_VERSIONS) + OF_POWERS


def test_ten_energies_of_a_microcontroller_leave_the_others_in_place() -> None:
    """Eight builds of one board: those that were not measured are left about where they were, as a scale would not."""
    (group,) = study_ten("^MCU: energy")
    assert group.rows > 300, "a handful of rows is graded often enough"
    assert group.after < 0.8 * group.scale and group.after < 0.15
    assert group.after < group.before + 0.02


def test_one_version_alone_is_the_software() -> None:
    """Asked for with no version named, or with another, what it taught still holds."""
    cases = [replace(case, version="X-CUBE-AI", seconds=2.0) for case in _of_tiny()]
    base = np.array([plain_of(case.setting)[0].vectorised() for case in cases])
    learned = learn(cases, np.ones(len(cases)), base)
    newer = [replace(case, version="X-CUBE-AI 9") for case in cases]
    times = [learned.seconds(ones, np.ones(len(cases)), base).tolist() for ones in (cases, newer)]
    assert learned.versions == {} and times[0] == times[1]
    assert np.log(times[0]) == pytest.approx(np.log(2.0), abs=0.2)


class _Case:
    def __init__(self, setting: str, group: str = "") -> None:
        self.setting = setting
        self.row = type("Row", (), {"group": group, "device": "here"})()


def test_shapes_are_what_is_left_of_a_sweep_once_its_scale_is_known() -> None:
    cases = [_Case("a", "one")] * 3 + [_Case("a", "two")] * 3
    apart = _shapes(cases, np.array([1.0, 1.0, 1.3, -2.0, -2.0, -2.0]))  # type: ignore[arg-type]
    assert apart.tolist() == pytest.approx([-0.15, -0.15, 0.3, 0, 0, 0])


@pytest.mark.parametrize("like", ["^TPU-like: network", "^datacenter GPU: gelu", "^datacenter GPU: softmax"])
def test_ten_rows_bring_unseen_machines_nearer(like: str) -> None:
    (group,) = study_ten(like)
    assert group.after < 0.75 * group.before and group.after < 0.2
    assert group.after < group.scale, "physics and networks teach more than a scale"
    assert group.covered > 0.65


def test_four_in_five_lie_inside_after_ten_rows_of_kernels_as_of_networks() -> None:
    """Of each kernel another algorithm may run, which ten rows did not show: its range is wider than theirs."""
    groups = list(study_ten("^datacenter GPU: (all-|attention|convolution|network)"))
    assert len(groups) == 5
    for group in groups:
        assert 0.73 < group.covered < 0.9, group.group


def test_software_that_was_not_among_the_ten_keeps_its_range() -> None:
    each = next(
        each for each in held_out_predictions("device") if each.case is not None and each.kind == "network inference"
    )
    assert each.case is not None
    base = plain_of(each.case.setting)[0].vectorised()[None]
    learned = learn([each.case] * 3, np.full(3, each.seconds), np.repeat(base, 3, axis=0))
    other = replace(each, case=replace(each.case, setting="another"))
    low, high = _reach(other, learned)
    result = sorted((each.low / each.value, each.high / each.value))
    assert (low, high) == pytest.approx((1 / result[1], 1 / result[0]) if each.case.inverse else tuple(result))
    own = _reach(each, learned)
    assert own[1] / own[0] < high / low
