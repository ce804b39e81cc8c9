"""Similarity of networks by the shape of their products, and predictions for unmeasured shapes.

A Gaussian process over three features: rows, columns and depth of a network's products, in binary logarithms and
weighted by FLOP. The error of a machine at one shape is correlated with its errors at nearby shapes, less with
distance; a library's kernels, and the units that run them, suit some shapes better than others.

C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, sections 2.2 and 4.2.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.work import Work

Array = NDArray[np.float64]
Shape = tuple[float, float, float]
# Length scale, in binary logarithms, over which the correlation falls to 1/e: doubling the input width of one network
# changes rows by two.
LENGTH_SCALE = 6.0


def shape_of_products(work: Work) -> Shape:
    """Return the shape features of some work: binary logarithms of rows, columns and depth, as FLOP-weighted means.

    Examples
    --------
    >>> from mlsys.models.estimate.work import MATMUL, Kernel
    >>> shape_of_products(Work.of([Kernel(MATMUL, 2.0 * 8 * 4 * 2, 0.0, m=8, n=4, k=2)]))
    (3.0, 2.0, 1.0)
    """
    weight = work["flops"] * work["count"]
    whole = float(weight.sum()) or 1.0
    rows, columns, depth = (
        float((np.log2(np.maximum(work[name], 1.0)) * weight).sum()) / whole for name in ("m", "n", "k")
    )
    return rows, columns, depth


def likeness(some: Sequence[Shape], others: Sequence[Shape]) -> Array:
    """Return the correlation of errors at some shapes with those at others, shape (some, others).

    Examples
    --------
    >>> likeness([(3.0, 2.0, 1.0)], [(3.0, 2.0, 1.0), (9.0, 2.0, 1.0)]).round(2).tolist()
    [[1.0, 0.37]]
    """
    left, right = (np.array(shapes, dtype=np.float64).reshape(len(shapes), 3) for shapes in (some, others))
    distance: Array = np.linalg.norm(left[:, None] - right[None], axis=2)
    return np.asarray(np.exp(-distance / LENGTH_SCALE), dtype=np.float64)


@dataclass(frozen=True)
class ShapeEffects:
    """Effects learned from measured shapes.

    Attributes
    ----------
    shapes
        Measured shapes.
    weights
        Weight of each shape, in the logarithm of time, to be multiplied by the similarity.
    """

    shapes: tuple[Shape, ...]
    weights: tuple[float, ...]

    def of(self, shapes: Sequence[Shape]) -> Array:
        """Return the logarithm of the time factor at each given shape."""
        return np.asarray(likeness(shapes, self.shapes) @ np.array(self.weights), dtype=np.float64)
