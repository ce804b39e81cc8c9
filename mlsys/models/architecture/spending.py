"""Energy of a plan: arithmetic, on-chip memories, off-chip memory and idle power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlsys.errors import ArgumentError
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, MachineView
from mlsys.models.architecture.demand import Demand, PlanCounts
from mlsys.models.energy import WORD, Energies, static_power
from mlsys.units import Quantity

ENERGY_PARTS = ("compute", "on-chip", "off-chip", "static")


@dataclass(frozen=True)
class Spending:
    """Prices and power budget of one device, as plain numbers.

    Attributes
    ----------
    energies
        The price list.
    off_chip
        Price of a byte of off-chip main memory, J; zero if the main memory is on-chip.
    levels
        Prices of a byte of on-chip main memory (zero if off-chip) and of each level inside it, J.
    register
        Price of a word in a register, J.
    idle, budget
        Idle power, and the rest of the design power, W.
    operands
        The prices by name, for provenance.
    """

    energies: Energies
    off_chip: float
    levels: tuple[float, ...]
    register: float
    idle: float
    budget: float
    operands: dict[str, Quantity] = field(compare=False, repr=False)
    _multiplying: dict[str, float] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def on(cls, machine: MachineView, levels: Sequence[LevelView], energies: Energies) -> Spending:
        """Return the prices of a device whose data pass through ``levels``, outermost first."""
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
                f"design power of {limit:g} W. Give it a `tdp` above its `idle` power"
            )
        return cls(
            energies=energies,
            off_chip=0.0 if within else prices[main.name].joules,
            levels=(prices[main.name].joules if within else 0.0, *inside),
            register=register.joules,
            idle=idle,
            budget=math.inf if limit is None else limit - idle,
            operands={"register": register.value} | {f"byte_of_{name}": price.value for name, price in prices.items()},
        )

    def multiplying(self, precision: str) -> float:
        """Return the energy of a multiply-accumulate, J."""
        if precision not in self._multiplying:
            self._multiplying[precision] = self.energies.mac(precision).joules
        return self._multiplying[precision]

    def of(self, work: Demand, counted: PlanCounts, precision: str) -> tuple[float, float, float]:
        """Return the energy of arithmetic, of on-chip memories and of off-chip memory, J.

        A byte that passes from one level to the next costs an access to each.
        """
        arithmetic = (work.multiplying + work.beside) / 2 * self.multiplying(precision)
        arrives = 0.0
        on_chip = counted.registers * work.size / WORD * self.register
        for cost, leaves in zip(self.levels, counted.moved, strict=True):
            on_chip += cost * (arrives + leaves)
            arrives = leaves
        return arithmetic, on_chip, self.off_chip * counted.moved[0]
