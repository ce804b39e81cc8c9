"""Copies from the host beside computation: double buffering, pinned and pageable memory, with a time line."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.formulas import copy_share, double_buffered_time, message_time, shared_bandwidth
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system, system_view
from mlsys.models.record import amounts, facts_behind, plain_amount, with_units
from mlsys.provenance import Fact, traced
from mlsys.unit_checks import checked_choice, checked_count, checked_number, efficiency, nonnegative, positive
from mlsys.units import Q_, Quantity

__all__ = ["HostMemory", "Interval", "OverlapResult", "overlapped_steps", "simulate_steps"]

HostMemory = Literal["pinned", "pageable"]
"""Memory of the host that a copy reads: page-locked, or ordinary, which the driver copies to a locked buffer first."""

# Share of PCIe's bandwidth that a copy from pinned memory attains: 55.4 of 63 GB/s to each of eight H200 over PCIe 5
# (S. Bekman, Machine Learning Engineering, network/README.md@744d01e).
PINNED_ATTAINS = 0.88
# Rate at which one thread of the driver copies pageable to pinned memory, byte/s: assumed, uncertain by a factor of 2.
STAGING = 10e9
_SHOWN = 12  # steps whose intervals the time line keeps


@dataclass(frozen=True)
class Interval:
    """Work of one engine from ``start`` to ``end``, s: ``"copy"`` or ``"compute"`` of one step."""

    engine: Literal["copy", "compute"]
    step: int
    start: float
    end: float


@dataclass(frozen=True)
class OverlapResult:
    """Time of steps that copy and compute.

    Attributes
    ----------
    time
        Of all steps, s.
    step_time
        Of one more step in the steady state, s.
    sequential_time
        Of all steps if nothing overlaps, s.
    bound_by
        ``"copy"`` or ``"compute"``.
    parts
        ``"compute"`` and ``"exposed copy"``, s; they sum to ``time``.
    figures
        Copy and computation of one step, s; bandwidth of the copy, byte/s; share of the copy without overlap; speedup.
    timeline
        Intervals of the first steps, in order of their start.
    """

    device: str
    steps: int
    memory: HostMemory
    buffers: int
    time: Quantity
    step_time: Quantity
    sequential_time: Quantity
    bound_by: str
    parts: FrozenDict[str, Quantity]
    figures: FrozenDict[str, Quantity]
    timeline: tuple[Interval, ...] = field(repr=False)
    assumptions: tuple[str, ...]

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """The time as a lower bound, without an upper one: other traffic may slow the copies."""
        return self.time, Q_(float("inf"), "s")

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates."""
        return facts_behind(self, self.time)

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return with_units(
            {
                "model": "overlap",
                "device": self.device,
                "steps": self.steps,
                "memory": self.memory,
                "buffers": self.buffers,
                "time": plain_amount(self.time),
                "step_time": plain_amount(self.step_time),
                "sequential_time": plain_amount(self.sequential_time),
                "bound_by": self.bound_by,
                "parts": amounts(self.parts),
                "figures": amounts(self.figures),
                "timeline": [
                    {"engine": each.engine, "step": each.step, "start_seconds": each.start, "end_seconds": each.end}
                    for each in self.timeline
                ],
                "assumptions": list(self.assumptions),
                "facts": [fact.name for fact in self.facts],
            }
        )

    def explain(self) -> str:
        """Return the result in sentences, for people."""
        saved = self.figures["speedup"].m_as("")
        return "\n".join(
            [
                f"{self.steps} steps on {self.device}: {self.time.to_compact():.4g~P}, bound by {self.bound_by}; "
                f"{self.sequential_time.to_compact():.4g~P} without overlap ({saved:.3g} times as long).",
                *(f"  {name:<24} {value.to_compact():.4g~P}" for name, value in self.figures.items()),
                *(f"- {each}" for each in self.assumptions),
            ]
        )


def simulate_steps(copy: float, compute: float, steps: int, buffers: int) -> list[Interval]:
    """Return the intervals in which a copy engine and a compute engine work, simulated event by event.

    A copy starts when the engine is free and a buffer is: the step that used it has computed. A step computes when
    its copy has arrived and the step before has computed.

    Examples
    --------
    >>> [(each.engine, each.start, each.end) for each in simulate_steps(2.0, 3.0, 2, 2)]
    [('copy', 0.0, 2.0), ('compute', 2.0, 5.0), ('copy', 2.0, 4.0), ('compute', 5.0, 8.0)]
    """
    intervals: list[Interval] = []
    copied, computed = 0.0, [0.0] * steps
    for step in range(steps):
        free = computed[step - buffers] if step >= buffers else 0.0
        start = max(copied, free)
        copied = start + copy
        begin = max(copied, computed[step - 1] if step else 0.0)
        computed[step] = begin + compute
        intervals.append(Interval("copy", step, start, copied))
        intervals.append(Interval("compute", step, begin, computed[step]))
    return intervals


