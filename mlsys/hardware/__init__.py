"""Digital twins of machines and systems: peak rates, memory levels and links, each with its source."""

from mlsys.hardware.catalogue import Hardware
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.hardware.loader import load_device
from mlsys.hardware.system import System, as_system, load_system, systems
from mlsys.hardware.technology import Role, Technology
from mlsys.hardware.view import LevelView, LinkView, MachineView, view
from mlsys.hardware.whatifs import refuse_unknown_facts
from mlsys.precision import PRECISIONS, element_size, precision_name
from mlsys.provenance import whatifs_from_outside

__all__ = [
    "PRECISIONS",
    "Device",
    "Hardware",
    "LevelView",
    "Link",
    "LinkView",
    "MachineView",
    "MemoryLevel",
    "Role",
    "System",
    "Technology",
    "as_system",
    "element_size",
    "load_device",
    "load_system",
    "precision_name",
    "systems",
    "view",
]

refuse_unknown_facts(whatifs_from_outside())
