"""Facts computed from published ones: multiply-accumulates, rates, and values that were not measured."""

from mlsys._facts.make import Derived
from mlsys.units import Q_


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


DERIVED: tuple[Derived, ...] = (
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
    Derived(
        name="LATENCY_PCIE_GEN5",
        meaning="round trip of a 64-byte read of host memory by a device, taken as equal to the one measured on"
        " PCIe 3.0: most of it is spent in the root complex and in memory, not on the lanes",
        unit="ns",
        parts=("LATENCY_PCIE_GEN3",),
        formula="LATENCY_PCIE_GEN3, for want of a published measurement",
        compute=lambda measured: measured,
    ),
)
