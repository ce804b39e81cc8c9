"""How an operator is cut for a machine: the plan, and what every discipline of cutting has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.parts import MemoryLevel
from mlsys.mapping import Mapping
from mlsys.models.architecture.energy import Energies, Spending
from mlsys.models.architecture.work import Work, work_of
from mlsys.precision import element_size
from mlsys.provenance import Step
from mlsys.units import Quantity, Unit, computed, ureg
from mlsys.workloads.operator import Operator

__all__ = ["Counted", "Level", "TilePlan", "TilingStrategy"]

_BYTE, _SECOND, _NUMBER = ureg.Unit("byte"), ureg.Unit("s"), ureg.Unit("")


class Level(NamedTuple):
    """A memory level in plain numbers: bytes of one piece, byte/s of all (infinite where unknown), kind."""

    name: str
    each: float
    bandwidth: float
    kind: str


class Counted(NamedTuple):
    """What a plan counts, in plain numbers: bytes, seconds, pure numbers.

    ``moved`` has the bytes that cross the inner side of each level, main memory first.
    ``registers`` are words read and written in registers.
    """

    tile: tuple[int, int, int]
    tiles: tuple[int, int, int]
    copies: int
    order: str
    level: str
    buffer: float
    capacity: float
    block: tuple[int, int, int]
    block_level: str
    moved: tuple[float, ...]
    registers: float
    loads: int
    waves: int
    computing: float
    utilisation: float


@dataclass(frozen=True)
class TilePlan:
    """How one operator is cut, and what follows.

    Attributes
    ----------
    operator, strategy, device
        Names.
    tile
        (Tm, Tn, Tk) of a product; elements, 1, 1 of an operator that streams.
    tiles
        Number along each dimension, edge tiles counted as one.
    copies
        Equal products, each cut so.
    order
        Loops over blocks, outermost first; empty for a stream.
    level
        Memory that holds the tile.
    buffer, capacity
        Bytes that its places take, and bytes there are: of one core, multiprocessor or buffer.
    block, block_level
        The larger block that decides what the main memory moves, and where it lies; the tile itself
        where there is one level only.
    read, written
        Bytes at the main memory.
    moved
        Bytes that cross the inner side of each level, main memory first.
    launches
        Kernels.
    loads
        Blocks brought to the chip; on a systolic array, sets of weights loaded into it.
    waves
        Rounds in which the units, or arrays, take their tiles.
    computing
        Time of the arithmetic alone, s.
    utilisation
        Part of the peak that it attains, without waiting for any memory.
    """

    operator: str
    strategy: str
    device: str
    tile: tuple[int, int, int]
    tiles: tuple[int, int, int]
    copies: int
    order: str
    level: str
    buffer: Quantity
    capacity: Quantity
    block: tuple[int, int, int]
    block_level: str
    read: Quantity
    written: Quantity
    moved: FrozenDict[str, Quantity]
    launches: int
    loads: int
    waves: int
    computing: Quantity
    utilisation: float

    @property
    def count(self) -> int:
        """Tiles of all copies."""
        tm, tn, tk = self.tiles
        return tm * tn * tk * self.copies

    def __repr__(self) -> str:
        tile = "×".join(map(str, self.tile))
        return (
            f"<plan {self.operator} on {self.device}: {self.count:,} tiles of {tile} in {self.level}, "
            f"{self.buffer.to('KiB'):.4g} of {self.capacity.to('KiB'):.4g}, "
            f"{(self.read + self.written).to_compact():.4g} at the main memory>"
        )


class Rates(NamedTuple):
    """Peak of the products and rate of all other operations, FLOP/s."""

    peak: float
    vector: float


@dataclass(frozen=True)
class TilingStrategy(ABC):
    """A discipline of cutting operators for one device; subclasses say which.

    Attributes
    ----------
    device
        A twin that has what the discipline needs.
    mapping
        Rate, unit and overlap, as for the roofline.
    energies
        What operations and accesses cost, where the design power decides about a tile; None stands for
        the published constants at 45 nm.
    """

    device: Device
    mapping: Mapping = field(default_factory=Mapping)
    energies: Energies | None = None

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.mapping.level is not None:
            raise ArgumentError(
                f"{type(self).__name__}(): `mapping.level` must be None, got {self.mapping.level!r}: "
                "the strategy decides what each level moves. Write mapping=Mapping()"
            )
        _ = self.levels, self.main

    def plan(self, operator: Operator) -> TilePlan:
        """Return how ``operator`` is cut: least time, then fewest bytes, within the discipline.

        Parameters
        ----------
        operator
            With its own shape; nothing is taken from the network around it.

        Raises
        ------
        ArgumentError
            If not even the smallest block fits, or bytes were counted in another element size than
            the chosen rate computes on.
        UnknownNameError
            If the device lacks the precision.
        """
        work = work_of(operator)
        return self.described(operator.name, work, self.counted(work))

    def described(self, name: str, work: Work, counted: Counted) -> TilePlan:
        """Return counts as a plan with units."""
        again = counted.moved[0] - work.data
        written = work.written

        def given(amount: float, unit: Unit = _BYTE) -> Quantity:
            return computed(amount, unit, self.origin)

        return TilePlan(
            operator=name,
            strategy=self.name,
            device=self.device.name,
            tile=counted.tile,
            tiles=counted.tiles,
            copies=counted.copies,
            order=counted.order,
            level=counted.level,
            buffer=given(counted.buffer),
            capacity=given(counted.capacity),
            block=counted.block,
            block_level=counted.block_level,
            read=given(work.data - written + again),
            written=given(written),
            moved=FrozenDict(
                {
                    level.name: given(moved)
                    for level, moved in zip((self.main, *self.levels), counted.moved, strict=True)
                }
            ),
            launches=1,
            loads=counted.loads,
            waves=counted.waves,
            computing=given(counted.computing, _SECOND),
            utilisation=counted.utilisation,
        )

    @abstractmethod
    def counted(self, work: Work) -> Counted:
        """Return the plan of one operator in plain numbers."""

    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Return what the discipline takes for granted, in words."""

    @property
    @abstractmethod
    def levels(self) -> tuple[Level, ...]:
        """The levels on the chip that data pass, outermost first."""

    @cached_property
    def on_record(self) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        """Sizes and bandwidths of the levels on the chip, as far as they are on record."""
        used = {level.name for level in self.levels}
        inner = [level for level in self.device.inner_levels if level.name in used and level._capacity is not None]
        speeds = {f"{level.name}_bandwidth": level.bandwidth for level in inner if level._bandwidth is not None}
        return {level.name: level.usable for level in inner}, speeds

    @cached_property
    def origin(self) -> Step:
        """What a plan leans on: tiles are cut to the sizes, and of those that fit the quickest are taken."""
        leans = dict(self.on_record[0] | self.on_record[1])
        leans["bandwidth"] = self.device.level().bandwidth
        return Step("tiles", tuple(leans.values()), tuple(leans))

    @cached_property
    def main(self) -> Level:
        """The main memory, as large as need be unless it is itself on the chip."""
        level = self.device.level()
        return as_level(level, sized="sram" in level.kind.lower())

    @cached_property
    def units(self) -> int:
        """Cores or multiprocessors."""
        return max(1, int(self.device.chip("units").m_as("count")))

    @cached_property
    def spending(self) -> Spending:
        """What bytes and operations cost on this device, and the power there is."""
        return (self.energies or Energies.at_45nm()).of(self)

    def rates(self, precision: str) -> Rates:
        """Return the rates at which data of ``precision`` are worked on."""
        known = self.__dict__.setdefault("_known_rates", {})
        if precision not in known:
            known[precision] = self._rates(precision)
        found: Rates = known[precision]
        return found

    def _rates(self, precision: str) -> Rates:
        how = self.mapping
        computes = how.compute_precision or precision
        if element_size(computes) != element_size(precision):
            raise ArgumentError(
                f"plan(): `mapping.compute_precision` is {computes}, but the bytes of the operator were counted in "
                f"{precision}. Make the operator with precision={computes!r}"
            )
        peak = float(self.device.peak(computes, how.sparsity, how.unit).m_as("FLOP/s"))
        have = self.device._peaks
        vector = next(
            (
                float(self.device.peak(name, "dense", "vector").m_as("FLOP/s"))
                for name in (computes, "fp32")
                if (name, "vector", "dense") in have
            ),
            self.beside(peak),
        )
        return Rates(peak, min(vector, peak))

    def beside(self, peak: float) -> float:
        """Return the rate of operations beside products where the twin has no vector peak, FLOP/s."""
        return peak

    def stream(self, work: Work, computing: float | None = None) -> Counted:
        """Return the plan of an operator whose data pass through the chip once, in chunks of the innermost level."""
        rates = self.rates(work.precision)
        if computing is None:
            computing = work.multiplying / (rates.peak if work.product is None else rates.vector)
            computing += work.beside / rates.vector
        held = self.holding
        room = held.each / 2  # one chunk in use, one on its way
        words = max(work.elements, 1.0)
        share = work.data / words  # bytes that pass for each element of the result
        chunk = max(1, min(int(words), int(room / max(share, 1e-9))))
        tiles = -(-int(words) // chunk)
        flops = work.multiplying + work.beside
        return Counted(
            (chunk, 1, 1), (tiles, 1, 1), 1, "", held.name, min(2 * chunk * share, held.each), held.each,
            (chunk, 1, 1), held.name, (work.data,) * (1 + len(self.levels)), 2 * flops, tiles,
            -(-tiles // self.units_at_work), computing,
            min(1.0, flops / (computing * rates.peak)) if computing else 0.0,
        )  # fmt: skip

    @property
    def holding(self) -> Level:
        """The level whose pieces hold the tiles."""
        return self.levels[-1]

    @property
    def units_at_work(self) -> int:
        """Pieces of the machine that take a tile each."""
        return self.units

    def missing(self, what: str, remedy: str) -> ArgumentError:
        """Return the error for a device that lacks what the discipline needs."""
        return ArgumentError(
            f"{type(self).__name__}(): `device` {self.device.name} has no {what} on record, which this strategy needs. "
            f"{remedy}"
        )

    def too_small(self, level: Level, work: Work) -> ArgumentError:
        """Return the error for a level that holds no block of a product."""
        product = work.product
        assert product is not None
        return ArgumentError(
            f"plan(): {level.name} of {self.device.name} holds {level.each:,.0f} byte, too little for the smallest "
            f"block of a product of {product.m} × {product.n} × {product.k} in {work.precision}. "
            "Choose a device with more memory on the chip"
        )


def as_level(level: MemoryLevel, *, sized: bool = True) -> Level:
    """Return a level of a twin in plain numbers; of one that is not ``sized`` the capacity is not looked at."""
    bandwidth = float("inf") if level._bandwidth is None else float(level.bandwidth_total.m_as("byte/s"))
    each = float(level._each(level.usable).m_as("byte")) if sized and level._capacity is not None else 0.0
    return Level(level.name, each, bandwidth, level.kind)
