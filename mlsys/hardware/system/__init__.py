"""Systems of many chips: chips, hosts and the links between them, each value with its source."""

from mlsys.hardware.system.catalogue import SystemCatalogue, as_system, systems
from mlsys.hardware.system.loader import load_system
from mlsys.hardware.system.model import Link, System, Topology
from mlsys.hardware.system.view import FabricView, SystemView, system_view

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
