"""What must hold of speedups, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.formulas import (
    amdahl_ceiling,
    amdahl_speedup,
    device_bound_fraction,
    gustafson_speedup,
    required_accelerator_speedup,
    required_parallel_fraction,
    serial_share,
)

shares = st.floats(0, 1)
below_one = st.floats(0, 1, exclude_max=True)
speedups = st.floats(1, 1e9)
A_HAIR = 1 + 1e-12


@given(shares, speedups)
def test_the_whole_gains_no_more_than_its_part_and_never_loses(p: float, S: float) -> None:
    assert 1 / A_HAIR <= amdahl_speedup.bare(p, S) <= S * A_HAIR


@given(below_one, speedups)
def test_the_ceiling_holds(p: float, S: float) -> None:
    assert amdahl_speedup.bare(p, S) <= amdahl_ceiling.bare(p) * A_HAIR


@given(below_one)
def test_the_ceiling_is_approached(p: float) -> None:
    assert amdahl_speedup.bare(p, 1e30) == pytest.approx(amdahl_ceiling.bare(p), rel=1e-9)


@given(shares)
def test_an_accelerator_as_fast_as_the_host_changes_nothing(p: float) -> None:
    assert amdahl_speedup.bare(p, 1) == pytest.approx(1, rel=1e-15)


@given(st.tuples(shares, shares).map(sorted), speedups)
def test_moving_more_never_hurts(p: list[float], S: float) -> None:
    assert amdahl_speedup.bare(p[0], S) <= amdahl_speedup.bare(p[1], S) * A_HAIR


@given(shares, st.tuples(speedups, speedups).map(sorted))
def test_a_faster_accelerator_never_hurts(p: float, S: list[float]) -> None:
    assert amdahl_speedup.bare(p, S[0]) <= amdahl_speedup.bare(p, S[1]) * A_HAIR


@given(st.floats(0, 1), st.floats(1.001, 1e6))
def test_the_share_comes_back_from_the_speedup(p: float, S: float) -> None:
    """To 1e-12; where S is near 1 the law is nearly flat and the inverse nearly undefined, so S starts at 1.001."""
    whole = min(amdahl_speedup.bare(p, S), S)
    assert required_parallel_fraction.bare(max(whole, 1), S) == pytest.approx(p, abs=1e-12)


@given(st.floats(0.01, 0.999), st.floats(1, 1000))
def test_the_accelerator_comes_back_from_the_speedup(p: float, S: float) -> None:
    """The error grows by the slope of the inverse, S / (p X): the tolerance grows with it."""
    whole = amdahl_speedup.bare(p, S)
    assert required_accelerator_speedup.bare(whole, p) == pytest.approx(S, rel=1e-13 * (1 + S / p))


@given(speedups, st.floats(1e-9, 1e-3))
def test_the_device_takes_longer_just_where_the_boundary_says(S: float, step: float) -> None:
    p = device_bound_fraction.bare(S)
    host, device = lambda share: 1 - share, lambda share: share / S
    assert device(p) == pytest.approx(host(p), rel=1e-6)
    assert 0.5 <= p < 1
    above, below = min(1.0, p + step), p - step
    assert device(above) > host(above)
    assert device(below) < host(below)


@given(below_one, speedups)
def test_shares_of_host_and_device_sum_to_the_new_time(p: float, S: float) -> None:
    new_time = 1 / amdahl_speedup.bare(p, S)
    assert serial_share.bare(p, S) * new_time + p / S == pytest.approx(new_time, rel=1e-12)
    assert 0 <= serial_share.bare(p, S) <= 1


@given(shares, speedups)
def test_growing_work_scales_at_least_as_well(p: float, N: float) -> None:
    assert gustafson_speedup.bare(p, N) * A_HAIR >= amdahl_speedup.bare(p, N)
    assert 1 / A_HAIR <= gustafson_speedup.bare(p, N) <= N * A_HAIR


@given(st.floats(0.001, 1), st.floats(1, 1e4))
def test_both_laws_describe_one_run(p_parallel: float, N: float) -> None:
    """Gustafson's share is of the parallel run; converted to the serial run, Amdahl gives the same speedup."""
    scaled = gustafson_speedup.bare(p_parallel, N)
    p_serial = p_parallel * N / scaled
    assert amdahl_speedup.bare(min(p_serial, 1), N) == pytest.approx(scaled, rel=1e-9)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(1, 100)), min_size=1, max_size=5))
def test_several_accelerators_are_applied_in_any_order(parts: list[tuple[float, float]]) -> None:
    """Times of disjoint parts add: speeding up one after the other, in either order, gives one total."""
    total = sum(share for share, _ in parts)

    def run(order: list[tuple[float, float]]) -> float:
        now, speedup = total, 1.0
        for share, factor in order:
            step = amdahl_speedup.bare(min(share / now, 1), factor)
            now /= step
            speedup *= step
        return speedup

    direct = total / sum(share / factor for share, factor in parts)
    assert run(parts) == pytest.approx(direct, rel=1e-9)
    assert run(parts[::-1]) == pytest.approx(direct, rel=1e-9)


def test_the_law_over_a_grid_is_the_law_at_its_points() -> None:
    p, S = np.linspace(0, 1, 11)[:, None], np.geomspace(1, 1e3, 7)[None, :]
    grid = amdahl_speedup.bare(p, S)
    assert grid.shape == (11, 7)
    for i, j in np.ndindex(grid.shape):
        assert grid[i, j] == amdahl_speedup.bare(float(p[i, 0]), float(S[0, j]))
