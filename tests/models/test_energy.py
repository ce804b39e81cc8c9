"""The price list: both published columns to the digit, and laws for everything between and beyond them."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import view
from mlsys.models.energy import Energies, Price, static_power
from mlsys.precision import PRECISIONS
from mlsys.provenance import perturbed, recording
from mlsys.testing import assert_depends_on, assert_quantity_close
from mlsys.units import Q_

KIB = 1024.0
nodes = st.floats(1, 200)
sizes = st.floats(16, 2**32)
formats = st.sampled_from(list(PRECISIONS))

# N. Jouppi et al., Ten Lessons From Three Generations Shaped Google's TPUv4i, ISCA 2021, Table 2, pJ:
# multiplication + addition; 64-bit accesses of 8 KB, 32 KB and 1 MB.
PUBLISHED = {
    45: {"int8": 0.2 + 0.03, "fp16": 1.1 + 0.4, "fp32": 3.7 + 0.9},
    7: {"int8": 0.07 + 0.007, "bf16": 0.21 + 0.11, "fp16": 0.34 + 0.16, "fp32": 1.31 + 0.38},
}
ARRAYS = {45: {8: 10, 32: 20, 1024: 100}, 7: {8: 7.5, 32: 8.5, 1024: 14}}


def pj(price: Price) -> float:
    return float(price.value.magnitude)


@pytest.mark.parametrize("node", PUBLISHED)
def test_both_columns_are_those_that_are_printed(node: int) -> None:
    energies = Energies.at(node)
    for name, printed in PUBLISHED[node].items():
        assert pj(energies.mac(name)) == pytest.approx(printed)
    for kib, printed in ARRAYS[node].items():
        assert 2 * pj(energies.sram(kib * KIB)) == pytest.approx(printed)
    assert "as published" in energies.assumptions()[0]


def test_memories_beside_the_chip_by_technology() -> None:
    # Jouppi et al. print 250 to 450 pJ a 64-bit word of HBM2 and 350 to 480 of GDDR6; Horowitz 1.3 to 2.6 nJ of DRAM.
    energies = Energies.at(7)
    for kind, low, high in ((Technology.HBM, 250, 450), (Technology.GDDR, 350, 480), (Technology.DDR, 1280, 2600)):
        price = energies.dram(kind)
        assert low * 0.99 <= 8 * pj(price) <= high
        assert 8 * float(price.high.magnitude) == pytest.approx(high)
    order = [Technology.HBM, Technology.GDDR, Technology.LPDDR, Technology.DDR]
    costs = [pj(energies.dram(kind)) for kind in order]
    assert costs == sorted(costs)
    assert pj(energies.dram(Technology.GDDR, "5X")) > pj(energies.dram(Technology.GDDR, "6X"))
    assert energies.dram(Technology.HBM).value == Energies.at(28).dram(Technology.HBM).value
    assert "assumed" in energies.dram(None).rule
    assert "assumed" in energies.dram(Technology.FLASH).rule
    assert "assumed" not in energies.dram(Technology.GDDR, "5").rule


@given(nodes, formats, sizes)
def test_every_price_lies_in_its_range_and_the_ends_can_be_taken(node: float, name: str, size: float) -> None:
    every = [Energies.at(node, bound=bound) for bound in ("low", "central", "high")]
    for price in (lambda e: e.mac(name), lambda e: e.sram(size), lambda e: e.register(), lambda e: e.wire()):
        low, central, high = (price(energies) for energies in every)
        assert 0 < low.value == central.low <= central.value * (1 + 1e-9)
        assert central.value <= central.high * (1 + 1e-9)
        assert high.value == central.high


@given(nodes, nodes, formats, sizes)
def test_a_finer_process_never_costs_more(first_node: float, other: float, name: str, size: float) -> None:
    fine, coarse = Energies.at(min(first_node, other)), Energies.at(max(first_node, other))
    assert pj(fine.mac(name)) <= pj(coarse.mac(name)) * (1 + 1e-9)
    assert pj(fine.sram(size)) <= pj(coarse.sram(size)) * (1 + 1e-9)
    assert pj(fine.register()) <= pj(coarse.register()) * (1 + 1e-9)


@given(nodes, sizes, sizes)
def test_a_larger_memory_never_costs_less(node: float, first_size: float, other: float) -> None:
    energies = Energies.at(node)
    assert pj(energies.sram(min(first_size, other))) <= pj(energies.sram(max(first_size, other))) * (1 + 1e-9)
    assert pj(energies.register()) <= pj(energies.sram(first_size)) * (1 + 1e-9)


@given(nodes)
def test_a_wider_format_costs_more(node: float) -> None:
    energies = Energies.at(node)
    for order in (("int1", "int4", "int8", "int16"), ("fp4", "fp6", "fp8", "fp16", "tf32", "fp32", "fp64")):
        costs = [pj(energies.mac(name)) for name in order]
        assert costs == sorted(costs)
    assert pj(energies.mac("int8")) < pj(energies.mac("fp8")) < pj(energies.mac("bf16")) < pj(energies.mac("fp16"))


@given(nodes)
def test_a_width_that_nobody_publishes_is_within_linear_and_quadratic(node: float) -> None:
    energies = Energies.at(node)
    for near, name in (("fp16", "fp8"), ("fp32", "fp64"), ("int8", "int4")):
        factor = PRECISIONS[name] / PRECISIONS[near]
        for low, high in ((energies.mac(name).low, energies.mac(name).high),):
            reach = sorted((pj(energies.mac(near)) * factor, pj(energies.mac(near)) * factor**2))
            assert float(low.magnitude) <= reach[0] * (1 + 1e-9)
            assert float(high.magnitude) >= reach[1] * (1 - 1e-9)


@given(st.floats(7, 45))
def test_between_the_columns_a_price_stays_between_them(node: float) -> None:
    here = Energies.at(node)
    for name in ("int8", "fp16", "fp32"):
        assert PUBLISHED[7][name] * (1 - 1e-9) <= pj(here.mac(name)) <= PUBLISHED[45][name] * (1 + 1e-9)


@pytest.mark.parametrize("edge", [7.0, 45.0, math.sqrt(7 * 45)])
def test_no_step_at_a_node_where_the_rule_changes(edge: float) -> None:
    left, right = Energies.at(edge * (1 - 1e-9)), Energies.at(edge * (1 + 1e-9))
    for name in PRECISIONS:
        assert pj(left.mac(name)) == pytest.approx(pj(right.mac(name)), rel=1e-6)
    for size in (512, 2 * KIB, 8 * KIB, 100 * KIB, 2**24):
        assert pj(left.sram(size)) == pytest.approx(pj(right.sram(size)), rel=1e-6)


def test_no_step_at_a_size_where_the_rule_changes() -> None:
    for node, size in itertools.product((3, 7, 16, 45, 90), (1 * KIB, 8 * KIB, 32 * KIB, 1024 * KIB)):
        energies = Energies.at(node)
        assert pj(energies.sram(size * (1 - 1e-9))) == pytest.approx(pj(energies.sram(size * (1 + 1e-9))), rel=1e-6)


def test_a_chip_uses_its_own_node_and_leans_on_it() -> None:
    a100, h100 = Hardware.Cloud.A100, Hardware.Cloud.H100
    assert Energies.of(a100).node == 7
    assert pj(Energies.of(h100).mac("fp16")) < pj(Energies.of(a100).mac("fp16")) == pytest.approx(0.5)
    with recording() as seen:
        price = Energies.of(a100).mac("fp16")
        value = price.value
    names = ("A100_80GB/chip/node", "ENERGY_MUL_FP16_7NM_PJ", "ENERGY_ADD_FP16_7NM_PJ")
    assert set(seen) == set(names)  # not a fact more than the price leans on
    assert_depends_on(value, *names)
    with perturbed("A100_80GB/chip/node", 4):
        assert Energies.of(a100).node == 28
    register = Energies.of(view(a100)).byte(view(a100).level("Registers"))
    assert_quantity_close(register.value * Q_(4, "byte"), Energies.at(7).register().value)


def test_a_chip_without_a_node_says_what_was_assumed() -> None:
    mcu, chip = Hardware.Tiny.nRF52840, Hardware.Generic.TPU
    assert view(mcu).node is view(chip).node is None
    for device, node in ((mcu, 45), (chip, 7)):
        energies = Energies.of(device)
        assert energies.node == node
        assert f"none on record for {device.name}: assumed" in energies.assumptions()[0]


@pytest.mark.parametrize(
    ("node", "name"), [(45, "ENERGY_MUL_FP32_PJ"), (7, "ENERGY_MUL_FP32_7NM_PJ"), (7, "ENERGY_ADD_FP32_7NM_PJ")]
)
def test_a_what_if_acts_once(node: int, name: str) -> None:
    before = pj(Energies.at(node).mac("fp32"))
    with perturbed(name, 2):
        after = pj(Energies.at(node).mac("fp32"))
    fact = {"ENERGY_MUL_FP32_PJ": 3.7, "ENERGY_MUL_FP32_7NM_PJ": 1.31, "ENERGY_ADD_FP32_7NM_PJ": 0.38}[name]
    assert after == pytest.approx(before + fact)


def test_own_prices_and_the_idle_power() -> None:
    mine = Energies.of(Hardware.Cloud.A100, mac={"fp64": Q_(20, "pJ")})
    assert pj(mine.mac("fp64")) == 20
    assert "reader" in mine.mac("fp64").rule
    assert static_power(Hardware.Cloud.TPUv1) == Q_(28, "W")
    assert static_power(Hardware.Cloud.A100) is None


@pytest.mark.parametrize("node", [0, -7, math.nan, math.inf, 5000, 0.5])
def test_a_node_that_is_none_is_refused(node: float) -> None:
    with pytest.raises(ArgumentError, match="`node`"):
        Energies.at(node)


def test_what_is_not_sound_is_refused_in_words() -> None:
    with pytest.raises(ArgumentError, match="`bound` must be 'low', 'central' or 'high'"):
        Energies.at(7, bound="typical")  # type: ignore[arg-type]
    with pytest.raises(ArgumentUnitError, match="pJ"):
        Energies.at(7, mac={"fp16": 1.0})  # type: ignore[dict-item]
    with pytest.raises(UnknownNameError, match="unknown precision 'fp61'"):
        Energies.at(7).mac("fp61")
    for capacity in (0, -1, math.nan):
        with pytest.raises(ArgumentError, match="`capacity`"):
            Energies.at(7).sram(capacity)
