"""Square roots by iteration: the first guess, Newton's steps, and the error after each of them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_choice, checked_counts

SquareRootGuess = Literal["bits", "exponent", "value"]
SQUARE_ROOT_GUESSES: tuple[SquareRootGuess, ...] = get_args(SquareRootGuess)
_MAGIC = 0x5F3759DF


def inverse_sqrt_guess(values: ArrayLike, guess: SquareRootGuess = "bits") -> NDArray[np.float64]:
    r"""Return a first guess of :math:`1/\sqrt{x}`.

    Parameters
    ----------
    values
        Positive numbers within the range of FP32.
    guess
        ``"bits"`` shifts the bit pattern of FP32 right and subtracts it from a constant, ``"exponent"`` halves the
        exponent, ``"value"`` takes :math:`1/x`.

    References
    ----------
    The constant 0x5F3759DF is that of Quake III Arena, 1999.

    Examples
    --------
    >>> [f"{float(inverse_sqrt_guess(4.0, guess)):.3f}" for guess in ("bits", "exponent", "value")]
    ['0.483', '0.333', '0.250']
    """
    x = _positive("inverse_sqrt_guess", values)
    checked_choice("inverse_sqrt_guess", "guess", guess, SQUARE_ROOT_GUESSES)
    if guess == "value":
        return 1 / x
    if guess == "exponent":  # 2/3 makes the errors at both ends of the binades alike after one step
        _, power = np.frexp(x)
        halved: NDArray[np.float64] = np.ldexp(2 / 3, -((power - 1) // 2))
        return halved
    shifted = _MAGIC - (x.astype(np.float32).view(np.int32) >> 1)
    return shifted.astype(np.int32).view(np.float32).astype(np.float64)


def newton_inverse_sqrt(values: ArrayLike, start: ArrayLike, steps: int = 1) -> NDArray[np.float64]:
    r"""Return :math:`1/\sqrt{x}` after Newton's steps :math:`y \leftarrow y\,(1.5 - 0.5\,x\,y^2)`.

    Parameters
    ----------
    values
        Positive numbers *x*.
    start
        First guesses *y*, below :math:`\sqrt{3/x}`; above it the iteration leaves the root.
    steps
        Number of steps.

    Examples
    --------
    >>> float(newton_inverse_sqrt(4.0, inverse_sqrt_guess(4.0), steps=4))
    0.5
    """
    x, y = _positive("newton_inverse_sqrt", values), np.asarray(start, dtype=np.float64)
    (steps,) = checked_counts("newton_inverse_sqrt", steps=steps)
    for _ in range(steps):
        y = y * (1.5 - 0.5 * x * y * y)
    return y


def heron_sqrt(values: ArrayLike, steps: int = 1) -> NDArray[np.float64]:
    r"""Return :math:`\sqrt{x}` after Heron's steps :math:`y \leftarrow (y + x/y)/2` from :math:`y = x`.

    Parameters
    ----------
    values
        Positive numbers *x*.
    steps
        Number of steps, each with a division.

    Examples
    --------
    >>> float(heron_sqrt(4.0, steps=6))
    2.0
    """
    x = _positive("heron_sqrt", values)
    (steps,) = checked_counts("heron_sqrt", steps=steps)
    y = x
    for _ in range(steps):
        y = (y + x / y) / 2
    return y


def square_root_errors(values: ArrayLike, guess: SquareRootGuess = "bits", steps: int = 6) -> NDArray[np.float64]:
    r"""Return the largest relative error over the values, for the guess and after each step.

    Parameters
    ----------
    values
        Positive numbers.
    guess
        As in :func:`inverse_sqrt_guess`; from ``"value"`` the steps are Heron's, from the others Newton's.
    steps
        Number of steps.

    Returns
    -------
    numpy.ndarray
        Shape (steps + 1,).

    Examples
    --------
    >>> [f"{error:.0e}" for error in square_root_errors(np.linspace(1, 4, 1000), "bits", 3)]
    ['3e-02', '2e-03', '5e-06', '3e-11']
    """
    x = _positive("square_root_errors", values)
    start = inverse_sqrt_guess(x, guess)
    (steps,) = checked_counts("square_root_errors", steps=steps)
    root = np.sqrt(x)
    if guess == "value":
        found = [x] + [heron_sqrt(x, done) for done in range(1, steps + 1)]
        return np.array([np.abs(y / root - 1).max() for y in found])
    inverse = [start] + [newton_inverse_sqrt(x, start, done) for done in range(1, steps + 1)]
    return np.array([np.abs(y * root - 1).max() for y in inverse])


def _positive(where: str, values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if not x.size or not np.all(np.isfinite(x) & (x > 0)):
        raise ArgumentError(
            f"{where}(): `values` must be positive finite numbers, got {values!r}. Write e.g. values=2.0"
        )
    return x
