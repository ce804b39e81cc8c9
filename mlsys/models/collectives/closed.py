"""Closed forms of every algorithm for a group of chips: the ideal of full links, without any library."""

from collections.abc import Callable

from mlsys import formulas
from mlsys.choices import Collective, CollectiveAlgorithm
from mlsys.models.collectives.candidate import Candidate, candidate
from mlsys.models.collectives.group import Group
from mlsys.unit_checks import Formula

_FLAT: dict[tuple[Collective, CollectiveAlgorithm], Formula] = {
    ("all-reduce", "recursive doubling"): formulas.recursive_doubling_all_reduce_time,
    ("all-reduce", "rabenseifner"): formulas.rabenseifner_all_reduce_time,
    ("all-reduce", "tree"): formulas.tree_all_reduce_time,
    ("all-gather", "recursive doubling"): formulas.recursive_doubling_all_gather_time,
    ("reduce-scatter", "recursive halving"): formulas.recursive_doubling_all_gather_time,
    ("all-to-all", "pairwise"): formulas.pairwise_all_to_all_time,
    ("all-to-all", "bruck"): formulas.bruck_all_to_all_time,
    ("broadcast", "tree"): formulas.tree_broadcast_time,
}
_RINGS: dict[Collective, Formula] = {
    "all-reduce": formulas.ring_all_reduce_time,
    "all-gather": formulas.ring_all_gather_time,
    "reduce-scatter": formulas.ring_reduce_scatter_time,
    "broadcast": formulas.ring_broadcast_time,
}
_PHASES = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}


def closed_forms(operation: Collective, size: float, group: Group) -> list[Candidate]:
    """Return the time of each algorithm that serves the operation on this group.

    Parameters
    ----------
    operation
        Collective operation.
    size
        Bytes of the array (of the whole array in an all-gather and a reduce-scatter).
    group
        The chips and the links between them.
    """
    if group.ranks == 1:
        return []
    found = [_ring(operation, size, group)] if operation in _RINGS else []
    if operation == "send-recv":
        found.append(_message(size, group))
    elif operation != "broadcast":
        found.append(_direct(operation, size, group))
    if group.nodes > 1 and group.per_node > 1 and operation in _PHASES:
        found.append(_hierarchical(operation, size, group))
    if group.sides:
        if group.nodes == 1 and operation in _PHASES:
            found.append(_torus(operation, size, group))
        return found
    power = group.ranks & (group.ranks - 1) == 0
    for (served, algorithm), formula in _FLAT.items():
        if served == operation and (power or algorithm != "recursive halving"):
            found.append(_flat(algorithm, formula, size, group))
    return found


def _slowest(group: Group, flows: float) -> tuple[float, float, str]:
    """Return latency, bandwidth and name of the slowest link that a round may use, shared by ``flows`` at the CPUs."""
    inside = group.bandwidth if group.per_node > 1 else float("inf")
    if group.crossing:
        inside = min(inside, group.crossing / flows)
    if group.topology == "full mesh":
        inside /= group.ports  # one message takes one link
    if group.nodes > 1 and group.out_bandwidth <= inside:
        return max(group.latency, group.out_latency), group.out_bandwidth, "scale_out"
    return max(group.latency, group.out_latency), inside, "scale_up"


def _timed(name: str, time: Callable[[float], float], size: float, link: str, up: float, out: float = 0.0) -> Candidate:
    latency = float(time(0.0))
    return candidate(name, "", latency, float(time(size)) - latency, link, up, out)


def _flat(algorithm: str, formula: Formula, size: float, group: Group) -> Candidate:
    """Return an algorithm that runs in rounds; on several nodes every round is timed as one between nodes."""
    latency, rate, link = _slowest(group, max(group.per_node / 2, 1.0))
    sent = float(formula.bare(size, group.ranks, 0.0, 1.0))
    up, out = (sent, 0.0) if group.nodes == 1 else (0.0, sent)
    return _timed(algorithm, lambda n: formula.bare(n, group.ranks, latency, rate), size, link, up, out)


