"""Predicted gain of compilation, from the rates of the machine and the counts of the network alone.

In eager mode, every operator takes the longer of arithmetic and memory traffic, plus one launch. Compiled, the same
holds for fused kernels, in the layout that the compiler chooses, and the model is entered once. No measured time of the
network is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError
from mlsys.measure.rates import FRESH, MachineRates

if TYPE_CHECKING:
    from mlsys.workloads.operator import Network, Operator
    from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class PredictedTimes:
    """Times predicted from the machine's rates, s.

    Attributes
    ----------
    eager, compiled
        Seconds of one call.
    operators, kernels
        Number of launches in each mode.
    cached
        Fraction of the bytes moved by eager operators that should be in a cache, 0 to 1.
    limited_by
        Cause of most of the eager time: ``"compute"``, ``"memory"``, ``"new memory"`` or ``"launch"``.
    """

    eager: float
    compiled: float
    operators: int
    kernels: int
    cached: float
    limited_by: str

    @property
    def speedup(self) -> float:
        """Predicted eager time over predicted compiled time."""
        return self.eager / self.compiled


@dataclass(frozen=True)
class Times:
    """Seconds of a network by cause, its bytes, and the bytes found in a cache."""

    causes: dict[str, float]
    moved: float
    cached: float

    @property
    def total(self) -> float:
        """All seconds."""
        return sum(self.causes.values())


def predict(
    model: object,
    inputs: object,
    rates: MachineRates,
    name: str,
    *,
    frozen: bool = False,
    fuse: Callable[[Workload], Network] | None = None,
) -> PredictedTimes | None:
    """Return the prediction for a torch module, or None if its graph cannot be captured.

    Parameters
    ----------
    model, inputs
        As for :meth:`mlsys.workloads.Workload.from_torch`.
    rates
        Rates of the machine.
    name
        Name of the network.
    frozen
        Whether the compiler may treat the weights as constants.
    fuse
        Function from operators to fused kernels; by default ``inductor_kernels``.
    """
    from mlsys.workloads.workload import Workload

    try:
        work = Workload.from_torch(model, inputs, name=name)
    except ArgumentError:
        return None
    return predict_workload(work, rates, frozen=frozen, fuse=fuse)


def predict_workload(
    work: Workload, rates: MachineRates, *, frozen: bool = False, fuse: Callable[[Workload], Network] | None = None
) -> PredictedTimes:
    """Return the prediction for a captured network; see :func:`predict`."""
    fused = fuse(work) if fuse else inductor_kernels(work, frozen)
    plain, turned, packed = rates.convolutions
    eager = times_of(work, rates, rates.launch, plain)
    compiled = times_of(fused, rates, rates.compiled_launch, packed if frozen else turned)
    return PredictedTimes(
        eager=eager.total,
        compiled=compiled.total + rates.entry,
        operators=len(work),
        kernels=len(fused),
        cached=eager.cached / eager.moved if eager.moved else 0.0,
        limited_by=max(eager.causes, key=lambda cause: eager.causes[cause]),
    )


def inductor_kernels(work: Workload, frozen: bool) -> Network:
    """Return a captured network as the kernels that Inductor generates on a CPU.

    Products and convolutions are library calls. With frozen weights these include the following normalisation and
    element-wise operators; with weights as inputs those form a separate kernel.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> network = load("resnet50")
    >>> len(network), len(inductor_kernels(network, False)), len(inductor_kernels(network, True))
    (174, 105, 56)
    """
    from mlsys.mapping.fusion import Pattern, fuse

    if frozen:
        return fuse(work)
    beside = (
        Pattern("norm-add-act", ("batch_norm", "add?", "activation")),
        Pattern("norm-add", ("batch_norm", "add")),
        Pattern("add-norm", ("add", "norm"), keeps=True),
        Pattern("element-wise", ("elementwise+",)),
    )
    return fuse(work, beside)


def times_of(network: Network, rates: MachineRates, launch: float, convolution: float) -> Times:
    """Return the seconds of kernels that run one after the other.

    Parameters
    ----------
    network
        Operators or fused kernels, in FP32.
    rates
        Rates of the machine. A kernel's own tensors were just written: they move at the bandwidth for their size. Its
        weights were last used one pass ago: they move at the bandwidth for the size of all weights.
    launch
        Launch time of each kernel, s.
    convolution
        FLOP/s of a convolution in the layout of these kernels; all other kernels run at ``rates.flops``.

    Examples
    --------
    >>> from mlsys.workloads import Network, gemm
    >>> rates = MachineRates(1, 1e11, (8e10, 9e10, 1e11), (1_000, 1_000_000), (4e10, 2e10), 0.0, 1e-6, 0.0, 1e-6)
    >>> times = times_of(Network("one", (gemm(512, 512, 512, "fp32"),)), rates, rates.launch, 8e10)
    >>> {cause: round(value * 1e6) for cause, value in times.causes.items() if value}
    {'compute': 2684, 'launch': 1}
    """
    held = network.weights.m_as("byte")
    causes = dict.fromkeys(("compute", "memory", "new memory", "launch"), 0.0)
    moved = cached = 0.0
    for operator in network:
        weights = operator.weights.m_as("byte")
        own = operator.data.m_as("byte") - weights
        moving = weights / rates.bandwidth(held) + own / rates.bandwidth(own)
        rate = convolution if operator.kind.startswith("conv") else rates.flops
        computing = operator.flops.m_as("FLOP") / rate
        causes["compute" if computing >= moving else "memory"] += max(computing, moving)
        causes["new memory"] += _new_memory(operator, rates)
        causes["launch"] += launch
        moved += weights + own
        cached += (own if own <= rates.in_cache else 0.0) + (weights if held <= rates.in_cache else 0.0)
    return Times(causes, moved, cached)


def _new_memory(operator: Operator, rates: MachineRates) -> float:
    """Return the seconds that the system takes to allocate pages for a large result."""
    written: Any = getattr(operator, "written", None)
    size = 0.0 if written is None else float(written.m_as("byte"))
    return size * rates.fresh if size >= FRESH else 0.0
