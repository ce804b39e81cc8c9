"""Feasibility: each check against arithmetic by hand, and the token and batch at which it flips."""

import math

import pytest

from mlsys import Q_, Hardware
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.models.feasibility import Feasibility, LanguageWorkload, feasible
from mlsys.models.inference.limits import Limits, request_rate
from mlsys.workloads.zoo import language_model

LLAMA_7B, LLAMA_70B = language_model("llama-2-7b"), language_model("llama-3-70b")
LIMITS = "TPOT<20 ms, TTFT<1 s, cost<60 USD"


def workload(sequence: int, batch: int = 4, name: str = "llama-3-8b") -> LanguageWorkload:
    return LanguageWorkload(language_model(name), sequence=sequence, batch=batch)


def test_memory_flips_where_division_says() -> None:
    """13.48 GB of weights leave 2.52 GB of 16 GB: 524,288 B a token."""
    room = 16e9 - LLAMA_7B.weight_bytes().m_as("byte")
    verdict = feasible("T4", LanguageWorkload(LLAMA_7B, sequence=100, activations=False))
    most = verdict.check("memory").largest_sequence
    assert most == math.floor(room / 524_288)
    for tokens, holds in ((most, True), (most + 1, False)):
        assert feasible("T4", LanguageWorkload(LLAMA_7B, sequence=tokens, activations=False)).feasible is holds
    less = feasible("T4", LanguageWorkload(LLAMA_7B, sequence=100, activations=False, overhead=Q_(1, "GB")))
    assert less.check("memory").largest_sequence == math.floor((room - 1e9) / 524_288)


def test_seventy_billion_on_one_card_fails_memory_first_and_bandwidth_too() -> None:
    """140 GB at 2.04 TB/s take 69 ms: neither fits nor meets 50 ms; on eight H100 both do."""
    verdict = feasible("A100", LanguageWorkload(LLAMA_70B, sequence=2048), "TPOT<50 ms")
    assert not verdict and [check.name for check in verdict.failed] == ["memory", "bandwidth", "latency"]
    assert verdict.first is not None and verdict.first.largest_sequence == 0
    assert verdict.check("bandwidth").value == pytest.approx(139.7e9 / 2.039e12, rel=0.02)
    eight = feasible("DGX_H100", LanguageWorkload(LLAMA_70B, sequence=2048, layout=Layout(tp=8)), "TPOT<50 ms")
    assert eight.feasible
    assert 1 / eight.check("bandwidth").value == pytest.approx(191, rel=0.02)  # tokens per second at most


@pytest.fixture(scope="module")
def verdict() -> Feasibility:
    return feasible("H100", workload(2048), LIMITS)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("memory", None), ("bandwidth", "TPOT<20 ms"), ("compute", "TPOT<20 ms"), ("latency", "TPOT<20 ms"),
        ("latency of prompt", "TTFT<1 s"), ("money", "cost<60 USD"),
    ],
)  # fmt: skip
def test_one_more_token_or_sequence_flips_each_check(verdict: Feasibility, name: str, limit: str | None) -> None:
    check = verdict.check(name)
    assert check.passes
    at_most = [(check.largest_sequence, 4), (2048, check.largest_batch)]
    for position, (tokens, batch) in enumerate(at_most):
        if tokens is None or batch is None or tokens > 1 << 20:
            continue
        more = (tokens + 1, batch) if position == 0 else (tokens, batch + 1)
        assert feasible("H100", workload(tokens, batch), limit).check(name).passes
        assert not feasible("H100", workload(*more), limit).check(name).passes


def test_one_token_beyond_the_first_limit_fails_that_check_alone(verdict: Feasibility) -> None:
    assert verdict.feasible and verdict.first is not None
    most = verdict.first.largest_sequence
    assert most is not None
    longer = feasible("H100", workload(most + 1), LIMITS)
    assert not longer.feasible and [check.name for check in longer.failed] == [verdict.first.name]
    assert verdict.record()["first"] == verdict.first.name
    assert {"H100_SXM/memory/HBM/capacity", "H100_SXM/memory/HBM/bandwidth"} <= {fact.name for fact in verdict.facts}
    assert "With longer sequences" in verdict.explain()


def test_floors_are_below_the_estimate() -> None:
    verdict = feasible(Hardware.Cloud.A100, workload(4096, 16), "TPOT<1 s")
    assert verdict.check("bandwidth").value < verdict.check("latency").value
    assert verdict.check("compute").value < verdict.check("latency").value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must name what is to be met"),
        ("TPOT", "is no limit"),
        ("speed<3 s", "no limit is called 'speed'"),
        ("TTFT>1 s", "TTFT takes <"),
        ("TPOT<0 s", "above zero"),
        ("TPOT<1 s, tpot<2 s", "given twice"),
        ("TPOT<1 GB", "TPOT: "),
    ],
)
def test_limits_that_say_nothing_are_refused(text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Limits.parse(text)


def test_limits_and_rates_are_read_as_people_write_them() -> None:
    assert Limits.parse("TPOT<30ms,ttft<=1 s") == Limits(tpot=0.03, ttft=1.0)
    assert Limits.parse("rate>50/s, TPOT<30 ms").step == pytest.approx(0.02)
    assert request_rate("300 requests/min").m_as("1/s") == pytest.approx(5)
    with pytest.raises(ArgumentError, match="written as '5/s'"):
        request_rate("many")


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`workload` must be a LanguageWorkload"):
        feasible("A100", "llama-3-8b")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="2 chips are needed"):
        feasible("A100", LanguageWorkload(LLAMA_70B, sequence=10, layout=Layout(tp=2)))
    with pytest.raises(ArgumentError, match="no rent of"):
        feasible("JetsonOrin", workload(100), "cost<1 USD")
    with pytest.raises(ArgumentError, match="the layout .one chip. sets"):
        feasible("A100", workload(100), "TPOT<1 s, chips<4")
    with pytest.raises(ArgumentError, match="`rent` is for a limit on cost"):
        feasible("A100", workload(100), rent=Q_(2, "USD/hour"))
    with pytest.raises(ArgumentError, match="without context parallelism"):
        feasible("DGX_H100", LanguageWorkload(LLAMA_70B, sequence=10, layout=Layout(tp=4, cp=2)))
    with pytest.raises(ArgumentError, match="`sequence` must be a whole number"):
        LanguageWorkload(LLAMA_70B, sequence=0)
