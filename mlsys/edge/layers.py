"""Weights, activations, traffic and operations of each layer, and the attained rates for a measured time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mlsys.unit_checks import checked_number, count, positive
from mlsys.units import Quantity

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

LAYER_COLUMNS = (
    *("layer", "output_elements", "parameter_bytes", "activation_bytes", "macs"),
    *("flops", "input_bytes", "dtype", "kind"),
)
SUMMARY_COLUMNS = (
    *("traffic", "scope", "total_bytes", "macs", "latency_ms", "achieved_gb_per_s", "configured_gb_per_s"),
    *("utilisation", "gmac_per_s", "gflop_per_s", "bound_by"),
)
_HELD = 0.5  # least fraction of a time that a machine's rate must explain
_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class LayerRow:
    """One layer for one batch.

    Attributes
    ----------
    layer, kind
        Name in the captured graph, and kind.
    output_elements, activation_bytes
        Size of the output tensors.
    parameter_bytes, input_bytes
        Sizes of weights and biases, and of the other inputs.
    macs, flops
        Multiply-accumulates, and all floating-point operations: two per MAC, plus element-wise work.
    dtype
        Number format of the outputs.
    """

    layer: str
    output_elements: int
    parameter_bytes: int
    activation_bytes: int
    macs: int
    flops: int
    input_bytes: int
    dtype: str
    kind: str

    def record(self) -> dict[str, Any]:
        """Return the row with the keys of :data:`LAYER_COLUMNS`."""
        row = asdict(self)
        return {name: row[name] for name in LAYER_COLUMNS}


def layer_stats(workload: Workload, *, every: bool = False) -> tuple[LayerRow, ...]:
    """Return the layers of a captured network, with sizes from its graph.

    Parameters
    ----------
    workload
        A captured network, with the tensors of each operator.
    every
        Whether to include operators without parameters, such as activations and pooling.

    Raises
    ------
    ArgumentError
        If the network was built by hand and has no graph.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> rows = layer_stats(load("small-cnn", batch=64))
    >>> [(row.layer, row.output_elements, row.parameter_bytes, row.activation_bytes) for row in rows]
    [('conv2d', 802816, 640, 3211264), ('conv2d_1', 401408, 18560, 1605632), ('linear', 640, 62760, 2560)]
    >>> sum(row.parameter_bytes + row.activation_bytes for row in rows), sum(row.macs for row in rows)
    (4901416, 66031616)
    """
    graph = workload.graph
    made: dict[int, list[Any]] = {}
    weights: dict[int, int] = {}
    inputs: dict[int, int] = {}
    for value in graph.values:
        if value.producer is not None:
            made.setdefault(value.producer, []).append(value)
        for reader in set(value.consumers):
            side = weights if value.role == "weight" else inputs
            side[reader] = side.get(reader, 0) + value.bytes
    statistics = []
    for index, operator in enumerate(graph.operators):
        counts = getattr(operator, "counts", None)
        macs = int(counts.macs) if counts is not None else 0
        if not every and not macs and not weights.get(index):
            continue
        outputs = made.get(index, [])
        dtype = outputs[0].dtype if outputs else operator.precision
        statistics.append(
            LayerRow(
                operator.name,
                sum(_elements(value.shape) for value in outputs),
                weights.get(index, 0),
                sum(value.bytes for value in outputs),
                macs,
                2 * macs + int(counts.elementwise if counts is not None else 0),
                inputs.get(index, 0),
                _SHORT.get(dtype, dtype),
                operator.kind,
            )
        )
    return tuple(statistics)


def _elements(shape: Iterable[int]) -> int:
    number = 1
    for size in shape:
        number *= size
    return number


@dataclass(frozen=True)
class HardwareSummary:
    """A measured time, and the rates that one way of counting bytes implies.

    Attributes
    ----------
    traffic
        ``"once"``: weights and outputs of layers with weights, each once. ``"operators"``: all reads and writes of
        every operator. ``"fused"``: the same after fusion, with intermediates kept on the chip.
    scope
        ``"batch"`` or ``"sample"``.
    total_bytes, macs, latency_ms
        Values for the scope.
    achieved_gb_per_s, configured_gb_per_s, utilisation
        Bytes over time, the given bandwidth, and their ratio.
    gmac_per_s, gflop_per_s
        Multiply-accumulates over time, and twice as many floating-point operations.
    bound_by
        ``"memory"`` or ``"compute"`` if that rate explains at least half of the time, ``"overhead"`` if neither does,
        and ``"not memory"`` if no peak was given to distinguish the others.
    """

    traffic: str
    scope: str
    total_bytes: float
    macs: float
    latency_ms: float
    achieved_gb_per_s: float
    configured_gb_per_s: float
    utilisation: float
    gmac_per_s: float
    gflop_per_s: float
    bound_by: str

    def record(self) -> dict[str, Any]:
        """Return the row with the keys of :data:`SUMMARY_COLUMNS`."""
        row = asdict(self)
        return {name: row[name] for name in SUMMARY_COLUMNS}


def summarize_hardware(
    workload: Workload,
    latency: Quantity,
    bandwidth: Quantity,
    *,
    batch: int = 1,
    peak: Quantity | None = None,
) -> tuple[HardwareSummary, ...]:
    """Return the attained rates for three ways of counting bytes, for the batch and for one sample.

    Parameters
    ----------
    workload
        A network captured at the timed batch.
    latency
        Time of the batch.
    bandwidth
        Bandwidth of the main memory.
    batch
        Samples of the batch.
    peak
        Floating-point peak of the machine, FLOP/s, to distinguish compute from overhead.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the time, the bandwidth, the batch or the peak is not positive or has another unit.

    Examples
    --------
    >>> from mlsys import Q_
    >>> from mlsys.workloads import load
    >>> rows = summarize_hardware(load("small-cnn", batch=64), Q_(4.87, "ms"), Q_(12.8, "GB/s"), batch=64)
    >>> print(f"{rows[0].achieved_gb_per_s:.3f} GB/s, {rows[0].utilisation:.4f}, {rows[0].gmac_per_s:.2f} GMAC/s")
    1.006 GB/s, 0.0786, 13.56 GMAC/s
    """
    from mlsys.mapping.fusion import fuse

    seconds = checked_number("summarize_hardware", "latency", latency, positive("s"), {})
    rate = checked_number("summarize_hardware", "bandwidth", bandwidth, positive("byte/s"), {})
    samples = int(checked_number("summarize_hardware", "batch", batch, count(), {}))
    most = None if peak is None else checked_number("summarize_hardware", "peak", peak, positive("FLOP/s"), {})
    rows = layer_stats(workload)
    macs = int(workload.macs.m_as("MAC"))
    traffic: Mapping[str, float] = {
        "once": sum(row.parameter_bytes + row.activation_bytes for row in rows),
        "operators": workload.data.m_as("byte"),
        "fused": fuse(workload).data.m_as("byte"),
    }
    lines = []
    for name, moved in traffic.items():
        in_memory, in_units = moved / rate / seconds, None if most is None else 2 * macs / most / seconds
        for scope, share in (("batch", 1), ("sample", samples)):
            lines.append(
                HardwareSummary(
                    name,
                    scope,
                    moved / share,
                    macs / share,
                    1e3 * seconds / share,
                    moved / seconds / 1e9,
                    rate / 1e9,
                    moved / seconds / rate,
                    macs / seconds / 1e9,
                    2 * macs / seconds / 1e9,
                    _bound_by(in_memory, in_units),
                )
            )
    return tuple(lines)


def _bound_by(in_memory: float, in_units: float | None) -> str:
    """Return the cause of a time, from the fractions that memory traffic and arithmetic account for."""
    if max(in_memory, in_units or 0.0) < _HELD:
        return "overhead" if in_units is not None else "not memory"
    return "memory" if in_memory >= (in_units or 0.0) else "compute"
