"""Energy of an inference on a microcontroller or board: inference time times active power.

The energy of the arithmetic inside a chip is the smallest part of what a board draws from its supply. There the
active power hardly depends on what is computed, so an inference costs

    E = P t = P_static t + P_dynamic t.

The power is the recorded one of the device. Without a record, a law fitted to measurements of its class is used:
watts per clock cycle for a microcontroller, a fraction of the design power for a system on chip. The static part
is the idle power.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.inputs import read_text, yaml_of
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Q_, Quantity

_PLACE = Path(__file__).parent / "powers.yaml"
# Quantity that the power of each class is proportional to: the clock, or the design power.
LAWS = {"MCU": "clock", "SoC": "tdp"}
_UNITS = {"clock": "Hz", "tdp": "W"}
_WORDS = {"clock": "cycles per second", "tdp": "its design power"}


@dataclass(frozen=True)
class WorkPower:
    """Power of a device during inference.

    Attributes
    ----------
    power, static
        Active power, and the part of it that is also drawn when idle, W.
    low, high
        80 % interval of the power, as multiples of it.
    basis
        ``"recorded"`` for this device, or ``"class"``: a law fitted to other devices.
    why
        Explanation, in words.
    """

    power: Quantity
    static: Quantity
    low: float
    high: float
    basis: Literal["recorded", "class"]
    why: str

    @property
    def dynamic(self) -> Quantity:
        """Power above the static part, W."""
        dynamic: Quantity = self.power - self.static
        return dynamic


@dataclass(frozen=True)
class InferenceEnergy:
    """Energy of one inference.

    Attributes
    ----------
    static, dynamic
        Energy of the static and the dynamic power, J; their sum is ``energy``.
    range
        80 % interval of the energy, J.
    power
        The power that it is computed from.
    """

    static: Quantity
    dynamic: Quantity
    range: tuple[Quantity, Quantity]
    power: WorkPower

    @property
    def energy(self) -> Quantity:
        """Total energy, J."""
        energy: Quantity = self.static + self.dynamic
        return energy

    @property
    def static_share(self) -> float:
        """Share of static power in the energy."""
        return float((self.static / self.energy).m_as(""))


@lru_cache(maxsize=1)
def fitted_powers() -> FrozenDict[str, FrozenDict[str, Any]]:
    """Return the fitted laws by class, and under ``recorded`` the error of recorded powers.

    Examples
    --------
    >>> sorted(fitted_powers())
    ['GPU', 'MCU', 'SoC', 'recorded']
    """
    read = yaml_of(read_text(_PLACE))
    return FrozenDict({name: FrozenDict(entry) for name, entry in read.items()})


def work_power(device: Device) -> WorkPower | None:
    """Return the power of a device during inference, or None if neither its own nor that of its class is known.

    Parameters
    ----------
    device
        A device twin; its recorded power takes precedence over the law of its class.

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
        why = f"active power as recorded; interval from {entry['rows']} measurements of boards"
    elif law is not None and machine.has(law):
        entry, basis = fitted_powers()[device.kind], "class"
        per = Q_(float(entry["factor"]), f"W/({_UNITS[law]})")
        power = (per * machine.quantity(law)).to("W")
        why = f"active power from {_WORDS[law]}, fitted to {entry['machines']} devices, each left out in turn"
    else:
        return None
    if machine.has("idle_power"):
        static = min(machine.quantity("idle_power"), power)
        assumed = any(fact.confidence == "assumed" for fact in machine.quantity("idle_power").facts)
        why += f"; idle power {'assumed' if assumed else 'as recorded'}"
    else:
        share = float(fitted_powers().get(device.kind, fitted_powers()["SoC"])["static"])
        static = power * share
        why += f"; {share:.0%} of it idle power, as for its class"
    return WorkPower(power, static, float(entry["low"]), float(entry["high"]), basis, why)


def inference_energy(
    device: Device, time: Quantity, *, about: tuple[float, float] = (1.0, 1.0), power: WorkPower | None = None
) -> InferenceEnergy | None:
    """Return the energy of an inference that takes ``time``, or None if no power is known.

    Parameters
    ----------
    device
        Twin of a microcontroller or board; for a card give its ``power``.
    time
        Time of one inference, s.
    about
        80 % interval of the time, as multiples of it.
    power
        Power during the inference, if it depends on the work; by default :func:`work_power`.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If the time has the wrong unit, or is not positive.

    Notes
    -----
    The two ranges are taken as independent: their logarithms add in quadrature.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> energy = inference_energy(Hardware.Tiny.STM32H7A3, Q_(18.3, "ms"))
    >>> print(f"{energy.energy.to('mJ'):.3g}, of which static {energy.static.to('mJ'):.3g}")
    2.23 mJ, of which static 0.677 mJ
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
