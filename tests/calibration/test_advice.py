"""Which ten to take is what theory and scikit-learn say, of every software, and needs no measured value."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mlsys.calibration.advice import PARTS, SCATTER, likely_errors, most_informative, most_telling, parts_of
from mlsys.calibration.case import Case
from mlsys.models.estimate.library import plain_of
from mlsys_evidence.fit.refit import held_out_predictions


def _open(covariances: np.ndarray, taken: list[int]) -> float:
    """Return what measurements leave open, by the formula for conditioned normal distributions."""
    across = covariances[:, taken]
    within = covariances[np.ix_(taken, taken)] + SCATTER**2 * np.eye(len(taken))
    left = np.diagonal(covariances) - np.einsum("ij,ij->i", across, np.linalg.solve(within, across.T).T)
    return float(np.log(left + SCATTER**2).sum())


def _drawn(seed: int, size: int = 9) -> np.ndarray:
    effects = np.random.default_rng(seed).normal(0, 0.4, (size, 3))
    return effects @ effects.T


@pytest.mark.parametrize("seed", range(5))
def test_each_row_taken_is_the_one_that_leaves_the_least_open(seed: int) -> None:
    """Against brute force, step by step; and all ten are near the best of all choices, where those can be counted."""
    covariances = _drawn(seed)
    taken = most_telling(covariances, np.zeros(9, dtype=np.intp), 3)
    for step in range(3):
        others = [index for index in range(9) if index not in taken[:step]]
        assert taken[step] == min(others, key=lambda index: _open(covariances, [*taken[:step], index]))
    before = _open(covariances, [])
    best = min(_open(covariances, list(three)) for three in combinations(range(9), 3))
    assert before - _open(covariances, taken) > 0.9 * (before - best)


def test_what_stays_open_is_what_gaussian_processes_say() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    places = np.linspace(0, 5, 12)[:, None]
    kernel = ConstantKernel(0.09) * RBF(1.0)
    taken = most_telling(kernel(places), np.zeros(12, dtype=np.intp), 4)
    process = GaussianProcessRegressor(kernel, alpha=SCATTER**2, optimizer=None).fit(places[taken], np.zeros(4))
    _, left = process.predict(places, return_std=True)
    assert np.log(left**2 + SCATTER**2).sum() == pytest.approx(_open(kernel(places), taken), abs=1e-6)
    even = process.fit(places[[0, 1, 2, 3]], np.zeros(4)).predict(places, return_std=True)[1]
    assert left.max() < even.max(), "spread over the places, not side by side"


def test_every_part_has_its_share() -> None:
    covariances = np.diag(np.arange(50, 0, -1.0))  # the first rows are the least known
    part = np.arange(50) * 5 // 50
    taken = most_telling(covariances, part, 10)
    assert np.bincount(part[taken]).tolist() == [2] * 5
    assert sorted(taken) == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]


def _rows() -> tuple[list[Case], list[float], np.ndarray]:
    """Return the measurements that a Raspberry Pi 4 could make."""
    result = held_out_predictions("device", ["Raspberry Pi 4 (Cortex-A72, 4 cores)"])
    rows = [each for each in result if each.case is not None]
    cases = [each.case for each in rows if each.case is not None]
    return cases, [each.seconds for each in rows], np.array([plain_of(case.setting)[0].vectorised() for case in cases])


def test_no_measured_value_is_read_and_no_row_is_taken_twice() -> None:
    cases, seconds, base = _rows()
    taken = most_informative(cases, seconds, base)
    other = [replace(case, seconds=1.0, row=replace(case.row, value=1.0)) for case in cases]
    assert most_informative(other, seconds, base) == taken
    assert len(set(taken)) == 10
    assert sorted(parts_of(cases, seconds)[taken].tolist()) == sorted([*range(PARTS)] * 2)
    assert most_informative(cases[:4], seconds[:4], base[:4]) == [0, 1, 2, 3]


def test_a_row_that_says_the_same_is_not_taken_again() -> None:
    """A list with every row thrice: ten different ones are named all the same."""
    cases, seconds, base = _rows()
    taken = most_informative([*cases] * 3, [*seconds] * 3, np.tile(base, (3, 1)))
    assert len({index % len(cases) for index in taken}) == 10


def test_errors_are_likely_alike_within_a_software() -> None:
    cases, _, base = _rows()
    covariances = likely_errors(cases, base)
    assert np.linalg.eigvalsh(covariances).min() > -1e-9, "covariances of something"
    correlations = covariances / np.sqrt(np.outer(np.diagonal(covariances), np.diagonal(covariances)))
    settings = np.array([case.setting for case in cases])
    own = settings[:, None] == settings
    assert correlations[own].mean() > correlations[~own].mean()


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_equally_informative_are_chosen_in_their_order_on_every_cpu(seed: int) -> None:
    """Pairs of equal rows, and last digits as another kernel leaves them: a bare minimum takes either of a pair."""
    draw = np.random.default_rng(seed)
    spread = np.repeat(draw.normal(size=(12, 4)), 2, axis=0)
    covariances = spread @ spread.T
    noise = draw.normal(scale=1e-13, size=covariances.shape)
    part = np.arange(24) * PARTS // 24
    taken = most_telling(covariances, part, 6)
    assert most_telling(covariances * (1 + (noise + noise.T) / 2), part, 6) == taken
    assert all(row % 2 == 0 or row - 1 in taken or part[row] != part[row - 1] for row in taken)
