"""What a message among chips of a system takes: the one door of the models of inference to its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlsys.hardware.system import System


def exchange_seconds(system: System, operation: str, size: float, chips: int) -> float:
    """Return the seconds of a message of ``size`` bytes among ``chips`` neighbouring chips.

    Parameters
    ----------
    system
        The system; chips beyond one node use the fabric between nodes.
    operation
        ``"all-reduce"``, ``"all-gather"``, ``"all-to-all"`` (bytes of one chip) or ``"send"``.
    size, chips
        Bytes, and the chips that take part.
    """
    if chips < 2 or size <= 0:
        return 0.0
    link = system.scale_up if chips <= system.chips_per_node else system.scale_out
    bandwidth, latency = float(link.bandwidth.m_as("byte/s")), float(link.latency.m_as("s"))
    if operation == "send":
        return latency + size / bandwidth
    part = (chips - 1) / chips * size / bandwidth
    return 2 * (part + latency * (chips - 1)) if operation == "all-reduce" else part + latency * (chips - 1)
