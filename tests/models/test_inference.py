"""Inference over chips: laws of memory and time, and the estimate of one chip against ``mlsys.analyze``."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import mlsys
from mlsys import Hardware
from mlsys.errors import ArgumentError
from mlsys.hardware import systems
from mlsys.mapping.parallel import Layout
from mlsys.models.collectives import collective_seconds
from mlsys.models.inference.exchange import joins
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.memory import MemoryModel, largest
from mlsys.models.inference.pareto import choices, pareto_front
from mlsys.models.inference.passes import timer_of
from mlsys.models.inference.phases import InferenceModel, busiest, expert_load
from mlsys.models.inference.shard import shard_of, stage_weights
from mlsys.provenance import perturbed, recording
from mlsys.workloads.transformer_config import read_config
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.zoo import language_model
from sampled import drawn

MODELS = ("llama-2-7b", "llama-3-8b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v3")
DEVICES = ("A100", "H100", "T4", "RTX_4090", "MI300X", "Pi5")
DGX = systems["DGX_H100"]


def inference(name: str, layout: Layout, **formats: str | None) -> InferenceModel:
    model = language_model(name)
    chosen = formats_on(DGX.device, model, formats.get("weights"), formats.get("cache"), None)
    return InferenceModel(DGX, model, layout, chosen)


# --- one chip is what analyze says ---------------------------------------------------------------


@pytest.mark.parametrize(("name", "device"), drawn([(m, d) for m in MODELS for d in DEVICES], 8, "decode"))
def test_a_step_on_one_chip_is_the_estimate_of_analyze(name: str, device: str) -> None:
    chip, step = Hardware[device], language_model(name).decode(4, 1500, "fp16")
    answer, own = mlsys.analyze(chip, step), timer_of(chip, step, "fp16").time(step, 4)
    assert own.seconds == pytest.approx(answer.time.m_as("s"), rel=1e-9)
    assert own.bound == pytest.approx(answer.bound.m_as("s"), rel=1e-9)
    assert (own.low, own.high) == pytest.approx([end.m_as("s") for end in answer.range], rel=1e-9)


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b"])
def test_size_of_one_chip_agrees_with_analyze_by_name(name: str) -> None:
    sizing = mlsys.size(name, "MI300X", sequence=1024, batch=8, precision="fp16")
    step = mlsys.analyze("MI300X", name, phase="decode", sequence=1024, batch=8, precision="fp16")
    assert sizing.tpot_seconds == pytest.approx(step.time.m_as("s"), rel=1e-9)
    prompt = language_model(name).prefill(1, 1024, "fp16", causal=True, last_logits=True)
    assert sizing.ttft_seconds == pytest.approx(mlsys.analyze("MI300X", prompt).time.m_as("s"), rel=1e-9)


H100_BANDWIDTH = "H100_SXM/memory/HBM/bandwidth"


@pytest.mark.parametrize("first", [0.5, 1.0, 2.0])
def test_a_model_answers_under_the_what_ifs_of_each_call(first: float) -> None:
    """The opinion is ``mlsys.analyze``, called anew; a step of so few sequences takes what its bytes do."""
    chip, model = Hardware.Cloud.H100, language_model("llama-3-8b")
    step, kept = model.decode(4, 1500, "fp16"), inference("llama-3-8b", Layout())
    least = {}
    for factor in (first, 1.0, 2.0, 0.5):
        with perturbed(H100_BANDWIDTH, factor):
            answer, own = mlsys.analyze(chip, step), timer_of(chip, step, "fp16").time(step, 4)
            assert (own.seconds, own.bound) == pytest.approx((answer.time.m_as("s"), answer.bound.m_as("s")), rel=1e-9)
            least[factor] = kept.decode_step(4, 1500).bound
    assert least[0.5] == pytest.approx(2 * least[1.0]) and least[2.0] == pytest.approx(least[1.0] / 2)


def test_a_second_call_rests_on_the_same_facts() -> None:
    model = inference("llama-3-8b", Layout(tp=2))
    seen = []
    for _ in range(2):
        with recording() as facts:
            model.decode_step(4, 1500)
        seen.append(set(facts))
    assert H100_BANDWIDTH in seen[0] and seen[0] == seen[1]


# --- memory --------------------------------------------------------------------------------------


SHARED = [
    (name, layout)
    for name in MODELS
    for layout in (Layout(tp=2), Layout(tp=8), Layout(tp=4, dp=2, ep=8))
    if layout.fits(language_model(name))
]


@pytest.mark.parametrize(("name", "layout"), SHARED)
def test_shares_of_all_chips_hold_every_weight(name: str, layout: Layout) -> None:
    """What is stored on several chips makes the sum larger, never smaller; the matrices are divided exactly."""
    model = language_model(name)
    whole = model.weight_bytes().m_as("byte")
    each = stage_weights(model, layout, None)[0]
    assert whole <= each * layout.chips <= whole * (1.03 if layout.dp == 1 else 3.5)


def test_shares_of_every_architecture_hold_every_weight() -> None:
    """Also tables and matrices outside the layers; recurrences, latents and tied tables are stored several times."""
    faults, seen = [], 0
    for kind in sorted(ARCHITECTURES):
        try:
            model = read_config({"model_type": kind})
        except ArgumentError:  # its class has no default of a size
            continue
        assert Layout().fits(model), kind
        for layout in (Layout(tp=2), Layout(pp=2), Layout(tp=2, pp=2)):
            if not layout.fits(model):
                continue
            held = layout.stage_chips * sum(stage_weights(model, layout, None))
            more, seen = held / model.weight_bytes().m_as("byte"), seen + 1
            faults += [] if 1 - 1e-9 <= more <= 1.5 else [f"{kind}, {layout}: {more:.3f}"]
    assert not faults and seen > 150


def test_a_shard_is_megatrons() -> None:
    """Shoeybi et al. 2019, section 3: heads and columns over tp, the rest whole. Counted by hand for Llama 3 70B."""
    layer = shard_of(language_model("llama-3-70b"), Layout(tp=8)).layer_list[0]
    hidden, tp = 8192, 8
    attention = hidden * (64 + 2 * 8) * 128 // tp + 64 * 128 * hidden // tp
    assert layer.parameters(hidden) == attention + 3 * hidden * 28672 // tp + 2 * hidden


@pytest.mark.parametrize(("tp", "heads"), [(1, 8), (2, 4), (8, 1), (16, 1), (64, 1)])
def test_key_value_heads_are_replicated_beyond_their_number(tp: int, heads: int) -> None:
    memory = MemoryModel(language_model("llama-3-70b"), Layout(tp=tp))
    assert memory.kv_cache_per_token_per_chip == 80 * 2 * heads * 128 * 2


@pytest.mark.parametrize("tp", [1, 2, 8, 128])
def test_a_latent_is_on_every_chip(tp: int) -> None:
    memory = MemoryModel(language_model("deepseek-v3"), Layout(tp=tp))
    assert memory.kv_cache_per_token_per_chip == memory.kv_cache_per_token == 61 * (512 + 64) * 2


def test_stages_divide_the_cache_by_layers() -> None:
    model = language_model("gpt-oss-20b")
    memory = MemoryModel(model, Layout(pp=4))
    parts = [memory.of_stage(stage, 5000, 3) for stage in range(4)]
    assert sum(part.kv_cache for part in parts) == model.kv_cache(5000, batch=3).m_as("byte")


@pytest.mark.parametrize("name", MODELS)
def test_one_more_sequence_or_token_does_not_fit(name: str) -> None:
    memory = MemoryModel(language_model(name), Layout())
    room = memory.per_chip(1, 1).needed + 5e9
    batch, tokens = memory.largest_batch(1000, room), memory.largest_sequence(room, 2)
    assert tokens is not None
    assert memory.per_chip(1000, batch).needed <= room < memory.per_chip(1000, batch + 1).needed
    assert memory.per_chip(tokens, 2).needed <= room < memory.per_chip(tokens + 1, 2).needed


def test_windows_alone_have_no_longest_sequence() -> None:
    fields = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 4096}
    memory = MemoryModel(read_config(fields), Layout())
    assert memory.largest_sequence(80e9) is None
    assert replace(memory, windows=False).largest_sequence(80e9) is not None


@pytest.mark.parametrize("most", [0, 1, 2, 3, 1000, 123_457])
def test_largest_finds_the_flip(most: int) -> None:
    assert largest(lambda number: number <= most) == most


# --- time ----------------------------------------------------------------------------------------


def test_steps_grow_with_batch_and_context_and_never_beat_their_floor() -> None:
    model = inference("llama-3-8b", Layout())
    batches = [model.decode_step(batch, 2048).seconds for batch in (1, 4, 16, 64, 256)]
    contexts = [model.decode_step(16, context).seconds for context in (128, 1024, 8192, 65536)]
    for times in (batches, contexts):
        assert all(later >= earlier for earlier, later in pairwise(times))
    step = model.decode_step(16, 2048)
    assert step.bound <= step.low <= step.seconds <= step.high
    weights = language_model("llama-3-8b").weight_bytes().m_as("byte")
    cache = language_model("llama-3-8b").kv_cache(2048, batch=16).m_as("byte")
    assert step.bound >= (0.9 * weights + cache) / 3.35e12  # the embedding table is looked up, not read


def test_tensor_parallelism_divides_computing_and_adds_exchanges() -> None:
    steps = {tp: inference("llama-3-70b", Layout(tp=tp)).decode_step(32, 2048) for tp in (1, 2, 4, 8)}
    for fewer, more in pairwise((1, 2, 4, 8)):
        assert steps[more].computing < steps[fewer].computing < 2.2 * steps[more].computing
        assert steps[more].exchanging > steps[fewer].exchanging
    assert steps[1].exchanging == 0
    # Two all-reduces of 32 × 8,192 values of 16 bits in each of 80 layers, and an all-gather of the logits.
    reduced = collective_seconds(DGX, "all-reduce", 32 * 8192 * 2, 8)
    gathered = collective_seconds(DGX, "all-gather", 32 * 128_256 * 2, 8)
    assert steps[8].exchanging == pytest.approx(2 * 80 * reduced + gathered)
    assert steps[8].flops == pytest.approx(steps[1].flops, rel=0.02)


def test_stages_keep_a_prompt_waiting_and_share_out_sequences() -> None:
    """A prompt goes through all layers one after the other; groups of sequences follow each other."""
    one, piped = inference("llama-3-70b", Layout(tp=2)), inference("llama-3-70b", Layout(tp=2, pp=4))
    assert piped.prefill(2000).seconds == pytest.approx(one.prefill(2000).seconds, rel=0.05)
    # Four groups of a quarter each: a step is that of a quarter, so that the rate is higher than without stages.
    assert piped.decode_step(64, 1000).seconds >= one.decode_step(16, 1000).seconds
    assert 64 / piped.decode_step(64, 1000).seconds > 64 / one.decode_step(64, 1000).seconds


def test_chunks_of_a_prompt_cost_as_much_as_all_of_them() -> None:
    """The opinion is every chunk timed by itself: ends and middle stand for all."""
    model = replace(inference("llama-3-8b", Layout()), chunk=1024)
    every = sum(model._chunk(1024, end, end == 16 * 1024).seconds for end in range(1024, 16 * 1024 + 1, 1024))
    assert model.prefill(16 * 1024).seconds == pytest.approx(every, rel=0.01)
    whole = replace(model, chunk=16 * 1024).prefill(16 * 1024)
    assert model.prefill(16 * 1024).seconds > whole.seconds  # weights are read for each chunk


def test_the_busiest_group_of_experts_against_draws() -> None:
    """The opinion is a simulation: tokens choose 8 of 256 experts at random."""
    import numpy as np

    layer = next(layer for layer in language_model("deepseek-v3").layer_list if layer.experts)
    generator = np.random.default_rng(1)
    for rows in (1, 16, 128):
        most_visits, most_visited = [], []
        for _ in range(300):
            chosen = np.array([generator.choice(256, 8, replace=False) for _ in range(rows)]).ravel()
            most_visits.append(np.bincount(chosen // 32, minlength=8).max())
            most_visited.append(max(len(set(chosen[chosen // 32 == group])) for group in range(8)))
        visits, visited = expert_load(layer, Layout(tp=8, ep=8), rows)
        assert visits == pytest.approx(np.mean(most_visits), rel=0.2)
        assert visited == pytest.approx(np.mean(most_visited), rel=0.2)
    assert busiest(7.0, 1) == 7.0


def test_formats_that_a_chip_lacks_are_stored_and_said() -> None:
    old, new = (mlsys.size("llama-3-8b", chip, weight_format="fp8") for chip in ("A100", "H100"))
    assert old.weight_bytes == new.weight_bytes == old.parameters
    assert any("has no fp8 units" in text for text in old.assumptions)
    assert not any("has no fp8 units" in text for text in new.assumptions)
    assert old.best is not None and new.best is not None
    assert (old.best.formats.computes, new.best.formats.computes) == ("bf16", "fp8")
    with pytest.raises(ValueError, match="has no fp8 peak"):
        mlsys.size("llama-3-8b", "A100", precision="fp8")


# --- ranking -------------------------------------------------------------------------------------


def test_layouts_are_ranked_by_latency_or_by_rate() -> None:
    by_time = mlsys.size("llama-3-8b", "DGX_H100", batch=8)
    times = [each.rates.tpot.seconds for each in by_time.placed if each.rates.tpot is not None]
    assert times == sorted(times)
    by_rate = mlsys.size("llama-3-8b", "DGX_H100", batch=8, rank="throughput")
    rates = [each.at(min(each.largest_batch, 4096)).tokens_per_second / each.chips for each in by_rate.placed]
    assert rates == sorted(rates, reverse=True)


def test_the_front_has_no_choice_that_another_beats() -> None:
    points = choices(mlsys.size("llama-3-8b", "DGX_H100"))
    front = pareto_front(points)
    for each in points:
        beaten = [
            other
            for other in points
            if other.tpot_seconds <= each.tpot_seconds
            and other.tokens_per_second_per_chip >= each.tokens_per_second_per_chip
            and (other.tpot_seconds, other.tokens_per_second_per_chip)
            != (each.tpot_seconds, each.tokens_per_second_per_chip)
        ]
        assert (each in front) <= (not beaten)
        assert each in front or beaten or any(one.tpot_seconds == each.tpot_seconds for one in front)


def test_copies_side_by_side_multiply_the_rate_and_leave_latency_and_cost() -> None:
    one, four = (mlsys.size("llama-3-8b", "DGX_H100", tp=2, pp=1, ep=1, replicas=copies) for copies in (1, 4))
    assert four.chips == 8
    assert four.tpot_seconds == one.tpot_seconds
    assert four.tokens_per_second == pytest.approx(4 * (one.tokens_per_second or 0))
    assert four.usd_per_million_tokens == pytest.approx(one.usd_per_million_tokens)


def test_a_torus_has_only_some_slices() -> None:
    assert [joins(systems["TPUv5e_pod"], Layout(tp=size)) for size in (8, 17)] == [True, False]
    with pytest.raises(ArgumentError):
        mlsys.size("llama-3-8b", "DGX_H100", replicas=9)


@pytest.mark.parametrize("on", [None, "DGX_H100"])
def test_layouts_that_are_not_modelled_or_make_no_sense_are_refused(on: str | None) -> None:
    with pytest.raises(ArgumentError, match="without context parallelism"):
        mlsys.size("llama-3-8b", on, layout=Layout(tp=2, cp=2))
    with pytest.raises(ArgumentError, match="`tp` must be a whole number"):
        mlsys.size("llama-3-8b", on, tp=0, pp=1, ep=1)


@pytest.mark.parametrize("given", [{"nodes": 2}, {"grid": "France"}, {"precision": "fp8"}, {"phase": "decode"}])
def test_what_needs_a_system_is_refused_without_one(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ArgumentError, match=f"`{name}` needs a system"):
        mlsys.size("llama-3-8b", **given)


# Output tokens per second of an instance whose queue never empties, FP8 weights and cache: TensorRT-LLM 1.0,
# NVIDIA/TensorRT-LLM@00f37686, docs/source/performance/perf-overview.md (Apache-2.0).
PUBLISHED = [
    ("llama-3-8b", "DGX_H100", 1, 1000, 1000, 15220),
    ("llama-3-8b", "DGX_H100", 1, 500, 2000, 17660),
    ("llama-3-8b", "DGX_H200", 1, 2048, 2048, 12194),
    ("llama-3-70b", "DGX_H100", 2, 1000, 1000, 4205),
    ("llama-3-70b", "DGX_H100", 2, 20000, 2000, 437),
    ("llama-3.1-405b", "DGX_H100", 8, 1000, 1000, 2919),
    ("llama-3.1-405b", "DGX_H200", 8, 500, 2000, 4724),
]


@pytest.mark.parametrize(("name", "system", "tp", "prompt", "output", "published"), PUBLISHED)
def test_published_rates_of_full_servers(
    name: str, system: str, tp: int, prompt: int, output: int, published: float
) -> None:
    sizing = mlsys.size(
        name, system, prompt=prompt, output=output, tp=tp, pp=1, ep=1, weight_format="fp8", kv_format="fp8"
    )
    assert sizing.best is not None
    rates = sizing.best.at(min(sizing.best.largest_batch, 2048))
    assert rates.tokens_per_second == pytest.approx(published, rel=0.25)
    assert rates.low <= published <= rates.high


def test_a_chip_without_room_for_one_layer_has_no_times() -> None:
    """A layer of Llama 3 8B has 218 M weights: 24 GB hold one, 256 kB of a microcontroller do not."""
    small = mlsys.size("llama-3-8b", "nRF52840")
    assert small.fits is False and small.largest_batch == 0 and small.weight_bytes == 16_060_522_496
    assert small.ttft_seconds is small.tpot_seconds is small.tokens_per_second is small.kwh_per_million_tokens is None
    assert small.layout_rows()[0]["tokens_per_second"] is None and "there are no times" in small.explain()
    card = mlsys.size("llama-3-70b", "RTX_4090")
    assert card.fits is False and card.tpot_seconds is not None and "times are as if it did" in card.explain()


@pytest.mark.parametrize(("form", "bits"), [("q8_0", 8.5), ("q4_0", 4.5), ("q4_k_m", 4.83), ("nvfp4", 4.5)])
def test_a_cache_in_blocks_takes_the_bits_of_its_format_on_a_system(form: str, bits: float) -> None:
    plain, blocks = (
        mlsys.size("llama-3-8b", "A100", batch=16),
        mlsys.size("llama-3-8b", "A100", batch=16, kv_format=form),
    )
    assert blocks.kv_cache_bytes == pytest.approx(plain.kv_cache_bytes * bits / 16, rel=0.01)
    assert blocks.tpot_seconds is not None and plain.tpot_seconds is not None
    assert blocks.tpot_seconds < plain.tpot_seconds


def test_learned_positions_bound_the_largest_sequence() -> None:
    assert mlsys.size("gpt2", "A100").largest_sequence == 1024
