"""Digital twins of machines: what each can do, per precision and memory level, with sources."""

from mlsys.hardware.catalogue import Hardware
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.hardware.loader import load_device
from mlsys.precision import PRECISIONS, element_size, precision_name

__all__ = [
    "PRECISIONS",
    "Device",
    "Hardware",
    "Link",
    "MemoryLevel",
    "element_size",
    "load_device",
    "precision_name",
]
