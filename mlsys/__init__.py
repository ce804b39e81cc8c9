"""mlsys: hardware acceleration for machine learning, in numbers with sources.

Names are loaded on first use, so that ``import mlsys`` stays light; __init__.pyi declares them for type checkers.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "Q_": "mlsys.units",
    "ureg": "mlsys.units",
    "Quantity": "mlsys.units",
    "Hardware": "mlsys.hardware",
    "check": "mlsys.formatting",
    "fmt": "mlsys.formatting",
    "fmt_percent": "mlsys.formatting",
    "claim": "mlsys.claims",
    "claims_table": "mlsys.claims",
    "given": "mlsys.claims",
    "analyze": "mlsys.api.analyze",
    "collective": "mlsys.api.collective",
    "compare": "mlsys.api.compare",
    "cost": "mlsys.api.cost",
    "device": "mlsys.api.devices",
    "devices": "mlsys.api.devices",
    "edge_arena": "mlsys.api.edge",
    "edge_clock": "mlsys.api.edge",
    "edge_layers": "mlsys.api.edge",
    "flops": "mlsys.api.flops",
    "load": "mlsys.workloads.resolve",
    "grade": "mlsys.grading",
    "fuse": "mlsys.mapping.fusion",
    "fusion_gain": "mlsys.models.fusion",
    "mapper": "mlsys.api.mapper",
    "roofline": "mlsys.models.roofline",
    "systolic": "mlsys.api.systolic",
    "count_systolic": "mlsys.models.systolic",
    "system": "mlsys.api.systems",
    "systems": "mlsys.api.systems",
    "tiles": "mlsys.api.tiles",
    "train": "mlsys.api.train",
    "memory": "mlsys.api.memory",
    "plan_memory": "mlsys.planner.memory",
    "plan": "mlsys.api.plan",
    "SoftwareStack": "mlsys.models.software",
    "size": "mlsys.api.size",
    "serve_sim": "mlsys.api.serve_sim",
    "SizingSpec": "mlsys.sweep",
    "SweepSpec": "mlsys.sweep",
}
_MODULES = ("claims", "constants", "formulas", "hardware", "mapping", "models", "sweep", "viz", "widgets", "workloads")

__all__ = [*_HOMES, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"mlsys.{name}")
    else:
        raise AttributeError(f"module 'mlsys' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
