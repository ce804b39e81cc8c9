"""Dated prices: every row has a date and a source, look-ups take the newest that is not after the year."""

import statistics

import pytest

import mlsys
from mlsys import Hardware
from mlsys._facts import dated
from mlsys._facts.make import fact
from mlsys.errors import ArgumentError, UnknownNameError, UnrecordedError
from mlsys.hardware import systems
from mlsys.models.cost import (
    break_even,
    cost_of_run,
    electricity_price,
    power_usage_effectiveness,
    purchase_price,
    rent,
    total_cost_of_ownership,
)
from mlsys.models.grid import grid_intensity
from mlsys.provenance import perturbed, recording
from mlsys.units import Q_

TOPICS = (dated.rents, dated.purchases, dated.electricity_prices, dated.pue_values)


def test_every_row_has_a_date_a_source_and_a_unique_name() -> None:
    names = []
    for topic in TOPICS:
        for each in topic():
            (known,) = each.value.facts
            names.append(known.name)
            assert 2000 <= each.year <= 2026 and known.date == each.date and known.source, known.name
            assert each.value.magnitude > 0
    for grid in dated.grids().values():
        for year in grid.by_year:
            (known,) = grid.at(year).facts
            names.append(known.name)
            assert known.date == str(year) and "CC BY 4.0" in known.source
    assert len(names) == len(set(names))
    assert {each.subject for topic in TOPICS[:2] for each in topic()} <= {device.id for device in Hardware}


def test_a_price_without_a_date_is_refused() -> None:
    with pytest.raises(ValueError, match="`date` must say when it was published"):
        fact(2, "USD/hour", name="rent/x", meaning="rent", source="a price page", date="")


@pytest.mark.parametrize("device", sorted({each.subject for each in dated.rents()}))
def test_a_rent_is_the_median_of_the_newest_year_not_after_the_requested_one(device: str) -> None:
    rows = [each for each in dated.rents() if each.subject == device and each.kind == "on-demand"]
    for year in range(2017, 2027):
        until = [each for each in rows if int(each.date[:4]) <= year]
        if not until:
            with pytest.raises(UnrecordedError, match="`year` must not be before"):
                rent(Hardware[device], year=year)
            continue
        newest = max(each.date[:4] for each in until)
        values = [float(each.value.magnitude) for each in until if each.date[:4] == newest]
        price = rent(Hardware[device], year=year)
        assert price.amount.m_as("USD/hour") == pytest.approx(statistics.median(values))
        assert [end.m_as("USD/hour") for end in price.range] == [min(values), max(values)]
        assert price.date[:4] == newest
        assert {known.name for known in price.facts} <= {each.value.facts[0].name for each in rows}


def test_a_rent_moves_with_the_quotation_that_it_names() -> None:
    price = rent(Hardware.Cloud.H100, "Lambda")
    (used,) = price.used
    with perturbed(used.value.facts[0].name, 1.5), recording() as seen:
        moved = rent(Hardware.Cloud.H100, "Lambda").amount
    assert moved.m_as("USD/hour") == pytest.approx(1.5 * price.amount.m_as("USD/hour"))
    assert used.value.facts[0].name in seen


def test_the_price_of_a_device_file_is_dated_by_its_source() -> None:
    price = purchase_price(Hardware.Cloud.T4)
    assert price.amount.m_as("USD") == 2299 and price.date == "2018"
    assert [known.name for known in price.facts] == ["T4/price"]
    with pytest.raises(ArgumentError, match="`year` must not be before 2018"):
        purchase_price(Hardware.Cloud.T4, 2017)


def test_a_system_costs_its_chips_and_a_server_price_has_the_host() -> None:
    dgx = systems["DGX_H100"]
    assert rent(dgx).amount.m_as("USD/hour") == pytest.approx(8 * rent(dgx.device).amount.m_as("USD/hour"))
    assert {each.kind for each in purchase_price(dgx).used} == {"system"}
    assert {each.kind for each in purchase_price(dgx.device).used} <= {"list", "paid"}
    assert rent(dgx.with_nodes(2)).amount == 2 * rent(dgx).amount


