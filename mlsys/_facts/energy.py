"""Energy of one operation and of one memory access, at 45 nm unless the name says 7 nm.

One access or one operation costs so many picojoules; what is named ``FLOP`` or
``OP`` is a rate, picojoules per operation, so that it multiplies a count of
operations. As 1 MAC = 2 FLOP, ``ENERGY_FLOP_FP32_PJ`` in pJ/MAC is ``ENERGY_MAC_FP32_PJ``.
"""

from __future__ import annotations

from mlsys._facts.make import Derived, fact
from mlsys.units import Q_, Quantity

__all__ = ["DERIVED", "FACTS"]

_HOROWITZ = "M. Horowitz, Computing's Energy Problem (and what we can do about it), ISSCC 2014, Fig. 1.1.9"
_HAN = "S. Han et al., Learning both Weights and Connections for Efficient Neural Networks, NIPS 2015, Fig. 1"
_CACHE = "The source prints {}; a 32-bit word is half of it."


_JOUPPI = "N. Jouppi et al., Ten Lessons From Three Generations Shaped Google's TPUv4i, ISCA 2021, Table 2"
_DALLY = "W. Dally, Y. Turakhia, S. Han, Domain-Specific Hardware Accelerators, CACM 63(7), 2020"
_OCONNOR = "M. O'Connor et al., Fine-Grained DRAM, MICRO-50, 2017"


def _jouppi(value: float, unit: str, name: str, meaning: str, uncertainty: float | None = None) -> Quantity:
    return fact(
        value,
        unit,
        name=name,
        meaning=meaning,
        source=_JOUPPI,
        date="2021-06",
        uncertainty=uncertainty,
        confidence="secondary",
    )


def _at_7nm(value: float, name: str, meaning: str) -> Quantity:
    return _jouppi(value, "pJ", name, f"{meaning}, 7 nm")


def _horowitz(value: float, name: str, meaning: str) -> Quantity:
    return fact(
        value,
        "pJ",
        name=name,
        meaning=f"{meaning}, 45 nm, 0.9 V",
        source=_HOROWITZ,
        date="2014-02",
        confidence="secondary",
    )


