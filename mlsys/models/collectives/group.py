"""A group of chips that communicate, as floats: who is where, and the ways between them."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.hardware.system import System, system_view
from mlsys.hardware.system.model import Topology


@dataclass(frozen=True, slots=True)
class Group:
    """Chips of one collective; all rates are of one chip in one direction, byte/s, all times s.

    Attributes
    ----------
    ranks, per_node, nodes
        Chips in all, in each node, and nodes that they are on.
    latency, bandwidth, ports, topology
        Of the scale-up fabric; ``bandwidth`` is what the chip reaches the others of its node with, all ports together.
    sides
        Chips along each axis of the slice of a torus, with whether the axis closes to a ring; else empty.
    out_latency, out_bandwidth
        Of the fabric between nodes, its taper taken off; zero if all are in one node.
    crossing
        Bandwidth of the link between the CPUs of a node that neighbours share, where cards sit at both; else zero.
    in_network_reduction
        Whether switches add up.
    keeps_order
        Whether the fabric between nodes delivers the bytes of a write in order, as InfiniBand does and EFA does not.
    """

    ranks: int
    per_node: int
    nodes: int
    latency: float
    bandwidth: float
    ports: int
    topology: Topology
    sides: tuple[tuple[int, bool], ...]
    out_latency: float
    out_bandwidth: float
    crossing: float
    in_network_reduction: bool
    keeps_order: bool

    @property
    def port_bandwidth(self) -> float:
        """Bandwidth to one neighbour, byte/s."""
        return self.bandwidth / self.ports


def group_of(where: str, system: System, chips: int) -> Group:
    """Return the group of ``chips`` chips of a system: within one node if they fit, else whole nodes.

    Raises
    ------
    ArgumentError
        If the system has fewer chips, or they do not fill whole nodes.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> group = group_of("example", systems["MI300X_platform"], 4)
    >>> group.ports, group.bandwidth / 1e9
    (3, 192.0)
    """
    if chips > system.chips:
        most = system.most_chips
        more = f"at most {most:,.0f} chips" if most <= system.chips else f"{system.chips:,} chips"
        nodes = -(-chips // system.chips_per_node)
        fix = f"Write chips={system.chips}" if chips > most else f"Write nodes={nodes} for more nodes"
        raise ArgumentError(f"{where}(): {system.name} has {more}, got chips={chips}. {fix}")
    if chips > system.chips_per_node and chips % system.chips_per_node:
        raise ArgumentError(
            f"{where}(): more than one node of {system.name} takes a multiple of {system.chips_per_node} chips, "
            f"got chips={chips}. Write e.g. chips={chips // system.chips_per_node * system.chips_per_node}"
        )
    per_node = min(chips, system.chips_per_node)
    nodes = chips // per_node
    link, view = system.scale_up, system_view(system)
    latency = bandwidth = out_latency = out_bandwidth = crossing = 0.0
    ports = 1
    sides: tuple[tuple[int, bool], ...] = ()
    if per_node > 1:
        latency, bandwidth = view.scale_up.require("latency"), view.scale_up.require("bandwidth")
        if link.topology == "full mesh":
            ports = min(link.ports, per_node - 1)
            bandwidth *= ports / link.ports
        elif link.topology == "torus":
            sides = torus_slice(per_node, link.dimensions)
            ports = sum(2 if closed or size > 2 else 1 for size, closed in sides if size > 1)
            bandwidth *= ports / link.ports
        elif link.topology == "host" and system.between_hosts is not None:
            at_one = -(-system.chips_per_node // system.hosts_per_node)
            crossing = float(system.between_hosts.bandwidth.m_as("byte/s")) if per_node > at_one else 0.0
    if nodes > 1 and view.scale_out is not None:
        out_latency = view.scale_out.require("latency")
        out_bandwidth = view.scale_out.require("bandwidth") / (view.scale_out.taper or 1.0)
    return Group(
        chips, per_node, nodes, latency, bandwidth, ports, link.topology, sides, out_latency, out_bandwidth, crossing,
        bool(link.in_network_reduction), system.scale_out is None or "Elastic Fabric" not in system.scale_out.kind,
    )  # fmt: skip


def torus_slice(chips: int, dimensions: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
    """Return the sides of the most cubic slice of a torus, each with whether it closes to a ring.

    An axis closes if the slice takes all of it, or, in a torus of three axes whose cubes of 4 x 4 x 4 are joined by
    optical switches, a multiple of 4.

    Raises
    ------
    ArgumentError
        If no slice has so many chips.

    Examples
    --------
    >>> torus_slice(64, (16, 16, 16)), torus_slice(32, (16, 16))
    (((4, True), (4, True), (4, True)), ((4, False), (8, False)))
    """
    best: tuple[int, ...] | None = None
    for sides in _factors(chips, tuple(sorted(dimensions))):
        if best is None or (sum(sides), max(sides)) < (sum(best), max(best)):
            best = sides
    if best is None:
        shape = " x ".join(map(str, dimensions))
        raise ArgumentError(
            f"a torus of {shape} has no slice of {chips} chips. Write a product of its sides, such as 4"
        )
    optical = len(dimensions) == 3
    return tuple(
        (side, side == whole or (optical and side % 4 == 0))
        for side, whole in zip(best, sorted(dimensions), strict=True)
    )


def _factors(chips: int, dimensions: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the ways to write a number as one factor for each dimension, none above it."""
    if len(dimensions) == 1:
        return [(chips,)] if chips <= dimensions[0] else []
    first = dimensions[0]
    return [
        (side, *rest)
        for side in range(1, min(first, chips) + 1)
        if chips % side == 0
        for rest in _factors(chips // side, dimensions[1:])
    ]
