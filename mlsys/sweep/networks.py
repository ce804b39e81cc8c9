"""From one network of a specification to its kernels, at any batch and in any number format."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import as_kernels
from mlsys.models.calibrated.lowering import kernels_of
from mlsys.models.calibrated.work import Work
from mlsys.precision import element_size
from mlsys.sweep.points import SweepCase
from mlsys.sweep.spec import Variant
from mlsys.workloads import Network, Workload, load

__all__ = ["CaseWork", "network_of", "work_of"]

_FIELDS = Work.FIELDS.index


@dataclass(frozen=True)
class CaseWork:
    """The kernels of one case, equal ones taken together, and what its weights and tensors need.

    Attributes
    ----------
    work
        Kernels.
    operators
        How many run.
    needed
        Bytes that must lie in main memory at least.
    source
        Where the network comes from, in words.
    name
        Of the network, as it calls itself.
    """

    work: Work
    operators: int
    needed: float
    source: str
    name: str


def work_of(case: SweepCase) -> CaseWork:
    """Return the kernels of a case, every value stored in its precision."""
    if case.variant.source == "catalogue":
        network = network_of(case.variant, case.batch, case.precision)
        return _counted(network, case, _kernels(network), 1.0)
    network, kernels, sizes = _captured_kernels(case.variant, case.batch)
    size = element_size(case.precision).m_as("byte")
    columns = kernels.columns.copy()
    columns[_FIELDS("weights")] *= size / sizes
    columns[_FIELDS("moved")] *= size / sizes
    return _counted(network, case, Work(columns), size / float(sizes.max(initial=1.0)))


def network_of(variant: Variant, batch: int, precision: str = "fp32") -> Network:
    """Return the network that is evaluated; a captured one is in the format it was captured in, whatever is asked."""
    if variant.source == "catalogue":
        network = load(variant.place, batch=batch, precision=precision, **_sizes(variant), option="`{}`")
        return as_kernels(network) if variant.fused else network
    network = _captured(replace(variant, fused=False), batch)
    return as_kernels(network) if variant.fused else network


def _sizes(variant: Variant) -> dict[str, Any]:
    given = {"sequence": variant.sequence, "image": variant.image, "phase": variant.phase}
    return {name: value for name, value in given.items() if value is not None}


def _captured(variant: Variant, batch: int) -> Workload:
    """Return a captured network at a batch, captured once where its batch can be left free."""
    free = _with_free_batch(variant)
    if free is not None:
        try:
            return free.at(batch=batch)
        except ValueError:
            pass  # the batch was fixed on the way: capture it anew
    return _with_fixed_batch(variant, batch)


@functools.lru_cache(maxsize=4)
def _with_free_batch(variant: Variant) -> Workload | None:
    from pathlib import Path

    path = Path(variant.place)
    if path.suffix == ".json" or (path / "config.json").is_file():
        sizes = {name: size for name, size in _sizes(variant).items() if name != "phase"}
        return Workload.from_hf_config(variant.place, dynamic=True, **sizes)
    if path.suffix == ".onnx" or ":" in variant.place:
        return None
    return load(variant.place, **_sizes(variant), option="`{}`")


@functools.lru_cache(maxsize=16)
def _with_fixed_batch(variant: Variant, batch: int) -> Workload:
    return load(variant.place, batch=batch, **_sizes(variant), option="`{}`")


@functools.lru_cache(maxsize=64)
def _captured_kernels(variant: Variant, batch: int) -> tuple[Network, Work, NDArray[np.float64]]:
    """Return a captured network, its kernels, and the bytes of a value in the format of each."""
    network = network_of(variant, batch)
    widths = {name: element_size(name).m_as("byte") for name in {operator.precision for operator in network}}
    distinct = {id(operator): widths[operator.precision] for operator in network}
    return network, _kernels(network), np.array(list(distinct.values()))


def _kernels(network: Network) -> Work:
    if not len(network):
        raise ArgumentError(f"the network {network.name!r} has no operators")
    return kernels_of(network, None)


def _counted(network: Network, case: SweepCase, work: Work, scale: float) -> CaseWork:
    """Take equal kernels together and count what must lie in memory."""
    held = getattr(network, "weight_bytes", None)
    stored = float(held.m_as("byte")) * scale if held is not None else 0.0
    if not stored:
        stored = float(network.parameters.m_as("param")) * element_size(case.precision).m_as("byte")
    other = work["moved"] - work["weights"]
    kept = np.zeros(len(other), dtype=bool)
    if case.variant.phase == "decode":  # keys and values of every layer stay between steps
        kept[[row for row, op in zip(network.arrays.order, network, strict=True) if op.kind == "attention"]] = True
    needed = stored + float(other[~kept].max(initial=0.0)) + float((other * work["count"])[kept].sum())
    source = f"{case.variant.source}{_SOURCES[case.variant.source, case.variant.fused]}"
    return CaseWork(_merged(work), len(network), needed, source, network.name)


_SOURCES = {
    ("catalogue", True): "",
    ("catalogue", False): ", operator by operator",
    ("captured", True): ", fused",
    ("captured", False): "",
}


def _merged(work: Work) -> Work:
    """Return the same kernels with equal ones in one row: layers repeat, and each row costs time."""
    place = _FIELDS("count")
    keys = np.delete(work.columns, place, axis=0)
    distinct, which = np.unique(keys, axis=1, return_inverse=True)
    counts = np.bincount(which.ravel(), weights=work["count"], minlength=distinct.shape[1])
    return Work(np.insert(distinct, place, counts, axis=0))
