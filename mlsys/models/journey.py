"""One request through a dense layer on a GPU: time and energy of each leg, from host memory to the units and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsys._facts import PUBLISHED
from mlsys.errors import ArgumentError
from mlsys.formulas import message_time, padded_size
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system, system_view
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, view
from mlsys.models.energy import Energies
from mlsys.models.overlap import PINNED_ATTAINS
from mlsys.models.record import amounts, facts_behind, plain_amount, with_units
from mlsys.precision import element_size
from mlsys.provenance import Fact, read, traced
from mlsys.tables import Table
from mlsys.unit_checks import checked_count, checked_number, nonnegative
from mlsys.units import Q_, Quantity, number_in, ureg

__all__ = ["TILE", "JourneyResult", "Leg", "request_journey"]

TILE = (16, 8)
"""Outputs and batch of one tensor-core instruction, ``mma.m16n8k16`` of PTX; smaller work is padded to it."""

_PJ_BYTE = ureg.Unit("pJ/byte")
LAUNCH = 5e-6  # What the host and the driver need to start a kernel, s: assumed, half of it to twice it.


@dataclass(frozen=True)
class Leg:
    """Time and energy of one hop of the request.

    Attributes
    ----------
    start, end
        Memories or units that it joins.
    request, weights
        Bytes of the request (or of its result) and of the weights that pass, however often.
    passes
        How often each byte of the request passes.
    latency
        Time that this hop adds until its first byte arrives, s.
    streaming
        Bytes over the bandwidth; of the last hop inwards, padded operations over the peak, s.
    price
        Energy of a byte, pJ/byte.
    """

    start: str
    end: str
    request: Quantity
    weights: Quantity
    passes: float
    latency: Quantity
    streaming: Quantity
    price: Quantity

    @property
    def name(self) -> str:
        """Both ends, such as ``"L2 to L1"``."""
        return f"{self.start} to {self.end}"

    @property
    def energy(self) -> Quantity:
        """Energy of all bytes that pass, J."""
        spent: Quantity = ((self.request + self.weights) * self.price).to("J")
        return spent

    @property
    def request_energy(self) -> Quantity:
        """Energy of the request's own bytes, J."""
        spent: Quantity = (self.request * self.price).to("J")
        return spent


