"""The lab on sizing a service: what it shows and asks is what ``mlsys size`` and a calculation by hand say."""

import math

import pytest

pytest.importorskip("ipywidgets")

import mlsys
from mlsys import Q_
from mlsys.labs import service as content
from mlsys.models.carbon import grid_intensity
from mlsys.models.cost import rent
from mlsys.models.serving.copies import OUTPUT, PROMPT, copy_of, service_of
from mlsys.viz.views.service import ServiceScene
from mlsys.widgets import ServiceLab


@pytest.fixture(scope="module")
def lab() -> ServiceLab:
    return ServiceLab()


def sized(model, system, tp, batch):
    return mlsys.size(model, on=system, prompt=PROMPT, output=OUTPUT, batch=batch, tp=tp, pp=1, ep=1)


@pytest.mark.parametrize(
    ("model", "system", "tp", "batch"),
    [("llama-3-8b", "DGX_A100", 1, 88), ("llama-3-70b", "DGX_H100", 4, 56), ("mixtral-8x7b", "Server_8x_L40S", 8, 32)],
)
def test_a_copy_is_what_size_says(model, system, tp, batch):
    one, message = copy_of(model, system, tp, batch), sized(model, system, tp, batch).record()
    best = message["layouts"][0]
    assert (one.most, one.needed) == (best["largest_batch"], pytest.approx(best["needed_bytes_per_chip"]))
    assert one.prefill == pytest.approx(best["ttft_seconds"]) and one.step == pytest.approx(best["tpot_seconds"])
    assert one.requests * OUTPUT == pytest.approx(best["tokens_per_second"])
    assert batch / one.requests == pytest.approx(batch * one.prefill + OUTPUT * one.step)  # the formula of the solution


def test_cost_and_emissions_are_those_of_a_calculation_by_hand():
    service = service_of("llama-3-8b", "DGX_A100", 1, 6, 136, 23, region="Spain")
    tokens_of_an_hour = 23 * OUTPUT * 3600
    hourly = 6 * rent(mlsys.Hardware.Cloud.A100_80GB).amount.m_as("USD/hour")
    assert service.dollars == pytest.approx(1e6 * hourly / tokens_of_an_hour)
    assert service.grams == pytest.approx(service.kilowatt_hours * grid_intensity("Spain").m_as("gCO2e/kWh"))
    assert service.load == pytest.approx(23 / (6 * service.copy.requests))
    halved = service_of("llama-3-8b", "DGX_A100", 1, 6, 136, 11.5, region="Spain")
    assert halved.dollars == pytest.approx(2 * service.dollars)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"system": "Server_8x_L40S", "tp": 1}, "The weights do not fit."),
        ({"tp": 2}, "Only 4 sequences fit."),
        ({"replicas": 2}, "More requests arrive than it can answer."),
        ({"limit": 15}, "A token may take 15 ms."),
        ({"replicas": 3}, "At most 85% of the capacity may be used."),
        ({"system": "Server_8x_A100_PCIe", "tp": 8, "replicas": 16}, "The first token may take"),
    ],
)
def test_each_limit_is_named_when_it_breaks(changed, words):
    options = {"model": "llama-3-70b", "system": "DGX_H100", "tp": 4, "replicas": 4, "batch": 32, "rate": 9, **changed}
    service = service_of(**options)
    assert words in service.fault if words else not service.fault
    assert (service.fault in ServiceScene().update(**options).summary) and (service.ttft is None) == (service.load >= 1)


def test_every_task_has_several_good_designs_and_a_copy_less_breaks_the_best():
    class Given:
        def __init__(self, task):
            self.task = task

        def pick(self, key, values):
            return self.task if key == "task" else values[0]

    for task in content._TASKS:
        [design] = content.designs(Given(task))
        scored = [(design.score(choice).score, choice) for choice in design.choices()]
        assert sum(score >= 0.9 for score, _ in scored) >= 2
        best = max(scored, key=lambda pair: pair[0])[1]
        model, rate, limit = task
        layout = sized(model, best["system"], best["tp"], best["batch"]).record()["layouts"][0]
        capacity = layout["tokens_per_second"] / OUTPUT
        assert 1e3 * layout["tpot_seconds"] <= limit and rate <= 0.85 * best["replicas"] * capacity
        fewer = [each for each in content.REPLICAS if each < best["replicas"]]
        assert all(rate > 0.85 * each * capacity for each in fewer)


def test_the_answers_follow_from_the_numbers_of_the_text(lab):
    questions = lab.questions
    copies = questions["copies"]
    setting = dict(copies.setting)
    capacity = sized(*(setting[name] for name in ("model", "system", "tp", "batch"))).record()["layouts"][0]
    assert copies.answer == math.ceil(setting["rate"] / (0.85 * capacity["tokens_per_second"] / OUTPUT))
    weights = mlsys.size("llama-3-70b").record()["weight_bytes"] / questions["weights"].setting["tp"]
    assert questions["weights"].answer == pytest.approx(weights / 1e9, rel=0.01)
    assert questions["grams"].answer < questions["grams"].slips[0][0]
    assert Q_(questions["money"].answer, "USD") > Q_(questions["money"].slips[0][0], "USD")
