"""The tile plan of one operator on a device."""

from dataclasses import dataclass
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.models.record import amounts
from mlsys.units import Quantity, ureg

_BYTE, _SECOND, _NUMBER = ureg.Unit("byte"), ureg.Unit("s"), ureg.Unit("")


@dataclass(frozen=True)
class TilePlan:
    """Tiling of one operator on a device, with the resulting traffic and time.

    Attributes
    ----------
    operator, strategy, device
        Names of the operator, the strategy and the device.
    tile
        (Tm, Tn, Tk) of a matrix product; (elements, 1, 1) of an operator that streams.
    tiles
        Number of tiles along each dimension, including partial edge tiles.
    copies
        Number of equal products, each tiled in this way.
    order
        Loops over blocks, outermost first; empty for a stream.
    level
        Memory level that holds the tile.
    buffer, capacity
        Bytes that its buffers take, and bytes available, in one core, multiprocessor or buffer.
    block, block_level
        The larger block that determines main memory traffic, and its memory level; the tile itself
        if there is only one level.
    read, written
        Bytes read from and written to the main memory.
    moved
        Bytes that each level exchanges with the next inner one, main memory first.
    launches
        Number of kernel launches.
    loads
        Blocks brought to the chip; on a systolic array, folds of weights loaded into it.
    waves
        Rounds in which the units, or arrays, process their tiles.
    computing
        Time of the arithmetic alone, s.
    utilisation
        Fraction of the peak attained without memory stalls.
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
        """Number of tiles in all copies."""
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
