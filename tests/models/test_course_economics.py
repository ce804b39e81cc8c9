"""Worked numbers on money and carbon of the course, recomputed; the audited values are the independent opinion."""

import pytest

from mlsys import Hardware
from mlsys.formulas import (
    bandwidth_per_price,
    decode_rate_ceiling,
    electricity_rate,
    fleet_energy,
    inference_energy,
    operational_carbon,
    price_per_performance,
    token_cost,
)
from mlsys.models.carbon import operational
from mlsys.models.cost import cost_per_million_tokens, running_cost
from mlsys.models.tornado import tornado
from mlsys.units import Q_, Quantity
from mlsys.workloads import load

# Prices as the course takes them; those of TPU v4 are an estimate, as TPUs are not sold.
PRICES = {
    "V100": (9_000, 72.0),
    "A100_80GB": (15_000, 48.1),
    "H100_SXM": (25_000, 25.3),
    "TPUv4": (8_000, 29.1),
    "Gaudi2": (12_000, 27.8),
}
HEADLINE = {"TPUv4": "bf16", "Gaudi2": "bf16"}


def per_tflops(device: str, price: float | None = None) -> float:
    peak = Hardware[device].peak(HEADLINE.get(device, "fp16"))
    return float(price_per_performance(Q_(price or PRICES[device][0], "USD"), peak).m)


@pytest.mark.parametrize("device", PRICES)
def test_price_per_performance_is_in_one_precision(device: str) -> None:
    """Dense 16-bit peaks throughout: 494 TFLOP/s for the H100, as often printed, is TF32."""
    assert per_tflops(device) == pytest.approx(PRICES[device][1], abs=0.06)


def test_the_h100_at_its_dearer_price() -> None:
    assert per_tflops("H100_SXM", 30_000) == pytest.approx(30.3, abs=0.05)


def test_bandwidth_per_price_is_flat_from_a100_to_h100_while_flops_nearly_double() -> None:
    got = {
        device: float(bandwidth_per_price(Q_(PRICES[device][0], "USD"), Hardware[device].memory_bw).m)
        for device in ("V100", "A100_80GB", "H100_SXM")
    }
    assert got["V100"] == pytest.approx(100.0, abs=0.1)
    assert got["A100_80GB"] == pytest.approx(135.9, abs=0.1)
    assert got["H100_SXM"] == pytest.approx(134.0, abs=0.1)
    assert got["H100_SXM"] / got["A100_80GB"] == pytest.approx(0.986, abs=0.001)
    assert per_tflops("A100_80GB") / per_tflops("H100_SXM") == pytest.approx(1.902, abs=0.002)
    assert got["A100_80GB"] / got["V100"] == pytest.approx(1.359, abs=0.001)
    assert per_tflops("V100") / per_tflops("A100_80GB") == pytest.approx(1.498, abs=0.001)


@pytest.mark.parametrize(
    ("device", "rent", "rate", "cost"), [("A100", 2.0, 680, 0.82), ("T4", 0.5, 107, 1.30), ("H100", 3.0, 1117, 0.75)]
)
def test_decoding_of_3_gb_costs_per_million_tokens(device: str, rent: float, rate: float, cost: float) -> None:
    tokens = decode_rate_ceiling(Q_(3, "GB"), Hardware[device].memory_bw)
    assert tokens.m_as("token/s") == pytest.approx(rate, abs=0.5)
    assert token_cost(Q_(rent, "USD/hour"), tokens).m == pytest.approx(cost, abs=0.005)
    answer = cost_per_million_tokens(Hardware[device], tokens, rent=Q_(rent, "USD/hour"))
    assert answer.total.m_as("USD/Mtoken") == pytest.approx(cost, abs=0.005)


