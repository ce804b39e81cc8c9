"""Speedup formulas at the places where somebody can check them by hand."""

import numpy as np
import pytest

from mlsys import formulas
from mlsys.errors import ArgumentError


@pytest.mark.parametrize(
    ("share", "speedup", "whole"),
    [
        (0, 10, 1),  # nothing moves
        (1, 10, 10),  # everything moves
        (0.5, 2, 4 / 3),  # half of it in half the time: 1/2 + 1/4
        (0.9, 9, 5),  # 1/10 + 1/10
        (0.75, 3, 2),  # 1/4 + 1/4
    ],
)
def test_amdahl_by_hand(share: float, speedup: float, whole: float) -> None:
    assert formulas.amdahl_speedup(share, speedup).magnitude == pytest.approx(whole, rel=1e-15)


def test_the_ceiling_is_what_an_infinite_accelerator_gives() -> None:
    for share in (0, 0.5, 0.95, 0.999):
        assert formulas.amdahl_ceiling(share).magnitude == pytest.approx(
            formulas.amdahl_speedup(share, 1e15).magnitude, rel=1e-9
        )


def test_what_the_whole_needs_of_its_parts() -> None:
    """Eight times faster with a hundredfold accelerator: 7/8 must vanish of 99/100 that can."""
    needed = formulas.required_parallel_fraction(8, 100).magnitude
    assert needed == pytest.approx((7 / 8) / (99 / 100), rel=1e-15)
    assert formulas.required_parallel_fraction(1, 100).magnitude == 0
    assert formulas.required_parallel_fraction(100, 100).magnitude == 1
    assert formulas.required_parallel_fraction(1, 1).magnitude == 0
    assert formulas.required_accelerator_speedup(4 / 3, 0.5).magnitude == pytest.approx(2)


def test_required_share_over_arrays_of_either_argument() -> None:
    """Sweeping the target, the accelerator, or both: each element is the scalar's answer."""
    targets, speedups = np.array([[1.0], [2.0], [8.0]]), np.array([[8.0, 100.0]])
    swept = formulas.required_parallel_fraction.bare(targets, speedups)
    for i, j in np.ndindex(3, 2):
        assert swept[i, j] == formulas.required_parallel_fraction(targets[i, 0], speedups[0, j]).magnitude
    with pytest.raises(ArgumentError, match="cannot be above"):
        formulas.required_parallel_fraction(np.array([2.0, 9.0]), 8)


def test_host_and_device_take_turns_at_the_boundary() -> None:
    """At p = S/(S+1) both take 1/(S+1) of the old time, so half of the new time is the host's."""
    for speedup in (1, 2, 10, 247.5, 1e6):
        share = formulas.device_bound_fraction(speedup)
        assert formulas.serial_share(share, speedup).magnitude == pytest.approx(0.5, rel=1e-9)


def test_the_serial_share_is_of_the_new_time() -> None:
    """One tenth stays, nine tenths shrink to one tenth: half and half."""
    assert formulas.serial_share(0.9, 9).magnitude == pytest.approx(0.5)
    assert formulas.serial_share(1, 9).magnitude == 0
    assert formulas.serial_share(0, 9).magnitude == 1


def test_gustafson_by_hand() -> None:
    assert formulas.gustafson_speedup(0.5, 3).magnitude == 2
    assert formulas.gustafson_speedup(1, 64).magnitude == 64
    assert formulas.gustafson_speedup(0, 64).magnitude == 1
