"""Work of a network as columns of numbers: one row for each kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

MATMUL, VECTOR, COLLECTIVE, ATTENTION = 0, 1, 2, 3
# Kinds of collectives, in the column ``k``; a ring all-reduce is NCCL's, without a one-shot alternative.
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, RING_REDUCE = 1, 2, 3, 4
# Largest number of machines joined by a bridge.
PAIR = 2.0
# Launch modes of other kernels, in the column ``ranks``: one call from Python timed by a pair of events. The start
# event completes before the call begins, and the end event is recorded when it returns; the kernel starts in between.
# Queued calls wait for one another, not for the host; overlapped calls start before their predecessor has ended. Layers
# of a chip that holds all of them pass samples on without the host.
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
        Compulsory bytes of one launch; for a collective, its message.
    weights
        Parameter bytes, included in ``moved``.
    m, n, k, batch
        Shape of the product, and the number of products.
    ranks
        Machines in a collective; for other kernels ``CALLED`` (one call timed alone), ``QUEUED`` (after others),
        ``OVERLAPPED`` (started before its predecessor has ended) or ``STREAMED`` (a layer without a launch).
    block_rows, block_columns
        Smallest output block of the kernel's library, for kernels whose blocks compute whole sums; 0 where tiles of any
        size are used and sums may be split.
    extra_steps
        Steps of a recurrence after the first, in sequence: ``flops`` and ``moved`` count all steps, ``batch`` and the
        shape one step, and ``weights`` are counted once.
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
    ranks: float = 1.0
    block_rows: float = 0.0
    block_columns: float = 0.0
    sequential_steps: float = 0.0


@dataclass(frozen=True)
class Work:
    """Kernels that run in sequence, as columns.

    Examples
    --------
    >>> work = Work.of([Kernel(MATMUL, 2.0 * 8 * 8 * 8, 3 * 64 * 2.0, m=8, n=8, k=8, count=3)])
    >>> work.flops, work.launches
    (3072.0, 3.0)
    """

    columns: NDArray[np.float64] = field(repr=False)

    FIELDS = (
        "kind", "flops", "moved", "weights", "m", "n", "k", "batch", "count", "ranks", "block_rows", "block_columns",
        "extra_steps",
    )  # fmt: skip

    @classmethod
    def of(cls, kernels: Iterable[Kernel]) -> Work:
        """Return the kernels as columns; equal kernels are merged, in order of first occurrence."""
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
                kernel.ranks,
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
        """Return the same kernels with their launch counts multiplied.

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
        """Bytes of parameters, counting each kernel's once."""
        return float((self["weights"] * self["count"]).sum())

    def rates_needed(self, cached: bool) -> frozenset[str]:
        """Return the names of the machine rates that the times and bounds of the kernels depend on.

        Parameters
        ----------
        cached
            Whether data that fit stay in the cache from one kernel to the next.

        Examples
        --------
        >>> Work.of([Kernel(VECTOR, 8.0, 16.0)]).rates_needed(True) - NO_WORK.rates_needed(False)
        frozenset({'cache'})
        """
        products, attention, further, pair, many = self._kinds
        return _rates_needed(products, attention, cached or further, pair, many)

    @cached_property
    def _kinds(self) -> tuple[bool, bool, bool, bool, bool]:
        """Return whether there are products, attention, recurrences, messages in a pair, and messages among more."""
        kinds = frozenset(self["kind"].tolist())
        ranks = self["ranks"][self["kind"] == COLLECTIVE] if COLLECTIVE in kinds else np.zeros(0)
        pair, many = bool((ranks <= PAIR).any()), bool((ranks > PAIR).any())
        return MATMUL in kinds, ATTENTION in kinds, bool(self["extra_steps"].any()), pair, many


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
