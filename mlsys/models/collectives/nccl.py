"""NCCL as it runs: protocols, algorithms and what each attains, on NVIDIA GPUs.

The structure and the tables are those of NCCL's own tuning (NVIDIA/nccl@5067397c, src/graph/tuning.cc and topo.h):
each algorithm has three protocols. LL sends a flag with every 8 bytes, at half of the bandwidth and a low latency;
LL128 a flag with every 128 bytes, at 120/128; Simple fences each step. A time is a start, steps at the latency of their
links, and bytes at the bandwidth that the protocol attains.

Where measurements depart from NCCL's tables, these constants are by generation, and one for each mechanism: the
wire's part that a ring attains, what starts a kernel, how much longer than in the table a step takes, and how fast the
switches add up. They were set by the rows of ``allreduce.csv`` in the evidence; no constant belongs to one series.
"""

from dataclasses import dataclass

from mlsys.choices import Collective
from mlsys.models.collectives.candidate import Candidate, Protocol, candidate
from mlsys.models.collectives.group import Group

_PROTOCOLS: tuple[Protocol, ...] = ("LL", "LL128", "Simple")
US = 1e-6

# NCCL's tables, in us by protocol: start of a kernel, a step over NVLink, PCIe and the network.
_BASE = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
_HOPS = {
    "nvlink": {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)},
    "pcie": {"tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7)},
    "network": {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0)},
}
# Bandwidth by protocol over that of Simple: the payload of LL128's lines, and NCCL's factors for trees: all protocols,
# LL128 inside one node, and how many times slower LL is.
_LL128_PAYLOAD = 120 / 128
_TREE_RATE, _TREE_LL128_RATE, _TREE_LL_SLOWDOWN = 0.92, 7 / 9, 3.8
# What posting to the network costs a ring at each of its steps, three times in Simple (NCCL's figure for AMD's CPUs).
_POST = 2.0
_NVLS_HOP, _NVLS_TREE_NETWORK_HOP = 25.0, 20.9
# Above 64 B, by factors of two: the part of a tree's bandwidth that pipelines of middling size attain.
_TREE_CORRECTION = {
    "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    "Simple": (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8),
        *(0.9, 0.9, 0.9),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Generation:
    """Attained rates and latencies of a generation of GPUs.

    Attributes
    ----------
    wire
        Part of the link that a ring's payload attains.
    low_latency_cap
        byte/s of bus bandwidth at which LL saturates inside a node (NCCL's ``llMaxBws``).
    start
        Seconds beyond which NCCL's start of a kernel is longer (or, below zero, shorter).
    step
        How much longer than in NCCL's table a step takes.
    channels
        Rings in parallel; each copies a rank's own part at :data:`COPY_PER_CHANNEL`.
    switch
        Part of the link at which switches that add up are fed and drained; 0 if they do not.
    """

    wire: float
    low_latency_cap: float
    start: float
    step: float
    channels: int
    switch: float


_GENERATIONS = {
    "Volta": Generation(0.80, 39.0e9, 2.0 * US, 1.7, 12, 0.0),
    "Ampere": Generation(0.78, 87.7e9, 2.0 * US, 1.7, 24, 0.0),
    "Hopper": Generation(0.815, 141.0e9, -2.0 * US, 1.3, 24, 0.678),
    "Blackwell": Generation(0.755, 282.0e9, 1.2 * US, 2.0, 32, 0.534),
}
COPY_PER_CHANNEL = 45e9
# A slice of NCCL's buffers that a channel fills before the next step can begin: 4 MiB / 8 steps x 2.
SLICE = 1 << 20
# NCCL takes 12 of the 15.75 GB/s of PCIe 3 x16 as attainable, and in proportion of later generations.
PCIE_WIRE = 12 / 15.75
NETWORK_WIRE = 0.95
# Messages to all peers at once attain a little less than a ring.
PEERS_WIRE = 0.9


def generation_of(architecture: str) -> Generation:
    """Return the constants of an architecture; those of Ampere for one without measurements."""
    return next((each for name, each in _GENERATIONS.items() if architecture.startswith(name)), _GENERATIONS["Ampere"])


def candidates(operation: Collective, size: float, group: Group, generation: Generation) -> list[Candidate]:
    """Return every algorithm and protocol that NCCL may choose, with its time.

    Parameters
    ----------
    operation
        Collective operation.
    size
        Bytes of the array (of the whole array in an all-gather and a reduce-scatter).
    group
        The chips and the links between them.
    generation
        What their architecture attains.
    """
    if group.ranks == 1:
        return []
    if operation in ("all-to-all", "send-recv"):
        return [_peers(operation, size, group, generation, protocol) for protocol in ("LL", "Simple")]
    # The flags of LL128 need the 128 bytes of a write to arrive together: over NVLink and InfiniBand they do.
    whole_lines = group.topology != "host" and (group.nodes == 1 or group.keeps_order)
    usable = [each for each in _PROTOCOLS if each != "LL128" or whole_lines]
    found = [_ring(operation, size, group, generation, protocol) for protocol in usable]
    if operation == "all-reduce":
        found += [_tree(size, group, generation, protocol) for protocol in usable]
        if group.in_network_reduction and generation.switch and group.per_node > 2:
            found.append(_nvls(size, group, generation))
    return found


def _wire(group: Group, generation: Generation) -> float:
    """Return the bandwidth that a ring inside a node attains, byte/s."""
    if group.topology == "host":
        rate = group.bandwidth * PCIE_WIRE
        return min(rate, group.crossing) if group.crossing else rate
    return group.bandwidth * generation.wire


def _hop(group: Group, generation: Generation, algorithm: str, protocol: Protocol) -> float:
    """Return the time of a step inside a node, s: NCCL's table, in proportion to the latency of the link."""
    kind = "pcie" if group.topology == "host" else "nvlink"
    table = _HOPS[kind][algorithm]
    return group.latency * generation.step * table[_PROTOCOLS.index(protocol)] / _HOPS[kind]["ring"][0]


def _network_hop(group: Group, algorithm: str, protocol: Protocol) -> float:
    """Return the time of a step between nodes, s; what a link adds to the table counts twice in Simple."""
    table = _HOPS["network"]
    beyond = max(group.out_latency - table["ring"][0] * US, 0.0)
    return table[algorithm][_PROTOCOLS.index(protocol)] * US + beyond * (2 if protocol == "Simple" else 1)


def _start(generation: Generation, algorithm: str, protocol: Protocol) -> float:
    return max(_BASE[algorithm][_PROTOCOLS.index(protocol)] * US + generation.start, 1 * US)


def _ring(operation: Collective, size: float, group: Group, generation: Generation, protocol: Protocol) -> Candidate:
    """Return a ring: in each node one for each network port, so that all ports carry."""
    ranks, nodes = group.ranks, group.nodes
    phases = 2 if operation == "all-reduce" else 1
    steps, crossings = phases * (ranks - 1), phases * (nodes - 1)
    inside = _wire(group, generation) if group.per_node > 1 else float("inf")
    between = group.per_node * group.out_bandwidth * NETWORK_WIRE if nodes > 1 else float("inf")
    rate = min(inside, between)
    cap = generation.low_latency_cap if nodes == 1 and group.topology != "host" else float("inf")
    if protocol == "LL":
        rate = min(rate / 2, cap)
    elif protocol == "LL128":
        rate *= _LL128_PAYLOAD
    sent = size if operation == "broadcast" else phases * (ranks - 1) / ranks * size
    own = 0.0 if operation == "broadcast" else size / ranks
    copied = own / (generation.channels * COPY_PER_CHANNEL)
    filled = min(generation.channels * SLICE, size / (2 * ranks)) / rate if protocol == "Simple" else 0.0
    hop = _hop(group, generation, "ring", protocol) if group.per_node > 1 else 0.0
    if nodes > 1:
        hop = max(hop, _POST * US * (3 if protocol == "Simple" else 1))
    latency = _start(generation, "ring", protocol) + (steps - crossings) * hop
    if nodes > 1:
        latency += crossings * _network_hop(group, "ring", protocol)
    bound = "scale_up" if inside <= between else "scale_out"
    outside = sent / group.per_node if nodes > 1 else 0.0
    return candidate("ring", protocol, latency, sent / rate + copied + filled, bound, sent, outside)


def _tree(size: float, group: Group, generation: Generation, protocol: Protocol) -> Candidate:
    """Return NCCL's tree: a chain inside each node, a double binary tree between nodes."""
    # Each node sends the array up and down once; in a tree of more than two nodes also to a second child.
    children = 1.0 if group.nodes <= 2 else 2.0
    inside = _wire(group, generation) * _TREE_RATE / 2 if group.per_node > 1 else float("inf")
    between = group.per_node * group.out_bandwidth * NETWORK_WIRE / children if group.nodes > 1 else float("inf")
    rate = min(inside, between)
    if protocol == "LL":
        rate = min(rate / (_TREE_LL_SLOWDOWN / 2), generation.low_latency_cap / 2)
    elif protocol == "LL128":
        rate *= _TREE_LL128_RATE if group.nodes == 1 else _LL128_PAYLOAD
    rate *= _correction(protocol, size)
    depth = (group.nodes - 1).bit_length()
    latency = _start(generation, "tree", protocol)
    latency += 2 * (group.per_node - 1) * _hop(group, generation, "tree", protocol) if group.per_node > 1 else 0.0
    latency += 2 * depth * _network_hop(group, "tree", protocol) if depth else 0.0
    bound = "scale_up" if inside <= between else "scale_out"
    outside = children * size / group.per_node if group.nodes > 1 else 0.0
    return candidate("tree", protocol, latency, size / rate, bound, 2 * size if group.per_node > 1 else 0.0, outside)


def _correction(protocol: Protocol, size: float) -> float:
    at = int(size // 64).bit_length() - 1
    table = _TREE_CORRECTION[protocol]
    return float(table[at]) if 0 <= at < len(table) else 1.0


def _nvls(size: float, group: Group, generation: Generation) -> Candidate:
    """Return the all-reduce in which the switches add up and multicast (NVLink SHARP), and a tree between nodes.

    A GPU sends the array and multicasts its share of the sum: ``n (1 + 1/g)`` bytes each way.
    """
    inside = group.bandwidth * generation.switch / (1 + 1 / group.per_node)
    children = 1.0 if group.nodes <= 2 else 2.0
    between = group.per_node * group.out_bandwidth * NETWORK_WIRE / children if group.nodes > 1 else float("inf")
    rate = min(inside, between)
    filled = min(generation.channels * SLICE, size) / (group.bandwidth * generation.wire)
    latency = _NVLS_HOP * US
    if group.nodes > 1:
        beyond = max(group.out_latency - _HOPS["network"]["ring"][0] * US, 0.0)
        depth = (group.nodes - 1).bit_length()
        latency += 2 * depth * (_NVLS_TREE_NETWORK_HOP * US + 2 * beyond)
    name = "nvls" if group.nodes == 1 else "nvls tree"
    bound = "scale_up" if inside <= between else "scale_out"
    outside = children * size / group.per_node if group.nodes > 1 else 0.0
    return candidate(name, "Simple", latency, size / rate + filled, bound, size * (1 + 1 / group.per_node), outside)


def _peers(operation: Collective, size: float, group: Group, generation: Generation, protocol: Protocol) -> Candidate:
    """Return messages to all peers at once (all-to-all), or to one (send-recv)."""
    ranks = group.ranks
    one = operation == "send-recv"
    inside_bytes = size if one else size * (group.per_node - 1) / ranks
    outside_bytes = 0.0 if group.nodes == 1 else size if one else size * (ranks - group.per_node) / ranks
    rate = _wire(group, generation) * PEERS_WIRE if group.per_node > 1 else float("inf")
    if group.topology == "full mesh" and one:
        rate /= group.ports
    if one and group.nodes > 1:
        inside_bytes = 0.0
    if group.crossing and not one:  # half of a node's cards send to the other half over one link
        half = group.per_node / 2
        rate = min(rate, group.crossing * (group.per_node - 1) / (half * half))
    part = 0.5 if protocol == "LL" else 1.0
    inside = inside_bytes / (rate * part)
    outside = outside_bytes / (group.out_bandwidth * NETWORK_WIRE * part) if outside_bytes else 0.0
    if protocol == "Simple" and group.per_node > 1:
        inside += min(generation.channels * SLICE / 2, size / 4) / rate
    copied = 0.0 if one else size / ranks / (generation.channels * COPY_PER_CHANNEL)
    steps = 1 if one or protocol == "Simple" else max(group.per_node - 1, 1) / 2
    latency = _start(generation, "ring", protocol)
    latency += steps * _hop(group, generation, "ring", protocol) if group.per_node > 1 else 0.0
    if group.nodes > 1:
        latency += _network_hop(group, "ring", protocol)
    bound = "scale_up" if inside >= outside else "scale_out"
    return candidate("direct", protocol, latency, max(inside, outside) + copied, bound, inside_bytes, outside_bytes)
