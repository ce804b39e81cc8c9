"""Tiling for CPUs and microcontrollers: three double-buffered cubic blocks in the cache of each core."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView
from mlsys.models.architecture.blocks import Block, cubes, footprint
from mlsys.models.architecture.demand import NARROWEST, Demand, PlanCounts
from mlsys.models.architecture.strategy import TilingStrategy


@dataclass(frozen=True)
class CpuTiling(TilingStrategy):
    """CPU tiling: cubic tiles, with three double-buffered blocks as large as fit in every cache.

    A tile lies in a cache of one core, by default its L2: the outermost level private to a core, or
    the innermost level if none is private. Outer caches hold larger cubes of the same kind, which
    determine main memory traffic.

    Attributes
    ----------
    registers
        Rows and columns of results that a core keeps in registers, which is how often each word from
        the innermost memory is used. By default 6 × 16 (vector registers), or 4 × 4 on a core without
        caches in front of an on-chip main memory (a microcontroller).

    References
    ----------
    K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008:
    blocks for each level of caches, and a block of results in registers.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> plan = CpuTiling(Hardware.Generic.CPU).plan(gemm(1024, 1024, 1024, "fp32"))
    >>> plan.tile, plan.tiles, plan.level
    ((147, 147, 147), (7, 7, 7), 'L2')
    """

    registers: tuple[int, int] | None = None

    name: ClassVar[str] = "cpu"

    @cached_property
    def levels(self) -> tuple[LevelView, ...]:
        """Caches and memories between the main memory and the registers."""
        caches = tuple(
            level
            for level in self.machine.inner
            if level.has("capacity") and level.technology is not Technology.REGISTER
        )
        if not caches and self.machine.main.technology is not Technology.SRAM:
            raise self.missing(
                f"memory level with a capacity inside its {self.device.main_memory}",
                "Add one, such as L2 with `scope: unit`, to the device's YAML file",
            )
        return caches

    @cached_property
    def block_in_registers(self) -> tuple[int, int]:
        """Rows and columns of results that a core keeps in registers."""
        return self.registers or ((6, 16) if self.levels else (4, 4))

    @property
    def outermost(self) -> LevelView:
        """The memory whose blocks determine main memory traffic."""
        return self.levels[0] if self.levels else self.machine.main

    @cached_property
    def holding(self) -> LevelView:
        """The outermost level private to a core, else the innermost."""
        if not self.levels:
            return self.machine.main
        return next((level for level in self.levels if level.scope == "unit"), self.levels[-1])

    def counted(self, work: Demand) -> PlanCounts:
        """Return the plan of one operator in plain numbers."""
        product = work.product
        if product is None or (product.n < NARROWEST and product.copies > 1):
            return self.stream(work)
        peak, vector = self.rates(work.precision)
        blocks: list[Block] = []
        for level, room in zip(self.levels, self.rooms, strict=True):
            choices = cubes(product, room / work.size)
            if choices is None:
                raise self.too_small(level, work)
            blocks.append(choices)
        moved = [work.data + block.words * work.size for block in blocks]
        rows, columns = (
            min(edge, size) for edge, size in zip(self.block_in_registers, (product.m, product.n), strict=True)
        )
        feeding = work.multiplying / 2 * (1 / rows + 1 / columns) * work.size
        moved.append(max([feeding, work.data, *moved]))
        moved = [max(moved[: index + 1]) for index in range(len(moved))]
        if blocks:
            tile, outer = blocks[self.levels.index(self.holding)], blocks[0]
        else:  # words go straight from the main memory to the registers
            tile = outer = Block(rows, columns, 1, "mnk", 0.0)
        results = -(-product.m * product.n * product.copies // self.units)  # results of the busiest core
        computing = 2.0 * results * product.k * self.units / peak + work.beside / vector
        held = footprint(tile.m, tile.n, tile.k) if blocks else rows * columns
        tm, tn, tk = tile.counts(product)
        om, on, ok = outer.counts(product)
        return PlanCounts(
            (tile.m, tile.n, tile.k), (tm, tn, tk), product.copies, tile.order, self.holding.name,
            held * work.size, self.room_of(self.holding),
            (outer.m, outer.n, outer.k), self.outermost.name, tuple(moved), 3 * work.multiplying / 2,
            om * on * ok * product.copies, -(-tm * tn * product.copies // self.units), computing,
            min(1.0, (work.multiplying + work.beside) / (computing * peak)),
        )  # fmt: skip

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the strategy, in words."""
        rows, columns = self.block_in_registers
        if not self.levels:
            return (
                f"words go directly from the on-chip {self.holding.name} to the registers",
                f"results are divided evenly among {self.units} cores",
                f"{rows} × {columns} results in registers; depthwise convolutions stream",
            )
        return (
            f"three double-buffered cubes in each of {', '.join(level.name for level in self.levels)}, as large as fit",
            f"results are divided evenly among {self.units} cores; data that several cores need at the same time "
            "are read from the main memory once",
            f"{rows} × {columns} results in registers; depthwise convolutions stream",
        )
