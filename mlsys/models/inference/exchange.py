"""Time of messages among the chips of a system, as models of inference use them."""

from __future__ import annotations

from mlsys.choices import Collective
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.hardware import System
from mlsys.mapping.parallel import Layout
from mlsys.models.collectives import collective_seconds


def exchange_seconds(system: System, operation: Collective, size: float, chips: int) -> float:
    """Return the seconds of a collective operation among neighbouring chips; 0 for one chip or no bytes.

    Parameters
    ----------
    system
        The system; chips beyond one node use the fabric between nodes as well.
    operation, size
        As for :func:`mlsys.models.collectives.collective_seconds`.
    chips
        Chips that take part. Beyond one node as many whole nodes are counted as hold them.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> f"{exchange_seconds(systems['DGX_H100'], 'all-reduce', 1e9, 8) * 1e3:.2f} ms"
    '3.78 ms'
    """
    if chips < 2 or size <= 0:
        return 0.0
    per_node = system.chips_per_node
    return collective_seconds(system, operation, size, chips if chips <= per_node else -(-chips // per_node) * per_node)


def send_seconds(system: System, size: float, *, between_nodes: bool) -> float:
    """Return the seconds in which one chip sends ``size`` bytes to its neighbour.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> [f"{send_seconds(systems['DGX_H100'], 45e6, between_nodes=far) * 1e6:.0f} µs" for far in (False, True)]
    ['101 µs', '903 µs']
    """
    bandwidth, latency = _link(system, between_nodes)
    return latency + size / bandwidth


def _link(system: System, between_nodes: bool) -> tuple[float, float]:
    link = system.scale_out if between_nodes and system.scale_out is not None else system.scale_up
    return float(link.bandwidth.m_as("byte/s")), float(link.latency.m_as("s"))


def joins(system: System, layout: Layout) -> bool:
    """Return whether the fabrics of a system join the groups of chips of a layout.

    Tensor-parallel groups beyond one node, and slices of a torus, have only some sizes.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> [joins(systems["TPUv5e_pod"], Layout(tp=size)) for size in (4, 5, 17)]
    [True, True, False]
    """
    try:
        for chips in {layout.tp, layout.stage_chips if layout.ep > 1 else 1}:
            exchange_seconds(system, "all-reduce", 1.0, chips)
    except (ArgumentError, UnknownNameError):
        return False
    return True
