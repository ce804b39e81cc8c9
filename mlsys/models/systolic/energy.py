"""Energy of a multiply-accumulate by the source of its operands.

An array saves reads. How many depends on the baseline, so there are four baselines and two
ways to count: the customary one, which includes only DRAM and arithmetic, and one that also
includes the SRAM and the registers in between. Prices are those of :mod:`mlsys.models.energy`,
by default for 45 nm, as is customary.
"""

from dataclasses import dataclass
from typing import Literal

from mlsys.frozen import FrozenDict
from mlsys.hardware.technology import Technology
from mlsys.models.energy import WORD, Energies
from mlsys.models.systolic.accesses import ArrayCounts
from mlsys.models.systolic.folds import exact_count
from mlsys.precision import PRECISIONS, precision_name
from mlsys.unit_checks import checked_choice, checked_number, positive
from mlsys.units import Q_, Quantity

Levels = Literal["customary", "all"]
_BUFFER = 32 * 1024  # bytes of the on-chip memory that feeds the arithmetic
_BYTES = Q_(WORD, "byte")

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
    """Energy of one multiply-accumulate by level; ``accesses`` are words per multiply-accumulate."""

    name: str
    parts: FrozenDict[str, Quantity]
    accesses: FrozenDict[str, float]

    @property
    def total(self) -> Quantity:
        """Energy of one multiply-accumulate over all levels, pJ."""
        total: Quantity = sum(self.parts.values(), Q_(0.0, "pJ"))
        return total


def _words(energies: Energies, memory: Technology, buffer: float) -> dict[str, Quantity]:
    """Return the energy of accessing a 32-bit word at each level, pJ."""
    return {
        "DRAM": energies.dram(memory).value * _BYTES,
        "SRAM": energies.sram(buffer).value,
        "registers": energies.register().value,
    }


def energy_baselines(
    side: int = 128,
    block: int = 32,
    *,
    levels: Levels = "customary",
    mac: Quantity | None = None,
    energies: Energies | None = None,
    precision: str = "fp32",
    memory: Technology = Technology.DDR,
    register_block: int = 1,
) -> tuple[EnergyPerMac, ...]:
    """Return the energy of a multiply-accumulate on a systolic array and on three baselines.

    Parameters
    ----------
    side
        Rows and columns of the array.
    block
        Rows and columns of the block that the blocked core keeps in SRAM.
    levels
        ``"customary"`` counts DRAM and arithmetic; ``"all"`` also the SRAM and the
        registers.
    mac
        Energy of a multiply-accumulate, pJ; by default that of the precision.
    energies
        Price list; by default that of 45 nm.
    precision
        Number format of operands and sums; the energy of a word scales with its width.
    memory
        Technology of the off-chip memory.
    register_block
        Rows and columns of results that the blocked core keeps in registers, which is how often
        it uses a word read from SRAM.

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
    checked_choice("energy_baselines", "levels", levels, {"customary": "DRAM and arithmetic", "all": "every level"})
    side, block = exact_count("energy_baselines", "side", side), exact_count("energy_baselines", "block", block)
    held = exact_count("energy_baselines", "register_block", register_block)
    prices = energies or Energies.at(45)
    arithmetic = prices.mac(precision).value if mac is None else mac
    checked_number("energy_baselines", "mac", arithmetic, positive("pJ"), {})
    # Words per multiply-accumulate: DRAM, SRAM, registers.
    counted = {
        "no registers": (4.0, 0.0, 0.0),
        "register accumulator": (2.0, 0.0, 2.0),  # the sum is read and written
        "blocked core": (2 / block, 2 / held, 2.0 if held == 1 else 4.0),  # then operands pass registers as well
        "systolic array": (2 / side, 2 / side, 3.0),  # a moving operand and the sum are latched, one word stays
    }
    width = _width(precision)
    cost = {level: word * width for level, word in _words(prices, memory, _BUFFER).items()}
    kept = list(cost) if levels == "all" else ["DRAM"]
    baselines = []
    for name, words in counted.items():
        accesses = {level: count for level, count in zip(cost, words, strict=True) if level in kept}
        parts = {level: cost[level] * count for level, count in accesses.items()} | {"arithmetic": arithmetic}
        baselines.append(EnergyPerMac(name, FrozenDict(parts), FrozenDict(accesses)))
    return tuple(baselines)


def _width(precision: str) -> float:
    """Return the width of a format relative to the word that the prices are for."""
    return PRECISIONS[precision_name(precision)] / 8 / WORD


def energy_systolic(
    counts: ArrayCounts,
    precision: str = "fp32",
    mac: Quantity | None = None,
    *,
    energies: Energies | None = None,
    memory: Technology = Technology.DDR,
    buffer: Quantity | None = None,
) -> FrozenDict[str, Quantity]:
    """Return the energy of a whole matrix product by level, from its counted words.

    Parameters
    ----------
    counts
        Counts of one product; registers are included only in the physical convention.
    precision
        Number format of a word; prices are for 32 bits and scale with the width.
    mac
        Energy of one multiply-accumulate, pJ; by default that of the precision.
    energies
        Price list, such as ``Energies.of(Hardware.Cloud.TPUv4)``; by default that of 45 nm.
    memory
        Technology of the off-chip memory.
    buffer
        Size of the memory that feeds the array, byte; by default 32 KiB.

    Examples
    --------
    >>> from mlsys.models.systolic import count_systolic
    >>> parts = energy_systolic(count_systolic(128, 128, 128, 128, 128))
    >>> print({level: f"{energy.to('uJ'):.2f}" for level, energy in parts.items()})
    {'DRAM': '31.46 µJ', 'SRAM': '0.49 µJ', 'registers': '5.25 µJ', 'arithmetic': '9.65 µJ'}
    """
    prices = energies or Energies.at(45)
    arithmetic = prices.mac(precision).value if mac is None else mac
    checked_number("energy_systolic", "mac", arithmetic, positive("pJ"), {})
    held = _BUFFER if buffer is None else checked_number("energy_systolic", "buffer", buffer, positive("byte"), {})
    cost, width = _words(prices, memory, held), _width(precision)
    words = {"DRAM": counts.dram.total, "SRAM": counts.sram.total, "registers": counts.register_writes or 0}
    parts = {level: cost[level] * (width * count) for level, count in words.items()}
    return FrozenDict(parts | {"arithmetic": arithmetic * counts.macs})
