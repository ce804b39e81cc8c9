"""Iterated square roots: steps to the precision of FP32, and Newton's law of errors."""

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.numerics import heron_sqrt, inverse_sqrt_guess, newton_inverse_sqrt, square_root_errors
from mlsys.numerics.square_roots import SquareRootGuess

VALUES = 10 ** np.random.default_rng(7).uniform(-8, 8, 2000)


@pytest.mark.parametrize(("guess", "steps"), [("bits", 3), ("exponent", 5), ("value", 17)])
def test_steps_to_the_rounding_error_of_fp32(guess: SquareRootGuess, steps: int) -> None:
    errors = square_root_errors(VALUES, guess, steps)
    assert errors[-1] < 2**-24 < errors[-2]


def test_newton_squares_the_error() -> None:
    r"""With r = y √x, one step leaves r − 1 → −(r − 1)² (r + 2) / 2."""
    start = inverse_sqrt_guess(VALUES)
    before, after = (y * np.sqrt(VALUES) for y in (start, newton_inverse_sqrt(VALUES, start)))
    np.testing.assert_allclose(after - 1, -((before - 1) ** 2) * (before + 2) / 2, rtol=1e-9, atol=1e-15)


def test_roots_are_those_of_numpy() -> None:
    np.testing.assert_allclose(heron_sqrt(VALUES, 30), np.sqrt(VALUES), rtol=1e-14)
    np.testing.assert_allclose(newton_inverse_sqrt(VALUES, inverse_sqrt_guess(VALUES), 5), VALUES**-0.5, rtol=1e-14)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_root_needs_a_positive_number(value: float) -> None:
    with pytest.raises(ArgumentError, match="positive"):
        square_root_errors([1.0, value])
