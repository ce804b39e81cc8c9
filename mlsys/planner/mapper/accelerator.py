"""Accelerators whose operands go through memories of their own, read from YAML."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.units import Q_

__all__ = ["ACCELERATORS", "Accelerator", "Store", "accelerator"]

ACCELERATORS = ("edge_tpu_like", "eyeriss_like", "gemm_l1_l3", "tpu_like")


@dataclass(frozen=True)
class Store:
    """A memory on the way of an operand.

    Attributes
    ----------
    name
        As in the file.
    capacity
        Bits of one instance; None is without limit.
    read, write
        pJ for one bit.
    shared_along
        Array directions that one instance serves; along the others each lane has its own.
    """

    name: str
    capacity: int | None
    read: float
    write: float
    shared_along: tuple[str, ...]


@dataclass(frozen=True)
class Accelerator:
    """An array of multiply-accumulate units and the memories that feed it.

    Attributes
    ----------
    id, name, source
        What it is called and who published its numbers.
    bits
        Width of ``input``, ``weight``, ``partial`` sums and final ``output``.
    array
        Loop to lanes of the array.
    mac_energy
        pJ.
    paths
        ``input``, ``weight``, ``output`` to the memories they pass, main memory first.

    Examples
    --------
    >>> [store.name for store in accelerator("tpu_like").paths["output"]]
    ['dram', 'sram_2MB', 'rf_2B']
    """

    id: str
    name: str
    source: str
    bits: FrozenDict[str, int]
    array: FrozenDict[str, int]
    mac_energy: float
    paths: FrozenDict[str, tuple[Store, ...]]


def accelerator(name: str) -> Accelerator:
    """Return one of the accelerators that come with the package.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    if name not in ACCELERATORS:
        raise UnknownNameError(
            f"accelerator(): `name` must be one of {', '.join(ACCELERATORS)}, got {name!r}."
            + did_you_mean(str(name), ACCELERATORS)
        )
    import yaml

    text = (resources.files("mlsys.planner") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    stores = {key: _store(key, given) for key, given in data["memories"].items()}
    paths = {operand: tuple(stores[key] for key in keys) for operand, keys in data["paths"].items()}
    return Accelerator(
        data["id"],
        data["name"],
        data["source"],
        FrozenDict(data["bits"]),
        FrozenDict(data["array"]),
        _picojoules(data["mac_energy"]),
        FrozenDict(paths),
    )


def _store(name: str, given: dict[str, Any]) -> Store:
    read, write = (_picojoules(given[kind]) / given["width"] for kind in ("read", "write"))
    return Store(name, given["capacity"], read, write, tuple(given["shared_along"]))


def _picojoules(text: str) -> float:
    return float(Q_(text).m_as("pJ"))
