"""Time of one iteration of a server, tabulated for the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlsys.compiled import njit
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Quantity

StepSeconds = Callable[[int, int, int], float]
"""``step_seconds(prefill_tokens, decode_batch, context_tokens)``, the time of one iteration in seconds."""


@dataclass(frozen=True, eq=False)
class TabulatedSteps:
    """Time of an iteration on a grid, interpolated linearly along each axis, and extrapolated beyond its ends.

    An iteration processes ``prefill`` tokens of prompts and generates one token for each of ``batch`` sequences,
    which attend to ``context`` tokens in all.

    Attributes
    ----------
    prefill, batch, context
        Coordinates of the grid in ascending order, at least two each.
    seconds
        Times, s, of shape ``(len(prefill), len(batch), len(context))``.
    pair_seconds
        Time for each pair of a prompt token and a token before or at its position, s: prompts attend to themselves,
        so their attention grows with the square of their length. 0 where the table contains it.

    Raises
    ------
    ArgumentError
        If a time is negative or not finite, or the coordinates do not ascend.

    Examples
    --------
    >>> steps = TabulatedSteps.of(lambda p, b, c: 0.01 + 1e-5 * p + 1e-8 * c, 512, 64, 100_000)
    >>> round(steps(256, 32, 50_000), 6)
    0.01306
    """

    prefill: npt.NDArray[np.float64]
    batch: npt.NDArray[np.float64]
    context: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    pair_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("prefill", "batch", "context"):
            axis = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if len(axis) < 2 or axis[0] < 0 or not (np.diff(axis) > 0).all():
                raise ArgumentError(f"TabulatedSteps: `{name}` must be two or more ascending numbers from 0")
            object.__setattr__(self, name, axis)
        table = np.ascontiguousarray(self.seconds, dtype=np.float64)
        shape = len(self.prefill), len(self.batch), len(self.context)
        if table.shape != shape:
            raise ArgumentError(f"TabulatedSteps: `seconds` must have the shape {shape}, got {table.shape}")
        if not (np.isfinite(table) & (table >= 0)).all() or not 0 <= self.pair_seconds < np.inf:
            raise ArgumentError("TabulatedSteps: times must be finite and not negative. Check the step function")
        object.__setattr__(self, "seconds", table)

    @classmethod
    def of(
        cls,
        step: StepSeconds,
        most_prefill: int,
        most_batch: int,
        most_context: int,
        *,
        points: tuple[int, int, int] = (12, 10, 9),
        pair_seconds: float = 0.0,
    ) -> TabulatedSteps:
        """Tabulate a step function on a grid whose spacing grows geometrically from 1.

        Parameters
        ----------
        step
            The function; it is not called for an iteration without tokens, which takes no time.
        most_prefill, most_batch, most_context
            Largest prompt tokens, sequences and tokens attended to of an iteration.
        points
            Points along each axis.
        pair_seconds
            As of the class.
        """
        axes = [
            geometric_grid(most, count)
            for most, count in zip((most_prefill, most_batch, most_context), points, strict=True)
        ]
        table = np.zeros([len(axis) for axis in axes])
        for i, tokens in enumerate(axes[0]):
            for j, batch in enumerate(axes[1]):
                for k, context in enumerate(axes[2]):
                    if tokens or batch:
                        table[i, j, k] = step(int(tokens), int(batch), int(context) if batch else 0)
        prefill, batches, contexts = (np.asarray(axis) for axis in axes)
        return cls(prefill, batches, contexts, table, pair_seconds)

    @classmethod
    def constant(cls, time: Quantity) -> TabulatedSteps:
        """Return a step function that takes the same time for every iteration.

        Slots are then independent: a request of *n* output tokens takes *n* iterations, whoever shares them, and a
        server of one slot is a queue with that service time.

        Parameters
        ----------
        time
            Time of an iteration, s.

        Raises
        ------
        ArgumentError, ArgumentUnitError
            If it is not a positive time.

        Examples
        --------
        >>> from mlsys.units import Q_
        >>> steps = TabulatedSteps.constant(Q_(20, "ms"))
        >>> steps(512, 0, 0), steps(0, 8, 4000)
        (0.02, 0.02)
        """
        seconds = float(checked_number("TabulatedSteps.constant", "time", time, positive("s"), {}))
        axis = np.array([0.0, 1.0])
        return cls(axis, axis, axis, np.full((2, 2, 2), seconds))

    def __call__(self, prefill_tokens: int, decode_batch: int, context_tokens: int) -> float:
        """Return the time of an iteration, s, without that of attention within prompts."""
        return float(
            step_seconds(
                self.prefill, self.batch, self.context, self.seconds, prefill_tokens, decode_batch, context_tokens
            )
        )


def geometric_grid(most: int, points: int) -> list[float]:
    """Return 0 and whole numbers from 1 to ``most``, spaced geometrically.

    Examples
    --------
    >>> geometric_grid(64, 5)
    [0.0, 1.0, 4.0, 16.0, 64.0]
    """
    ends = np.geomspace(1, max(most, 2), max(points - 1, 2))
    return sorted({0.0, *(float(round(each)) for each in ends)})


def axis_of(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the coordinates of an axis as an array."""
    return np.asarray(values, dtype=np.float64)


@njit(nogil=True, error_model="numpy")
def segment(axis, value):  # type: ignore[no-untyped-def]
    """Return the index of the segment of an axis that holds a value; the first or last one beyond its ends."""
    low, high = 0, len(axis) - 2
    while low < high:
        middle = (low + high + 1) >> 1
        if axis[middle] <= value:
            low = middle
        else:
            high = middle - 1
    return low


@njit(nogil=True, error_model="numpy")
def line_over_context(prefill, batch, context, seconds, tokens, sequences, k):  # type: ignore[no-untyped-def]
    """Return the time at the beginning of segment ``k`` of the context, and its growth per token."""
    i, j = segment(prefill, tokens), segment(batch, sequences)
    x = (tokens - prefill[i]) / (prefill[i + 1] - prefill[i])
    y = (sequences - batch[j]) / (batch[j + 1] - batch[j])
    low = seconds[i, j, k] + x * (seconds[i + 1, j, k] - seconds[i, j, k])
    high = seconds[i, j + 1, k] + x * (seconds[i + 1, j + 1, k] - seconds[i, j + 1, k])
    first = low + y * (high - low)
    low = seconds[i, j, k + 1] + x * (seconds[i + 1, j, k + 1] - seconds[i, j, k + 1])
    high = seconds[i, j + 1, k + 1] + x * (seconds[i + 1, j + 1, k + 1] - seconds[i, j + 1, k + 1])
    last = low + y * (high - low)
    return first, (last - first) / (context[k + 1] - context[k])


@njit(nogil=True, error_model="numpy")
def step_seconds(prefill, batch, context, seconds, tokens, sequences, attended):  # type: ignore[no-untyped-def]
    """Return the interpolated time of one iteration."""
    k = segment(context, attended)
    first, slope = line_over_context(prefill, batch, context, seconds, tokens, sequences, k)
    return first + slope * (attended - context[k])
