"""Energy of a plan: arithmetic, memories on the chip, memory off the chip, and what the machine draws when idle."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlsys import constants
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.models.architecture.work import Work
from mlsys.provenance import Step
from mlsys.units import Q_, Quantity, ureg

if TYPE_CHECKING:
    from mlsys.models.architecture.plan import Counted, Level, TilingStrategy

__all__ = ["ENERGY_PARTS", "Energies", "Spending", "in_stacks"]

ENERGY_PARTS = ("compute", "on-chip", "off-chip", "static")
_PICOJOULE = 1e-12
_WORD = 4.0  # bytes that one access of the constants moves
_KIB = 1024.0
# Formats without a constant of their own count as the next wider one that has.
_COUNTS_AS = {
    "fp32": "fp32", "tf32": "fp32", "fp16": "fp16", "bf16": "fp16", "fp8": "fp16", "fp6": "fp16", "fp4": "fp16",
    "int16": "int32", "int8": "int8", "int4": "int8", "int1": "int8",
}  # fmt: skip


@dataclass(frozen=True)
class Energies:
    """What one access and one multiply-accumulate cost.

    Attributes
    ----------
    mac
        Energy of a multiply-accumulate by number format.
    sram
        Energy of a 32-bit word by capacity of the memory in KiB; between two capacities it follows a
        power law, outside them it is that of the nearest.
    register
        Energy of a 32-bit access to a register file.
    dram, hbm
        Energy of a byte of DDR-class memory, and of memory in stacks.

    Examples
    --------
    >>> print(f"{Energies.at_45nm().word(512 * 1024):.1f}")
    36.2 pJ
    """

    mac: FrozenDict[str, Quantity]
    sram: FrozenDict[float, Quantity]
    register: Quantity
    dram: Quantity
    hbm: Quantity

    @classmethod
    def at_45nm(cls) -> Energies:
        """Return the published constants: 45 nm on the chip and for DDR, HBM2 for memory in stacks."""
        return cls(
            mac=FrozenDict(
                {
                    "fp32": constants.ENERGY_MAC_FP32_PJ,
                    "fp16": constants.ENERGY_MAC_FP16_PJ,
                    "int8": constants.ENERGY_MAC_INT8_PJ,
                    "int32": constants.ENERGY_MAC_INT32_PJ,
                }
            ),
            sram=FrozenDict(
                {
                    8.0: constants.ENERGY_SRAM_L1_PJ,
                    32.0: constants.ENERGY_SRAM_32KB_PJ,
                    1024.0: constants.ENERGY_SRAM_L2_PJ,
                }
            ),
            register=constants.ENERGY_REG_PJ,
            dram=constants.ENERGY_DRAM_PJ_PER_BYTE,
            hbm=(constants.ENERGY_HBM2_PJ_PER_BIT * Q_(8, "bit/byte")).to("pJ/byte"),
        )

    def word(self, capacity: float) -> Quantity:
        """Return the energy of a 32-bit word in a memory of ``capacity`` bytes."""
        made: Quantity = ureg.Quantity(self._per_word(capacity), "J").to("pJ")
        made._origin = Step("word", tuple(self.sram.values()), tuple(f"of_{size:g}_KiB" for size in self.sram))
        return made

    def _per_word(self, capacity: float) -> float:
        points = sorted((size * _KIB, float(cost.m_as("J"))) for size, cost in self.sram.items())
        if capacity <= points[0][0]:
            return float(points[0][1])
        for (small, low), (large, high) in itertools.pairwise(points):
            if capacity <= large:
                share = math.log(capacity / small) / math.log(large / small)
                return float(low * (high / low) ** share)
        return float(points[-1][1])

    def mac_of(self, precision: str) -> Quantity:
        """Return the energy of a multiply-accumulate in ``precision``, or in the next wider format that is known.

        Raises
        ------
        ArgumentError
            If no constant is known for the format or a wider one.
        """
        name = precision if precision in self.mac else _COUNTS_AS.get(precision, "")
        if name not in self.mac:
            raise ArgumentError(
                f"run(): `energies` has no multiply-accumulate in {precision}; it has {', '.join(self.mac)}. "
                f'Write e.g. energies=replace(Energies.at_45nm(), mac=FrozenDict({{"{precision}": Q_(20, "pJ")}}))'
            )
        return self.mac[name]

    def of(self, strategy: TilingStrategy) -> Spending:
        """Return what each count of a plan costs on the strategy's device."""
        main = strategy.main
        on_chip = "sram" in main.kind.lower()
        off = 0.0 if on_chip else float((self.hbm if in_stacks(main) else self.dram).m_as("J/byte"))
        own = self._per_word(main.each) / _WORD if on_chip else 0.0
        levels = tuple(self._per_word(level.each) / _WORD for level in strategy.levels)
        device = strategy.device
        idle = 0.0 if device._idle_power is None else float(device.idle_power.m_as("W"))
        limit = math.inf if device._tdp is None else float(device.tdp.m_as("W"))
        budget = limit - idle if limit > idle else math.inf
        return Spending(self, off, (own, *levels), float(self.register.m_as("J")), idle, budget)


@dataclass(frozen=True)
class Spending:
    """Energies of one device, in plain numbers: J for a byte, J for a register, W when idle, W to spend."""

    energies: Energies
    off_chip: float
    levels: tuple[float, ...]
    register: float
    idle: float
    budget: float
    _multiplying: dict[str, float] = field(default_factory=dict, compare=False, repr=False)

    def of(self, work: Work, counted: Counted, precision: str) -> tuple[float, float, float]:
        """Return J of arithmetic, of memories on the chip, and of the memory off it.

        A byte that passes from one level to the next costs an access to each.
        """
        if precision not in self._multiplying:
            self._multiplying[precision] = float(self.energies.mac_of(precision).m_as("J"))
        arithmetic = (work.multiplying + work.beside) / 2 * self._multiplying[precision]
        arrives = 0.0
        on_chip = counted.registers * work.size / _WORD * self.register
        for cost, leaves in zip(self.levels, counted.moved, strict=True):
            on_chip += cost * (arrives + leaves)
            arrives = leaves
        return arithmetic, on_chip, self.off_chip * counted.moved[0]


def in_stacks(main: Level) -> bool:
    """Tell whether a main memory is stacked beside the chip."""
    return main.name.startswith("HBM") or "HBM" in main.kind or "stacks" in main.kind
