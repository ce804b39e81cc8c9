"""Systems of many chips: chips, hosts and the links between them, each value with its source."""

from mlsys.hardware.systems.catalogue import SystemCatalogue, as_system, systems
from mlsys.hardware.systems.loader import load_system
from mlsys.hardware.systems.system import Link, System, Topology
from mlsys.hardware.systems.view import FabricView, SystemView, system_view

__all__ = [
    "FabricView",
    "Link",
    "System",
    "SystemCatalogue",
    "SystemView",
    "Topology",
    "as_system",
    "load_system",
    "system_view",
    "systems",
]
