"""How one operator is cut for a machine, and what follows."""

from dataclasses import dataclass
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.models.record import amounts
from mlsys.units import Quantity, ureg

_BYTE, _SECOND, _NUMBER = ureg.Unit("byte"), ureg.Unit("s"), ureg.Unit("")


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

    def record(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON: sizes as lists, bytes with their unit."""
        return {
            "tile": list(self.tile),
            "tiles": list(self.tiles),
            "copies": self.copies,
            "order": self.order,
            "level": self.level,
            "block": list(self.block),
            "block_level": self.block_level,
            **amounts(FrozenDict({name: getattr(self, name) for name in ("buffer", "capacity", "read", "written")})),
            "launches": self.launches,
            "loads": self.loads,
            "waves": self.waves,
            "utilisation": self.utilisation,
        }

    def __repr__(self) -> str:
        tile = "×".join(map(str, self.tile))
        return (
            f"<plan {self.operator} on {self.device}: {self.count:,} tiles of {tile} in {self.level}, "
            f"{self.buffer.to('KiB'):.4g} of {self.capacity.to('KiB'):.4g}, "
            f"{(self.read + self.written).to_compact():.4g} at the main memory>"
        )
