"""Pareto-optimal points."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import ArgumentError

_BLOCK = 4_000_000  # comparisons held at a time


def unbeaten_rows(values: ArrayLike, largest: Sequence[bool] | None = None) -> NDArray[np.bool_]:
    """Return which rows are Pareto-optimal.

    A row dominates another if it is as good in every column and better in one. Equal rows do not dominate each other:
    either all of them are Pareto-optimal or none.

    Parameters
    ----------
    values
        Array of shape (points, objectives), finite.
    largest
        For each objective whether it is maximised; by default all are minimised.

    Returns
    -------
    array of bool
        Of shape (points,), in the order of the points.

    Raises
    ------
    ArgumentError
        If the shape is wrong, or a value is not finite.

    Examples
    --------
    >>> unbeaten_rows([[1, 5], [2, 2], [2, 2], [3, 3]]).tolist()
    [True, True, True, False]
    """
    rows = np.asarray(values, dtype=float)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ArgumentError(f"unbeaten_rows(): `values` must be points × objectives, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise ArgumentError("unbeaten_rows(): `values` must be finite. Remove points without a value")
    if largest is not None:
        if len(largest) != rows.shape[1]:
            raise ArgumentError(f"unbeaten_rows(): `largest` must have {rows.shape[1]} entries, got {len(largest)}")
        rows = np.where(np.asarray(largest, bool), -rows, rows)
    kept = np.ones(len(rows), bool)
    step = max(1, _BLOCK // max(1, len(rows) * rows.shape[1]))
    for start in range(0, len(rows), step):
        part = rows[start : start + step, None, :]
        beaten = (rows[None] <= part).all(axis=-1) & (rows[None] < part).any(axis=-1)
        kept[start : start + step] = ~beaten.any(axis=-1)
    return kept
