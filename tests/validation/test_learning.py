"""What rows teach is what Bayes' theorem says, and ten rows bring unseen machines nearer."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.models.calibrated.library import plain_of
from mlsys.validation import learning, shipped_rows
from mlsys.validation.cases import interpret
from mlsys.validation.learning import _solved, learn
from mlsys.validation.ten import _shapes, spread_choice, ten_back


def test_effects_are_the_mean_of_what_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two effects on a fine grid, weighed by prior times likelihood of normal scatter: no linear algebra."""
    monkeypatch.setattr(learning, "TAILS", 1e9)  # Student's t with no tails is normal
    design = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    y, width, scatter = np.array([0.3, 0.1, 0.5]), np.array([0.4, 0.2]), 0.15
    (answer,), _, _ = _solved(design, y, width[None], np.array([scatter]))
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 801), np.linspace(-1, 1, 801), indexing="ij"), -1).reshape(-1, 2)
    log = -0.5 * ((grid / width) ** 2).sum(1) - 0.5 * (((y - grid @ design.T) / scatter) ** 2).sum(1)
    weight = np.exp(log - log.max())
    assert answer == pytest.approx(weight @ grid / weight.sum(), abs=2e-3)


def test_the_likelier_scatter_has_the_greater_evidence() -> None:
    rng = np.random.default_rng(3)
    design, width = np.ones((10, 1)), np.array([0.3])
    for true, other in ((0.05, 0.4), (0.4, 0.05)):
        y = 0.2 + rng.normal(0, true, 10)
        _, (likelier, other_evidence), _ = _solved(design, y, np.stack([width, width]), np.array([true, other]))
        assert likelier > other_evidence


def _part(y: np.ndarray) -> float:
    """Return how much of a lesson about a scale and one shape of each row counts."""
    design = np.column_stack([np.ones(len(y)), np.linspace(-1, 1, len(y))])
    return learning._heard(design, y, [(np.array([0.4, 0.4]), 0.0)], (0.1, 0.3))


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
    (group,) = ten_back("^consumer GPU: gemm")
    assert group.after < 1.4 * group.before
    assert group.after < group.scale


def test_a_builds_energies_teach_each_other_and_no_time() -> None:
    """Half of a machine's energies are of a build that leaves its board on: they draw 1.7 times as much."""
    cases = [interpret(row) for row in shipped_rows() if "MLPerf Tiny" in row.workload and "STM32L4R5" in row.device]
    cases = [case for case in cases if case.kind == "energy"][:12]
    named = [replace(case.row, software=f"X-CUBE-AI {index % 2}") for index, case in enumerate(cases)]
    drawn = [1.7 ** (index % 2) for index in range(len(cases))]
    ones = [replace(case, row=row, seconds=s) for case, row, s in zip(cases, named, drawn, strict=True)]
    base = np.array([plain_of(case.setting)[0].vectorised() for case in ones])
    learned = learn(ones, np.ones(len(ones)), base)
    thrifty, spender = learned.builds["X-CUBE-AI 0"], learned.builds["X-CUBE-AI 1"]
    assert 0.3 < spender - thrifty < np.log(1.7)
    assert learn([replace(case, power=0.0) for case in ones], np.ones(len(ones)), base).builds == {}


class _Case:
    def __init__(self, setting: str, group: str = "") -> None:
        self.setting = setting
        self.row = type("Row", (), {"group": group, "device": "here"})()


def test_a_choice_is_spread_over_software_and_times() -> None:
    cases = [_Case("a")] * 30 + [_Case("b")] * 30
    seconds = [float(index) for index in range(60)]
    for seed in range(5):
        chosen = spread_choice(cases, seconds, seed=seed)  # type: ignore[arg-type]
        assert len(chosen) == 10 and sum(index < 30 for index in chosen) == 5
        assert all(step == 6 for step in np.diff(chosen))


def test_shapes_are_what_is_left_of_a_sweep_once_its_scale_is_known() -> None:
    cases = [_Case("a", "one")] * 3 + [_Case("a", "two")] * 3
    apart = _shapes(cases, np.array([1.0, 1.0, 1.3, -2.0, -2.0, -2.0]))  # type: ignore[arg-type]
    assert apart.tolist() == pytest.approx([-0.15, -0.15, 0.3, 0, 0, 0])


@pytest.mark.parametrize("like", ["^TPU-like: network", "^datacenter GPU: gelu", "^datacenter GPU: softmax"])
def test_ten_rows_bring_unseen_machines_nearer(like: str) -> None:
    (group,) = ten_back(like)
    assert group.after < 0.75 * group.before and group.after < 0.2
    assert group.after < group.scale, "physics and networks teach more than a scale"
    assert group.covered > 0.65
    assert bool(group.why) == (group.after > 0.15)