def test_longer_commitments_are_cheaper_where_both_are_quoted() -> None:
    """A law of the market that the rows must obey, quotation by quotation."""
    offers: dict[tuple[str, ...], dict[str, float]] = {}
    for each in dated.rents():
        offers.setdefault((each.subject, each.provider, each.date), {})[each.kind] = each.value.m_as("USD/hour")
    full = [prices for prices in offers.values() if len(prices) == 3]
    assert len(full) >= 10
    assert all(prices["3-year"] < prices["1-year"] < prices["on-demand"] for prices in full)


def test_what_is_not_recorded_is_said_in_one_line() -> None:
    with pytest.raises(UnknownNameError, match=r"`provider` of A100_80GB must be one of .*Did you mean 'AWS'\?"):
        rent(Hardware.Cloud.A100, "AVS")
    with pytest.raises(UnrecordedError, match=r"no rent of .*nRF52840 is recorded\. Give your own"):
        rent(Hardware["nRF52840"])
    with pytest.raises(ArgumentError, match="`commitment` of H200_SXM is recorded as on-demand"):
        rent(Hardware["H200_SXM"], commitment="3-year")
    with pytest.raises(ArgumentError, match="`machine` must be a device or a system"):
        rent("A100")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no grid 'Germny'. Did you mean 'Germany'"):
        grid_intensity("Germny")
    with pytest.raises(ArgumentError, match="`year` of World is recorded for 2018 to 2025, got 2016"):
        grid_intensity("World", 2016)
    with pytest.raises(UnknownNameError, match="Did you mean 'Virginia'"):
        electricity_price("Virgina")
    with pytest.raises(UnknownNameError, match="`of` must be one of average"):
        power_usage_effectiveness("best")  # type: ignore[arg-type]


def test_a_choice_of_recorded_prices_is_not_ignored_beside_a_given_price() -> None:
    a100, hourly, whole = Hardware.Cloud.A100, Q_(2, "USD/hour"), Q_(15_000, "USD")
    refused = (
        ("`provider`", lambda: mlsys.cost(a100, rent=hourly, provider="AWS")),
        ("`commitment`", lambda: mlsys.cost(a100, rent=hourly, commitment="1-year")),
        ("`provider`", lambda: cost_of_run(Q_(1, "hour"), rent=rent(a100), provider="AWS")),
        ("`year`", lambda: cost_of_run(Q_(1, "hour"), rent=hourly, year=2023)),
        ("`year`", lambda: total_cost_of_ownership(a100, price=whole, year=2023)),
        ("`year`", lambda: break_even(a100, price=whole, rent=hourly, year=2023)),
    )
    for name, call in refused:
        with pytest.raises(ArgumentError, match=f"give either .* or {name}, not both"):
            call()
    assert break_even(a100, rent=hourly, year=2023).price.m == purchase_price(a100, 2023).amount.m


def test_grids_are_found_by_name_and_code_and_agree_with_a_second_copy() -> None:
    assert grid_intensity("fra", 2024) == grid_intensity("France", 2024) == grid_intensity(" FRANCE ", 2024)
    # mlco2/codecarbon@b05965e4, global_energy_mix.json, 2023: an older revision of the series.
    second = {"Germany": 380.95, "France": 56.039, "Taiwan": 642.378, "Poland": 661.926, "Japan": 485.392}
    for name, value in second.items():
        assert grid_intensity(name, 2023).m_as("gCO2e/kWh") == pytest.approx(value, rel=0.06)


def test_electricity_is_cheaper_for_industry() -> None:
    for region in {each.subject for each in dated.electricity_prices()} - {"USA"}:
        assert electricity_price(region, "industrial") <= electricity_price(region, "commercial")
    assert electricity_price(year=2022) == Q_(0.083, "USD/kWh")
