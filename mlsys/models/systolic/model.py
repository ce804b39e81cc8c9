"""The performance model: time of a workload on a systolic array, and its breakdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlsys.choices import Convention, FoldOverlap, Stationary
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.technology import Role, Technology
from mlsys.hardware.view import view
from mlsys.models.energy import WORD, Energies, Price
from mlsys.models.result import Result
from mlsys.models.systolic.accesses import ArrayCounts
from mlsys.models.systolic.array import SystolicArray
from mlsys.models.systolic.counts import physical_counts
from mlsys.models.systolic.folds import (
    CONVENTIONS,
    DATAFLOWS,
    OVERLAPS,
    Folds,
)
from mlsys.models.systolic.lowering import array_folds
from mlsys.models.systolic.scalesim import scalesim_counts
from mlsys.models.systolic.stalls import stalled_cycles
from mlsys.precision import element_size
from mlsys.provenance import Step, traced
from mlsys.unit_checks import checked_choice, checked_number, positive
from mlsys.units import Quantity, computed, total, ureg
from mlsys.workloads.operator import Network, Operator

_JOULE, _BYTE, _NUMBER = ureg.Unit("J"), ureg.Unit("byte"), ureg.Unit("")
_BUFFER = 32 * 1024  # bytes
_PARTS = ("multiplying", "idle PEs", "load, fill and drain", "exposed memory")


@traced
def systolic(
    device: Device | SystolicArray,
    workload: Operator | Network,
    *,
    dataflow: Stationary = "ws",
    convention: Convention = "physical",
    fold_overlap: FoldOverlap = "none",
    bandwidth: Quantity | None = None,
    energies: Energies | None = None,
) -> Result:
    """Return the time that the matrix products of ``workload`` take on a systolic array.

    Parameters
    ----------
    device
        A :class:`SystolicArray`, or a device twin with a recorded array, such as ``Hardware.Cloud.TPUv4``.
    workload
        An operator with matrix products, or a network of such operators, which run one after the other.
    dataflow
        Stationary operand: ``"ws"`` weights, ``"os"`` outputs, ``"is"`` inputs.
    convention
        ``"physical"``, or ``"scalesim"`` to count as SCALE-Sim 3.0.0 does, with one array and no
        memory stalls.
    fold_overlap
        How far consecutive folds overlap: ``"none"``, ``"load"`` or ``"full"``.
    bandwidth
        Memory bandwidth, byte/s; by default that of the device.
    energies
        Price list of operations and accesses; by default that of the device's process node. A bare
        :class:`SystolicArray` has no energy.

    Returns
    -------
    Result
        ``parts`` are *multiplying*, *idle PEs*, *load, fill and drain* and *exposed
        memory*; ``figures`` hold cycles, utilisation, words and bytes, and for a
        device the energy.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the workload has no matrix products, the bandwidth has no unit, or the SCALE-Sim
        convention is combined with fold overlap or several arrays.
    UnknownNameError
        If the device has no recorded array, or dataflow, convention or fold overlap is unknown.

    Notes
    -----
    Several arrays divide the folds evenly and share the buffers and the memory. The time is at
    least the compute time and at least bytes over bandwidth.

    References
    ----------
    N. P. Jouppi et al., In-datacenter performance analysis of a tensor processing unit,
    ISCA 2017; A. Samajdar et al., SCALE-Sim, ISPASS 2020.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> result = systolic(Hardware.Cloud.TPUv4, gemm(4096, 4096, 4096, "bf16"), fold_overlap="full")
    >>> print(f"{result.time.to('us'):.0f}, {result.figures['utilisation']:.1%}, bound by {result.bound_by}")
    500 µs, 99.8%, bound by compute
    """
    checked_choice("systolic", "dataflow", dataflow, DATAFLOWS)
    checked_choice("systolic", "convention", convention, CONVENTIONS)
    checked_choice("systolic", "fold_overlap", fold_overlap, OVERLAPS)
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
    prices = _Prices.of(device, energies) if isinstance(device, Device) and convention == "physical" else None
    assumptions = _assumptions(array, dataflow, convention, fold_overlap) + (prices.assumptions if prices else ())
    if isinstance(workload, Operator):
        return _of_operator(array, workload, dataflow, convention, fold_overlap, assumptions, prices)
    if not len(workload):
        raise ArgumentError(f"systolic(): `workload` must have at least one operator, got empty {workload.name!r}")
    results = tuple(
        _of_operator(array, operator, dataflow, convention, fold_overlap, assumptions, prices) for operator in workload
    )
    return _sum(array, workload, results, assumptions)


@dataclass(frozen=True)
class _Prices:
    """Prices of a device: J per byte of both memories, J per word in a register."""

    energies: Energies
    main: Price
    buffer: Price
    register: Price
    fed_by: str

    @classmethod
    def of(cls, device: Device, energies: Energies | None) -> _Prices:
        machine = view(device)
        prices = energies or Energies.of(machine)
        feeding = (
            level
            for level in machine.inner
            if level.technology is Technology.SRAM and level.role is not Role.SUMS and level.has("capacity")
        )
        level = next(feeding, None)
        buffer = prices.sram(_BUFFER, of_a_byte=True) if level is None else prices.byte(level)
        name = "an assumed memory of 32 KiB, as none is recorded" if level is None else level.name
        return cls(prices, prices.byte(machine.main), buffer, prices.register(), name)

    def energy(self, counted: Sequence[ArrayCounts], precision: str) -> Quantity:
        """Return the energy of arithmetic, both memories and the registers of the array, J."""
        size = float(element_size(precision).m_as("byte"))
        mac = self.energies.mac(precision)
        joules = sum(
            counts.dram.total * size * self.main.joules
            + counts.sram.total * size * self.buffer.joules
            + (counts.register_writes or 0) * size / WORD * self.register.joules
            + counts.macs * mac.joules
            for counts in counted
        )
        operands = {"multiply_accumulate": mac, "memory": self.main, "buffer": self.buffer, "register": self.register}
        return computed(
            float(joules), _JOULE, Step("systolic", tuple(p.value for p in operands.values()), tuple(operands))
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"the edges of the array read from and write to {self.fed_by}", *self.energies.assumptions())


def _counted(
    array: SystolicArray, operator: Operator, dataflow: Stationary, convention: Convention, fold_overlap: FoldOverlap
) -> list[ArrayCounts]:
    buffers: dict[str, Any] = {**array.words(operator.precision)}
    counted = []
    for cut, distinct in array_folds(operator, array.rows, array.columns, dataflow):
        if convention == "physical":
            counted.append(physical_counts(cut, fold_overlap, **buffers, distinct_ifmap=distinct))
            continue
        single = scalesim_counts(replace(cut, copies=1), **buffers, fold_overlap=fold_overlap)
        counted.append(_copied(single, cut))
    return counted


def _copied(single: ArrayCounts, cut: Folds) -> ArrayCounts:
    times = cut.copies
    return replace(
        single, folds=cut, cycles=single.cycles * times, macs=cut.macs,
        sram=single.sram.times(times), dram=single.dram.times(times),
    )  # fmt: skip


def _of_operator(
    array: SystolicArray,
    operator: Operator,
    dataflow: Stationary,
    convention: Convention,
    fold_overlap: FoldOverlap,
    assumptions: tuple[str, ...],
    prices: _Prices | None = None,
) -> Result:
    counted = _counted(array, operator, dataflow, convention, fold_overlap)
    clock, size = float(array.clock.m_as("Hz")), float(element_size(operator.precision).m_as("byte"))
    speed = float(array.bandwidth.m_as("byte/s")) if array.bandwidth is not None else float("inf")
    elements = array.rows * array.columns * array.count
    computing = waiting = streaming = 0.0
    for counts in counted:
        if convention == "scalesim":
            busy, whole = counts.cycles, float(counts.cycles)
        else:
            reads, writes = (words * size / speed * clock for words in (counts.dram.reads, counts.dram.ofmap_writes))
            busy, whole = stalled_cycles(counts.folds, reads, writes, fold_overlap, array.count)
        computing += busy
        waiting += whole - busy
        streaming += -(-counts.folds.count // array.count) * counts.folds.streamed
    macs = sum(counts.macs for counts in counted)
    useful = min(macs / elements, computing)
    idle = min(streaming - useful, computing - useful)
    moved = sum(counts.dram.total for counts in counted) * size
    inputs = {"array": array.macs_per_cycle, "clock": array.clock, "operations": operator.operations}
    memory = () if array.bandwidth is None else array.bandwidth.facts
    if array.bandwidth is not None and waiting > 0:
        inputs["bandwidth"] = array.bandwidth
    origin = Step("systolic", tuple(inputs.values()), tuple(inputs), against=memory)
    words = Step("systolic", (operator.operations,), ("operations",))

    def quantity(value: float, unit: str) -> Quantity:
        result = ureg.Quantity(value, unit)
        result._origin = origin
        return result

    shares = dict(zip(_PARTS, (useful, idle, computing - useful - idle, waiting), strict=True))
    time = (computing + waiting) / clock
    figures = {
        "cycles": quantity(computing + waiting, "cycle"),
        "utilisation": quantity(macs / ((computing + waiting) * elements), ""),
        "utilisation without stalls": quantity(macs / (computing * elements), ""),
        "mapping efficiency": quantity(useful / streaming, ""),
        "attained": quantity(2 * macs / time / 1e12, "TFLOP/s"),
        "intensity": quantity(2 * macs / moved, "FLOP/byte"),
        "SRAM words": computed(float(sum(counts.sram.total for counts in counted)), _NUMBER, words),
        "DRAM bytes": computed(float(moved), _BYTE, words),
    }
    if prices is not None:
        figures["energy"] = prices.energy(counted, operator.precision)
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
    if all("energy" in result.figures for result in results):
        figures["energy"] = total((result.figures["energy"] for result in results), "J")
    return Result(
        model="systolic",
        device=array.name,
        workload=network.name,
        time=time,
        bound_by="memory" if 2 * waits > time else "compute",
        parts=FrozenDict(parts),
        figures=FrozenDict(figures),
        assumptions=(*assumptions, "operators run one after the other; data return to memory between them"),
        children=results,
    )


def _assumptions(
    array: SystolicArray, dataflow: Stationary, convention: Convention, fold_overlap: FoldOverlap
) -> tuple[str, ...]:
    finite = [name for name in ("ifmap", "filter", "ofmap") if getattr(array, f"{name}_buffer") is not None]
    return (
        f"{DATAFLOWS[dataflow]}; row folds inside column folds; a fringe fold takes as long as a full one",
        f"{convention} count: {CONVENTIONS[convention]}; overlap {fold_overlap}: {OVERLAPS[fold_overlap]}",
        f"finite buffers: {', '.join(finite)}" if finite else "buffers hold every operand: compulsory traffic",
        "unlimited memory bandwidth"
        if array.bandwidth is None
        else "double buffering; traffic is spread evenly over the folds",
        "convolutions by im2col, group by group",
        *([f"{array.count} arrays divide the folds evenly"] if array.count > 1 else []),
    )