@traced
def overlapped_steps(
    system: System | Device | str,
    data: Quantity,
    compute_time: Quantity,
    *,
    steps: int = 1,
    memory: HostMemory = "pinned",
    buffers: int = 2,
    copies_at_once: int | None = None,
    attained: float = PINNED_ATTAINS,
    staging_bandwidth: Quantity | None = None,
) -> OverlapResult:
    """Return the time of steps of which each copies its data from the host and computes on it.

    Parameters
    ----------
    system
        A system, a device, or the name of one; its host link carries the copies.
    data
        Bytes that one step copies.
    compute_time
        Time that one step computes, s.
    steps
        Number of steps.
    memory
        ``"pinned"``: the copy engine reads it beside the computation. ``"pageable"``: the driver copies it to a pinned
        buffer first, and the call returns when that is done; no overlap is assumed, which is conservative.
    buffers
        Buffers on the device; one means that a copy waits for the step before.
    copies_at_once
        Chips that copy over the same host link at the same time; by default those that share it in the system.
    attained
        Part of the link's rate that a copy attains, above 0 and up to 1.
    staging_bandwidth
        Rate at which the driver copies pageable memory to a pinned buffer, byte/s; by default 10 GB/s, assumed.

    Raises
    ------
    UnknownNameError
        If there is no such system or kind of memory, or no host link is recorded.
    ArgumentUnitError, ArgumentError
        If an argument lacks its unit or is out of range, or `staging_bandwidth` is given for pinned memory.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> result = overlapped_steps("A100", Q_(38.5, "MB"), Q_(2, "ms"), steps=100, attained=0.825)
    >>> print(f"{result.figures['copy'].to('ms'):.2f}, {result.time.to('ms'):.0f}, bound by {result.bound_by}")
    1.48 ms, 201 ms, bound by compute
    """
    where = "overlapped_steps"
    found = as_system(system)
    for name, value in (("data", data), ("compute_time", compute_time), ("staging_bandwidth", staging_bandwidth)):
        if getattr(value, "ndim", 0):
            raise ArgumentError(f"{where}(): `{name}` must be a single value, got {short(value)}. Ask once for each")
    moved = float(checked_number(where, "data", data, nonnegative("byte"), {}))
    compute = float(checked_number(where, "compute_time", compute_time, nonnegative("s"), {}))
    part = float(checked_number(where, "attained", attained, efficiency(), {}))
    count, size = checked_count(where, "steps", steps), checked_count(where, "buffers", buffers)
    checked_choice(where, "memory", memory, get_args(HostMemory))
    if moved + compute == 0:
        raise ArgumentError(f"{where}(): `data` and `compute_time` are both zero. Give at least one of them")
    shared = found.host.topology == "shared memory"
    if shared and compute == 0:
        raise ArgumentError(
            f"{where}(): `compute_time` is zero, and {found.name} copies nothing: CPU and GPU share the memory. "
            "Give a time above zero"
        )
    link = system_view(found).host
    flows = found.host.shared_by if copies_at_once is None else checked_count(where, "copies_at_once", copies_at_once)
    assumptions = []
    staged = 0.0
    if memory == "pageable":
        staging = STAGING
        if staging_bandwidth is not None:
            staging = float(checked_number(where, "staging_bandwidth", staging_bandwidth, positive("byte/s"), {}))
        staged = moved / staging
        assumptions.append(
            f"pageable memory: the driver copies it at {staging / 1e9:g} GB/s first, and nothing overlaps"
        )
    elif staging_bandwidth is not None:
        raise ArgumentError(f'{where}(): `staging_bandwidth` goes with memory="pageable", got memory="pinned"')
    if shared:
        copy, assumptions = 0.0, ["CPU and GPU share the memory: nothing is copied"]
    else:
        rate = shared_bandwidth.bare(link.require("bandwidth") * part, flows)
        copy = message_time.bare(moved, 0.0, rate) + staged if moved else 0.0
        assumptions.append(f"a copy attains {part:.0%} of {found.host.kind or 'the host link'}")
        if flows > 1:
            assumptions.append(f"{flows} chips copy over the link at once and share it")
    overlaps = memory == "pinned" and size > 1
    sequential = count * (copy + compute)
    time = double_buffered_time.bare(copy, compute, count) if overlaps else sequential
    step = max(copy, compute) if overlaps else copy + compute
    shown = min(count, _SHOWN)
    line = simulate_steps(copy, compute, shown, size if overlaps else 1)
    figures = {
        "copy": Q_(copy, "s"),
        "compute": Q_(compute, "s"),
        "copy bandwidth": Q_(moved / copy if copy else 0.0, "byte/s"),
        "copy share without overlap": Q_(copy_share.bare(copy, compute), ""),
        "speedup": Q_(sequential / time, ""),
    }
    if not overlaps and memory == "pinned":
        assumptions.append("one buffer: a copy waits for the step before")
    return OverlapResult(
        device=found.name,
        steps=count,
        memory=memory,
        buffers=size,
        time=Q_(time, "s"),
        step_time=Q_(step, "s"),
        sequential_time=Q_(sequential, "s"),
        bound_by="copy" if copy > compute else "compute",
        parts=FrozenDict({"compute": Q_(count * compute, "s"), "exposed copy": Q_(time - count * compute, "s")}),
        figures=FrozenDict(figures),
        timeline=tuple(sorted(line, key=lambda each: (each.start, each.end))),
        assumptions=tuple(assumptions),
    )
