"""Speculative decoding: published values, draws of tokens one by one, and what a sizing says with a draft."""

import random
from typing import Any

import pytest

from mlsys import size
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.models.inference import accepted_tokens
from mlsys.models.inference.phases import PhaseTime
from mlsys.models.inference.speculative import SpeculativeStep, draft_layout
from mlsys.workloads.zoo import language_model

PAIR: dict[str, Any] = {"draft": "llama-3.2-1b", "draft_tokens": 4, "acceptance": 0.8}


# Leviathan et al. 2023 (arXiv:2211.17192), table 1: the speed with drafts that cost nothing.
@pytest.mark.parametrize(
    ("acceptance", "drafted", "published"),
    [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 2, 2.44), (0.8, 5, 3.69), (0.9, 2, 2.71), (0.9, 10, 6.86)],
)
def test_published_tokens_of_a_round(acceptance: float, drafted: int, published: float) -> None:
    assert accepted_tokens(acceptance, drafted) == pytest.approx(published, abs=0.005)
    closed = (1 - acceptance ** (drafted + 1)) / (1 - acceptance)
    assert accepted_tokens(acceptance, drafted) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(("acceptance", "drafted"), [(0.3, 1), (0.7, 4), (0.95, 8)])
def test_tokens_of_a_round_against_draws(acceptance: float, drafted: int) -> None:
    """A round ends at the first token that is rejected, or after all; the large model then gives one more."""
    draw, rounds, made = random.Random(7), 20_000, 0
    for _ in range(rounds):
        kept = 0
        while kept < drafted and draw.random() < acceptance:
            kept += 1
        made += kept + 1
    assert made / rounds == pytest.approx(accepted_tokens(acceptance, drafted), rel=0.02)


def seconds(one: float) -> PhaseTime:
    return PhaseTime(one, one / 2, one * 2, one, one, 0.0)


@pytest.mark.parametrize(("acceptance", "drafted", "cost"), [(0.75, 7, 0.02), (0.8, 7, 0.04), (0.5, 3, 0.6)])
def test_the_speedup_is_that_of_the_theorem(acceptance: float, drafted: int, cost: float) -> None:
    """Leviathan et al., theorem 3.8, where verifying takes as long as a step."""
    one = SpeculativeStep(seconds(cost), seconds(1), seconds(1), drafted, accepted_tokens(acceptance, drafted))
    theorem = (1 - acceptance ** (drafted + 1)) / ((1 - acceptance) * (drafted * cost + 1))
    assert one.speedup == pytest.approx(theorem, rel=1e-12)
    assert (one.speedup > 1) == (cost < 0.5)
    assert one.tpot.low < one.tpot.seconds < one.tpot.high


def test_a_round_in_a_sizing_is_made_of_three_passes() -> None:
    plain = size("llama-3-70b", "DGX_H100", tp=4, pp=1, batch=8)
    small = size("llama-3.2-1b", "DGX_H100", tp=4, pp=1, batch=8)
    fast = size("llama-3-70b", "DGX_H100", tp=4, batch=8, **PAIR)
    drafted = fast.speculative
    assert drafted is not None and drafted.plain.seconds == plain.tpot_seconds
    assert drafted.draft.seconds == small.tpot_seconds
    assert fast.tpot_seconds == pytest.approx((4 * small.tpot_seconds + drafted.verify.seconds) / 3.3616)
    # Verifying reads the weights and the cache once, and computes five times as much: still memory-bound at batch 8.
    assert drafted.plain.seconds < drafted.verify.seconds < 1.2 * drafted.plain.seconds
    assert drafted.verify.flops == pytest.approx(5 * drafted.plain.flops, rel=0.01)
    assert fast.ttft_seconds == pytest.approx(plain.ttft_seconds + small.ttft_seconds)
    per_chip, alone, beside = fast.per_chip, plain.per_chip, small.per_chip
    assert per_chip.weights == alone.weights + beside.weights
    assert per_chip.kv_cache == alone.kv_cache + beside.kv_cache
    assert fast.largest_batch is not None and plain.largest_batch is not None
    assert fast.largest_batch < plain.largest_batch
    assert fast.parameters == plain.parameters and fast.kv_cache_bytes == plain.kv_cache_bytes
    assert fast.record()["draft"]["speedup"] == pytest.approx(plain.tpot_seconds / fast.tpot_seconds)


def test_drafts_help_small_batches_and_slow_large_ones() -> None:
    gains = [
        answer.speculative.speedup
        for batch in (1, 16, 64, 256)
        if (answer := size("llama-3-8b", "H100", batch=batch, sequence=512, **PAIR)).speculative is not None
    ]
    assert gains == sorted(gains, reverse=True) and gains[0] > 1.4 and gains[-1] < 1
    useless = size("llama-3-8b", "H100", **(PAIR | {"acceptance": 0.0})).speculative
    assert useless is not None and useless.tokens == 1 and useless.speedup < 1


def test_latents_are_verified_as_they_are() -> None:
    """Verifying a few tokens computes as many steps of decoding, not the keys of the whole cache for each."""
    model = language_model("deepseek-v3")
    one, five = (size(model, "DGX_H200", tp=8, ep=1, batch=4).best, 5)
    assert one is not None
    step, verify = one.times.step(4, 1, 2048), one.times.step(4, five, 2048)
    assert verify.flops == pytest.approx(five * step.flops, rel=0.02)


def test_a_draft_that_cannot_be_split_is_whole_on_each_chip() -> None:
    assert draft_layout(language_model("gpt2"), Layout(tp=8)) == Layout()
    assert draft_layout(language_model("llama-3.2-1b"), Layout(tp=8)) == Layout(tp=8)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"draft_tokens": None}, "`draft_tokens` is missing"),
        ({"draft": None}, "`draft` is missing"),
        ({"draft": None, "acceptance": None}, "`draft` and `acceptance` are missing"),
        ({"draft": "gpt2"}, "vocabulary of 50,257"),
        ({"draft_tokens": 65}, "at most 64"),
        ({"acceptance": 1.5}, "acceptance"),
        ({"acceptance": -0.1}, "acceptance"),
        ({"phase": "prefill"}, "plays no part in a prefill"),
        ({"pp": 2}, "pp is 2. Leave it at 1"),
        ({"on": None}, "`draft` needs a system"),
        ({"draft": "resnet50"}, "is a picture network"),
    ],
)
def test_what_does_not_apply_is_refused(given: dict[str, Any], words: str) -> None:
    arguments = {"model": "llama-3-8b", "on": "DGX_H100", **PAIR, **given}
    with pytest.raises(ArgumentError) as caught:
        size(**arguments)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["mamba", "t5"])
def test_states_and_encoders_are_refused(kind: str) -> None:
    from mlsys.workloads.transformer_config import read_config
    from mlsys.workloads.transformer_config.encoder_decoders import read_encoder_decoder

    model = read_encoder_decoder({"model_type": "t5"}) if kind == "t5" else read_config({"model_type": kind})
    assert model is not None
    with pytest.raises(ArgumentError, match="has an encoder" if kind == "t5" else "keep a state of fixed size"):
        size(model, "H100", **PAIR)