FACTS = (
    _horowitz(0.03, "ENERGY_ADD_INT8_PJ", "one 8-bit integer addition"),
    _horowitz(0.1, "ENERGY_ADD_INT32_PJ", "one 32-bit integer addition"),
    _horowitz(0.4, "ENERGY_ADD_FP16_PJ", "one 16-bit floating-point addition"),
    _horowitz(0.9, "ENERGY_ADD_FP32_PJ", "one 32-bit floating-point addition"),
    _horowitz(0.2, "ENERGY_MUL_INT8_PJ", "one 8-bit integer multiplication"),
    _horowitz(3.1, "ENERGY_MUL_INT32_PJ", "one 32-bit integer multiplication"),
    _horowitz(1.1, "ENERGY_MUL_FP16_PJ", "one 16-bit floating-point multiplication"),
    _horowitz(3.7, "ENERGY_MUL_FP32_PJ", "one 32-bit floating-point multiplication"),
    _horowitz(
        5.0,
        "ENERGY_SRAM_L1_PJ",
        f"one read of a 32-bit word from an 8 KiB cache. {_CACHE.format('10 pJ per 64-bit access')}"
        " The customary 0.5 pJ has no source",
    ),
    _horowitz(
        10.0,
        "ENERGY_SRAM_32KB_PJ",
        f"one read of a 32-bit word from a 32 KiB cache. {_CACHE.format('20 pJ per 64-bit access')}",
    ),
    _horowitz(
        50.0,
        "ENERGY_SRAM_L2_PJ",
        f"one read of a 32-bit word from a 1 MiB cache. {_CACHE.format('100 pJ per 64-bit access')}"
        " The customary 2 pJ has no source",
    ),
    fact(
        1.0,
        "pJ",
        name="ENERGY_REG_PJ",
        meaning="one access to a 32-bit register file, 45 nm. The customary 0.01 pJ has no source",
        source=_HAN,
        date="2015-06",
        confidence="secondary",
    ),
    fact(
        640.0,
        "pJ",
        name="ENERGY_DRAM_ACCESS_PJ",
        meaning="one access to a 32-bit word in DRAM (DDR3 class, with its interface), 45 nm system; Horowitz 2014"
        " prints 1.3 to 2.6 nJ per 64-bit word, of which this is half the lower end. Not HBM",
        source=_HAN,
        date="2015-06",
        confidence="secondary",
    ),
    fact(
        3.92,
        "pJ/bit",
        name="ENERGY_HBM2_PJ_PER_BIT",
        meaning="one bit read from HBM2, average over workloads: row activation, movement on the die and I/O,"
        " without the controller of the processor. N. Jouppi et al., ISCA 2021, give 250 to 450 pJ per 64-bit"
        " access, 3.9 to 7.0 pJ/bit",
        source="M. O'Connor et al., Fine-Grained DRAM, MICRO-50, 2017, section 2",
        date="2017-10",
        confidence="secondary",
    ),
    _at_7nm(0.007, "ENERGY_ADD_INT8_7NM_PJ", "one 8-bit integer addition"),
    _at_7nm(0.03, "ENERGY_ADD_INT32_7NM_PJ", "one 32-bit integer addition"),
    _at_7nm(0.11, "ENERGY_ADD_BF16_7NM_PJ", "one BF16 addition"),
    _at_7nm(0.16, "ENERGY_ADD_FP16_7NM_PJ", "one 16-bit floating-point addition"),
    _at_7nm(0.38, "ENERGY_ADD_FP32_7NM_PJ", "one 32-bit floating-point addition"),
    _at_7nm(0.07, "ENERGY_MUL_INT8_7NM_PJ", "one 8-bit integer multiplication"),
    _at_7nm(1.48, "ENERGY_MUL_INT32_7NM_PJ", "one 32-bit integer multiplication"),
    _at_7nm(0.21, "ENERGY_MUL_BF16_7NM_PJ", "one BF16 multiplication"),
    _at_7nm(0.34, "ENERGY_MUL_FP16_7NM_PJ", "one 16-bit floating-point multiplication"),
    _at_7nm(1.31, "ENERGY_MUL_FP32_7NM_PJ", "one 32-bit floating-point multiplication"),
    _at_7nm(
        3.75,
        "ENERGY_SRAM_8KB_7NM_PJ",
        f"one read of a 32-bit word from an 8 KiB memory. {_CACHE.format('7.5 pJ per 64-bit access')}",
    ),
    _at_7nm(
        4.25,
        "ENERGY_SRAM_32KB_7NM_PJ",
        f"one read of a 32-bit word from a 32 KiB memory. {_CACHE.format('8.5 pJ per 64-bit access')}",
    ),
    _at_7nm(
        7.0,
        "ENERGY_SRAM_1MB_7NM_PJ",
        f"one read of a 32-bit word from a 1 MiB memory. {_CACHE.format('14 pJ per 64-bit access')}",
    ),
    _jouppi(
        2.6,
        "",
        "ENERGY_SHRINK_45_TO_7NM",
        "energy at 45 nm over energy at 7 nm, geometric mean of the operations and SRAM accesses of the table",
    ),
    _jouppi(
        450 / 64,
        "pJ/bit",
        "ENERGY_HBM2_MOST_PJ_PER_BIT",
        "one bit read from HBM2, upper end: the source prints 250 to 450 pJ per 64-bit access",
    ),
    _jouppi(
        415 / 64,
        "pJ/bit",
        "ENERGY_GDDR6_PJ_PER_BIT",
        "one bit read from GDDR6, middle: the source prints 350 to 480 pJ per 64-bit access",
        uncertainty=65 / 64,
    ),
    fact(
        14.0,
        "pJ/bit",
        name="ENERGY_GDDR5_PJ_PER_BIT",
        meaning="one bit read from GDDR5",
        source=f"{_OCONNOR}, Fig. 1",
        date="2017-10",
        confidence="secondary",
    ),
    fact(
        10.0,
        "pJ/bit",
        name="ENERGY_LPDDR_PJ_PER_BIT",
        meaning="one bit read from low-power DRAM: what DRAM takes once its interface is improved, as the source says",
        source="M. Horowitz, Computing's Energy Problem (and what we can do about it), ISSCC 2014",
        date="2014-02",
        confidence="secondary",
    ),
    fact(
        4.0,
        "pJ/bit",
        name="ENERGY_LPDDR4_LEAST_PJ_PER_BIT",
        meaning="one bit read from LPDDR4, as the lowest of the figures that we saw",
        source=_DALLY,
        date="2020-07",
        confidence="secondary",
    ),
    fact(
        14.0,
        "pJ/bit",
        name="ENERGY_LPDDR4_MOST_PJ_PER_BIT",
        meaning="one bit read from a 32 Gb LPDDR4, simulated, as the highest of the figures that we saw",
        source="H. Ha, Understanding and Improving the Energy Efficiency of DRAM, thesis, Stanford University, 2018",
        date="2018",
        confidence="secondary",
    ),
    fact(
        2600.0,
        "pJ",
        name="ENERGY_DRAM_64BIT_MOST_PJ",
        meaning="one access to a 64-bit word in DRAM, upper end: the source prints 1.3 to 2.6 nJ",
        source=_HOROWITZ,
        date="2014-02",
        confidence="secondary",
    ),
    fact(
        1.6,
        "pJ",
        name="ENERGY_SRAM_8KB_14NM_PJ",
        meaning="one read of a 32-bit word from an 8 KiB memory, 14 nm; the source prints 50 fJ/bit",
        source=_DALLY,
        date="2020-07",
        confidence="secondary",
    ),
    fact(
        0.1,
        "pJ/bit/mm",
        name="ENERGY_WIRE_PJ_PER_BIT_MM",
        meaning="one bit over one millimetre of a wire on the chip, 14 nm; 100 fJ/bit/mm",
        source=_DALLY,
        date="2020-07",
        confidence="secondary",
    ),
    fact(
        0.24,
        "pJ/bit/mm",
        name="ENERGY_WIRE_MOST_PJ_PER_BIT_MM",
        meaning="one bit over one millimetre of a wire on the chip, 40 nm, for each transition; 240 fJ/bit/mm",
        source="S. Keckler et al., GPUs and the Future of Parallel Computing, IEEE Micro 31(5), 2011, Table 1",
        date="2011-09",
        confidence="secondary",
    ),
    fact(
        0.018,
        "pJ/bit/mm",
        name="ENERGY_WIRE_LEAST_PJ_PER_BIT_MM",
        meaning="one bit over one millimetre of a wire on the chip at reduced swing; 18 to 110 fJ/bit/mm are printed",
        source="P. Kogge et al., ExaScale Computing Study, DARPA IPTO, 2008, p. 128",
        date="2008-09",
        confidence="secondary",
    ),
)


