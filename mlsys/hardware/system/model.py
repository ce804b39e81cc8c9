"""Systems of many chips: nodes, hosts and links, each value with its source.

A system is one kind of node (a server, a rack that NVLink joins, a pod that a torus joins) and, where there is
one, the fabric between nodes. It implements look-ups and no models.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.parts import refuse_forged
from mlsys.provenance import read
from mlsys.unit_checks import checked_count
from mlsys.units import Q_, Quantity

Topology = Literal["switch", "full mesh", "ring", "torus", "host", "fat tree", "point to point", "shared memory", ""]
"""How a fabric joins its ends; empty where there is no fabric."""


_NO_COUNTS: FrozenDict[str, Quantity] = FrozenDict({})
_NO_SOURCES: FrozenDict[str, FrozenDict[str, str]] = FrozenDict({})


@dataclass(frozen=True)
class Link:
    """One fabric of a system, seen from one chip: bandwidth in one direction, latency per hop.

    Attributes
    ----------
    name
        ``"scale_up"``, ``"scale_out"``, ``"host"`` or ``"between_hosts"``.
    owner
        Id of the system, for messages.
    kind
        Technology, such as ``"NVLink 4"``.
    topology
        How the fabric joins its ends. ``"host"`` is PCIe through the CPUs of the node.
    ports
        Links of one chip that ``bandwidth`` is the sum of, such as 6 in a torus of three dimensions or 7 in a full
        mesh of eight. Through a switch a chip reaches any other with all of its bandwidth: one port.
    dimensions
        Chips along each axis of a torus; empty for other topologies.
    shared_by
        Chips that share one such link to the host.
    in_network_reduction
        What lets the switches add up what they receive, such as ``"NVLink SHARP"``; empty if nothing does.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> link = systems["DGX_H100"].scale_up
    >>> print(link.kind, link.bandwidth, link.topology)
    NVLink 4 450 GB/s switch
    """

    name: str
    owner: str
    kind: str = ""
    topology: Topology = ""
    ports: int = 1
    dimensions: tuple[int, ...] = ()
    shared_by: int = 1
    in_network_reduction: str = ""
    note: str = ""
    _bandwidth: Quantity | None = None
    _latency: Quantity | None = None
    _taper: Quantity | None = None

    def __post_init__(self) -> None:
        given = ((name, value) for name, value in vars(self).items() if name[0] == "_" and value is not None)
        refuse_forged(f"{self.owner}, {self.name}", given)

    @property
    def exists(self) -> bool:
        """Whether the system has this link."""
        return bool(self.topology)

    @property
    def bandwidth(self) -> Quantity:
        """Bandwidth of one chip in one direction, over all ports, byte/s."""
        return self._known("bandwidth", self._bandwidth)

    def glance(self) -> Quantity | None:
        """Return the bandwidth, None if unknown, without recording a use."""
        return copy.copy(self._bandwidth)

    @property
    def both_directions(self) -> Quantity:
        """Bandwidth of both directions together, byte/s, as vendors advertise it."""
        both: Quantity = self.bandwidth * 2
        return both

    @property
    def latency(self) -> Quantity:
        """Time of the smallest message over one hop, s."""
        return self._known("latency", self._latency)

    @property
    def taper(self) -> Quantity:
        """Bandwidth that leaves the nodes over that at the top of the fabric; 1 where none is recorded."""
        return Q_(1.0, "") if self._taper is None else self._known("taper", self._taper)

    def recorded(self) -> list[Quantity]:
        """Return every recorded value of the link, without recording a use."""
        return [copy.copy(value) for value in (self._bandwidth, self._latency, self._taper) if value is not None]

    def _known(self, what: str, value: Quantity | None) -> Quantity:
        if value is None:
            reason = "" if self.exists else "it has no such link; "
            raise UnknownNameError(
                f"{self.owner}: no {what} of {self.name} is recorded ({reason}"
                f"add it, with its source, under `{self.name}` of the system's YAML file)"
            )
        fact: Quantity = read(value)
        return fact


@dataclass(frozen=True)
class System:
    """Chips, hosts and links of one system.

    Attributes
    ----------
    device
        One chip.
    chips_per_node
        Chips that the scale-up fabric joins: 8 in a DGX H100, 72 in a GB200 NVL72, 256 in a TPU v5e pod.
    nodes
        Nodes of this system, joined by the scale-out fabric; :meth:`with_nodes` changes it.
    hosts_per_node
        CPUs with memory of their own in one node.
    nodes_per_fabric
        Most nodes that the scale-out fabric joins; None if no limit is recorded.
    scale_up, scale_out, host, between_hosts
        Links inside a node, between nodes (None if nodes are not joined), from a chip to its CPU, and between the CPUs
        of a node (None if not recorded). Bandwidths are those of one chip, in one direction.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> dgx = systems["DGX_H100"].with_nodes(4)
    >>> dgx.chips, dgx.device.id, print(dgx.scale_out.bandwidth)
    50 GB/s
    (32, 'H100_SXM', None)
    """

    id: str
    name: str
    vendor: str
    release_year: int
    device: Device
    chips_per_node: int
    scale_up: Link
    host: Link
    scale_out: Link | None = None
    between_hosts: Link | None = None
    nodes: int = 1
    hosts_per_node: int = 1
    nodes_per_fabric: int | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""
    sources: FrozenDict[str, FrozenDict[str, str]] = _NO_SOURCES
    _power: Quantity | None = None
    _counts: FrozenDict[str, Quantity] = _NO_COUNTS

    def __hash__(self) -> int:
        """Hash a few identifying fields, for speed; equality compares every value."""
        return hash((self.id, self.device, self.chips_per_node, self.nodes))

    @property
    def chips(self) -> int:
        """Number of chips of all nodes."""
        return self.chips_per_node * self.nodes

    @property
    def most_chips(self) -> float:
        """Most chips that its fabrics can join; infinite where no limit is recorded."""
        if self.scale_out is None:
            return float(self.chips_per_node)
        return float("inf") if self.nodes_per_fabric is None else float(self.chips_per_node * self.nodes_per_fabric)

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that exist, from the innermost to the outermost."""
        every = (self.scale_up, self.host, self.between_hosts, self.scale_out)
        return tuple(link for link in every if link is not None and link.exists)

    @property
    def power(self) -> Quantity:
        """Most power that one node draws, W."""
        if self._power is None:
            raise UnknownNameError(f"{self.id}: no power of a node is recorded")
        fact: Quantity = read(self._power)
        return fact

    @property
    def has_power(self) -> bool:
        """Whether the power of a node is recorded."""
        return self._power is not None

    @property
    def power_per_chip(self) -> Quantity:
        """Most power that one node draws, hosts included, over the chips of a whole node, W.

        Examples
        --------
        >>> from mlsys.hardware import systems
        >>> print(systems["DGX_H100"].with_chips(4).power_per_chip)
        1275 W
        """
        whole = self._counts.get("chips_per_node")
        share: Quantity = self.power / (self.chips_per_node if whole is None else int(whole.m))
        return share

    def recorded(self) -> list[Quantity]:
        """Return every value that its own file records, without recording a use."""
        own = [*self._counts.values(), *(() if self._power is None else (self._power,))]
        links = (self.scale_up, self.host, self.between_hosts, self.scale_out)
        values = [copy.copy(value) for value in own] + [
            value for link in links if link is not None for value in link.recorded()
        ]
        return [value for value in values if value.facts and value.facts[0].name.startswith(f"{self.id}/")]

    def with_nodes(self, nodes: int) -> System:
        """Return a system with this many nodes of the same kind.

        Parameters
        ----------
        nodes
            Positive whole number.

        Raises
        ------
        ArgumentError
            If nodes of this kind are not joined, or the fabric does not join so many.

        Examples
        --------
        >>> from mlsys.hardware import systems
        >>> systems["DGX_H100"].with_nodes(2).chips
        16
        >>> systems["Workstation_2x_RTX_4090"].with_nodes(2)
        Traceback (most recent call last):
            ...
        mlsys.errors.ArgumentError: with_nodes(): ... has no link between nodes (`scale_out`), got nodes=2. Write ...
        """
        count = checked_count("with_nodes", "nodes", nodes)
        if count > 1 and self.scale_out is None:
            raise ArgumentError(
                f"with_nodes(): {self.name} has no link between nodes (`scale_out`), got nodes={count}. Write nodes=1"
            )
        most = self.nodes_per_fabric
        if most is not None and count > most:
            raise ArgumentError(
                f"with_nodes(): the fabric of {self.name} joins at most {most} nodes, got nodes={count}. "
                f"Write e.g. nodes={most}"
            )
        return replace(self, nodes=count)

    def with_chips(self, chips: int) -> System:
        """Return the part of this kind of system with this many chips: a part of one node, or whole nodes.

        Parameters
        ----------
        chips
            Positive whole number.

        Raises
        ------
        ArgumentError
            If there are not so many chips, or they do not fill whole nodes.

        Examples
        --------
        >>> from mlsys.hardware import systems
        >>> four, many = systems["DGX_H100"].with_chips(4), systems["DGX_H100"].with_chips(32)
        >>> (four.chips_per_node, four.nodes), (many.chips_per_node, many.nodes)
        ((4, 1), (8, 4))
        """
        count = checked_count("with_chips", "chips", chips)
        if count <= self.chips_per_node:
            return replace(self, chips_per_node=count, nodes=1)
        if count > self.most_chips:
            raise ArgumentError(
                f"with_chips(): {self.name} has at most {self.most_chips:,.0f} chips, got {count}. "
                f"Write e.g. chips={self.chips_per_node}"
            )
        if count % self.chips_per_node:
            raise ArgumentError(
                f"with_chips(): more than one node of {self.name} takes a multiple of {self.chips_per_node} chips, "
                f"got {count}. Write e.g. chips={(count // self.chips_per_node + 1) * self.chips_per_node}"
            )
        return self.with_nodes(count // self.chips_per_node)

    def record(self) -> dict[str, Any]:
        """Return the system as plain data, for JSON; records no use."""
        return {
            "id": self.id,
            "name": self.name,
            "vendor": self.vendor,
            "release_year": self.release_year,
            "device": self.device.id,
            "chips_per_node": self.chips_per_node,
            "hosts_per_node": self.hosts_per_node,
            "nodes": self.nodes,
            "nodes_per_fabric": self.nodes_per_fabric,
            "chips": self.chips,
            "links": [
                {
                    "name": link.name,
                    "kind": link.kind,
                    "topology": link.topology,
                    "ports": link.ports,
                    "dimensions": list(link.dimensions),
                    "values": [_value(value) for value in link.recorded()],
                }
                for link in self.links
            ],
            "values": [_value(value) for value in self.recorded()],
        }

    def __repr__(self) -> str:
        up = self.scale_up
        joined = f", {up.kind or up.topology} {up._bandwidth:~P} each" if up._bandwidth is not None else ""
        nodes = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        return f"<system {self.name}: {nodes}{self.chips_per_node} x {self.device.id}{joined}>"


def _value(quantity: Quantity) -> dict[str, Any]:
    (fact,) = quantity.facts
    return {
        "name": fact.name,
        "value": float(quantity.magnitude),
        "unit": f"{quantity.units:~C}",
        "meaning": fact.meaning,
        "source": fact.source,
        "date": fact.date,
        "confidence": fact.confidence,
        "uncertainty": fact.uncertainty,
    }
