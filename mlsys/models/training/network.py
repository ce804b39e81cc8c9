"""Communication of training among groups of chips, as floats: collectives along one axis of a parallel layout.

:mod:`mlsys.models.collectives` times one operation that has all links of consecutive chips to itself, by NCCL's
protocols. Here the chips of a group may lie apart (data parallelism takes one chip of each tensor-parallel group), the
operations of all groups run at the same time, and the messages are long: their times are the closed forms of
:mod:`mlsys.formulas.collectives` at one share of the links' bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlsys.errors import UnknownNameError
from mlsys.formulas import message_time, recursive_doubling_all_gather_time
from mlsys.hardware.system import System, system_view

LINK_SHARE = 0.8
"""Share of a link's bandwidth that collectives reach: NCCL's rings 235 of 300, 368 of 450 and 682 of 900 GB/s over
NVLink 3, 4 and 5."""


@dataclass(frozen=True)
class Group:
    """Chips that communicate along one axis of a layout.

    Attributes
    ----------
    ranks
        Chips of the group.
    local
        Those of them in one node.
    inside, outside
        Bytes/s that one chip attains to the chips of its node, all ports together, and to those of other nodes;
        infinite where the group has none.
    port
        Bytes/s that one chip attains to a single chip of its node.
    latency
        Seconds of the smallest message along the slowest hop.
    """

    ranks: int
    local: int
    inside: float
    outside: float
    port: float
    latency: float

    @property
    def link(self) -> str:
        """``"scale-up"``, ``"scale-out"``, or ``""`` for a group of one chip."""
        if self.ranks == 1:
            return ""
        return "scale-up" if self.local == self.ranks else "scale-out"

    def gather(self, size: float) -> float:
        """Return the seconds of an all-gather, or a reduce-scatter, of an array of ``size`` bytes.

        A group over several nodes leaves a node by as many network cards as it has chips there: its rate is that of
        the link inside or of all these cards together, whichever is lower.
        """
        if self.ranks == 1:
            return 0.0
        rate = min(self.inside, self.local * self.outside)
        return float(recursive_doubling_all_gather_time.bare(size, self.ranks, self.latency, rate))

    def reduce(self, size: float) -> float:
        """Return the seconds of an all-reduce of ``size`` bytes on each chip."""
        return 2 * self.gather(size)

    def exchange(self, size: float, copies: int = 1) -> float:
        """Return the seconds of an all-to-all in which each chip holds ``size`` bytes.

        Of a token with several ``copies`` in ``size``, one goes to each node and is copied there, as in DeepEP.
        """
        if self.ranks == 1:
            return 0.0
        near, far = self.exchanged(size, copies)
        return max(near / self.inside, far / self.outside) + self.latency

    def exchanged(self, size: float, copies: int = 1) -> tuple[float, float]:
        """Return the bytes of an all-to-all that a chip sends inside its node, and to other nodes.

        Destinations are drawn at random: of n nodes, k copies visit n·(1 − (1 − 1/n)^k) on average.
        """
        nodes = self.ranks / self.local
        once = nodes * (1 - (1 - 1 / nodes) ** copies) / copies if nodes > 1 else 1.0
        far = (self.ranks - self.local) / self.ranks * size * once
        near = (self.local - 1) / self.local * size if nodes > 1 else (self.ranks - 1) / self.ranks * size
        return near, far

    def send(self, size: float) -> float:
        """Return the seconds in which one chip sends ``size`` bytes to the next of the group."""
        if self.ranks == 1:
            return 0.0
        return float(message_time.bare(size, self.latency, self.port if self.local == self.ranks else self.outside))


def group(system: System, ranks: int, stride: int) -> Group:
    """Return a group of ``ranks`` chips that lie ``stride`` chips apart.

    In a full mesh a chip reaches each of the others over a link of its own. Rings of a torus and of PCIe cards are
    taken to use all of a chip's bandwidth.

    Raises
    ------
    UnknownNameError
        If the system records no link over which the group communicates.
    """
    if ranks == 1:
        return Group(1, 1, math.inf, math.inf, math.inf, 0.0)
    fabric = system_view(system)
    local = max(1, min(ranks, system.chips_per_node // stride))
    inside = outside = port = math.inf
    latency = 0.0
    if local > 1:
        ports = system.scale_up.ports
        inside, latency = LINK_SHARE * fabric.scale_up.require("bandwidth"), fabric.scale_up.latency or 0.0
        port = inside / ports
        if system.scale_up.topology == "full mesh":
            inside *= min(ports, local - 1) / ports
    if local < ranks:
        out = fabric.scale_out
        if out is None:
            raise UnknownNameError(f"{system.name} has no link between nodes, over which {ranks} chips communicate")
        outside, latency = LINK_SHARE * out.require("bandwidth") / (out.taper or 1.0), out.latency or 0.0
    return Group(ranks, local, inside, outside, port, latency)
