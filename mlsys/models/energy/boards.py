"""Energy of an inference on a microcontroller or a board: how long it takes, times what the machine draws at work.

A price for each multiply-accumulate says what arithmetic costs inside a chip; at a board's supply it is the
smallest part. There the power at work hardly follows what is computed, so that an inference costs

    E = P t = P_static t + P_dynamic t.

The power is the device's own where it is on record. Else a law of its class stands in, fitted to what was
measured: watts for each cycle of a microcontroller, a part of the design power of a system on chip. The
static part is what the machine draws at rest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mlsys.door import checked_number, positive
from mlsys.files import Drafts
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.inputs import read_text, yaml_of
from mlsys.units import Q_, Quantity

_PLACE = Path(__file__).parent / "powers.yaml"
# What the power of each class follows: the clock, or the design power.
LAWS = {"MCU": "clock", "SoC": "tdp"}
_UNITS = {"clock": "Hz", "tdp": "W"}
_WORDS = {"clock": "cycles per second", "tdp": "its design power"}


@dataclass(frozen=True)
class WorkPower:
    """What a machine draws while it infers.

    Attributes
    ----------
    power, static
        At work, and the part of it that flows at rest, too, W.
    low, high
        Four measurements in five lie between these multiples of the power.
    basis
        ``"recorded"`` of this device, or ``"class"``: a law fitted to others.
    why
        In words.
    """

    power: Quantity
    static: Quantity
    low: float
    high: float
    basis: Literal["recorded", "class"]
    why: str

    @property
    def dynamic(self) -> Quantity:
        """The part that follows the clock, W."""
        dynamic: Quantity = self.power - self.static
        return dynamic


@dataclass(frozen=True)
class InferenceEnergy:
    """Energy of one pass of a network.

    Attributes
    ----------
    static, dynamic
        What flows because time passes, and what the work adds, J; their sum is ``energy``.
    range
        Between which energies four measurements in five should lie, J.
    power
        What it follows from.
    """

    static: Quantity
    dynamic: Quantity
    range: tuple[Quantity, Quantity]
    power: WorkPower

    @property
    def energy(self) -> Quantity:
        """The whole, J."""
        energy: Quantity = self.static + self.dynamic
        return energy

    @property
    def static_share(self) -> float:
        """Part of the energy that flows because time passes."""
        return float((self.static / self.energy).m_as(""))


@lru_cache(maxsize=1)
def fitted_powers() -> FrozenDict[str, FrozenDict[str, Any]]:
    """Return the laws as they were fitted, by class, and ``recorded``: how far a device's own power is off.

    Examples
    --------
    >>> sorted(fitted_powers())
    ['GPU', 'MCU', 'SoC', 'recorded']
    """
    read = yaml_of(read_text(_PLACE))
    return FrozenDict({name: FrozenDict(entry) for name, entry in read.items()})


def work_power(device: Device) -> WorkPower | None:
    """Return what a device draws while it infers, or None where neither it nor its class is known.

    Parameters
    ----------
    device
        A twin; its recorded power goes before the law of its class.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> power = work_power(Hardware.Tiny.STM32H7A3)
    >>> print(power.power, power.basis, "|", work_power(Hardware.Tiny.STM32F746).basis, work_power(Hardware.Cloud.A100))
    0.122 W recorded | class None
    """
    machine = view(device)
    law = LAWS.get(device.kind)
    if machine.has("active_power"):
        power: Quantity = machine.quantity("active_power")
        entry = fitted_powers()["recorded"]
        basis: Literal["recorded", "class"] = "recorded"
        why = f"power at work as recorded, about which {entry['rows']} measurements of boards lie"
    elif law is not None and machine.has(law):
        entry, basis = fitted_powers()[device.kind], "class"
        per = Q_(float(entry["factor"]), f"W/({_UNITS[law]})")
        power = (per * machine.quantity(law)).to("W")
        why = f"power at work from {_WORDS[law]}, as {entry['machines']} machines say, each left out in turn"
    else:
        return None
    if machine.has("idle_power"):
        static = min(machine.quantity("idle_power"), power)
        assumed = any(fact.confidence == "assumed" for fact in machine.quantity("idle_power").facts)
        why += f"; at rest as {'assumed for it' if assumed else 'recorded'}"
    else:
        share = float(fitted_powers().get(device.kind, fitted_powers()["SoC"])["static"])
        static = power * share
        why += f"; at rest {share:.0%} of it, as its class"
    return WorkPower(power, static, float(entry["low"]), float(entry["high"]), basis, why)


def inference_energy(
    device: Device, time: Quantity, *, about: tuple[float, float] = (1.0, 1.0), power: WorkPower | None = None
) -> InferenceEnergy | None:
    """Return the energy of an inference that takes ``time``, or None where no power is known.

    Parameters
    ----------
    device
        A twin of a microcontroller or a board; of a card with its ``power``.
    time
        Of one inference, s.
    about
        Between which multiples of ``time`` four measurements in five lie.
    power
        What the device draws, where that follows its work; by default :func:`work_power`.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If the time is no time, or not above zero.

    Notes
    -----
    The two ranges are taken as independent: their logarithms add as squares.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> energy = inference_energy(Hardware.Tiny.STM32H7A3, Q_(18.3, "ms"))
    >>> print(f"{energy.energy.to('mJ'):.3g}, of which at rest {energy.static.to('mJ'):.3g}")
    2.23 mJ, of which at rest 0.677 mJ
    """
    seconds = checked_number("inference_energy", "time", time, positive("s"), {})
    drawn = power or work_power(device)
    if drawn is None:
        return None
    whole = drawn.power.m_as("W") * seconds
    spread = [
        math.exp(sign * math.hypot(math.log(of_time), math.log(of_power)))
        for sign, of_time, of_power in ((-1, about[0], drawn.low), (1, about[1], drawn.high))
    ]
    low, high = (Q_(whole * factor, "J") for factor in spread)
    static: Quantity = (drawn.static * time).to("J")
    return InferenceEnergy(static, (drawn.dynamic * time).to("J"), (low, high), drawn)


def save_powers(laws: Mapping[str, Mapping[str, Any]], files: Drafts, path: Path = _PLACE) -> None:
    """Draft the laws of every class."""
    lines = [
        "# Power at work of a class: watts for each cycle per second, or each watt of design power, and the factors",
        "# between which measurements lie about it; fitted by `mlsys validate --refit`, not edited by hand.",
    ]
    for name in sorted(laws):
        pairs = ", ".join(
            f"{key}: {value if isinstance(value, (int, str)) else f'{value:.4g}'}" for key, value in laws[name].items()
        )
        lines.append(f"{name}: {{{pairs}}}")
    files.text(path, "\n".join(lines) + "\n")
