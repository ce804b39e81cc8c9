"""A network as plain numbers: one row per distinct operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("gemm", "conv2d", "conv3d", "attention", "elementwise", "embedding", "decode")


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """Numbers of a network that time models need; every array is read-only.

    A deep network lists the same few operators many times. There is one row per distinct operator, in order of first
    appearance, and ``repeats`` is the number of times it runs: the sum over the network of a cost per row is ``costs @
    repeats``. Where the order matters, ``costs[order]`` has one value per operator of the network.

    Attributes
    ----------
    kind
        Shape (rows,), index into ``KINDS``; -1 for a user-defined kind.
    flops
        Shape (rows,), FLOP of one run.
    data, weights
        Shape (rows,), compulsory bytes of one run, and the parameter bytes among them.
    m, n, k, copies
        Shape (rows,), the matrix products an operator lowers to; zeros if it has none.
    repeats
        Shape (rows,), number of runs of the operator.
    order
        Shape (operators,), the row of each operator of the network.
    first
        Shape (rows,), index in the network of the operator's first appearance.
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
        """Return the arrays of rows given column by column, and of their order."""
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
