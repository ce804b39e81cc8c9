"""Time of a collective operation on a system: as NCCL runs it, or by the closed form of an algorithm."""

from dataclasses import dataclass, field
from typing import Any, get_args

from mlsys.choices import Collective, CollectiveAlgorithm, CollectiveLibrary
from mlsys.errors import ArgumentError, did_you_mean
from mlsys.faults import short
from mlsys.formulas import all_gather_traffic_factor, all_reduce_traffic_factor
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.models.collectives.candidate import Candidate
from mlsys.models.collectives.closed import closed_forms
from mlsys.models.collectives.group import group_of
from mlsys.models.collectives.nccl import candidates, generation_of
from mlsys.models.record import amounts, facts_behind, plain_amount, with_units
from mlsys.provenance import Fact, traced
from mlsys.tables import Table
from mlsys.unit_checks import checked_choice, checked_count, checked_number, plain_arguments, positive
from mlsys.units import Q_, Quantity

# Measured time over the estimate, for four measurements in five of the rows in the evidence.
WITHIN = (0.92, 1.6)


@dataclass(frozen=True)
class CollectiveResult:
    """Time and bandwidths of a collective operation.

    Attributes
    ----------
    system, operation, size, chips, nodes
        The arguments of the call; ``size`` in bytes, that of the whole array in an all-gather and a reduce-scatter.
    library
        ``"nccl"`` for its protocols as they run, ``"ideal"`` for a closed form at the full rate of the links.
    algorithm, protocol
        The fastest, or the algorithm given.
    time
        Time of the operation, s.
    bound_by
        ``"latency"``, or the link that bounds the transfer: ``"scale_up"`` or ``"scale_out"``.
    parts
        ``"latency"`` and ``"transfer"``, s; they sum to ``time``.
    algorithm_bandwidth, bus_bandwidth
        Bytes of the array over the time; and that times the bytes that each chip must send, as nccl-tests counts.
    bytes_per_link
        Bytes that one chip sends over each link.
    choices
        Every algorithm and protocol with its time, fastest first.
    """

    system: str
    operation: Collective
    size: Quantity
    chips: int
    nodes: int
    library: CollectiveLibrary
    algorithm: str
    protocol: str
    time: Quantity
    bound_by: str
    parts: FrozenDict[str, Quantity]
    algorithm_bandwidth: Quantity
    bus_bandwidth: Quantity
    bytes_per_link: FrozenDict[str, Quantity]
    assumptions: tuple[str, ...]
    choices: tuple[Candidate, ...] = field(repr=False)
    traffic_factor: float = field(repr=False, default=1.0)

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Times between which four measurements in five lie; a closed form is a lower bound, without an upper end."""
        if self.library == "ideal":
            return self.time, Q_(float("inf"), "s")
        low, high = WITHIN
        return self.time * low, self.time * high

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates."""
        return facts_behind(self, self.time)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each algorithm and protocol: seconds and byte/s as plain numbers, fastest first."""
        size = float(self.size.m_as("byte"))
        return [
            {
                "algorithm": each.algorithm,
                "protocol": each.protocol,
                "seconds": each.seconds,
                "latency_seconds": each.latency,
                "transfer_seconds": each.transfer,
                "algorithm_bytes_per_second": size / each.seconds,
                "bus_bytes_per_second": size / each.seconds * self.traffic_factor,
                "bound_by": each.bound_by,
                "scale_up_bytes": each.up_bytes,
                "scale_out_bytes": each.out_bytes,
            }
            for each in self.choices
        ]

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        low, high = self.range
        plain = {
            "model": "collective",
            "system": self.system,
            "operation": self.operation,
            "size": plain_amount(self.size),
            "chips": self.chips,
            "nodes": self.nodes,
            "library": self.library,
            "algorithm": self.algorithm,
            "protocol": self.protocol,
            "time": plain_amount(self.time),
            "range": {"low": plain_amount(low), "high": plain_amount(high)},
            "bound_by": self.bound_by,
            "parts": amounts(self.parts),
            "algorithm_bandwidth": plain_amount(self.algorithm_bandwidth),
            "bus_bandwidth": plain_amount(self.bus_bandwidth),
            "bytes_per_link": amounts(self.bytes_per_link),
            "algorithms": self.rows(),
            "assumptions": list(self.assumptions),
            "facts": [fact.name for fact in self.facts],
        }
        return with_units(plain)

    def table(self) -> Table:
        """Return a table of the algorithms, fastest first."""
        rows = [
            (
                each["algorithm"],
                each["protocol"] or "-",
                f"{Q_(each['seconds'], 's').to_compact():.4g~P}",
                f"{each['algorithm_bytes_per_second'] / 1e9:.4g}",
                f"{each['bus_bytes_per_second'] / 1e9:.4g}",
                each["bound_by"].replace("_", "-"),
            )
            for each in self.rows()
        ]
        columns = ("algorithm", "protocol", "time", "algorithm GB/s", "bus GB/s", "bound by")
        return Table(f"{self.operation} of {self.size:~P} on {self.chips} chips of {self.system}", columns, rows)

    def explain(self) -> str:
        """Return the result in sentences and a small table, for people."""
        how = f"{self.algorithm}, {self.protocol}" if self.protocol else self.algorithm
        bound = self.bound_by.replace("_", "-")
        low, high = self.range
        spread = f"{low.to_compact():.3g~P} to {high.to_compact():.3g~P}" if self.library == "nccl" else "a lower bound"
        sent = ", ".join(f"{name.replace('_', '-')} {q.to_compact():.4g~P}" for name, q in self.bytes_per_link.items())
        if self.chips == 1:
            return f"{self.operation} of {self.size:~P} on one chip of {self.system}: nothing is sent."
        return "\n".join(
            [
                f"{self.operation} of {self.size:~P} on {self.chips} chips of {self.system}: "
                f"{self.time.to_compact():.4g~P} ({spread}), by {how}, bound by {bound}.",
                f"Algorithm bandwidth {self.algorithm_bandwidth.to('GB/s'):.4g~P}, "
                f"bus bandwidth {self.bus_bandwidth.to('GB/s'):.4g~P}. Each chip sends: {sent or 'nothing'}.",
                *((str(self.table()),) if self.choices else ()),
                *(f"- {each}" for each in self.assumptions),
            ]
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def traffic_factor(operation: Collective, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth, as nccl-tests defines it.

    Examples
    --------
    >>> traffic_factor("all-reduce", 8), traffic_factor("all-gather", 8), traffic_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    ranks = checked_count("traffic_factor", "ranks", ranks)
    if operation in ("broadcast", "send-recv"):
        return 1.0
    formula = all_reduce_traffic_factor if operation == "all-reduce" else all_gather_traffic_factor
    return float(formula.bare(ranks))


def default_library(system: System) -> CollectiveLibrary:
    """Return ``"nccl"`` for NVIDIA GPUs, else ``"ideal"``."""
    return "nccl" if system.device.vendor == "NVIDIA" and system.device.kind in ("GPU", "SoC") else "ideal"


@plain_arguments
def collective_candidates(
    system: System, operation: Collective, size: float, chips: int, library: CollectiveLibrary | None = None
) -> list[Candidate]:
    """Return every algorithm with its time in seconds, fastest first; arguments are not checked beyond the chips.

    For the inner loops of models; ``collective_time`` is the checked call with units.
    """
    group = group_of("collective", system, chips)
    if (library or default_library(system)) == "nccl":
        found = candidates(operation, size, group, generation_of(system.device.architecture))
    else:
        found = closed_forms(operation, size, group)
    return sorted(found, key=lambda each: each.seconds)


def collective_seconds(
    system: System, operation: Collective, size: float, chips: int, library: CollectiveLibrary | None = None
) -> float:
    """Return the seconds of an operation by its fastest algorithm; 0 for one chip or no bytes.

    Parameters
    ----------
    system
        The system.
    operation
        Collective operation.
    size
        Bytes.
    chips
        Chips that take part.
    library
        ``"nccl"`` or ``"ideal"``; by default NCCL on NVIDIA GPUs.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> f"{collective_seconds(systems['DGX_H100'], 'all-reduce', 1e9, 8) * 1e3:.2f} ms"
    '3.78 ms'
    """
    if chips == 1 or size == 0:
        return 0.0
    return collective_candidates(system, operation, size, chips, library)[0].seconds


@traced
def collective_time(
    system: System | Device | str,
    operation: Collective,
    size: Quantity,
    *,
    chips: int | None = None,
    algorithm: CollectiveAlgorithm | None = None,
    library: CollectiveLibrary | None = None,
) -> CollectiveResult:
    """Return the time of a collective operation among chips of a system.

    Parameters
    ----------
    system
        A system, or the name of one; ``mlsys.system("DGX_H100", nodes=4)`` has more nodes.
    operation
        ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"all-to-all"``, ``"broadcast"`` or ``"send-recv"``.
    size
        Bytes of the array of each chip; of the whole array in an all-gather and a reduce-scatter.
    chips
        Chips that take part; by default all of the system.
    algorithm
        Only this algorithm; by default the fastest.
    library
        ``"nccl"``: its protocols as they run, held against measurements. ``"ideal"``: closed forms of full links, a
        lower bound. By default NCCL on NVIDIA GPUs.

    Raises
    ------
    UnknownNameError
        If there is no such system, operation, algorithm or library, or the system lacks a value.
    ArgumentUnitError, ArgumentError
        If the size has no unit or is not above zero, there are not so many chips, or the algorithm does not serve.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> result = collective_time("DGX_H100", "all-reduce", Q_(1, "GB"))
    >>> print(f"{result.time.to('ms'):.3g}, {result.bus_bandwidth.to('GB/s'):.3g}, {result.algorithm}")
    3.78 ms, 463 GB/s, nvls
    >>> ideal = collective_time("DGX_H100", "all-reduce", Q_(1, "GB"), algorithm="ring", library="ideal")
    >>> print(f"{ideal.time.to('ms'):.3f}, bound by {ideal.bound_by}")
    3.897 ms, bound by scale_up
    """
    where = "collective"
    found = as_system(system)
    checked_choice(where, "operation", operation, get_args(Collective))
    if getattr(size, "ndim", 0):
        raise ArgumentError(f"{where}(): `size` must be a single value, got {short(size)}. Ask once for each")
    number = float(checked_number(where, "size", size, positive("byte"), {}))
    if number < 1:
        raise ArgumentError(
            f"{where}(): `size` must be at least one byte, got {short(str(size))}. Write e.g. Q_(1, 'GB')"
        )
    ranks = found.chips if chips is None else checked_count(where, "chips", chips)
    if library is not None:
        checked_choice(where, "library", library, get_args(CollectiveLibrary))
    if algorithm is not None:
        checked_choice(where, "algorithm", algorithm, get_args(CollectiveAlgorithm))
    used = library or default_library(found)
    group = group_of(where, found, ranks)
    choices = collective_candidates(found, operation, number, ranks, used)
    if algorithm is not None and ranks > 1:
        have = tuple(dict.fromkeys(each.algorithm for each in choices))
        choices = [each for each in choices if each.algorithm.split()[0] == algorithm or each.algorithm == algorithm]
        if not choices:
            other: CollectiveLibrary = "ideal" if used == "nccl" else "nccl"
            raise ArgumentError(
                f"{where}(): `algorithm` {algorithm!r} does not serve {operation} on {ranks} chips of {found.name} "
                f"(library {used}). It has: {', '.join(have)}.{did_you_mean(algorithm, have)} "
                f"Or write library={other!r}"
            )
    best = choices[0] if choices else Candidate("none", "", 0.0, 0.0, "latency", 0.0, 0.0)
    factor = traffic_factor(operation, ranks)
    rate = number / best.seconds if best.seconds else float("inf")
    sent = {"scale_up": best.up_bytes, "scale_out": best.out_bytes}
    return CollectiveResult(
        system=found.name,
        operation=operation,
        size=size,
        chips=ranks,
        nodes=group.nodes,
        library=used,
        algorithm=best.algorithm,
        protocol=best.protocol,
        time=Q_(best.seconds, "s"),
        bound_by=best.bound_by,
        parts=FrozenDict({"latency": Q_(best.latency, "s"), "transfer": Q_(best.transfer, "s")}),
        algorithm_bandwidth=Q_(rate, "byte/s"),
        bus_bandwidth=Q_(rate * factor if best.seconds else 0.0, "byte/s"),
        bytes_per_link=FrozenDict({name: Q_(moved, "byte") for name, moved in sent.items() if moved}),
        assumptions=_assumptions(found, used, group.nodes, ranks),
        choices=tuple(choices),
        traffic_factor=factor,
    )


def _assumptions(system: System, library: CollectiveLibrary, nodes: int, ranks: int) -> tuple[str, ...]:
    if ranks == 1:
        return ("one chip: nothing is sent",)
    if library == "ideal":
        lines = ["closed form at the full rate of the links; libraries attain 0.7 to 0.9 of it"]
        if nodes > 1:
            lines.append("a flat algorithm counts every round as one between nodes; `hierarchical` does not")
    else:
        lines = ["NCCL's choice of the fastest protocol and algorithm; one process per GPU, no user-registered buffers"]
    lines.append("no other traffic shares the links")
    if system.scale_up.topology == "host":
        lines.append("cards speak over PCIe; neighbours at two CPUs share the link between these")
        if library == "nccl":
            lines.append("no measurement on PCIe was at hand: the range is that of NVLink")
    return tuple(lines)


__all__ = [
    "CollectiveResult", "collective_candidates", "collective_seconds", "collective_time",
    "default_library", "traffic_factor",
]  # fmt: skip
