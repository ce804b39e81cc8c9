"""Figures of money: bars from low to high, and bills that cross where the model says."""

import pytest

from mlsys import Q_, Hardware, viz
from mlsys.errors import ArgumentError
from mlsys.formulas import operational_carbon
from mlsys.models.breakdown import shown
from mlsys.models.cost import break_even, cost_per_million_tokens, rent
from mlsys.models.tornado import tornado

INPUTS = {
    "energy": (Q_(80, "MWh"), Q_(100, "MWh"), Q_(120, "MWh")),
    "pue": (1.1, 1.2, 1.6),
    "grid_intensity": (Q_(40, "gCO2e/kWh"), Q_(400, "gCO2e/kWh"), Q_(700, "gCO2e/kWh")),
}


def test_a_tornado_changes_one_assumption_at_a_time_and_sorts_by_swing() -> None:
    answer = tornado(operational_carbon, INPUTS)
    assert [each.name for each in answer.swings] == ["grid_intensity", "pue", "energy"]
    for each in answer.swings:  # by brute force: the model itself, with plain numbers
        plain = {"energy": 100e3, "pue": 1.2, "grid_intensity": 400.0}
        units = {"energy": "kWh", "pue": "", "grid_intensity": "gCO2e/kWh"}
        for value, at in ((each.low, each.at_low), (each.high, each.at_high)):
            number = Q_(value, units[each.name]).m if each.name == "pue" else value.m_as(units[each.name])
            changed = plain | {each.name: number}
            assert at.m_as("gCO2e") == pytest.approx(changed["energy"] * changed["pue"] * changed["grid_intensity"])
        assert each.swing == abs(each.at_high - each.at_low)


def test_an_assumption_that_plays_no_part_has_no_swing() -> None:
    answer = tornado(lambda used, unused: used * 2.0, {"used": (1, 2, 3), "unused": (1, 2, 3)})
    assert [(each.name, each.swing.m) for each in answer.swings] == [("used", 4.0), ("unused", 0.0)]


def test_a_tornado_takes_breakdowns() -> None:
    answer = tornado(
        lambda rent: cost_per_million_tokens(None, Q_(680, "token/s"), rent=rent),
        {"rent": (Q_(1, "USD/hour"), Q_(2, "USD/hour"), Q_(4, "USD/hour"))},
    )
    assert answer.swings[0].at_high.m == pytest.approx(4 * answer.swings[0].at_low.m)
    assert shown(answer.base) == "0.817 USD/Mtoken"


@pytest.mark.parametrize("inputs", [{}, {"pue": 1.2}, {"pue": (1.1, 1.2)}, None])
def test_inputs_without_three_values_are_refused(inputs: object) -> None:
    with pytest.raises(ArgumentError, match="low, base and high value"):
        tornado(operational_carbon, inputs)  # type: ignore[arg-type]


def test_bars_reach_from_the_answer_at_low_to_that_at_high(ax) -> None:
    answer = tornado(operational_carbon, INPUTS)
    viz.tornado_bars(ax, answer, "tCO2e", label="a year")
    ends = [{round(bar.get_x(), 6), round(bar.get_x() + bar.get_width(), 6)} for bar in ax.patches]
    base = round(answer.base.m_as("tCO2e"), 6)
    expected = [{base, round(at.m_as("tCO2e"), 6)} for each in answer.swings for at in (each.at_low, each.at_high)]
    assert ends == expected
    assert [label.get_text() for label in ax.get_yticklabels()] == ["grid intensity", "pue", "energy"]


def test_bills_cross_where_the_model_says(ax) -> None:
    answer = break_even(Hardware.Cloud.A100, rent=Q_(2, "USD/hour"), price=Q_(15_000, "USD"), utilisation=0.5)
    viz.rent_or_buy(ax, [answer])
    (mark,) = [line for line in ax.lines if line.get_marker() == "o"]
    months, paid = mark.get_xydata()[0]
    assert months * 365.25 * 24 / 12 == pytest.approx(answer.time.m_as("hour"))
    assert paid == pytest.approx(answer.owning_until(answer.time).m_as("kUSD"))
    with pytest.raises(ArgumentError, match="at least one"):
        viz.rent_or_buy(ax, [])


def test_value_for_money_is_in_multiples_of_the_first_machine(ax) -> None:
    arithmetic = {"old": Q_(2.0, "TFLOP/s/kUSD"), "new": Q_(5.0, "TFLOP/s/kUSD")}
    bandwidth = {"old": Q_(100.0, "GB/s/kUSD"), "new": Q_(0.09, "TB/s/kUSD")}  # another unit, less of it
    viz.value_for_money(ax, {"arithmetic": arithmetic, "bandwidth": bandwidth})
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([1, 2.5, 1, 0.9])
    assert [text.get_text() for text in ax.texts] == ["1.00×", "2.50×", "1.00×", "0.90×"]


def test_costs_fall_over_the_batch_as_they_are_given(ax) -> None:
    viz.cost_by_batch(ax, {"card": {1: Q_(2.0, "USD/Mtoken"), 10: Q_(0.2, "USD/Mtoken"), 100: Q_(50, "USD/Gtoken")}})
    (line,) = ax.lines
    assert list(line.get_xdata()) == [1, 10, 100]
    assert list(line.get_ydata()) == pytest.approx([2, 0.2, 0.05])


def test_parts_of_a_footprint_stand_at_their_amounts(ax) -> None:
    here = {"running": Q_(2.0, "tCO2e"), "making": Q_(100.0, "kgCO2e")}
    there = {"running": Q_(300.0, "kgCO2e"), "making": Q_(100.0, "kgCO2e")}
    viz.parts_by_place(ax, {"here": here, "there": there}, "kgCO2e", label="emissions")
    marks = [line for line in ax.lines if line.get_marker() != "None"]
    assert [float(mark.get_xdata()[0]) for mark in marks] == pytest.approx([2000, 100, 300, 100])
    assert [float(mark.get_ydata()[0]) for mark in marks] == [0, 0, 1, 1]
    assert ax.get_xlabel() == "emissions, kgCO2e"


def test_stacked_parts_lie_end_to_end_and_add_up(ax) -> None:
    old = {"fab": Q_(1.0, "kgCO2e"), "gas": Q_(500.0, "gCO2e")}
    new = {"fab": Q_(2.0, "kgCO2e"), "gas": Q_(1.0, "kgCO2e")}
    bars = {"old": old, "new": new}
    viz.stacked_parts(ax, bars, "gCO2e", label="emissions")
    assert [bar.get_x() for bar in ax.patches] == pytest.approx([0, 0, 1000, 2000])
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([1000, 2000, 500, 1000])
    assert [text.get_text() for text in ax.texts] == ["1,500", "3,000"]
    assert ax.get_xlabel() == "emissions, gCO2e"


def test_quotations_stand_in_the_row_of_their_provider(ax) -> None:
    prices = {"on demand": rent(Hardware.Cloud.A100), "1 year": rent(Hardware.Cloud.A100, commitment="1-year")}
    viz.quotations_by_provider(ax, prices)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    for line, price in zip(ax.lines, prices.values(), strict=True):
        drawn = {(rows[int(row)], float(rate)) for rate, row in line.get_xydata()}
        assert drawn == {(each.provider, each.value.m_as("USD/hour")) for each in price.quotations}
    cheapest = min(prices["on demand"].quotations, key=lambda each: each.value.m_as("USD/hour"))
    assert rows[0] == cheapest.provider
