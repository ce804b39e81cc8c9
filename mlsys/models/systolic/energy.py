"""Energy of a multiply-accumulate, by where its operands come from.

What an array saves is reads. How much it saves depends on what it is compared with, so
there are four baselines, and two ways to add up: the customary one, which counts DRAM
and arithmetic alone, and one that also counts the SRAM and the registers in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsys import constants
from mlsys.door import checked_number, nonnegative, positive
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.models.systolic.counts import Counts
from mlsys.models.systolic.folds import checked_name, whole
from mlsys.precision import element_size
from mlsys.units import Q_, Quantity

__all__ = ["BASELINES", "EnergyPerMac", "energy_baselines", "energy_per_mac", "energy_systolic"]

BASELINES = FrozenDict(
    {
        "no registers": "reads both operands and the sum from DRAM, and writes the sum back",
        "register accumulator": "keeps the sum in a register, and reads both operands from DRAM",
        "blocked core": "keeps a block of each operand in SRAM, and reads it from DRAM once for each of its rows",
        "systolic array": "passes each operand from DRAM on through a row or a column of the array",
    }
)


@dataclass(frozen=True)
class EnergyPerMac:
    """Energy of one multiply-accumulate, by level; ``accesses`` counts words per multiply-accumulate."""

    name: str
    parts: FrozenDict[str, Quantity]
    accesses: FrozenDict[str, float]

    @property
    def total(self) -> Quantity:
        """Picojoules for one multiply-accumulate, all levels together."""
        whole: Quantity = sum(self.parts.values(), Q_(0.0, "pJ"))
        return whole


def energy_per_mac(
    accesses: float,
    reuse: int = 1,
    *,
    memory: Quantity | None = None,
    mac: Quantity | None = None,
) -> Quantity:
    """Return the energy of a multiply-accumulate, accesses over reuse times memory, plus arithmetic.

    Parameters
    ----------
    accesses
        Memory words that one multiply-accumulate needs.
    reuse
        Multiply-accumulates that share a word once it is read: the side of the array.
    memory
        Energy of one word; by default a 32-bit word of DRAM at 45 nm.
    mac
        Energy of the arithmetic; by default FP32 at 45 nm.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        For negative amounts, amounts without their unit, and a reuse that is no whole number.

    Examples
    --------
    >>> one = Q_(1, "pJ")
    >>> print(energy_per_mac(4, mac=one), energy_per_mac(2, 128, mac=one))
    2561 pJ 11 pJ
    """
    word = constants.ENERGY_DRAM_ACCESS_PJ if memory is None else memory
    arithmetic = constants.ENERGY_MAC_FP32_PJ if mac is None else mac
    checked_number("energy_per_mac", "accesses", accesses, nonnegative(), {})
    side = whole("energy_per_mac", "reuse", reuse)
    checked_number("energy_per_mac", "memory", word, positive("pJ"), {})
    checked_number("energy_per_mac", "mac", arithmetic, positive("pJ"), {})
    energy: Quantity = word * (accesses / side) + arithmetic
    return energy


def energy_baselines(
    side: int = 128, block: int = 32, *, levels: str = "customary", mac: Quantity | None = None
) -> tuple[EnergyPerMac, ...]:
    """Return the energy of a multiply-accumulate on an array and on three machines to compare it with.

    Parameters
    ----------
    side
        Rows and columns of the array.
    block
        Rows and columns of the block that the blocked core keeps.
    levels
        ``"customary"`` counts DRAM and arithmetic; ``"all"`` also the SRAM and the
        registers that the operands pass.
    mac
        Energy of the arithmetic; by default FP32 at 45 nm.

    Returns
    -------
    tuple of EnergyPerMac
        In the order of ``BASELINES``.

    References
    ----------
    M. Horowitz, Computing's energy problem, ISSCC 2014; S. Han et al., NIPS 2015, Fig. 1:
    the constants, 45 nm and 32-bit words.

    Examples
    --------
    >>> *others, array = energy_baselines(mac=Q_(1, "pJ"))
    >>> print(*(f"{other.total / array.total:.4g}" for other in others))
    232.8 116.5 3.727
    """
    checked_name("energy_baselines", "levels", levels, {"customary": "DRAM and arithmetic", "all": "every level"})
    side, block = whole("energy_baselines", "side", side), whole("energy_baselines", "block", block)
    arithmetic = constants.ENERGY_MAC_FP32_PJ if mac is None else mac
    checked_number("energy_baselines", "mac", arithmetic, positive("pJ"), {})
    # Words for one multiply-accumulate: DRAM, SRAM, registers.
    counted = {
        "no registers": (4.0, 0.0, 0.0),
        "register accumulator": (2.0, 0.0, 2.0),  # the sum is read and written
        "blocked core": (2 / block, 2.0, 2.0),  # both operands come from SRAM each time
        "systolic array": (
            2 / side,
            2 / side,
            3.0,
        ),  # a moving operand and the sum are latched, the word that stays read
    }
    cost = {
        "DRAM": constants.ENERGY_DRAM_ACCESS_PJ,
        "SRAM": constants.ENERGY_SRAM_32KB_PJ,
        "registers": constants.ENERGY_REG_PJ,
    }
    kept = list(cost) if levels == "all" else ["DRAM"]
    found = []
    for name, words in counted.items():
        accesses = {level: count for level, count in zip(cost, words, strict=True) if level in kept}
        parts = {level: cost[level] * count for level, count in accesses.items()} | {"arithmetic": arithmetic}
        found.append(EnergyPerMac(name, FrozenDict(parts), FrozenDict(accesses)))
    return tuple(found)


def energy_systolic(counts: Counts, precision: str = "fp32", mac: Quantity | None = None) -> FrozenDict[str, Quantity]:
    """Return the energy of a whole product by level, from the words that were counted.

    Parameters
    ----------
    counts
        Of one product, in the physical convention for the registers to count.
    precision
        Of a word; the constants are for 32 bits and scale with the width.
    mac
        Energy of one multiply-accumulate; by default that of the precision at 45 nm,
        where the constants have it.

    Raises
    ------
    ArgumentError
        If no arithmetic energy is known for the precision.

    Examples
    --------
    >>> from mlsys.models.systolic import count_systolic
    >>> parts = energy_systolic(count_systolic(128, 128, 128, 128, 128))
    >>> print({level: f"{energy.to('uJ'):.2f}" for level, energy in parts.items()})
    {'DRAM': '31.46 µJ', 'SRAM': '0.49 µJ', 'registers': '5.25 µJ', 'arithmetic': '9.65 µJ'}
    """
    width = element_size(precision).m_as("byte") / 4
    known = {
        "fp32": constants.ENERGY_MAC_FP32_PJ,
        "fp16": constants.ENERGY_MAC_FP16_PJ,
        "int8": constants.ENERGY_MAC_INT8_PJ,
    }
    arithmetic = known.get(precision) if mac is None else mac
    if arithmetic is None:
        raise ArgumentError(
            f"energy_systolic(): no energy of a multiply-accumulate in {precision}; known: {', '.join(known)}. "
            'Write e.g. mac=Q_(1.5, "pJ")'
        )
    checked_number("energy_systolic", "mac", arithmetic, positive("pJ"), {})
    parts = {
        "DRAM": constants.ENERGY_DRAM_ACCESS_PJ * (width * counts.dram.total),
        "SRAM": constants.ENERGY_SRAM_32KB_PJ * (width * counts.sram.total),
        "registers": constants.ENERGY_REG_PJ * (width * (counts.register_writes or 0)),
        "arithmetic": arithmetic * counts.macs,
    }
    return FrozenDict(parts)
