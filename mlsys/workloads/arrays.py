"""A network as plain numbers: one row for each distinct operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("gemm", "conv2d", "conv3d", "attention", "elementwise", "embedding", "decode")


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """What a model of time needs of a network, in plain numbers; every array is read-only.

    A deep network lists the same few operators many times. There is one row for each
    distinct operator, in order of first appearance, and ``repeats`` says how often it runs:
    the sum over the network of a cost per row is ``costs @ repeats``. Where the order
    matters, ``costs[order]`` has one value for each operator of the network.

    Attributes
    ----------
    kind
        Shape (rows,), index into ``KINDS``; -1 for a kind of the caller's own.
    flops
        Shape (rows,), FLOP of one run.
    data, weights
        Shape (rows,), compulsory bytes of one run, and the part of them that is parameters.
    m, n, k, copies
        Shape (rows,), the matrix products an operator lowers to; zeros if it has none.
    repeats
        Shape (rows,), how often the operator runs.
    order
        Shape (operators,), the row of each operator of the network.
    first
        Shape (rows,), the place in the network where each operator first appears.
    """

    kind: NDArray[np.int64]
    flops: NDArray[np.float64]
    data: NDArray[np.float64]
    weights: NDArray[np.float64]
    m: NDArray[np.float64]
    n: NDArray[np.float64]
    k: NDArray[np.float64]
    copies: NDArray[np.float64]
    repeats: NDArray[np.int64]
    order: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.flops)

    @classmethod
    def of(
        cls,
        *,
        kinds: Sequence[str],
        flops: Sequence[float],
        data: Sequence[float],
        weights: Sequence[float],
        products: Sequence[tuple[float, float, float, float]],
        order: Sequence[int],
    ) -> NetworkArrays:
        """Return the arrays of rows that are given column by column, and of the order they run in."""
        m, n, k, copies = np.asarray(products, dtype=float).reshape(-1, 4).T
        columns: dict[str, Any] = {
            "kind": np.asarray([KINDS.index(kind) if kind in KINDS else -1 for kind in kinds], dtype=np.int64),
            "flops": np.asarray(flops, dtype=float),
            "data": np.asarray(data, dtype=float),
            "weights": np.asarray(weights, dtype=float),
            **{"m": m.copy(), "n": n.copy(), "k": k.copy(), "copies": copies.copy()},
            "order": np.asarray(order, dtype=np.int64),
        }
        columns["repeats"] = np.bincount(columns["order"], minlength=len(kinds))
        columns["first"] = np.unique(columns["order"], return_index=True)[1].astype(np.int64)
        for column in columns.values():
            column.flags.writeable = False
        return cls(**columns)
