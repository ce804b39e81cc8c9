"""Laws of a training step: sums, bounds, memory, operations, and what each axis of a layout changes."""

from dataclasses import replace
from typing import Any

import pytest

from mlsys import formulas, train
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.hardware import systems
from mlsys.mapping.parallel import Layout
from mlsys.models.training import TrainingStep, layer_activations, recipe, stage_layers, training_step
from mlsys.models.training.layers import Tokens, products
from mlsys.models.training.memory import Shards
from mlsys.models.training.network import group
from mlsys.models.training.search import rank_layouts
from mlsys.provenance import perturbed
from mlsys.units import Q_
from mlsys.workloads.zoo import language_model
from mlsys.workloads.zoo.language import LanguageModel

LLAMA = language_model("llama-3-8b")
MIXTRAL = language_model("mixtral-8x7b")
SYSTEM = systems["DGX_H100"].with_nodes(16)
GPT = LanguageModel("GPT", 8, 1024, 16, 16, 64, 4096, 51200, gated=False, tied=True, biases=("qkv", "output", "ffn"))
LAYOUTS = (
    Layout(dp=16),
    Layout(tp=8, dp=2),
    Layout(tp=2, pp=4, dp=2),
    Layout(tp=2, cp=2, dp=4),
    Layout(pp=8, dp=2),
)


def step(layout: Layout, model: LanguageModel = LLAMA, **options: object) -> TrainingStep:
    arguments = {"batch": 64, "sequence": 4096, **options}
    return training_step(SYSTEM, model, layout, **arguments)


