"""Energy of a pass on an accelerator card: static power plus dynamic power of operations and bytes, up to its limit.

The work costs some multiple of the prices of a multiply-accumulate on the card's process and of a byte of its
memory, since instructions, caches and idle lanes draw power as well. The work of a pass over its time is a
demand D in watts. A card that approaches its design power lowers its clock, so that

    P = P_static + H (1 - exp(-D / H)),   H = P_design - P_static,   E = P t.

The multiples and the idle fraction of the design power are fitted to cards that were metered while serving
language models; the range is that of held-out cards.
"""

import math
from collections.abc import Mapping
from typing import Any

from mlsys.hardware.device import Device
from mlsys.hardware.view import MachineView, view
from mlsys.models.energy.boards import WorkPower, fitted_powers
from mlsys.models.energy.prices import Energies
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Quantity, ureg

# The kind of device that the law was fitted to, and the name of the law.
CARD = "GPU"


def demands(machine: MachineView, flops: float, traffic: float) -> tuple[Quantity, Quantity]:
    """Return the energy of the operations, and of the main memory traffic, of a pass by the price list, J.

    Parameters
    ----------
    machine
        View of the device in the number format of the operands.
    flops
        Operations, FLOP; a multiply-accumulate counts as two.
    traffic
        Bytes read and written.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> operations, bytes_ = demands(view(Hardware.Cloud.A100, "fp16"), 1e12, 1e9)
    >>> print(f"{operations:.3g}, {bytes_:.3g}")
    0.25 J, 0.0314 J
    """
    prices = Energies.of(machine)
    operations = (prices.mac(machine.precision).value * (flops / 2)).to("J")
    return operations, (prices.byte(machine.main).value * ureg.Quantity(traffic, "byte")).to("J")


def watts_drawn(
    design: float, operations: float, bytes_: float, law: Mapping[str, Any], rest: float | None = None
) -> tuple[float, float]:
    """Return the active power and the idle power of a card, W.

    Parameters
    ----------
    design
        Design power, W.
    operations, bytes_
        Power of operations and of memory traffic by the price list, W.
    law
        ``operation`` and ``byte``, multiples of the prices, and ``static``, a fraction of the design power.
    rest
        Recorded idle power, W, if any.

    Examples
    --------
    >>> law = {"operation": 3.0, "byte": 3.0, "static": 0.1}
    >>> [round(watts_drawn(400.0, watts, 0.0, law)[0]) for watts in (0.0, 10.0, 100.0, 10_000.0)]
    [40, 69, 244, 400]
    """
    static = min(law["static"] * design if rest is None else rest, design)
    room = design - static
    if not room:
        return design, static
    demand = law["operation"] * operations + law["byte"] * bytes_
    return static - room * math.expm1(-demand / room), static


def card_power(device: Device, precision: str, flops: Quantity, traffic: Quantity, time: Quantity) -> WorkPower | None:
    """Return the power of a card during a pass of given work and time, or None if it is not known.

    Parameters
    ----------
    device
        A GPU with a design power.
    precision
        Number format of the operands.
    flops, traffic
        Work of the pass: FLOP, and bytes of the main memory.
    time
        Time of the pass, s.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If the time has the wrong unit, or is not positive.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> card = Hardware.Cloud.H100
    >>> idle = card_power(card, "bf16", Q_(1, "FLOP"), Q_(1, "byte"), Q_(1, "s"))
    >>> busy = card_power(card, "bf16", Q_(500, "TFLOP"), Q_(1, "TB"), Q_(1, "s"))
    >>> idle.power < busy.power <= card.tdp
    True
    """
    seconds = checked_number("card_power", "time", time, positive("s"), {})
    machine = view(device, precision)
    if device.kind != CARD or not machine.has("tdp"):
        return None
    law = fitted_powers()[CARD]
    parts = demands(machine, float(flops.m_as("FLOP")), float(traffic.m_as("byte")))
    limit = machine.quantity("tdp")
    recorded = machine.quantity("idle_power") if machine.has("idle_power") else None
    operations, bytes_ = (float(part.m_as("J")) / seconds for part in parts)
    at_rest = None if recorded is None else float(recorded.m_as("W"))
    watts, rest = watts_drawn(float(limit.m_as("W")), operations, bytes_, law, at_rest)
    static: Quantity = limit * (rest / float(limit.m_as("W")))
    demand = (parts[0] * float(law["operation"]) + parts[1] * float(law["byte"])) / time
    power: Quantity = static + demand * ((watts - rest) / float(demand.m_as("W")))
    idle = f"{law['static']:.0%} of the design power" if recorded is None else "as recorded"
    why = (
        f"idle power {idle}, {law['operation']:.2g} times the listed energy of an operation and "
        f"{law['byte']:.2g} times that of a byte, fitted to {law['rows']} metered runs of {law['machines']} cards, "
        "each card left out in turn; the card alone, without its host"
    )
    return WorkPower(power.to("W"), static.to("W"), float(law["low"]), float(law["high"]), "class", why)
