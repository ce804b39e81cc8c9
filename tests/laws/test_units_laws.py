"""What must hold of units and of argument checks, whatever the numbers."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import formulas
from mlsys.errors import ArgumentUnitError
from mlsys.formatting import fmt
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, DimensionalityError, Quantity, ureg

# Families of units that convert into each other; across families nothing does.
FAMILIES = {
    "information": ["bit", "byte", "kB", "MiB", "GB", "TiB"],
    "rate of information": ["bps", "GB/s", "MiB/ms", "byte/hour"],
    "computation": ["FLOP", "MAC", "GFLOP", "TOP", "kMAC"],
    "rate of computation": ["FLOP/s", "TMAC/s", "GFLOP/ms"],
    "intensity": ["FLOP/byte", "MAC/bit", "TFLOP/GB"],
    "time": ["s", "ms", "hour", "day", "us"],
    "frequency": ["Hz", "GHz", "cycle/hour"],
    "energy": ["J", "pJ", "kWh", "W*s", "V*A*hour"],
    "power": ["W", "kW", "J/ms", "V*A"],
    "money": ["USD", "kUSD"],
    "parameters": ["param", "Mparam", "Bparam"],
    "tokens": ["token", "ktoken"],
    "emissions": ["gCO2e", "tCO2e"],
    "area": ["mm**2", "cm**2"],
    "pure": ["", "percent", "GB/MB", "s*Hz/cycle"],
}
units = st.sampled_from([unit for family in FAMILIES.values() for unit in family])
pairs_within = st.sampled_from(list(FAMILIES.values())).flatmap(
    lambda family: st.tuples(st.sampled_from(family), st.sampled_from(family))
)
pairs_across = st.sampled_from(list(itertools.permutations(FAMILIES, 2))).flatmap(
    lambda names: st.tuples(st.sampled_from(FAMILIES[names[0]]), st.sampled_from(FAMILIES[names[1]]))
)
numbers = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-12)


@given(numbers, pairs_within)
def test_there_and_back_again(value: float, pair: tuple[str, str]) -> None:
    there = Q_(value, pair[0]).to(pair[1])
    assert_quantity_close(there.to(pair[0]), Q_(value, pair[0]), rtol=1e-14)
    assert_quantity_close(there, Q_(value, pair[0]), rtol=1e-14)


@given(numbers, numbers, pairs_within)
def test_addition_does_not_care_for_units(a: float, b: float, pair: tuple[str, str]) -> None:
    first, other = Q_(a, pair[0]), Q_(b, pair[1])
    slack = 1e-14 * max(abs(first), abs(other))
    assert abs((first + other) - (other + first)) <= slack
    assert abs((first + other) - other - first) <= 4 * slack


@given(numbers, numbers, pairs_across)
def test_across_kinds_nothing_adds_converts_or_compares(a: float, b: float, pair: tuple[str, str]) -> None:
    first, other = Q_(a, pair[0]), Q_(b, pair[1])
    for meeting in (lambda: first + other, lambda: first - other, lambda: first < other, lambda: first.to(other.units)):
        with pytest.raises(DimensionalityError):
            meeting()
    assert first != other or (a == b == 0)


@given(numbers.filter(bool), units, numbers.filter(bool), units)
def test_products_and_quotients_undo_each_other(a: float, u: str, b: float, v: str) -> None:
    first, other = Q_(a, u), Q_(b, v)
    assert_quantity_close(first * other / other, first, rtol=1e-14)
    assert (first * other).dimensionality == first.dimensionality * other.dimensionality
    assert (first / other).dimensionality == first.dimensionality / other.dimensionality


@given(units)
def test_what_is_printed_can_be_typed(unit: str) -> None:
    """The short form that a page shows is understood when it is written into ``Q_`` again."""
    assert ureg.Unit(f"{ureg.Unit(unit):~P}") == ureg.Unit(unit)


@given(st.floats(1e-9, 1e9), pairs_within)
def test_a_number_prints_the_same_in_whatever_unit_it_was_stored(value: float, pair: tuple[str, str]) -> None:
    kept, target = Q_(value, pair[0]), pair[1]
    shown = float(fmt(kept.to(target).to(pair[0]), target, precision=12, allow_zero=True, commas=False))
    direct = float(fmt(kept, target, precision=12, allow_zero=True, commas=False))
    assert shown == pytest.approx(direct, rel=1e-12, abs=2e-12)


FORMULAS = [
    (formulas.ridge_point, {"peak": "rate of computation", "bandwidth": "rate of information"}),
    (formulas.arithmetic_intensity, {"operations": "computation", "data": "information"}),
    (
        formulas.attainable_performance,
        {"intensity": "intensity", "peak": "rate of computation", "bandwidth": "rate of information"},
    ),
    (formulas.weight_bytes, {"parameters": "parameters", "bytes_per_parameter": "information"}),
]


@given(st.data(), st.sampled_from(FORMULAS), st.floats(1e-3, 1e3))
def test_a_formula_accepts_its_kinds_in_any_unit_and_gives_one_answer(
    data: st.DataObject, case: tuple, value: float
) -> None:
    formula, kinds = case
    written = {name: Q_(value, data.draw(st.sampled_from(FAMILIES[kind]))) for name, kind in kinds.items()}
    again = {name: quantity.to(data.draw(st.sampled_from(FAMILIES[kinds[name]]))) for name, quantity in written.items()}
    assert_quantity_close(formula(**again), formula(**written), rtol=1e-12)


@given(st.data(), st.sampled_from(FORMULAS))
def test_a_formula_refuses_every_other_kind(data: st.DataObject, case: tuple) -> None:
    formula, kinds = case
    arguments: dict[str, Quantity] = {name: Q_(1, FAMILIES[kind][0]) for name, kind in kinds.items()}
    wrong = data.draw(st.sampled_from(list(kinds)))
    kind = data.draw(st.sampled_from([kind for kind in FAMILIES if kind not in (kinds[wrong], "pure")]))
    arguments[wrong] = Q_(1, data.draw(st.sampled_from(FAMILIES[kind])))
    with pytest.raises(ArgumentUnitError, match=rf"^{formula.__name__}\(\): `{wrong}` must be a quantity in"):
        formula(**arguments)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=5), st.floats(1e6, 1e15), st.floats(1e3, 1e13))
def test_arrays_are_their_elements(values: list[float], peak: float, bandwidth: float) -> None:
    swept = formulas.attainable_performance(
        Q_(np.array(values), "FLOP/byte"), Q_(peak, "FLOP/s"), Q_(bandwidth, "byte/s")
    )
    for value, element in zip(values, swept, strict=True):
        attainable = formulas.attainable_performance(
            Q_(value, "FLOP/byte"), Q_(peak, "FLOP/s"), Q_(bandwidth, "byte/s")
        )
        assert_quantity_close(element, attainable, rtol=1e-15)
