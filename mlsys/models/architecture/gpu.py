"""Tiling for GPUs: tiles in shared memory, in waves over the multiprocessors, and blocks in the L2."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.technology import Role, Technology
from mlsys.hardware.view import LevelView
from mlsys.models.architecture.blocks import BUFFERS, Block, fewest_words
from mlsys.models.architecture.demand import NARROWEST, Demand, PlanCounts, Product
from mlsys.models.architecture.strategy import TilingStrategy
from mlsys.models.energy import WORD

_SIDES = (8, 16, 32, 64, 128, 256)
_DEPTHS = (16, 32, 64)
# Sides below that of a warp are only for products that are no larger.
_NARROW = 32
_SPLITS = (1, 2, 4, 8, 16, 32)
# Maximum sums of a tile: 64 KiB of registers, four bytes each.
_SUMS = 128 * 128
_SUM_BYTES = 4


@lru_cache(maxsize=64)
def _tiles(words: float) -> tuple[NDArray[np.int64], ...]:
    """Return all (Tm, Tn, Tk, splits of the reduction) whose double-buffered operands fit, as columns."""
    tiles = [
        (tm, tn, tk, split)
        for tm in _SIDES
        for tn in _SIDES
        for tk in _DEPTHS
        for split in _SPLITS
        if tm * tn <= _SUMS and BUFFERS * (tm + tn) * tk <= words
    ]
    return tuple(np.array(column, dtype=np.int64) for column in zip(*tiles, strict=True))


def has_shared_memory(level: LevelView) -> bool:
    """Return whether a level is the shared memory of one unit."""
    return level.scope == "unit" and level.role is Role.SHARED


@dataclass(frozen=True)
class GpuTiling(TilingStrategy):
    """GPU tiling: tiles of results, one per multiprocessor at a time.

    A tile keeps its sums in registers and two pairs of operand strips in shared memory. Tiles run in
    waves; the last wave and the edge tiles take as long as full ones. If there are fewer tiles than
    multiprocessors, the reduction may be split among several (split-K), with partial sums reduced in
    the L2. The L2 holds three double-buffered blocks, which determine main memory traffic.

    Attributes
    ----------
    warp
        Rows and columns of results of a warp, which is how often each word from shared memory is used.

    References
    ----------
    A. Kerr et al., CUTLASS: Fast Linear Algebra in CUDA C++, NVIDIA developer blog, 2017: tiles of a
    thread block in shared memory, of a warp in registers.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> plan = GpuTiling(Hardware.Generic.GPU).plan(gemm(4096, 4096, 4096, "fp32"))
    >>> plan.tile, plan.waves, f"{plan.utilisation:.0%}"
    ((32, 32, 64), 205, '100%')
    """

    warp: tuple[int, int] = (64, 32)

    name: ClassVar[str] = "gpu"

    @cached_property
    def _own(self) -> LevelView:
        with_capacity = [
            level
            for level in self.machine.inner
            if level.scope == "unit" and level.has("capacity") and level.technology is not Technology.REGISTER
        ]
        shared = next(filter(has_shared_memory, with_capacity), None) or next(reversed(with_capacity), None)
        if shared is None:
            raise self.missing(
                "shared memory of one multiprocessor",
                "Add a level with `scope: unit` and a capacity to the device's YAML file",
            )
        return shared

    @cached_property
    def levels(self) -> tuple[LevelView, ...]:
        """Caches that all multiprocessors share, and the shared memory of each."""
        outer = [level for level in self.machine.inner if level.scope == "device" and level.has("capacity")]
        return (*outer, self._own)

    def counted(self, work: Demand) -> PlanCounts:
        """Return the plan of one operator in plain numbers."""
        product = work.product
        if product is None or product.n < NARROWEST:
            return self.stream(work)
        peak, vector = self.rates(work.precision)
        *shared, own = self.levels
        blocks = []
        for level, room in zip(shared, self.rooms, strict=False):
            choices = fewest_words(product, room / work.size, (_DEPTHS[1],))
            if choices is None:
                raise self.too_small(level, work)
            blocks.append(choices)
        moved = [work.data + block.words * work.size for block in blocks]
        tm, tn, tk, split = self._tile(work, product, moved)
        outer = blocks[0] if blocks else Block(tm, tn, tk, "mnk", 0)
        rows, columns = -(-product.m // tm), -(-product.n // tn)
        deep = -(-product.k // split)
        count = rows * columns * product.copies * split
        waves = -(-count // self.units)
        computing = waves * 2.0 * tm * tn * deep * self.units / peak + work.beside / vector
        feeding = self._from_outside(work, product, tm, tn, split)
        moved += [feeding, float(self._inside(work, tm, tn))]
        moved = [max(moved[: index + 1]) for index in range(len(moved))]
        om, on, ok = outer.counts(product)
        return PlanCounts(
            (tm, tn, min(tk, product.k)), (rows, columns, -(-product.k // min(tk, product.k))), product.copies,
            outer.order, own.name, BUFFERS * (tm + tn) * tk * work.size, self.rooms[-1],
            (outer.m, outer.n, outer.k), self.levels[0].name, tuple(moved), self._registers(work),
            om * on * ok * product.copies, waves, computing,
            min(1.0, (work.multiplying + work.beside) / (computing * peak)),
        )  # fmt: skip

    def _tile(self, work: Demand, product: Product, moved: list[float]) -> tuple[int, int, int, int]:
        """Return the fastest tile; of equally fast ones, that with the least traffic from the caches."""
        (peak, vector), overlap = self.rates(work.precision), self.mapping.overlap
        choices = _tiles(self.rooms[-1] / work.size)
        if not choices:
            raise self.too_small(self.levels[-1], work)
        tm, tn, tk, split = choices
        tiles = -(-product.m // tm) * -(-product.n // tn) * product.copies
        waves = -(-tiles * split // self.units)
        seconds = waves * (2.0 * tm * tn * -(-product.k // split)) * self.units / peak
        seconds += work.beside / vector
        # An inner level moves at least as much as the levels outside it.
        feeding = np.maximum(self._from_outside(work, product, tm, tn, split), max(moved, default=0.0))
        drawn = np.maximum(self._inside(work, tm, tn), feeding)
        seconds = np.maximum(seconds, drawn / self.speeds[-1])
        fetching = feeding / (self.speeds[-2] if moved else self.main_speed)
        seconds = np.maximum(seconds, fetching) if moved or overlap else seconds + fetching
        if moved and overlap:  # no tile is faster than main memory
            seconds = np.maximum(seconds, moved[0] / self.main_speed)
        seconds = np.maximum(seconds, self._joules(work, feeding, drawn, moved) / self.spending.budget)
        narrow = ((tm < _NARROW) & (product.m > tm)) | ((tn < _NARROW) & (product.n > tn))
        seconds = np.where(((split > 1) & (tiles >= self.units)) | narrow, np.inf, seconds)
        best = np.lexsort((split, -tk, feeding, seconds))[0]
        return int(tm[best]), int(tn[best]), int(tk[best]), int(split[best])

    @staticmethod
    def _from_outside(work: Demand, product: Product, tm: Any, tn: Any, split: Any) -> Any:
        """Return the bytes that tiles read from the caches: each operand once per tile that needs it."""
        strips = product.m * product.k * -(-product.n // tn) + product.k * product.n * -(-product.m // tm)
        once = product.m * product.k + product.k * product.n
        sums = 2.0 * _SUM_BYTES * product.m * product.n * split * (split > 1)
        return work.data + product.copies * ((strips - once) * work.size + sums)

    def _inside(self, work: Demand, tm: Any, tn: Any) -> Any:
        """Return the bytes that threads read from shared memory."""
        once_each = 1 / np.minimum(self.warp[0], tm) + 1 / np.minimum(self.warp[1], tn)
        return work.multiplying / 2 * work.size * once_each

    def _joules(self, work: Demand, feeding: Any, drawn: Any, moved: list[float]) -> Any:
        """Return the energy for every candidate tile, J, as in :meth:`Spending.of`."""
        costs = self.spending
        computes = self.mapping.compute_precision or work.precision
        fixed = (work.multiplying + work.beside) / 2 * costs.multiplying(computes)
        fixed += self._registers(work) * work.size / WORD * costs.register
        if moved:
            fixed += (costs.off_chip + costs.levels[0]) * moved[0]
            for cost, arrives, leaves in zip(costs.levels[1:], moved, moved[1:], strict=False):
                fixed += cost * (arrives + leaves)
            fixed += costs.levels[-2] * moved[-1]
            return fixed + (costs.levels[-2] + costs.levels[-1]) * feeding + costs.levels[-1] * drawn
        return fixed + (costs.off_chip + costs.levels[0] + costs.levels[-1]) * feeding + costs.levels[-1] * drawn

    def _registers(self, work: Demand) -> float:
        """Return the words accessed in registers: three per multiply-accumulate of a thread, fewer in a matrix unit."""
        computes = self.mapping.compute_precision or work.precision
        matrix = self.machine.has_rate(computes, "matrix") and self.mapping.unit != "vector"
        # A matrix instruction is 16 × 8 × 16: 384 operand words and 256 words of sums for 2,048 MACs.
        return work.multiplying / 2 * (640 / 2048 if matrix else 3.0)

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the strategy, in words."""
        *shared, own = self.levels
        cached = ", ".join(level.name for level in shared)
        return (
            f"tiles of 32 to 256 rows and columns (fewer if the product has fewer), one per unit at a time on "
            f"{self.units} units, operands double-buffered in {own.name}, sums in registers",
            "the last wave and edge tiles take as long as full ones; depthwise convolutions stream",
            f"three double-buffered blocks in {cached} determine main memory traffic"
            if shared
            else "no shared cache recorded: every tile reads its operands from the main memory",
        )
