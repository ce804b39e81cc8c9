"""Energy of a plan: arithmetic, memories on the chip, memory off the chip, and what the machine draws when idle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlsys.errors import ArgumentError
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, MachineView
from mlsys.models.architecture.demand import Counted, Demand
from mlsys.models.energy import WORD, Energies, static_power
from mlsys.units import Quantity

ENERGY_PARTS = ("compute", "on-chip", "off-chip", "static")


@dataclass(frozen=True)
class Spending:
    """Prices of one device, in plain numbers: J for a byte or a register, W when idle, W to spend.

    Attributes
    ----------
    energies
        Where the prices come from.
    off_chip
        Of a byte of the main memory beside the chip; zero where the main memory is on it.
    levels
        Of a byte of the main memory, where it is on the chip, and of each level inside it.
    register
        Of a word in a register.
    idle, budget
        Power that is drawn whatever runs, and what is left of the design power.
    leans
        The prices by name, for what a result was computed from.
    """

    energies: Energies
    off_chip: float
    levels: tuple[float, ...]
    register: float
    idle: float
    budget: float
    leans: dict[str, Quantity] = field(compare=False, repr=False)
    _multiplying: dict[str, float] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def on(cls, machine: MachineView, levels: Sequence[LevelView], energies: Energies) -> Spending:
        """Return what each count of a plan costs on a machine whose data pass ``levels``, outermost first."""
        main = machine.main
        within = main.technology is Technology.SRAM
        prices = {level.name: energies.byte(level) for level in (main, *levels)}
        register = energies.register()
        inside = tuple(prices[level.name].joules for level in levels)
        drawn, limit = static_power(machine), machine.tdp
        idle = 0.0 if drawn is None else float(drawn.m_as("W"))
        if limit is not None and limit <= idle:
            raise ArgumentError(
                f"architecture(): `device` {machine.name} draws {idle:g} W when idle, which leaves nothing of its "
                f"design power of {limit:g} W to work with. Give it a `tdp` above its `idle` power"
            )
        return cls(
            energies=energies,
            off_chip=0.0 if within else prices[main.name].joules,
            levels=(prices[main.name].joules if within else 0.0, *inside),
            register=register.joules,
            idle=idle,
            budget=math.inf if limit is None else limit - idle,
            leans={"register": register.value} | {f"byte_of_{name}": price.value for name, price in prices.items()},
        )

    def multiplying(self, precision: str) -> float:
        """Return J for a multiply-accumulate."""
        if precision not in self._multiplying:
            self._multiplying[precision] = self.energies.mac(precision).joules
        return self._multiplying[precision]

    def of(self, work: Demand, counted: Counted, precision: str) -> tuple[float, float, float]:
        """Return J of arithmetic, of memories on the chip, and of the memory off it.

        A byte that passes from one level to the next costs an access to each.
        """
        arithmetic = (work.multiplying + work.beside) / 2 * self.multiplying(precision)
        arrives = 0.0
        on_chip = counted.registers * work.size / WORD * self.register
        for cost, leaves in zip(self.levels, counted.moved, strict=True):
            on_chip += cost * (arrives + leaves)
            arrives = leaves
        return arithmetic, on_chip, self.off_chip * counted.moved[0]
