"""What an operation and an access cost: one price list for every model.

Two columns are published, 45 nm and 7 nm. Between them a price follows a power of the node's name,
beyond them the same power goes on, and every price says within which range it is to be believed:

- **node**: from the nearest published column a price may stay as it is, or fall twice as steeply as the
  power law says; between the columns it stays between them. Bit cells of SRAM hardly shrink any more:
  beyond the columns every SRAM scales as an array of 8 KiB does, which is the least steep of them.
- **format**: a width that nobody publishes lies on the power law through the two widths that are
  published, and its range reaches from linear to quadratic in the width. A sum of 32 bits is the high end.
- **SRAM**: a power law in the capacity; from 1 MiB on an array is made of smaller ones. The low end is
  what another author gives for 8 KiB at 14 nm; the high end lets a word cross wires as long as a
  larger memory is wide.
- **register**: no figure at 7 nm is published, so that it shrinks as the whole table does.
- **DRAM**: by technology; the chip's node does not matter.
"""

from mlsys.models.energy.prices import PUBLISHED_NODES, Bound, Energies, Price, static_power
from mlsys.models.energy.rules import WORD

__all__ = ["PUBLISHED_NODES", "WORD", "Bound", "Energies", "Price", "static_power"]