def test_a_product_of_one_vector_is_cheaper_on_the_dearer_card() -> None:
    """2048 × 2048 in FP16: 4.11 and 26.2 µs, so that the A100 is cheaper at three to four times the price."""
    weights = Q_(2 * 2048 * 2048, "byte")
    a100, t4 = ((weights / Hardware[device].memory_bw).m_as("us") for device in ("A100", "T4"))
    assert (a100, t4) == (pytest.approx(4.11, abs=0.005), pytest.approx(26.2, abs=0.05))
    assert t4 / a100 == pytest.approx(6.37, abs=0.01)
    assert t4 / a100 / 4 > 1.59 and t4 / a100 / 3 < 2.13
    assert t4 / a100 / 3.5 == pytest.approx(1.821, abs=0.002)


def test_electricity_is_a_small_part_of_a_rent() -> None:
    rate = running_cost(Hardware.Cloud.H100, electricity=Q_(0.12, "USD/kWh"), pue=1.0)
    assert rate.m_as("USD/hour") == pytest.approx(0.084)
    assert electricity_rate(Q_(700, "W"), Q_(0.12, "USD/kWh")) == rate
    for rent, times in ((2, 23.81), (4, 47.62)):
        assert rent / rate.m_as("USD/hour") == pytest.approx(times, abs=0.01)


def fleet(efficiency: float, utilisation: float, flop: float = 8.18e9) -> Quantity:
    """Energy of a day of a billion inferences; ``efficiency`` in TFLOP/J."""
    each = inference_energy(Q_(flop, "FLOP/inference"), Q_(efficiency, "TFLOP/J"), utilisation)
    return fleet_energy(Q_(1e9, "inference"), each)


def test_fleets_of_cpus_and_npus_draw_what_their_efficiencies_give() -> None:
    cpu, npu = fleet(0.01, 0.1), fleet(2, 0.3)
    assert cpu.m_as("kWh") == pytest.approx(2272, abs=0.5)
    assert npu.m_as("kWh") == pytest.approx(3.8, abs=0.05)
    assert (cpu / npu).m_as("") == pytest.approx((2 * 0.3) / (0.01 * 0.1))
    saved = (cpu - npu) * 365
    at = Q_(400, "gCO2e/kWh")
    assert operational_carbon(saved, at).m_as("tCO2e") == pytest.approx(331, abs=0.5)
    assert operational(saved, at, pue=1.2).m_as("tCO2e") == pytest.approx(397, abs=0.7)


def test_the_work_of_resnet50_is_that_of_the_catalogue() -> None:
    assert load("resnet50").flops.m_as("GFLOP") == pytest.approx(8.18, abs=0.05)


def test_the_literals_of_the_source_imply_other_energies() -> None:
    """2,400 and 12 kWh a day, which no efficiency was given for: 8.64 J and 43 mJ each, and 348.6 t a year."""
    for daily, joules in ((2400, 8.64), (12, 0.0432)):
        assert (Q_(daily, "kWh") / Q_(1e9, "inference")).m_as("J/inference") == pytest.approx(joules)
    assert operational(Q_(2400 - 12, "kWh") * 365, Q_(400, "gCO2e/kWh")).m_as("tCO2e") == pytest.approx(348.6, abs=0.1)
    assert fleet(0.01, 1.0, 2 * 4.089e9).m_as("kWh") == pytest.approx(227.2, abs=0.1)
    assert fleet(2, 1.0, 2 * 4.089e9).m_as("kWh") == pytest.approx(1.136, abs=0.001)


def test_a_million_gpus_of_700_w_draw_700_mw() -> None:
    assert (Hardware.Cloud.H100.tdp * 1_000_000).m_as("MW") == pytest.approx(700)


def test_the_grid_matters_more_than_the_overhead() -> None:
    """Tornado of the saving: from France to Poland, and from a PUE of 1.1 to the surveyed 1.54."""
    saved = (fleet(0.01, 0.1) - fleet(2, 0.3)) * 365
    answer = tornado(
        lambda grid, pue: operational(saved, grid, year=2024, pue=pue),
        {"grid": ("France", "World", "Poland"), "pue": (1.1, 1.2, 1.54)},
    )
    assert [each.name for each in answer.swings] == ["grid", "pue"]
