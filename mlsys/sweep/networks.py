"""Kernels of the networks of a specification, at any batch and in any number format."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import as_run
from mlsys.models.estimate.running import Running
from mlsys.models.estimate.work import Work
from mlsys.precision import element_size
from mlsys.sweep.batches import AcrossBatches, CountedKernels
from mlsys.sweep.points import SweepCase
from mlsys.sweep.spec import Variant
from mlsys.workloads import Network, Workload, load

_MOVED, _WEIGHTS = Work.FIELDS.index("moved"), Work.FIELDS.index("weights")


@dataclass(frozen=True)
class CaseWork:
    """Kernels of one case, with equal ones merged, and its memory requirement.

    Attributes
    ----------
    work
        Kernels.
    operators
        Number of operators.
    needed
        Least bytes of main memory.
    source
        Source of the network, in words.
    name
        Name of the network.
    convolutions
        Whether it has convolutions.
    """

    work: Work
    operators: int
    needed: float
    source: str
    name: str
    convolutions: bool


def work_of(case: SweepCase, batches: Iterable[int] = ()) -> CaseWork:
    """Return the kernels of a case, in its precision; ``batches`` are all batches that will be requested."""
    kernels, scale = kernels_of_case(case, batches)
    return _counted(kernels, case, kernels.columns, scale)


def kernels_of_case(case: SweepCase, batches: Iterable[int] = ()) -> tuple[CountedKernels, float]:
    """Return the kernels of a case in its precision, and the size of its values over that of the stored ones."""
    catalogue = case.variant.source == "catalogue"
    kernels = _across_batches(case.variant, case.precision if catalogue else "fp32", case.running).at(
        case.batch, batches
    )
    if catalogue:
        return kernels, 1.0
    size, sizes = element_size(case.precision).m_as("byte"), kernels.value_bytes
    columns = kernels.columns.copy()
    columns[_WEIGHTS] *= size / sizes
    columns[_MOVED] *= size / sizes
    return replace(kernels, columns=columns), size / float(sizes.max())


@functools.lru_cache(maxsize=64)  # several ways of running and formats alternate
def _across_batches(variant: Variant, precision: str, running: Running | None) -> AcrossBatches:
    def made(batch: int) -> CountedKernels:
        network = network_of(SweepCase(variant, precision, batch, running))
        if not len(network):
            raise ArgumentError(f"the network {network.name!r} has no operators")
        return CountedKernels.of(network, running)

    return AcrossBatches(made)


def network_of(case: SweepCase) -> Network:
    """Return the network to evaluate; a captured one keeps its captured format."""
    variant = case.variant
    as_it_is = variant.fused or case.way == "one by one"
    precision = case.precision if variant.source == "catalogue" else ""
    return _shared_out(replace(variant, fused=False), precision, case.batch, case.way if as_it_is else "")


@functools.lru_cache(maxsize=16)  # kinds of software with other copies or algorithms share the grouping into kernels
def _shared_out(variant: Variant, precision: str, batch: int, way: str) -> Network:
    """Return a network with its operators grouped into kernels; unchanged if no way is given."""
    if variant.source == "catalogue":
        network: Network = load(variant.reference, batch=batch, precision=precision, **_sizes(variant), option="`{}`")
        return as_run(network, way) if way else network
    captured = _captured(variant, batch)
    return as_run(captured, way) if way else captured.with_layers()


def _sizes(variant: Variant) -> dict[str, Any]:
    given = {"sequence": variant.sequence, "image": variant.image, "phase": variant.phase}
    return {name: value for name, value in given.items() if value is not None}


def _captured(variant: Variant, batch: int) -> Workload:
    """Return a captured network at a batch, captured once if its batch can be left symbolic."""
    free = _with_free_batch(variant)
    if free is not None:
        if free.sizes.get("batch") == batch:
            return free
        try:
            return free.at(batch=batch)
        except ValueError:
            pass  # the capture specialised the batch: capture again
    return _with_fixed_batch(variant, batch)


@functools.lru_cache(maxsize=4)
def _with_free_batch(variant: Variant) -> Workload | None:
    from mlsys.workloads.transformer_config import UnknownArchitectureError
    from mlsys.workloads.transformer_config.workload import configured_decoder

    path = Path(variant.reference)
    if path.suffix == ".json" or (path / "config.json").is_file():
        try:
            sizes = {name: size for name, size in _sizes(variant).items() if name != "phase"}
            decoder = configured_decoder(variant.reference, sizes, "fp32", variant.phase, "`{}`")
            return decoder.abridged()
        except UnknownArchitectureError:
            pass  # transformers builds it, once for all batches
        return Workload.from_hf_config(variant.reference, dynamic=True, **sizes)
    if path.suffix == ".onnx" or ":" in variant.reference:
        return None
    return load(variant.reference, **_sizes(variant), option="`{}`").abridged()


@functools.lru_cache(maxsize=16)
def _with_fixed_batch(variant: Variant, batch: int) -> Workload:
    configured = variant.reference.endswith(".json") or (Path(variant.reference) / "config.json").is_file()
    precision = "fp32" if configured else None  # others are read in the format of their code or file
    return load(variant.reference, batch=batch, precision=precision, **_sizes(variant), option="`{}`")


def _counted(kernels: CountedKernels, case: SweepCase, columns: NDArray[np.float64], scale: float) -> CaseWork:
    """Return the kernels of a case with the memory that it needs."""
    stored = (kernels.stored or 0.0) * scale
    if not stored:
        stored = kernels.parameters * element_size(case.precision).m_as("byte")
    other = columns[_MOVED] - columns[_WEIGHTS]
    if case.variant.phase == "decode":  # keys and values of every layer stay between steps
        kept = np.array([kind == "attention" for kind in kernels.kinds])
        needed = stored + float(other[~kept].max(initial=0.0)) + float((other * kernels.times)[kept].sum())
    else:
        needed = stored + float(other.max(initial=0.0))
    convolutions = any(kind.startswith("conv") for kind in kernels.kinds)
    return CaseWork(Work(columns), len(kernels.names), needed, source_of(case), kernels.name, convolutions)


def source_of(case: SweepCase) -> str:
    """Return the source of a case's network, in words."""
    return f"{case.variant.source}{_SOURCES[case.variant.source, case.fused]}"


_SOURCES = {
    ("catalogue", True): "",
    ("catalogue", False): ", operator by operator",
    ("captured", True): ", fused",
    ("captured", False): "",
}
