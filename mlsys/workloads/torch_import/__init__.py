"""Torch modules as workloads: capture a graph, read its nodes as calls, count each call by its rule.

``calls`` and ``rules`` know no torch, and serve other importers too; ``capture``, ``nodes`` and
``build`` do, and are loaded when a module is first captured.
"""

from typing import Any

__all__ = ["from_torch"]


def __getattr__(name: str) -> Any:
    if name == "from_torch":
        from mlsys.workloads.torch_import.build import from_torch

        return from_torch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
