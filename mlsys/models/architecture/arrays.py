"""Tiling for systolic arrays with one buffer: weight-stationary (TPU) and output-stationary (KPU)."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from mlsys.choices import FoldOverlap, Stationary
from mlsys.hardware.technology import Role, Technology
from mlsys.hardware.view import LevelView
from mlsys.models.architecture.blocks import Block, fewest_words, footprint
from mlsys.models.architecture.demand import NARROWEST, Demand, PlanCounts, Product
from mlsys.models.architecture.strategy import TilingStrategy
from mlsys.models.systolic.accesses import ArrayCounts
from mlsys.models.systolic.counts import physical_counts
from mlsys.models.systolic.folds import folds


@dataclass(frozen=True)
class ArrayTiling(TilingStrategy):
    """Base class of array strategies: a buffer whose blocks determine main memory traffic, and folds.

    Cycles and words come from the closed forms of :mod:`mlsys.models.systolic`; the clock is the one
    at which the array reaches the peak of the precision.
    """

    dataflow: ClassVar[Stationary]

    @cached_property
    def array(self) -> tuple[int, int, int]:
        """Rows, columns and number of arrays."""
        if self.device.systolic_array is None:
            raise self.missing("array of multipliers", "Add `systolic_array: {rows, columns, count}` to its YAML file")
        return self.device.systolic_array

    @cached_property
    def levels(self) -> tuple[LevelView, ...]:
        """The buffer that feeds the array, memories inside it, and the accumulators."""
        _ = self.array
        caches = tuple(level for level in self.machine.inner if level.has("capacity"))
        if not any(map(_holds_blocks, caches)):
            raise self.missing(
                f"buffer with a capacity inside its {self.device.main_memory}",
                "Add one, such as UnifiedBuffer, to the device's YAML file",
            )
        return caches

    @cached_property
    def holding(self) -> LevelView:
        """The outermost buffer."""
        return next(filter(_holds_blocks, self.levels))

    @property
    def units_at_work(self) -> int:
        """Number of arrays."""
        return self.array[2]

    def counted(self, work: Demand) -> PlanCounts:
        """Return the counts of one operator's plan, as plain numbers."""
        product = work.product
        if product is None:
            return self.stream(work)
        peak, vector = self.rates(work.precision)
        rows, columns, arrays = self.array
        clock = peak / (2.0 * rows * columns * arrays)
        fold_overlap: FoldOverlap = "full" if self.mapping.overlap else "none"
        counts: list[ArrayCounts] = []
        cycles, waves = 0, 0
        for m, n, k, copies in work.pair:
            cut = replace(folds(m, n, k, rows, columns, self.dataflow), copies=copies)
            counts.append(physical_counts(cut, fold_overlap))
            rounds = -(-cut.count // arrays)
            cycles += (rounds - 1) * cut.step(fold_overlap) + cut.fold_cycles
            waves += rounds
        computing = cycles / clock + work.beside / vector
        if product.n < NARROWEST and product.copies > 1:  # the elements outside the array may be faster
            aside = self.stream(work)
            if aside.computing < computing:
                return aside
        fed = sum(count.sram.ifmap_reads + count.sram.filter_reads for count in counts)
        results = sum(count.folds.m * count.folds.n * count.folds.copies for count in counts)
        passing = sum(count.sram.ofmap_writes + count.sram.ofmap_reads for count in counts)
        latched = sum(count.register_writes for count in counts)
        return self._in_blocks(work, product, (fed, results, passing, latched), computing, waves)

    def _in_blocks(
        self, work: Demand, product: Product, words: tuple[int, int, int, int], computing: float, waves: int
    ) -> PlanCounts:
        fed, results, passing, latched = words
        moved: list[float] = []
        outer: Block | None = None
        buffers = [level for level in self.levels if _holds_blocks(level)]
        for level in buffers:
            block = self.block(product, self.room_of(level) / work.size)
            if block is None:
                raise self.too_small(level, work)
            outer = outer or block
            moved.append(work.data + block.words * work.size)
        assert outer is not None
        sums = [level for level in self.levels if not _holds_blocks(level)]
        at_array = (fed + results if sums else fed + passing) * work.size
        # Accumulator traffic: every partial sum, read and written, four bytes each.
        moved += [at_array, *([max(passing * 4.0, at_array)] * len(sums))]
        moved = [max(moved[: index + 1]) for index in range(len(moved))]
        row_blocks, _, _ = outer.counts(product)
        peak, _ = self.rates(work.precision)
        tile = self.tile(product, outer)
        tiles = tuple(-(-size // edge) for size, edge in zip(product[:3], tile, strict=True))
        return PlanCounts(
            tile, (tiles[0], tiles[1], tiles[2]), product.copies, outer.order, self.holding.name,
            footprint(outer.m, outer.n, outer.k) * work.size, self.room_of(self.holding),
            (outer.m, outer.n, outer.k), self.holding.name, tuple(moved), latched,
            self.loads(work, row_blocks), waves, computing,
            min(1.0, (work.multiplying + work.beside) / (computing * peak)),
        )  # fmt: skip

    @abstractmethod
    def block(self, product: Product, words: float) -> Block | None:
        """Return the block of the product for a buffer of ``words`` words, or None if none fits."""

    @abstractmethod
    def tile(self, product: Product, block: Block) -> tuple[int, int, int]:
        """Return the tile (Tm, Tn, Tk) of the product that the array processes at a time."""

    @abstractmethod
    def loads(self, work: Demand, row_blocks: int) -> int:
        """Return how often the array is reloaded."""


@dataclass(frozen=True)
class TpuTiling(ArrayTiling):
    """Weight-stationary tiling: a fold of weights stays in the array while rows of activations stream past.

    The unified buffer holds three double-buffered blocks; a block is at least as wide as the array, and
    has at least as many rows as the array (or as the product), so that the next weights arrive while
    rows stream. A fold's weights are loaded once per block of rows.

    References
    ----------
    N. P. Jouppi et al., In-datacenter performance analysis of a tensor processing unit, ISCA 2017.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> plan = TpuTiling(Hardware.Generic.TPU).plan(gemm(4096, 4096, 4096, "bf16"))
    >>> plan.loads, f"{plan.utilisation:.1%}"
    (2048, '100.0%')
    """

    name: ClassVar[str] = "tpu"
    dataflow: ClassVar[Stationary] = "ws"

    def beside(self, peak: float) -> float:
        """Return the rate of one operation per column of the arrays and cycle, FLOP/s."""
        return peak / (2.0 * self.array[0])

    def block(self, product: Product, words: float) -> Block | None:
        """Return the block for a buffer: whole folds, with at least as many rows as the array."""
        rows, columns, _ = self.array
        return fewest_words(product, words, (rows,), at_least=(rows, columns))

    def tile(self, product: Product, block: Block) -> tuple[int, int, int]:
        """Return the tile: the rows that stream, and the fold of weights."""
        rows, columns, _ = self.array
        return block.m, min(columns, product.n), min(rows, product.k)

    def loads(self, work: Demand, row_blocks: int) -> int:
        """Return the number of weight folds loaded, each once per block of rows."""
        rows, columns, _ = self.array
        return row_blocks * sum(-(-k // rows) * -(-n // columns) * copies for _, n, k, copies in work.pair)

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the strategy, in words."""
        rows, columns, arrays = self.array
        return (
            f"weights stay in {arrays} arrays of {rows} × {columns}; folds are divided evenly and "
            + ("follow each other directly" if self.mapping.overlap else "wait for the previous one to drain"),
            f"three double-buffered blocks in {self.holding.name}, at least {rows} rows each",
            "other operations run at the array's edge, one per column and cycle, after the matrix "
            "products; a depthwise convolution runs where it is faster"
            if not self.machine.has_rate("fp32", "vector")
            else "other operations run on the vector units, after the matrix products",
        )


@dataclass(frozen=True)
class KpuTiling(ArrayTiling):
    r"""Domain flow (output-stationary): sums stay in the fabric while wavefronts of operands stream through it.

    A fabric of R × C elements holds R·C sums. Step t of the reduction is a wavefront: a column of R
    words and a row of C words enter, and all R·C elements multiply and add. A single block of results takes
    :math:`K + R + C - 2` cycles, with K steps; the next block's wavefronts follow directly behind,

    .. math:: \text{cycles} = (\lceil F / f \rceil - 1) \max(K, R) + K + 2R + C - 2,

    for F blocks of results on f fabrics, with R cycles to drain the last sums. The state in flight
    is one wavefront and the sums: O(N²) for the O(N³) operations of a matrix product. The scratchpad
    holds the same at a larger scale, blocks of results and strips of R wavefronts,

    .. math:: S = 2 w \left(B_m B_n + R (B_m + B_n)\right),

    so its size sets :math:`B \approx \sqrt{S / 2w}`, and main memory traffic is about
    :math:`2 N^3 / B` words.

    This formula is ours: no manufacturer has published one. The wavefront schedules follow the systems
    of affine recurrences described for domain-flow machines.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> from mlsys.workloads import gemm
    >>> work = gemm(2048, 2048, 2048, "fp32")
    >>> for size in (Q_(2, "MiB"), Q_(32, "MiB")):
    ...     plan = KpuTiling(Hardware.Generic.KPU.with_onchip(size)).plan(work)
    ...     print(plan.block, f"{(plan.read + plan.written).to('MB'):.0f}")
    (683, 342, 16) 168 MB
    (1024, 512, 2048) 67 MB
    """

    name: ClassVar[str] = "kpu"
    dataflow: ClassVar[Stationary] = "os"

    def beside(self, peak: float) -> float:
        """Return the rate of one operation per element and cycle, FLOP/s."""
        return peak / 2.0

    def block(self, product: Product, words: float) -> Block | None:
        """Return the block for a buffer: results, and operand strips as deep as the fabric has rows."""
        return fewest_words(product, words, (self.array[0],))

    def tile(self, product: Product, block: Block) -> tuple[int, int, int]:
        """Return the tile: the results in a fabric, with the whole reduction streaming through."""
        rows, columns, _ = self.array
        return min(rows, product.m), min(columns, product.n), product.k

    def loads(self, work: Demand, row_blocks: int) -> int:
        """Return the number of result blocks that the fabrics compute."""
        rows, columns, _ = self.array
        return sum(-(-m // rows) * -(-n // columns) * copies for m, n, _, copies in work.pair)

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the strategy, in words."""
        rows, columns, fabrics = self.array
        return (
            f"sums stay in {fabrics} fabrics of {rows} × {columns} elements while wavefronts stream (our own formula)",
            f"double-buffered blocks of results and strips of {rows} wavefronts in {self.holding.name}",
            "other operations run after the matrix products, one per element and cycle; a depthwise convolution "
            "runs where it is faster",
        )


def _holds_blocks(level: LevelView) -> bool:
    """Return whether a level holds blocks of operands, that is, neither sums nor the elements' registers."""
    return level.role is not Role.SUMS and level.technology is not Technology.REGISTER
