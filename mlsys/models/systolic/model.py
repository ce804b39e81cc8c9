"""The model: how long a workload takes on a systolic array, and where the time goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsys.door import checked_number, positive
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.models.result import Result
from mlsys.models.systolic.array import SystolicArray
from mlsys.models.systolic.counts import Counts, physical_counts
from mlsys.models.systolic.folds import CONVENTIONS, DATAFLOWS, OVERLAPS, Folds, checked_name
from mlsys.models.systolic.lowering import lowered
from mlsys.models.systolic.scalesim import scalesim_counts
from mlsys.models.systolic.stalls import stalled_cycles
from mlsys.precision import element_size
from mlsys.provenance import Step
from mlsys.units import Q_, Quantity, total, ureg
from mlsys.workloads.operator import Network, Operator

__all__ = ["systolic"]

_PARTS = ("multiplying", "idle places", "load, fill and drain", "exposed memory")


def systolic(
    device: Device | SystolicArray,
    workload: Operator | Network,
    *,
    dataflow: str = "ws",
    convention: str = "physical",
    overlap: str = "none",
    bandwidth: Quantity | None = None,
) -> Result:
    """Return the time that the matrix products of ``workload`` take on a systolic array.

    Parameters
    ----------
    device
        A :class:`SystolicArray`, or a twin that states its array, such as ``Hardware.Cloud.TPUv4``.
    workload
        An operator with matrix products, or a network of such, run one after the other.
    dataflow
        What stays in the array: ``"ws"`` weights, ``"os"`` outputs, ``"is"`` inputs.
    convention
        ``"physical"``, or ``"scalesim"`` to count as SCALE-Sim 3.0.0 does, which knows one
        array and no waiting for memory.
    overlap
        How folds follow each other: ``"none"``, ``"load"`` or ``"full"``.
    bandwidth
        Of the memory, byte/s; by default that of the device.

    Returns
    -------
    Result
        ``parts`` are *multiplying*, *idle places*, *load, fill and drain* and *exposed
        memory*; ``figures`` hold cycles, utilisation, words and bytes.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        For a workload without matrix products, a bandwidth without unit, or an overlap or
        several arrays where SCALE-Sim counts.
    UnknownNameError
        For a device without an array, or an unknown dataflow, convention or overlap.

    Notes
    -----
    Several arrays share the folds evenly, the buffers, and the memory. The time is never
    below computing, nor below bytes over bandwidth.

    References
    ----------
    N. P. Jouppi et al., In-datacenter performance analysis of a tensor processing unit,
    ISCA 2017; A. Samajdar et al., SCALE-Sim, ISPASS 2020.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> result = systolic(Hardware.Cloud.TPUv4, gemm(4096, 4096, 4096, "bf16"), overlap="full")
    >>> print(f"{result.time.to('us'):.0f}, {result.figures['utilisation']:.1%}, bound by {result.bound_by}")
    500 µs, 99.8%, bound by compute
    """
    for name, value, known in (
        ("dataflow", dataflow, DATAFLOWS), ("convention", convention, CONVENTIONS), ("overlap", overlap, OVERLAPS)
    ):  # fmt: skip
        checked_name("systolic", name, value, known)
    if bandwidth is not None:
        checked_number("systolic", "bandwidth", bandwidth, positive("byte/s"), {})
    array = device if isinstance(device, SystolicArray) else SystolicArray.of(device)
    array = array if bandwidth is None else replace(array, bandwidth=bandwidth)
    if convention == "scalesim":
        if array.count > 1:
            raise ArgumentError(
                f"systolic(): SCALE-Sim counts one array, got {array.count} in {array.name}. "
                f"Write SystolicArray({array.rows}, {array.columns}), or convention='physical'"
            )
        array = replace(array, bandwidth=None)
    assumptions = _assumptions(array, dataflow, convention, overlap)
    if isinstance(workload, Operator):
        return _one(array, workload, dataflow, convention, overlap, assumptions)
    if not len(workload):
        raise ArgumentError(f"systolic(): `workload` must have at least one operator, got empty {workload.name!r}")
    results = tuple(_one(array, operator, dataflow, convention, overlap, assumptions) for operator in workload)
    return _sum(array, workload, results, assumptions)


def _counted(array: SystolicArray, operator: Operator, dataflow: str, convention: str, overlap: str) -> list[Counts]:
    buffers: dict[str, Any] = {**array.words(operator.precision)}
    counted = []
    for cut, distinct in lowered(operator, array.rows, array.columns, dataflow):
        if convention == "physical":
            counted.append(physical_counts(cut, overlap, **buffers, distinct_ifmap=distinct))
            continue
        single = scalesim_counts(replace(cut, copies=1), **buffers, overlap=overlap)
        counted.append(_copied(single, cut))
    return counted


def _copied(single: Counts, cut: Folds) -> Counts:
    times = cut.copies
    return replace(
        single, folds=cut, cycles=single.cycles * times, macs=cut.macs,
        sram=single.sram.times(times), dram=single.dram.times(times),
    )  # fmt: skip


def _one(
    array: SystolicArray, operator: Operator, dataflow: str, convention: str, overlap: str, assumptions: tuple[str, ...]
) -> Result:
    counted = _counted(array, operator, dataflow, convention, overlap)
    clock, size = float(array.clock.m_as("Hz")), float(element_size(operator.precision).m_as("byte"))
    speed = float(array.bandwidth.m_as("byte/s")) if array.bandwidth is not None else float("inf")
    places = array.rows * array.columns * array.count
    computing = waiting = streaming = 0.0
    for counts in counted:
        if convention == "scalesim":
            busy, whole = counts.cycles, float(counts.cycles)
        else:
            reads, writes = (words * size / speed * clock for words in (counts.dram.reads, counts.dram.ofmap_writes))
            busy, whole = stalled_cycles(counts.folds, reads, writes, overlap, array.count)
        computing += busy
        waiting += whole - busy
        streaming += -(-counts.folds.count // array.count) * counts.folds.streamed
    macs = sum(counts.macs for counts in counted)
    useful = min(macs / places, computing)
    idle = min(streaming - useful, computing - useful)
    moved = sum(counts.dram.total for counts in counted) * size
    inputs = {"array": array.macs_per_cycle, "clock": array.clock, "operations": operator.operations}
    if array.bandwidth is not None:
        inputs["bandwidth"] = array.bandwidth
    origin = Step("systolic", tuple(inputs.values()), tuple(inputs))

    def quantity(value: float, unit: str) -> Quantity:
        result = ureg.Quantity(value, unit)
        result._origin = origin
        return result

    shares = dict(zip(_PARTS, (useful, idle, computing - useful - idle, waiting), strict=True))
    time = (computing + waiting) / clock
    figures = {
        "cycles": quantity(computing + waiting, "cycle"),
        "utilisation": quantity(macs / ((computing + waiting) * places), ""),
        "utilisation without stalls": quantity(macs / (computing * places), ""),
        "mapping efficiency": quantity(useful / streaming, ""),
        "attained": quantity(2 * macs / time / 1e12, "TFLOP/s"),
        "intensity": quantity(2 * macs / moved, "FLOP/byte"),
        "SRAM words": Q_(sum(counts.sram.total for counts in counted), ""),
        "DRAM bytes": Q_(moved, "byte"),
    }
    return Result(
        model="systolic",
        device=array.name,
        workload=operator.name,
        time=quantity(time, "s"),
        bound_by="memory" if moved / speed > computing / clock else "compute",
        parts=FrozenDict({name: quantity(cycles / clock, "s") for name, cycles in shares.items()}),
        figures=FrozenDict(figures),
        assumptions=assumptions,
    )


def _sum(array: SystolicArray, network: Network, results: tuple[Result, ...], assumptions: tuple[str, ...]) -> Result:
    time = total((result.time for result in results), "s")
    parts = {name: total((result.parts[name] for result in results), "s") for name in _PARTS}
    waits = total((result.time for result in results if result.bound_by == "memory"), "s")
    multiplying = parts["multiplying"] / time
    figures = {
        "cycles": total((result.figures["cycles"] for result in results), "cycle"),
        "utilisation": multiplying.to(""),
        "memory-bound share": (waits / time).to(""),
        "DRAM bytes": total((result.figures["DRAM bytes"] for result in results), "byte"),
    }
    return Result(
        model="systolic",
        device=array.name,
        workload=network.name,
        time=time,
        bound_by="memory" if 2 * waits > time else "compute",
        parts=FrozenDict(parts),
        figures=FrozenDict(figures),
        assumptions=(*assumptions, "operators run one after the other; data returns to memory between them"),
        children=results,
    )


def _assumptions(array: SystolicArray, dataflow: str, convention: str, overlap: str) -> tuple[str, ...]:
    finite = [name for name in ("ifmap", "filter", "ofmap") if getattr(array, f"{name}_buffer") is not None]
    return (
        f"{DATAFLOWS[dataflow]}; row folds inside column folds; a fringe fold takes the time of a full one",
        f"{convention} count: {CONVENTIONS[convention]}; overlap {overlap}: {OVERLAPS[overlap]}",
        f"finite buffers: {', '.join(finite)}" if finite else "buffers hold every operand: compulsory traffic",
        "memory never makes the array wait"
        if array.bandwidth is None
        else "double buffers; traffic is spread evenly over the folds",
        "convolutions by im2col, group by group",
        *([f"{array.count} arrays share the folds evenly"] if array.count > 1 else []),
    )
