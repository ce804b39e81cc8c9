"""Numeric view of a system: plain floats in SI units, each read as a fact on access."""

from dataclasses import dataclass
from typing import ClassVar

from mlsys.hardware.system.model import Link, System
from mlsys.hardware.view import MachineView, view
from mlsys.hardware.view_parts import Amount, MachinePart
from mlsys.units import Quantity


@dataclass(frozen=True, slots=True)
class FabricView(MachinePart):
    """One link of a system, one direction, per chip.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> system_view(systems["DGX_H100"]).scale_up.bandwidth
    450000000000.0
    """

    link: Link

    UNITS: ClassVar[dict[str, str]] = {"bandwidth": "byte/s", "latency": "s", "taper": ""}

    @property
    def owner(self) -> str:
        """Names of the system and the link, for messages."""
        return f"{self.link.owner}, {self.link.name}"

    def _stored(self, field: str) -> Quantity | None:
        stored: Quantity | None = getattr(self.link, f"_{field}")
        return stored

    bandwidth = Amount("Bandwidth of one chip in one direction, byte/s.")
    latency = Amount("Seconds of the smallest message over one hop.")
    taper = Amount("Bandwidth that leaves the nodes over that at the top of the fabric; None if not recorded.")


@dataclass(frozen=True, slots=True)
class SystemView:
    """A system as floats in SI units, each read as a fact on access."""

    system: System

    @property
    def device(self) -> MachineView:
        """One chip, in its headline format."""
        return view(self.system.device)

    @property
    def scale_up(self) -> FabricView:
        """The fabric inside a node."""
        return FabricView(self.system.scale_up)

    @property
    def scale_out(self) -> FabricView | None:
        """The fabric between nodes; None if nodes are not joined."""
        return None if self.system.scale_out is None else FabricView(self.system.scale_out)

    @property
    def host(self) -> FabricView:
        """The link from a chip to its CPU."""
        return FabricView(self.system.host)


def system_view(system: System) -> SystemView:
    """Return the numeric view of a system.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> from mlsys.provenance import recording
    >>> with recording() as seen:
    ...     system_view(systems["DGX_A100"]).scale_up.bandwidth
    300000000000.0
    >>> list(seen)
    ['A100_80GB/links/NVLink/per_direction']
    """
    return SystemView(system)