@pytest.mark.parametrize("overlap", ["none", "data", "all"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_parts_sum_to_the_time_and_peak_is_never_beaten(layout: Layout, overlap: str) -> None:
    result = step(layout, overlap=overlap)
    assert sum(part.m_as("s") for part in result.parts.values()) == pytest.approx(result.time.m_as("s"))
    assert all(part.m_as("s") >= 0 for part in result.parts.values())
    assert 0 < result.figures["MFU"].magnitude <= result.figures["HFU"].magnitude < 1
    assert result.range[0] <= result.time <= result.range[1]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_operations_do_not_depend_on_the_layout(layout: Layout) -> None:
    """Splitting the work neither adds nor loses any; the causal half of scores alone is counted."""
    pairs = 4096 * 4097 / 2
    embedding = LLAMA.vocabulary * LLAMA.hidden
    weights = LLAMA.parameters().magnitude - embedding - 65 * LLAMA.hidden  # no product: table and normalisations
    expected = 64 * (6 * weights * 4096 + 12 * 32 * 4096 * pairs)
    assert step(layout).figures["model FLOP"].m_as("FLOP") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_operations_of_a_gpt_are_those_of_equation_3(recompute: str) -> None:
    result = step(Layout(tp=2, pp=2, dp=2), GPT, recompute=recompute, attention="standard", sequence=2048)
    paper = formulas.training_step_flops(64, 2048, 8, 1024, 51200, recomputed=float(recompute == "full"))
    assert result.figures["hardware FLOP"].m_as("FLOP") == pytest.approx(paper.m_as("FLOP"), rel=1e-12)


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize("tp", [1, 2, 8])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_activations_of_a_gpt_are_those_of_korthikanti(recompute: str, tp: int, sequence_parallel: bool) -> None:
    shares = tp if sequence_parallel else 1
    kept = layer_activations(
        GPT.layer_list[0], 1024, Tokens(2, 512, 1024), Layout(tp=tp),
        attention="standard", sequence_parallel=sequence_parallel, dropout=True, recompute=recompute,
    )  # fmt: skip
    if recompute == "full":
        paper = formulas.checkpoint_bytes(512, 2, 1024, shares)
    else:
        paper = formulas.layer_activation_bytes(512, 2, 1024, 16, tp, shares, 1.0 if recompute == "none" else 0.0)
    assert kept == pytest.approx(paper.m_as("byte"))


@pytest.mark.parametrize("stage", range(4))
def test_states_on_a_chip_sum_to_those_of_the_formula(stage: int) -> None:
    states = recipe("adam", 2, 4)
    kept = Shards(1e9, 0.0, 8, 1).bytes(stage, states)
    each = formulas.training_bytes_per_parameter(stage, 8, gradient=Q_(4, "byte"))
    assert sum(kept.values()) == pytest.approx(each.m_as("byte") * 1e9)


@pytest.mark.parametrize("model", [LLAMA, MIXTRAL], ids=str)
@pytest.mark.parametrize("layout", [Layout(tp=2, dp=4), Layout(tp=4, ep=8, dp=8), Layout(ep=8, dp=8)], ids=str)
def test_products_on_all_chips_are_those_of_the_layer(model: LanguageModel, layout: Layout) -> None:
    """Each group of data-parallel chips has its own tokens; experts of all of them visit as many as one chip would."""
    layer = model.layer_list[0]
    if layout.ep > 1 and not layer.experts:
        return
    alone = sum(each.macs for each in products(layer, model.hidden, 4096.0, Layout()))
    router = model.hidden * layer.experts * 4096.0
    split = sum(each.macs for each in products(layer, model.hidden, 4096.0, layout))
    assert split == pytest.approx((alone - router) / layout.tp + router)


def test_one_chip_sends_nothing_and_its_pipeline_has_no_bubble() -> None:
    small = language_model("gpt2")
    result = training_step(systems["DGX_H100"].device, small, Layout(), batch=8, sequence=1024)
    assert not any(size.magnitude for size in result.sent.values())
    assert result.figures["bubble share"].magnitude == pytest.approx(0, abs=1e-12)
    assert result.bound_by in ("compute", "memory")


def test_more_tensor_parallelism_needs_less_memory_and_sends_more() -> None:
    one, two, four = (step(Layout(tp=tp, dp=16)) for tp in (1, 2, 4))
    assert one.needed > two.needed > four.needed
    assert one.sent["tensor"] == Q_(0, "byte")
    assert two.sent["tensor"] < four.sent["tensor"]


def test_bytes_of_tensor_parallelism_are_those_of_the_formula() -> None:
    result = step(Layout(tp=8, dp=2))
    layer = formulas.tensor_parallel_layer_bytes(4096, 1, 4096, 8)
    assert result.sent["tensor"].m_as("byte") == pytest.approx(32 * 32 * layer.m_as("byte"))


@pytest.mark.parametrize("zero", range(4))
def test_bytes_of_zero_are_those_of_the_paper(zero: int) -> None:
    """With 16-bit gradients; FSDP gathers for each micro-batch, here the only one."""
    result = step(Layout(dp=64), zero=zero, gradients="bf16")
    paper = formulas.zero_communication_bytes(LLAMA.weight_bytes("bf16"), 64, zero)
    assert result.sent["data"].m_as("byte") == pytest.approx(paper.m_as("byte"))


def test_zero_needs_less_memory_with_each_stage() -> None:
    needed = [step(Layout(dp=16), zero=zero).needed.m_as("byte") for zero in range(4)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[3] + 15 * LLAMA.parameters().magnitude


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_hiding_communication_and_keeping_activations_cost_no_time(layout: Layout) -> None:
    none, data, everything = (step(layout, overlap=overlap).time for overlap in ("none", "data", "all"))
    assert everything <= data <= none
    assert step(layout, recompute="full").time > data
    assert step(layout, recompute="full").needed < step(layout).needed


def test_interleaving_shortens_the_bubble_by_its_chunks() -> None:
    plain = step(Layout(tp=2, pp=4, dp=2), overlap="all")
    chunked = step(Layout(tp=2, pp=4, dp=2), schedule="interleaved", chunks=4, overlap="all")
    ratio = chunked.parts["pipeline bubble"] / plain.parts["pipeline bubble"]
    assert ratio.m_as("") == pytest.approx(1 / 4, rel=0.01)
    assert chunked.memory["activations"] > plain.memory["activations"]


def test_a_mixture_computes_its_active_experts_and_stores_all() -> None:
    dense = replace(MIXTRAL, name="dense", experts=0, active_experts=0, ffn=2 * MIXTRAL.ffn)
    mixture, plain = (step(Layout(tp=8, dp=8), model) for model in (MIXTRAL, dense))
    assert mixture.figures["model FLOP"].magnitude == pytest.approx(plain.figures["model FLOP"].magnitude, rel=1e-3)
    assert mixture.memory["weights"] > 3 * plain.memory["weights"]
    spread = step(Layout(tp=1, ep=8, dp=8), MIXTRAL)
    assert spread.sent["expert"].magnitude > 0
    outside = 2 * (MIXTRAL.parameters().magnitude - 32 * 8 * 3 * 4096 * 14336)
    assert spread.memory["weights"].m_as("byte") == pytest.approx(2 * 32 * 3 * 4096 * 14336 + outside)


@pytest.mark.parametrize(
    ("fact", "layout"),
    [
        ("MATMUL_H100_SXM_BF16", Layout(tp=8, dp=2)),
        ("H100_SXM/memory/HBM/bandwidth", Layout(tp=8, dp=2)),
        ("H100_SXM/links/NVLink/per_direction", Layout(tp=8, dp=2)),
        ("DGX_H100/scale_out/bandwidth", Layout(pp=8, dp=2)),
    ],
)
def test_a_faster_part_is_felt_named_and_never_slows(fact: str, layout: Layout) -> None:
    before = step(layout, overlap="none")
    assert fact in [each.name for each in before.facts]
    with perturbed(fact, 0.5):
        slower = step(layout, overlap="none")
    assert before.time < slower.time < 2 * before.time


def test_a_ring_over_nodes_uses_the_cards_of_all_its_chips() -> None:
    """Eight chips of a node share eight cards; a lone chip of each node has one."""
    many, lone = group(SYSTEM, 32, 1), group(SYSTEM, 4, 8)
    gigabyte = 1e9
    assert many.gather(gigabyte) < lone.gather(gigabyte)
    assert lone.gather(gigabyte) == pytest.approx(3 / 4 * gigabyte / (0.8 * 50e9), rel=0.01)
    assert many.gather(gigabyte) == pytest.approx(31 / 32 * gigabyte / (0.8 * 400e9), rel=0.01)


@pytest.mark.parametrize("chips", [2, 4, 8])
def test_chips_of_a_mesh_have_one_link_for_each_other(chips: int) -> None:
    """Eight MI300X have seven links of 64 GB/s each: a pair uses one of them, and so does a message."""
    some = group(systems["MI300X_platform"], chips, 1)
    assert some.gather(1e9) == pytest.approx((chips - 1) / chips * 1e9 / (0.8 * 64e9 * (chips - 1)), rel=0.01)
    assert some.send(1e9) == pytest.approx(1e9 / (0.8 * 64e9), rel=0.01)


def test_a_last_stage_may_hold_the_classifier_alone() -> None:
    """The 32 layers with embedding and classifier make 34 stages; the last has no layer, and logits make it fullest."""
    memory = step(Layout(pp=34), recompute="full", zero=3).memory
    assert memory["weights"].m_as("byte") == pytest.approx(2 * LLAMA.vocabulary * LLAMA.hidden)
    assert memory["activations"].magnitude == memory["buffers"].magnitude == 0


@pytest.mark.parametrize("chunks", [2, 8])
def test_a_ranking_leaves_out_stages_without_layers(chunks: int) -> None:
    steps = rank_layouts(systems["DGX_H100"].with_nodes(8), LLAMA, batch=512, fixed={"tp": 1}, options={
        "schedule": "interleaved", "chunks": chunks, "micro_batch": 1, "recompute": "none", "zero": 1,
    })  # fmt: skip
    assert {each.layout.pp for each in steps} == {pp for pp in (2, 4, 8, 16, 32) if pp * chunks <= 32}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"layout": Layout(tp=8), "chunks": 2},
            r"`chunks` divides the stages of a pipeline, and `layout` \(tp 8\) has",
        ),
        ({"precision": "int8"}, "`precision` must be a floating-point format"),
        ({"ep": 3}, "`ep` is for models with experts"),
        ({"tp": 3}, "`tp` must divide the 32 query heads"),
        ({"cp": 3}, "the 8 chips of NVIDIA DGX H100 are no multiple of cp 3"),
        ({"micro_batch": 16, "batch": 8}, "no layout with micro_batch=16"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_its_reason(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        train(LLAMA, "DGX_H100", **given)


def test_learned_positions_bound_the_sequence() -> None:
    """GPT-2 learned 1024 positions (Radford et al. 2019): longer sequences are refused, as by size and flops."""
    assert "8 × 1024 tokens" in train("gpt2", "A100", batch=8).result.workload
    with pytest.raises(ArgumentError, match="GPT-2 124M has learned positions for 1024 tokens, got sequences of 2048"):
        train("gpt2", "A100", sequence=2048)


def test_a_rent_without_tokens_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`rent`.*tokens=1e12"):
        train("gpt2", "A100", rent=Q_(2, "USD/hour"))


def test_stages_hold_all_layers_and_differ_by_one() -> None:
    for layers in range(1, 100):
        for stages in range(1, layers + 1):
            counts = stage_layers(layers, stages)
            assert sum(counts) == layers
            assert max(counts) - min(counts) <= 1


def test_days_and_chip_hours_follow_from_the_step() -> None:
    result = step(Layout(dp=16))
    assert result.duration(64 * 4096 * 1000).m_as("s") == pytest.approx(1000 * result.time.m_as("s"))
    assert result.chip_hours(64 * 4096 * 1000).m_as("hour") == pytest.approx(16 * 1000 * result.time.m_as("s") / 3600)


@pytest.mark.parametrize(
    ("layout", "options", "words"),
    [
        (Layout(tp=3), {}, "`tp` must divide"),
        (Layout(tp=8, dp=32), {}, "needs 256 chips"),
        (Layout(pp=64), {}, "at most the 32 layers"),
        (Layout(ep=2, dp=2), {}, "for models with experts"),
        (Layout(dp=3), {}, "multiple of micro_batch × dp = 1 × 3"),
        (Layout(dp=2), {"micro_batch": 64}, "multiple of micro_batch × dp = 64 × 2"),
        (Layout(pp=2), {"chunks": 2}, "`chunks` must be 1"),
        (Layout(pp=4, dp=2), {"schedule": "interleaved", "chunks": 2, "batch": 12}, "multiple of the 4 stages"),
        (Layout(cp=3), {}, "multiple of cp = 3"),
        (Layout(), {"zero": 4}, "`zero` must be 0, 1, 2 or 3"),
    ],
)
def test_what_does_not_divide_is_refused(layout: Layout, options: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words.replace("`", ".").replace("(", r"\(")):
        step(layout, **options)


def test_a_format_that_the_chip_lacks_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="fp8"):
        training_step(systems["DGX_A100"], LLAMA, Layout(tp=8), batch=8, precision="fp8")
