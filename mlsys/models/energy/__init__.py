"""The price list: energy per operation and per access, shared by all models.

Two columns are published, 45 nm and 7 nm. Between them a price follows a power law in the node's
name, which is extrapolated beyond them, and every price has an uncertainty range:

- **node**: from the nearest published column a price may stay constant, or fall twice as steeply as the
  power law; between the columns it stays between them. SRAM bit cells hardly shrink any more: beyond
  the columns every SRAM scales as an array of 8 KiB, the least steep of them.
- **format**: an unpublished width is interpolated by the power law through the two published widths,
  with a range from linear to quadratic in the width. Accumulation in 32 bits is the high end.
- **SRAM**: a power law in the capacity; above 1 MiB an array is made of smaller ones. The low end is
  another author's figure for 8 KiB at 14 nm; the high end adds wires as long as a larger memory is wide.
- **register**: no figure at 7 nm is published, so it shrinks by the mean of the whole table.
- **DRAM**: by technology, independent of the chip's node.
"""

from mlsys.models.energy.prices import PUBLISHED_NODES, Bound, Energies, Price, static_power
from mlsys.models.energy.rules import WORD

__all__ = ["PUBLISHED_NODES", "WORD", "Bound", "Energies", "Price", "static_power"]