def _mac(format_name: str) -> Derived:
    add, multiply = f"ENERGY_ADD_{format_name}_PJ", f"ENERGY_MUL_{format_name}_PJ"
    return Derived(
        name=f"ENERGY_MAC_{format_name}_PJ",
        meaning=f"one multiply-accumulate in {format_name}, 45 nm: a multiplication and an addition",
        unit="pJ",
        parts=(add, multiply),
        formula=f"{add} + {multiply}",
        compute=lambda add, multiply: add + multiply,
    )


def _per_operation(name: str, format_name: str, remark: str = "") -> Derived:
    add, multiply = f"ENERGY_ADD_{format_name}_PJ", f"ENERGY_MUL_{format_name}_PJ"
    return Derived(
        name=name,
        meaning=f"average over the two operations of a multiply-accumulate in {format_name}, 45 nm{remark}",
        unit="pJ/FLOP",
        parts=(add, multiply),
        formula=f"({add} + {multiply}) ÷ 2 FLOP",
        compute=lambda add, multiply: (add + multiply) / Q_(2, "FLOP"),
    )


DERIVED = (
    _mac("INT8"),
    _mac("INT32"),
    _mac("FP16"),
    _mac("FP32"),
    _per_operation("ENERGY_OP_INT8_PJ", "INT8", ". The customary 0.2 is the multiplication alone"),
    _per_operation("ENERGY_FLOP_FP16_PJ", "FP16", ". The customary 1.1 is the multiplication alone"),
    _per_operation("ENERGY_FLOP_FP32_PJ", "FP32", ". The customary 3.7 is the multiplication alone"),
    _per_operation("ENERGY_FLOP_PJ", "FP32", ", as ENERGY_FLOP_FP32_PJ. The customary 4.6 is a MAC, not a FLOP"),
    Derived(
        name="ENERGY_DRAM_PJ_PER_BYTE",
        meaning="one byte moved to or from DRAM (DDR3 class), 45 nm system. Not HBM",
        unit="pJ/byte",
        parts=("ENERGY_DRAM_ACCESS_PJ",),
        formula="ENERGY_DRAM_ACCESS_PJ ÷ 4 byte",
        compute=lambda access: access / Q_(4, "byte"),
    ),
)
