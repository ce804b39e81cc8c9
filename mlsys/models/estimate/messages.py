"""Time of a message between machines: the collectives' counterpart of the laws of single kernels.

This is a second model of collectives beside :mod:`mlsys.models.collectives`, and not its caller, because it is a law
of the fit. It is evaluated for many kernels at once, as arrays, from two fitted parameters of a setting (`link`, the
part of the link that is attained, and `hop`, the seconds of a step). A kernel here has a pattern, bytes and ranks
alone; the other model needs a system with topology, nodes and a generation of NCCL, which rows of measurements do not
name. Its forms differ too (the shot to all ranks, two protocols instead of three, what joins two sockets), so that to
replace this one means to fit `link` and `hop` anew, with ranges and held-out evaluations. Questions about a system
use the other, as the exchanges of ``mlsys.size`` do.
"""

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.work import ALL_GATHER, ALL_REDUCE, PAIR, RING_REDUCE, Work

Array = NDArray[np.float64]

# Slower than this, in byte/s one way, a link is PCIe to a root that all share, none of NVLink's or Infinity Fabric's.
PEER_LINK = 70e9
# More cards than one socket's lanes are for sit at two, four at each, and whatever goes around among them crosses the
# link between these: one way 10 GB/s in hosts of PCIe 4 and before, 22 in those of PCIe 5. NCCL's own figures, of Xeons
# from Skylake on and of Sapphire Rapids (NVIDIA/nccl@069a3d4, src/graph/topo.h: SKL_QPI_BW, SRP_QPI_BW; EPYCs' are 16,
# 24 and 32). No row says which host it had.
CARDS_AT_A_SOCKET, PCIE_5, BETWEEN_SOCKETS = 4.0, 40e9, (10e9, 22e9)
# Times as long as at the link's rate in NCCL's quick protocol, of reductions and of others; seconds that the plain one
# starts later. Steps that the plain one takes as long as, of 1.5 to 6 by the error left out; and steps that each loop
# over a ring's buffers loses: on A100, H100 and B200 two machines attain 0.9 of what four do, and four 0.95 of eight.
FLAGGED, PLAIN_START, FENCED, STARTING_ANEW = (4.0, 3.0), 1.8e-6, 2.0, 0.5


def message_seconds(
    kernels: Work, engines: dict[str, Array], parameters: dict[str, Array], here: NDArray[np.bool_]
) -> Array:
    """Return seconds of messages: one shot to all ranks, or rounds, whichever is faster; NCCL's go round a ring.

    Machines on PCIe, behind one root, do not write to all ranks at once; many of them share what joins two sockets.
    """
    pattern = kernels["k"][here]
    ranks = np.maximum(kernels["ranks"][here], 2.0)
    link = np.where(ranks > PAIR, engines["link_of_many"][here], engines["link"][here])
    wire = parameters["link"][here] * np.maximum(link, 1e9)
    shared = link < PEER_LINK
    between = np.where(link < PCIE_5, *BETWEEN_SOCKETS)
    wire = np.where(shared & (ranks > CARDS_AT_A_SOCKET), np.minimum(wire, between), wire)
    bytes_sent = kernels["moved"][here] * (ranks - 1) / ranks
    hop = parameters["hop"][here]
    reduces = (pattern == ALL_REDUCE) | (pattern == RING_REDUCE)
    rounds = np.where(reduces, 2.0, 1.0)
    at_once = np.where(reduces, ranks, 1.0) * bytes_sent / wire + hop
    in_rounds = rounds * (bytes_sent / wire + np.log2(ranks) * hop)
    ring = _ring_seconds(rounds * (ranks - 1), rounds * bytes_sent / wire, hop, reduces)
    goes_round = (pattern == ALL_GATHER) | (pattern == RING_REDUCE)
    seconds: Array = np.where(shared, in_rounds, np.where(goes_round, ring, np.minimum(at_once, in_rounds)))
    return seconds


def _ring_seconds(steps: Array, sending: Array, hop: Array, reduces: NDArray[np.bool_]) -> Array:
    """Return seconds of a ring of so many steps, in the faster of two of NCCL's protocols.

    The quick one sends a flag with each word, at a part of the rate; the plain one fences each step
    (NVIDIA/nccl, src/graph/tuning.cc: the parts, the steps, and what the plain one takes to start).
    """
    sending = sending * (1 + STARTING_ANEW / steps)
    quick = sending * np.where(reduces, *FLAGGED) + steps * hop
    plain = sending + steps * FENCED * hop + PLAIN_START
    seconds: Array = np.minimum(quick, plain)
    return seconds
