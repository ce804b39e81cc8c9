"""From networks of operators to kernels, in the number formats of a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlsys.models.calibrated import COLLECTIVE, MATMUL, VECTOR, Engine, Work
from mlsys.validation.cases.reading import Format
from mlsys.workloads import Network

__all__ = ["lowered", "side_by_side"]

# Products narrower than this in filters run like depthwise convolutions, on the vector units.
NARROWEST_PRODUCT = 4


def lowered(network: Network, fmt: Format, runs: float = 1.0) -> Work:
    """Return a network's kernels; the network must have been built in FP16, two bytes a value.

    Parameters
    ----------
    network
        With activations fused into the products before them.
    fmt
        Bytes of a weight and of another value.
    runs
        How often the whole network runs.
    """
    a = network.arrays
    product = (a.m > 0) & (a.n >= NARROWEST_PRODUCT)
    weights = a.weights * fmt.weight / 2
    return Work(
        np.array(
            [
                np.where(product, MATMUL, VECTOR),
                a.flops,
                (a.data - a.weights) * fmt.value / 2 + weights,
                weights,
                np.where(product, a.m, 1),
                np.where(product, a.n, 1),
                np.where(product, a.k, 1),
                np.where(product, a.copies, 1),
                a.repeats * runs,
                np.ones(len(a)),
            ],
            dtype=float,
        )
    )


def joined(*works: Work) -> Work:
    """Return works one after the other."""
    return Work(np.concatenate([work.columns for work in works], axis=1))


def messages(size: float, peers: int, count: float) -> Work:
    """Return ``count`` all-reduces of ``size`` bytes among ``peers``; none for a single engine."""
    if peers < 2:
        return Work(np.zeros((len(Work.FIELDS), 0)))
    return Work(np.array([[COLLECTIVE, 0, size, 0, 1, 1, 1, 1, count, peers]], dtype=float).T)


def side_by_side(engine: Engine, peers: int) -> Engine:
    """Return ``peers`` engines that share every kernel, as tensor parallelism does, as one."""
    return replace(
        engine,
        matmul=engine.matmul * peers,
        vector=engine.vector * peers,
        bandwidth=engine.bandwidth * peers,
        cache=engine.cache * peers,
        cache_bandwidth=engine.cache_bandwidth * peers,
        units=engine.units * peers,
        power=engine.power * peers,
    )
