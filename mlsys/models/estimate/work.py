"""What is to be done, as columns of numbers: one row for each kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

MATMUL, VECTOR, COLLECTIVE, ATTENTION = 0, 1, 2, 3
# Which collective, in the column ``k``; a ring's is NCCL's all-reduce, which has no other way.
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, RING_REDUCE = 1, 2, 3, 4
# Machines in a collective that a bridge joins.
PAIR = 2.0
# Of other kernels, in the column ``peers``: one call from Python between two events of the machine. The first event is
# over when the call begins, and the second is recorded when it returns; the kernel starts in between. Calls that queue
# before a machine wait for one another, not for the host; some begin before the one before them has ended. Layers of a
# chip that holds all of them hand samples on by themselves.
CALLED, QUEUED, OVERLAPPED, STREAMED = 2, 3, 4, 5


@dataclass(frozen=True)
class Kernel:
    """One kernel, launched ``count`` times.

    Attributes
    ----------
    kind
        ``MATMUL`` (also convolutions, as the product they are lowered to), ``VECTOR``
        (element-wise work, reductions, copies, depthwise convolutions),
        ``ATTENTION`` (fused: ``m`` queries, ``n`` keys, heads of width ``k``, ``batch`` of
        them) or ``COLLECTIVE`` (``k`` says which; an all-reduce by default).
    flops
        FLOP of one launch.
    moved
        Compulsory bytes of one launch; of a collective, its message.
    weights
        The part of ``moved`` that is parameters.
    m, n, k, batch
        Shape of the product, and how many of them.
    peers
        Machines in a collective; else ``CALLED``, ``QUEUED`` or ``OVERLAPPED`` of one call timed alone, after
        others, or begun before those have ended; ``STREAMED`` of a layer that nothing starts.
    block_rows, block_columns
        Of the smallest block of the output that the kernel's library has, where its blocks sum all of it themselves;
        0 where tiles of any size are taken, and sums are split.
    further
        Steps of a recurrence after the first, each of which waits for the one before: ``flops`` and ``moved`` are those
        of all steps, ``batch`` and the shape those of one, and ``weights`` are counted once.
    """

    kind: int
    flops: float
    moved: float
    weights: float = 0.0
    m: float = 1.0
    n: float = 1.0
    k: float = 1.0
    batch: float = 1.0
    count: float = 1.0
    peers: float = 1.0
    block_rows: float = 0.0
    block_columns: float = 0.0
    sequential_steps: float = 0.0


@dataclass(frozen=True)
class Work:
    """Kernels that run one after the other, as columns.

    Examples
    --------
    >>> work = Work.of([Kernel(MATMUL, 2.0 * 8 * 8 * 8, 3 * 64 * 2.0, m=8, n=8, k=8, count=3)])
    >>> work.flops, work.launches
    (3072.0, 3.0)
    """

    columns: NDArray[np.float64] = field(repr=False)

    FIELDS = (
        "kind", "flops", "moved", "weights", "m", "n", "k", "batch", "count", "peers", "block_rows", "block_columns",
        "further",
    )  # fmt: skip

    @classmethod
    def of(cls, kernels: Iterable[Kernel]) -> Work:
        """Return the kernels as columns; equal ones are merged, in the order of their first."""
        merged: dict[tuple[float, ...], float] = {}
        for kernel in kernels:
            key = (
                kernel.kind,
                kernel.flops,
                kernel.moved,
                kernel.weights,
                kernel.m,
                kernel.n,
                kernel.k,
                kernel.batch,
                kernel.peers,
                kernel.block_rows,
                kernel.block_columns,
                kernel.sequential_steps,
            )
            merged[key] = merged.get(key, 0.0) + kernel.count
        rows = [(*key[:8], count, *key[8:]) for key, count in merged.items()]
        return cls(np.array(rows, dtype=float).reshape(len(rows), len(cls.FIELDS)).T)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        column: NDArray[np.float64] = self.columns[_ROW_OF[name]]
        return column

    def changed(self, **columns: NDArray[np.float64]) -> Work:
        """Return the same kernels with other columns, such as ``count``."""
        values = self.columns.copy()
        for name, column in columns.items():
            values[_ROW_OF[name]] = column
        return Work(values)

    def times(self, runs: float) -> Work:
        """Return the same kernels, launched so many times as often.

        Examples
        --------
        >>> Work.of([Kernel(VECTOR, 8.0, 16.0, count=3)]).times(2).launches
        6.0
        """
        return self.changed(count=runs * self["count"])

    @property
    def flops(self) -> float:
        """FLOP of all kernels."""
        return float((self["flops"] * self["count"]).sum())

    @property
    def launches(self) -> float:
        """Kernels launched."""
        return float(self["count"].sum())

    @property
    def weights(self) -> float:
        """Bytes of parameters, each kernel's read once."""
        return float((self["weights"] * self["count"]).sum())

    def rates_needed(self, stays: bool) -> frozenset[str]:
        """Return the rates of a machine that the time of the kernels, or its bounds, are computed from.

        Parameters
        ----------
        stays
            Whether data that fit stay in the cache from one kernel to the next.

        Examples
        --------
        >>> Work.of([Kernel(VECTOR, 8.0, 16.0)]).rates_needed(True) - NO_WORK.rates_needed(False)
        frozenset({'cache'})
        """
        products, attention, further, pair, many = self._kinds
        return _rates_needed(products, attention, stays or further, pair, many)

    @cached_property
    def _kinds(self) -> tuple[bool, bool, bool, bool, bool]:
        """Whether there are products, attention, steps that follow others, messages in a pair, and among more."""
        kinds = frozenset(self["kind"].tolist())
        peers = self["peers"][self["kind"] == COLLECTIVE] if COLLECTIVE in kinds else np.zeros(0)
        pair, many = bool((peers <= PAIR).any()), bool((peers > PAIR).any())
        return MATMUL in kinds, ATTENTION in kinds, bool(self["further"].any()), pair, many


@lru_cache(maxsize=64)
def _rates_needed(products: bool, attention: bool, cached: bool, pair: bool, many: bool) -> frozenset[str]:
    needed = {"matmul", "vector", "bandwidth", "cache_bandwidth", "units", "array", "bits", "controller"}
    needed |= {"requantised", "team", "joining", "reading", "issuing"}
    needed |= {"cache"} if cached else set()
    needed |= {"power", "over_vector"} if products or attention else set()
    needed |= {"clock", "each_cycle"} if products else set()
    needed |= {"link"} if pair else set()
    needed |= {"link_of_many"} if many else set()
    return frozenset(needed)


NO_WORK = Work(np.zeros((len(Work.FIELDS), 0)))
NO_WORK.columns.flags.writeable = False
_ROW_OF = {name: row for row, name in enumerate(Work.FIELDS)}
