"""What a card draws: between rest and its limit, more for more work, as cards that were metered did."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.hardware import Hardware
from mlsys.hardware.view import view
from mlsys.models.analysis import analyze
from mlsys.models.energy.boards import fitted_powers
from mlsys.models.energy.cards import CARD, card_power, demands, watts_drawn
from mlsys.units import Q_
from mlsys.workloads.zoo import network
from mlsys_evidence.fit.cards import card_rows, card_runs, card_table, fit_laws, left_out, stored_laws, wall_factor
from mlsys_evidence.rows import sources

LAW = {"static": 0.1, "byte": 5.0, "operation": 50.0}


def test_power_lies_between_rest_and_the_limit_and_grows_with_work() -> None:
    steps = [watts_drawn(400.0, watts, watts, LAW)[0] for watts in (0.0, 0.1, 1.0, 3.0, 10.0, 1e6)]
    assert steps == sorted(steps)
    assert steps[0] == pytest.approx(40) and steps[-1] == pytest.approx(400)
    slope = (watts_drawn(400.0, 0.0, 1e-6, LAW)[0] - 40) / 1e-6
    assert slope == pytest.approx(5.0, rel=1e-3), "with little to do, work costs what its price says"
    assert watts_drawn(400.0, 0.0, 0.0, LAW, rest=62.0) == (62.0, 62.0)


def test_an_operation_is_half_a_multiply_accumulate_of_the_list() -> None:
    """Jouppi et al., ISCA 2021, Table 2, 7 nm: BF16 multiply 0.21 pJ, FP32 add 0.38 pJ; an A100 is of 7 nm."""
    operations, traffic = demands(view(Hardware.Cloud.A100, "bf16"), 2e12, 1e12)
    assert 0.2 < operations.m_as("J") < 0.6
    assert 20 < traffic.m_as("J") < 45, "HBM2 costs 31 pJ a byte, about 4 pJ a bit"


def test_the_energy_of_a_pass_is_static_and_dynamic_and_under_the_limit() -> None:
    analysis = analyze(Hardware.Cloud.A100, network("resnet50", batch=32, precision="fp16"), precision="bf16")
    assert analysis.energy is not None
    joules, seconds = analysis.energy.energy.m_as("J"), analysis.estimate.m_as("s")
    assert 0.2 * 400 < joules / seconds <= 400
    assert (analysis.energy.static + analysis.energy.dynamic).m_as("J") == pytest.approx(joules)
    low, high = (each.m_as("J") for each in analysis.energy.range)
    assert low < joules < high
    assert any(fact.name.endswith("tdp") for fact in analysis.energy.energy.facts)


def test_what_is_no_card_has_no_power_of_a_card() -> None:
    work = Q_(1, "TFLOP"), Q_(1, "GB")
    assert card_power(Hardware.Tiny.STM32H7A3, "int8", *work, Q_(1, "s")) is None
    with pytest.raises(ArgumentError):
        card_power(Hardware.Cloud.A100, "bf16", *work, Q_(0, "s"))


def test_rows_are_of_an_open_set_and_say_what_was_metered() -> None:
    for row in card_rows():
        assert sources()[row.source]["licence"] == "Apache-2.0"
        if row.metric == "power of a card":
            twin = {"NVIDIA H100 SXM5": 700, "NVIDIA B200": 1000}[row.device]
            assert row.unit == "W" and 50 < row.value < twin
    walls = [run for run in card_runs() if run.wall]
    assert len(walls) >= 40 and len({run.twin for run in walls}) >= 5, "servers at the wall"
    # Energy is kept: a server draws more than the limits of its cards together, and less than twice as much.
    assert all(1 < run.watts / run.design < 2 for run in walls)


def test_energy_a_token_published_is_power_over_rate() -> None:
    """Llama 3.1 8B on one B200, eight sequences: the set publishes 639.4 W, 1637.3 token/s and 0.3905 J a token."""
    (row,) = (row for row in card_rows() if "8B" in row.model and "Llama" in row.model and row.batch == "8"
              and row.device == "NVIDIA B200")  # fmt: skip
    rate = float(row.note.partition("achieved ")[2].split()[0])
    assert row.value / rate == pytest.approx(0.3905, rel=1e-3)


def test_a_card_left_out_is_told_within_a_fifth() -> None:
    fitted, stored = fit_laws(), stored_laws()
    assert fitted.keys() == stored.keys() and len(stored) == 3
    assert all(fitted[twin] == pytest.approx(stored[twin], rel=0.02) for twin in stored)
    assert stored[""] == tuple(fitted_powers()[CARD][name] for name in ("static", "byte", "operation"))
    errors: dict[bool, list[float]] = {True: [], False: []}
    for run, predicted in left_out().values():
        errors[run.wall].append(abs(predicted / run.watts - 1))
    for which, most in ((False, 0.12), (True, 0.2)):
        assert sorted(errors[which])[len(errors[which]) // 2] < most
    assert 1.2 < wall_factor() < 1.7, "a server draws more than its cards"
    assert len(card_table().rows) >= 6