@dataclass(frozen=True)
class JourneyResult:
    """Time and energy of a request.

    Attributes
    ----------
    time
        From the start of the copy in to the end of the copy out, s.
    bound_by
        The largest part.
    parts
        ``"copy in"``, ``"launch"``, ``"first word"``, ``"streaming"``, ``"copy out"``, s; they sum to ``time``.
    legs
        Hops in order: to the device, inwards through its memories, out again and back to the host.
    energy
        ``"movement"`` and ``"arithmetic"``, J.
    figures
        Bytes of the request, the weights and the result; multiplications that each value of the request takes part in;
        useful and padded operations; total energy.
    """

    device: str
    batch: int
    time: Quantity
    bound_by: str
    parts: FrozenDict[str, Quantity]
    legs: tuple[Leg, ...]
    energy: FrozenDict[str, Quantity]
    figures: FrozenDict[str, Quantity]
    assumptions: tuple[str, ...]

    @property
    def inner(self) -> tuple[Leg, ...]:
        """Hops from the main memory to the matrix units."""
        return self.legs[1:-2]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates."""
        return facts_behind(self, self.time)

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return with_units(
            {
                "model": "journey",
                "device": self.device,
                "batch": self.batch,
                "time": plain_amount(self.time),
                "bound_by": self.bound_by,
                "parts": amounts(self.parts),
                "legs": [
                    {
                        "start": leg.start,
                        "end": leg.end,
                        "request_bytes": leg.request.m_as("byte"),
                        "weight_bytes": leg.weights.m_as("byte"),
                        "passes": leg.passes,
                        "latency_seconds": leg.latency.m_as("s"),
                        "streaming_seconds": leg.streaming.m_as("s"),
                        "energy_joules": leg.energy.m_as("J"),
                    }
                    for leg in self.legs
                ],
                "energy": amounts(self.energy),
                "figures": amounts(self.figures),
                "assumptions": list(self.assumptions),
                "facts": [fact.name for fact in self.facts],
            }
        )

    def table(self) -> Table:
        """Return a table of the legs."""
        heads = ["leg", "request kB", "times", "weights MB", "latency ns", "streaming ns", "pJ/byte", "energy µJ"]
        rows = [
            [
                leg.name,
                f"{leg.request.m_as('kB'):,.4g}",
                f"{leg.passes:,.4g}",
                f"{leg.weights.m_as('MB'):,.3g}",
                f"{leg.latency.m_as('ns'):,.3g}",
                f"{leg.streaming.m_as('ns'):,.4g}",
                f"{leg.price.m_as('pJ/byte'):,.3g}",
                f"{leg.energy.m_as('uJ'):,.3g}",
            ]
            for leg in self.legs
        ]
        return Table(f"One request of batch {self.batch} on {self.device}, leg by leg", heads, rows)

    def explain(self) -> str:
        """Return the result in sentences and a small table, for people."""
        shares = ", ".join(f"{name} {value.to_compact():.3g~P}" for name, value in self.parts.items())
        return "\n".join(
            [
                f"{self.time.to_compact():.4g~P} on {self.device}, mostly {self.bound_by}: {shares}.",
                str(self.table()),
                *(f"- {each}" for each in self.assumptions),
            ]
        )


@traced
def request_journey(
    system: System | Device | str,
    inputs: int,
    outputs: int,
    *,
    batch: int = 1,
    precision: str | None = None,
    launch: Quantity | None = None,
    weights_in_l2: bool = False,
    energies: Energies | None = None,
) -> JourneyResult:
    r"""Estimate time and energy of a request that crosses one dense layer, leg by leg.

    The request is copied to the device, a kernel is launched, operands stream through L2, shared memory and registers
    to the matrix units, and the result is copied back. The hops on the device work as a pipeline,

    .. math:: t = L_\text{main} + \max_i \frac{Q_i}{B_i},

    with the latency :math:`L_\text{main}` of one load from main memory, which holds those of the nearer memories, and
    the bytes :math:`Q_i` and bandwidth :math:`B_i` of hop *i*. Energy adds up: bytes of each hop times its price, and
    multiply-accumulates.

    Parameters
    ----------
    system
        A system, a device, or the name of one, whose memories L2, L1 and Registers are recorded.
    inputs, outputs
        Width of the layer's input and output.
    batch
        Requests that are copied and computed together.
    precision
        Number format; by default the device's headline format.
    launch
        Time that host and driver need to start the kernel, s; by default 5 µs, assumed.
    weights_in_l2
        Whether the weights are still in L2 from the request before.
    energies
        Price list; by default that of the device's process.

    Raises
    ------
    UnknownNameError
        If a level, its bandwidth or latency, the peak, or the host link is not recorded.
    ArgumentUnitError, ArgumentError
        If an argument is out of range or lacks its unit, CPU and GPU share one memory, or weights that should be in L2
        are larger than it.

    Examples
    --------
    >>> result = request_journey("DGX_H100", 16_000, 1024)
    >>> print(f"{result.time.to('us'):.1f}, {result.bound_by}; {result.legs[2].passes:.0f} reads of L2")
    17.8 µs, streaming; 64 reads of L2
    """
    where = "request_journey"
    found = as_system(system)
    width, height = checked_count(where, "inputs", inputs), checked_count(where, "outputs", outputs)
    count = checked_count(where, "batch", batch)
    start = LAUNCH if launch is None else float(checked_number(where, "launch", launch, nonnegative("s"), {}))
    if found.host.topology == "shared memory":
        raise ArgumentError(f"{where}(): CPU and GPU of {found.name} share one memory. Choose a device with its own")
    machine = view(found.device, precision or found.device.headline)
    far, l2, l1, registers = machine.main, machine.level("L2"), machine.level("L1"), machine.level("Registers")
    size = element_size(machine.precision).m_as("byte")
    request, weights, result = count * width * size, width * height * size, count * height * size
    if weights_in_l2 and weights > l2.require("capacity"):
        raise ArgumentError(
            f"{where}(): weights of {weights / 1e6:,.4g} MB are larger than L2. Write weights_in_l2=False"
        )
    bill = energies or Energies.of(machine)

    def priced(*levels: LevelView) -> float:
        return sum(bill.byte(level).joules for level in levels)

    wire = number_in(read(PUBLISHED["ENERGY_PCIE_GEN5_PJ_PER_BIT"]), _PJ_BYTE) * 1e-12
    host = priced(far) + bill.dram(Technology.DDR).joules + wire
    link = system_view(found).host
    rate, delay = link.require("bandwidth") * PINNED_ATTAINS, link.require("latency")
    tiles = padded_size.bare(height, TILE[0]) // TILE[0]
    busy = min(machine.require("units"), float(tiles))
    padded = padded_size.bare(count, TILE[1])
    share = busy / machine.require("units")
    flops = 2 * tiles * TILE[0] * padded * width
    fetched = 0.0 if weights_in_l2 else weights
    inward = [
        (far, l2, 1.0, far.require("latency") - l2.require("latency"), far.require("bandwidth"), fetched),
        (l2, l1, busy, l2.require("latency") - l1.require("latency"), _total(l2), weights),
        (l1, registers, float(tiles), l1.require("latency"), _total(l1) * share, weights),
    ]  # fmt: skip
    legs = [Leg("host", far.name, *_amounts(request, 0.0, 1.0, delay, request / rate, host))]
    for outer, nearer, passes, latency, bandwidth, heavy in inward:
        moved = request * passes
        legs.append(
            Leg(
                outer.name,
                nearer.name,
                *_amounts(moved, heavy, passes, latency, (moved + heavy) / bandwidth, priced(outer)),
            )
        )
    computing = flops / (machine.require("rate") * share)
    legs.append(
        Leg(
            registers.name,
            "matrix units",
            *_amounts(request * tiles, weights, float(tiles), 0.0, computing, priced(registers)),
        )
    )
    away = priced(registers, l2, far)
    legs.append(
        Leg("matrix units", far.name, *_amounts(result, 0.0, 1.0, 0.0, result / far.require("bandwidth"), away))
    )
    legs.append(Leg(far.name, "host", *_amounts(result, 0.0, 1.0, delay, result / rate, host)))
    streams = [leg.streaming.m_as("s") for leg in legs[1:-2]]
    parts = {
        "copy in": message_time.bare(request, delay, rate),
        "launch": start,
        "first word": far.require("latency"),
        "streaming": max(streams) + legs[-2].streaming.m_as("s"),
        "copy out": message_time.bare(result, delay, rate),
    }
    moved_energy = sum(leg.energy.m_as("J") for leg in legs)
    arithmetic = count * width * height * bill.mac(machine.precision).joules
    return JourneyResult(
        device=found.name,
        batch=count,
        time=Q_(sum(parts.values()), "s"),
        bound_by=max(parts, key=parts.__getitem__),
        parts=FrozenDict({name: Q_(value, "s") for name, value in parts.items()}),
        legs=tuple(legs),
        energy=FrozenDict({"movement": Q_(moved_energy, "J"), "arithmetic": Q_(arithmetic, "J")}),
        figures=FrozenDict(
            {
                "request": Q_(request, "byte"),
                "weights": Q_(weights, "byte"),
                "result": Q_(result, "byte"),
                "uses": Q_(float(height), ""),
                "operations": Q_(2.0 * count * width * height, "FLOP"),
                "padded operations": Q_(float(flops), "FLOP"),
                "energy": Q_(moved_energy + arithmetic, "J"),
            }
        ),
        assumptions=(
            f"a copy attains {PINNED_ATTAINS:.0%} of {found.host.kind or 'the host link'}, from pinned memory",
            f"a launch takes {start * 1e6:g} µs; no other call of the driver, and no other traffic",
            f"tiles of {TILE[0]} outputs by a batch of {TILE[1]}; {busy:g} units work, each reads the request once",
            "hops on the device overlap: one load's latency, then the slowest stream",
            "host memory is priced as DDR, PCIe of any generation as PCIe 5; no static power, wires or instructions",
            *bill.assumptions(),
        ),
    )


def _total(level: LevelView) -> float:
    level.require("bandwidth")
    return level.bandwidth_total or 0.0


def _amounts(
    request: float, weights: float, passes: float, latency: float, streaming: float, price: float
) -> tuple[Quantity, Quantity, float, Quantity, Quantity, Quantity]:
    return (
        Q_(float(request), "byte"), Q_(float(weights), "byte"), passes, Q_(latency, "s"), Q_(streaming, "s"),
        Q_(price * 1e12, "pJ/byte"),
    )  # fmt: skip