def _ring(operation: Collective, size: float, group: Group) -> Candidate:
    """Return rings in parallel that together use every port: of a mesh, of a torus in both directions, of each NIC."""
    formula = _RINGS[operation]
    inside = group.bandwidth if group.per_node > 1 else float("inf")
    if group.crossing:
        inside = min(inside, group.crossing)
    if group.sides:
        inside = group.port_bandwidth * min(2, group.ports)
    between = group.per_node * group.out_bandwidth if group.nodes > 1 else float("inf")
    latency, link = max(group.latency, group.out_latency), "scale_up" if inside <= between else "scale_out"
    sent = float(formula.bare(size, group.ranks, 0.0, 1.0))
    out = sent / group.per_node if group.nodes > 1 else 0.0
    return _timed("ring", lambda n: formula.bare(n, group.ranks, latency, min(inside, between)), size, link, sent, out)


def _direct(operation: Collective, size: float, group: Group) -> Candidate:
    """Return messages to all peers at once; an all-reduce is two such exchanges."""
    shots = 2 if operation == "all-reduce" else 1
    ranks = group.ranks
    up = size * (group.per_node - 1) / ranks
    out = size * (ranks - group.per_node) / ranks
    inside = up / group.bandwidth if up else 0.0
    latency = max(group.latency, group.out_latency)
    if group.sides:
        hops = sum(_mean_hops(side, closed) for side, closed in group.sides)
        inside *= max(hops, 1.0)
        latency = max(latency, group.latency * sum(side // 2 if closed else side - 1 for side, closed in group.sides))
    if group.crossing:
        inside = max(inside, size / ranks * (group.per_node / 2) ** 2 / group.crossing)
    outside = out / group.out_bandwidth if out else 0.0
    link = "scale_up" if inside >= outside else "scale_out"
    return candidate("direct", "", shots * latency, shots * max(inside, outside), link, shots * up, shots * out)


def _mean_hops(side: int, closed: bool) -> float:
    """Return the mean distance of two chips along an axis: a quarter of a ring, a third of a line."""
    return side / 4 if closed else (side * side - 1) / (3 * side)


def _message(size: float, group: Group) -> Candidate:
    if group.nodes > 1:
        return candidate("direct", "", group.out_latency, size / group.out_bandwidth, "scale_out", 0.0, size)
    hops = sum(side // 2 if closed else side - 1 for side, closed in group.sides) or 1
    rate = min(group.port_bandwidth, group.crossing or float("inf"))
    return candidate("direct", "", hops * group.latency, size / rate, "scale_up", size, 0.0)


def _hierarchical(operation: Collective, size: float, group: Group) -> Candidate:
    """Return a part inside the nodes and one between them (both twice in an all-reduce)."""
    phases, gather = _PHASES[operation], formulas.ring_all_gather_time.bare
    inner = Group(**{**{name: getattr(group, name) for name in Group.__slots__}, "ranks": group.per_node, "nodes": 1})
    inside = min(_inner(inner, size), key=lambda each: each.seconds)
    part = size / group.per_node
    latency, out = gather(0.0, group.nodes, group.out_latency, group.out_bandwidth), part * (1 - 1 / group.nodes)
    between = gather(part, group.nodes, 0.0, group.out_bandwidth)
    link = "scale_up" if inside.transfer >= between else "scale_out"
    return candidate(
        "hierarchical",
        "",
        phases * (inside.latency + float(latency)),
        phases * (inside.transfer + float(between)),
        link,
        phases * inside.up_bytes,
        phases * out,
    )


def _inner(group: Group, size: float) -> list[Candidate]:
    ring = _ring("all-gather", size, group)
    return [ring, _torus("all-gather", size, group)] if group.sides else [ring]


def _torus(operation: Collective, size: float, group: Group) -> Candidate:
    """Return rings along each axis in turn, in as many parts as axes, each of which begins with another axis.

    So all ports carry at once. An axis that does not close sends one way only.
    """
    phases, sides = _PHASES[operation], [axis for axis in group.sides if axis[0] > 1]
    latency = transfer = 0.0
    left = [size / len(sides)] * len(sides)
    for step in range(len(sides)):
        times = []
        for part in range(len(sides)):
            side, closed = sides[(part + step) % len(sides)]
            rate = group.port_bandwidth * (2 if closed and side > 2 else 1)
            times.append(((side - 1) * group.latency, (side - 1) / side * left[part] / rate))
            left[part] /= side
        slowest = max(times, key=sum)
        latency, transfer = latency + slowest[0], transfer + slowest[1]
    sent = size * (1 - 1 / group.per_node)
    return candidate("torus", "", phases * latency, phases * transfer, "scale_up", phases * sent, 0.0)
