"""The catalogue of networks: names, errors, laws of counting, language models."""

import itertools
import pickle

import numpy as np
import pytest

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import Network, attention, conv2d, dense, elementwise, gemm, relu, zoo
from mlsys.workloads.arrays import KINDS
from mlsys.workloads.zoo.catalogue import CATALOGUE
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.decoder_pass import scores_computed
from mlsys.workloads.zoo.layer_builder import LayerBuilder
from mlsys.workloads.zoo.names import _key
from sampled import drawn

NAMES = tuple(name for name in zoo.networks() if zoo.entry(name).written)


# --- names ------------------------------------------------------------------------------------

SPELLINGS = {
    "ResNet-50": "resnet50",
    "ResNet-50 v1.5": "resnet50",
    "ResNet-50 v1": "resnet50_v1",
    "resnet50_int8": "resnet50",
    "MobileNet-v1 1.0": "mobilenet_v1_1.0",
    "mobilenet_v2": "mobilenet_v2",
    "MobileNetV2-1.0": "mobilenet_v2",
    "mobilenetv3_large_100": "mobilenet_v3_large",
    "squeezenet_int8": "squeezenet_1.1",
    "SqueezeNet 1.0": "squeezenet_1.0",
    "squeezenet1_1": "squeezenet_1.1",
    "EfficientNet-B0": "efficientnet_b0",
    "Inception v1": "googlenet",
    "RegNetY 3.2GF": "regnet_y_3_2gf",
    "deit_base_patch16_224": "vit_base_patch16_224",
    "ViT-B/16 384x384 (12 layers, 12 heads, dim 768, 577 tokens)": "vit_base_patch16_384",
    "BERT-Large": "bert-large",
    "bert-large-uncased": "bert-large",
    "BERT-Large (bert-99.9)": "bert-large",
    "BERT-base encoder (12 layers, 12 heads x64, hidden 768)": "bert-base-encoder",
    "distilbert-base-uncased": "distilbert",
    "Llama 2 7B": "llama-2-7b",
    "llama-7b": "llama-7b",
    "LLaMA-7B v2": "llama-2-7b",
    "meta-llama/Llama-2-70b-hf": "llama-2-70b",
    "Llama-v3.2-3B-Instruct": "llama-3.2-3b",
    "llama3.1-405b": "llama-3.1-405b",
    "GPT-J 6B": "gpt-j-6b",
    "EleutherAI/gpt-neox-20b": "gpt-neox-20b",
    "Mixtral 8x7B": "mixtral-8x7b",
    "Mistral-7B-Instruct-v0.2": "mistral-7b",
    "MPT-7b (6,658,859,008 params)": "mpt-7b",
    "GPT-175B (96 layers, 96 heads x128, vocab 51200)": "gpt-175b",
    "KWS DS-CNN": "kws_ds_cnn",
    "3d-unet-99.9 (3d-unet-99.9)": "unet3d_kits19",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_in_use(spelling: str) -> None:
    entry = zoo.resolve(spelling)
    assert entry is not None
    assert entry.name == SPELLINGS[spelling]


@pytest.mark.parametrize(
    "unknown", ["", "ResNet-51", "Llama 2 71B", "LLaMA 70B", "GPT-3 layer", "FlashAttention-2", "conv", "llama", "()"]
)
def test_nothing_is_guessed(unknown: str) -> None:
    assert zoo.resolve(unknown) is None


def test_no_two_entries_share_a_spelling() -> None:
    owners: dict[tuple[str, ...], str] = {}
    for entry in CATALOGUE.values():
        for spelling in {_key(text) for text in (entry.name, entry.title, *entry.aliases)}:
            assert owners.setdefault(spelling, entry.name) == entry.name, spelling


def test_a_typing_error_is_met_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r"no network 'resnet5O' in the catalogue of \d+.*Did you mean 'resnet"):
        zoo.network("resnet5O", precision="fp16")
    with pytest.raises(UnknownNameError, match=r"`family` must be one of .* got 'pictures'\. Did you mean 'picture'\?"):
        zoo.networks("pictures")
    with pytest.raises(UnknownNameError, match=r"`cell` must be one of .* got 'lstn'\. Did you mean 'lstm'\?"):
        zoo.recurrent_layer("lstn", 1, 1, 8, 8)
    with pytest.raises(UnknownNameError, match="unknown weight format 'q4_2'.*Did you mean 'q4_"):
        zoo.language_model("gpt2").decode(weight_format="q4_2")


def test_every_entry_names_its_source() -> None:
    assert len(NAMES) >= 150
    for name in NAMES:
        entry = zoo.entry(name)
        assert entry.name == name
        assert len(entry.source) > 10
        assert entry.source in repr(entry)
        assert entry.parameters.m_as("param") > 0


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("resnet50", {"sequence": 128}, r"network\(\): `sequence` is the number of tokens, which 'resnet50' does not"),
        ("bert-base", {"image": 224}, "`image` is the side of its input image, which 'bert-base' does not have"),
        ("bert-base", {"phase": "decode"}, "`phase` is the phases of a language model"),
        ("dlrm", {"weight_format": "q4_0"}, "`weight_format` is the quantised weights"),
        ("gpt2", {"phase": "train"}, "`phase` must be one of prefill, decode, got 'train'"),
        ("resnet50", {"batch": 0}, r"network\(\): `batch` must be"),
        ("resnet50", {"batch": 2.5}, r"network\(\): `batch` must be"),
        ("resnet50", {"batch": True}, r"network\(\): `batch` must be"),
        ("gpt2", {"sequence": float("nan")}, r"network\(\): `sequence` must be"),
        ("resnet50", {"image": -224}, r"network\(\): `image` must be"),
        ("inception_v3", {"image": 40}, "`image` is too small: the input of '"),
        ("swin_tiny", {"image": 256}, "`image` must be a multiple of 224"),
    ],
)
def test_arguments_that_make_no_sense(name: str, arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises((ArgumentError, UnknownNameError), match=complaint):
        zoo.network(name, **arguments)  # type: ignore[arg-type]


def test_more_arguments_that_make_no_sense() -> None:
    with pytest.raises(ArgumentUnitError, match=r"network\(\): `batch`"):
        zoo.network("resnet50", batch=Q_(2, "byte"), precision="fp16")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown precision 'fp61'"):
        zoo.network("resnet50", precision="fp61")
    with pytest.raises(ArgumentError, match=r"decode\(\): `context`"):
        zoo.language_model("gpt2").decode(context=0)
    with pytest.raises(ArgumentError, match=r"prefill\(\): `prompt`"):
        zoo.language_model("gpt2").prefill(prompt=1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`name` must be a decoder language model, got 'resnet50'"):
        zoo.language_model("resnet50")
    with pytest.raises(ArgumentError, match=r"recurrent_layer\(\): `steps`"):
        zoo.recurrent_layer("gru", 1, 0, 8, 8)


# --- laws of counting -------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(NAMES, 40, "laws of networks"))
def test_laws_of_every_network(name: str) -> None:
    single, many = zoo.network(name, precision="fp16"), zoo.network(name, batch=7, precision="fp16")
    rows, more = single.arrays, many.arrays
    assert (rows.flops >= 0).all()
    assert (rows.data > rows.weights).all()
    # work is proportional to the batch, save on distances, which are those of all; weights are read once, except by
    # experts and look-ups
    distances = sum(each.flops.magnitude for each in single if each.name == "distances")
    assert np.isclose(more.flops @ more.repeats - distances, 7 * (rows.flops @ rows.repeats - distances), rtol=1e-12)
    model = zoo.entry(name).model
    fixed = rows.kind != KINDS.index("embedding")
    if model is None or not model.experts:
        np.testing.assert_array_equal(more.weights[fixed], rows.weights[fixed])
    assert single.data < many.data < 7 * single.data
    assert single.parameters == many.parameters == zoo.entry(name).parameters
    # what is not a product is the softmax of attention, and the sums of looked-up rows
    products = 2 * rows.m * rows.n * rows.k * rows.copies
    assert (products[np.isin(rows.kind, [KINDS.index(kind) for kind in ("gemm", "conv2d", "conv3d")])] > 0).all()
    assert (products <= rows.flops).all()
    # half the width, half the bytes
    halved = zoo.network(name, precision="int8")
    assert_quantity_close(2 * halved.data, single.data)
    assert halved.flops == single.flops


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(NAMES, 40, "laws of networks"))
def test_fusing_saves_traffic_and_leaves_products_and_parameters(name: str) -> None:
    fused, apart = zoo.network(name, precision="fp16"), zoo.network(name, fused=False, precision="fp16")
    assert fused.macs == apart.macs
    assert fused.parameters == apart.parameters
    assert fused.flops <= apart.flops
    assert fused.data <= apart.data
    assert len(fused) <= len(apart)


def test_the_tape_counts_as_the_makers_do() -> None:
    """The quick integers of the builder against the checked makers, field by field."""
    net = CnnBuilder(3, (8, 20, 20), "fp16", True)
    net.conv("c", 16, 5, 2, 1, groups=4)
    net.shape = (16, 9, 9)
    net.dense("d", 3, 33, 44, bias=False)
    net.attention("a", 2, 4, 5, 6, 7)
    net.batched("b", 3, 4, 5, 1)
    made = [
        conv2d(3, 8, 16, 20, 5, 2, 1, 4, name="c"),
        dense(3, 33, 44, name="d"),
        attention(2, 4, 5, 6, 7, fused=True, name="a"),
        gemm(3, 4, 5, name="b"),
    ]
    for ours, theirs in zip(net.operators, made, strict=True):
        assert ours.name == theirs.name
        assert ours.kind == theirs.kind
        assert_quantity_close(ours.flops, theirs.flops)
        assert_quantity_close(ours.data, theirs.data)
        assert_quantity_close(ours.weights, theirs.weights)
        assert {**theirs.shape, "copies": 1}.items() >= ours.shape.items()
    apart = LayerBuilder(fused=False)
    apart.attention("a", 2, 4, 5, 6, 7)
    apart.activation("r", 100, "relu")
    assert_quantity_close(apart.operators[0].data, attention(2, 4, 5, 6, 7).data)
    assert_quantity_close(apart.operators[1].data, relu(100).data)
    assert_quantity_close(apart.operators[1].flops, elementwise(100, 1).flops)


def test_arrays_have_a_row_for_each_distinct_operator() -> None:
    network = zoo.network("llama-2-7b", precision="fp16")
    rows = network.arrays
    assert rows is network.arrays
    assert len(rows) < 12
    assert len(network) == rows.order.size == rows.repeats.sum() > 150
    for values, attribute, unit in ((rows.flops, "flops", "FLOP"), (rows.data, "data", "byte")):
        np.testing.assert_allclose(values[rows.order], [getattr(op, attribute).m_as(unit) for op in network])
        assert np.isclose(values @ rows.repeats, getattr(network, attribute).m_as(unit))
    with pytest.raises(ValueError, match="read-only"):
        rows.flops[0] = 1
    again = pickle.loads(pickle.dumps(network))
    assert again == network
    np.testing.assert_array_equal(again.arrays.flops, rows.flops)


def test_arrays_of_a_network_of_ones_own() -> None:
    twice = gemm(2, 3, 4)
    rows = Network("mine", (twice, relu(8), twice)).arrays
    assert rows.order.tolist() == [0, 1, 0]
    assert rows.repeats.tolist() == [2, 1]
    assert [rows.m.tolist(), rows.n.tolist(), rows.k.tolist(), rows.copies.tolist()] == [[2, 0], [3, 0], [4, 0], [1, 0]]
    assert [KINDS[code] for code in rows.kind] == ["gemm", "elementwise"]
    assert len(Network("empty", ()).arrays) == 0


def test_an_operator_that_only_moves_data_has_no_intensity() -> None:
    builder = LayerBuilder()
    builder.embedding("words", 4, 8, 1000)
    assert builder.operators[0].intensity.m_as("FLOP/byte") == 0
    assert "embedding words" in repr(builder.operators[0])


# --- language models --------------------------------------------------------------------------


def test_scores_under_a_mask_are_counted_one_by_one() -> None:
    for queries, keys, window in itertools.product(range(1, 7), range(1, 10), range(0, 11)):
        if keys < queries:
            continue
        seen = 0
        for query in range(keys - queries, keys):
            seen += sum(key <= query and (not window or query - key < window) for key in range(keys))
        assert scores_computed(queries, keys, window, causal=True) == seen
        assert scores_computed(queries, keys, 0, causal=False) == queries * keys


# mosaicml/llm-foundry, scripts/train/benchmarking/README.md: model, sequence, parameters.
MPT = [
    ("mpt-125m", 1024, 124_525_056),
    ("mpt-350m", 512, 354_412_544),
    ("mpt-350m", 32768, 387_442_688),
    ("mpt-760m", 2048, 760_470_528),
    ("mpt-1b", 2048, 1_315_950_592),
    ("mpt-3b", 2048, 2_651_837_440),
    ("mpt-3b", 16384, 2_688_537_600),
    ("mpt-7b", 2048, 6_658_859_008),
    ("mpt-7b", 65536, 6_918_905_856),
    ("mpt-13b", 2048, 12_853_954_560),
    ("mpt-30b", 2048, 29_975_214_080),
    ("mpt-70b", 2048, 64_862_437_376),
]


@pytest.mark.parametrize(("name", "positions", "parameters"), MPT)
def test_parameters_of_mpt_grow_with_its_table_of_positions(name: str, positions: int, parameters: int) -> None:
    assert zoo.language_model(name).parameters(positions).m_as("param") == parameters


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("mixtral-8x7b", 46.7, 12.9),  # Jiang et al. 2024, section 2: 47B and 13B
        ("qwen3-235b-a22b", 235, 22.2),  # Qwen3: 235B and 22B
        ("qwen1.5-moe-a2.7b", 14.3, 2.7),  # its card: 14.3B and 2.7B
        ("minicpm3-4b", 4.07, 4.07),  # its card: 4.07B
        ("gpt-oss-120b", 116.83, 5.71),  # arXiv:2508.10925, table 1: 116.83B; its 5.13B active leave out a table
        ("llama-4-maverick", 400, 17),  # model card: 400B and 17B
        ("megatron-530b", 530, 530),  # Smith et al. 2022: 530B
        ("gpt3-175b", 174.6, 174.6),  # Brown et al. 2020, table 2.1: 175.0B
        ("bloom-176b", 176.25, 176.25),  # Le Scao et al. 2022, table 3: 176,247M
        ("maxtext-16b", 15.8, 15.8),
        ("maxtext-1024b", 997, 997),
    ],
)
def test_published_sizes_to_the_digits_given(name: str, billions: float, active: float) -> None:
    model = zoo.language_model(name)
    assert model.parameters().m_as("Gparam") == pytest.approx(billions, rel=0.005)
    assert model.active_parameters().m_as("Gparam") == pytest.approx(active, rel=0.015)


# DeepSeek V2: arXiv:2405.04434, abstract (236B, 21B) and appendix B (15.7B, 2.4B); V3: README_WEIGHTS.md of its
# repository (671B; 36.7B with the classifier of 0.9B); what a token uses counts no table that it looks one row up in.
LATENT = [("deepseek-v2", 236, 21), ("deepseek-v2-lite", 15.7, 2.4), ("deepseek-v3", 671, 36.7)]


@pytest.mark.parametrize(("name", "billions", "active"), LATENT)
def test_deepseek_has_its_published_sizes(name: str, billions: float, active: float) -> None:
    model = zoo.language_model(name)
    used = model.active_parameters().m_as("Gparam") - model.vocabulary * model.hidden / 1e9
    assert model.parameters().m_as("Gparam") == pytest.approx(billions, rel=0.002)
    assert used == pytest.approx(active, rel=0.025)


def test_a_latent_cache_is_what_the_paper_says() -> None:
    """Section 2.1.4 of arXiv:2405.04434: 4.5 heads' width a layer, 9/2 of 128; grouped keys would need 2.25 groups."""
    v2 = zoo.language_model("deepseek-v2")
    assert v2.kv_cache_per_token("int8") == Q_(4.5 * v2.head_dim * v2.layers, "byte")
    # Expanded, a prompt multiplies with keys of 192 and values of 128; absorbed, one token with 576 and 512.
    prompt = next(op for op in v2.prefill(prompt=1000) if op.kind == "attention").products
    token = next(op for op in v2.decode(context=1000) if op.kind == "attention")
    assert prompt is not None and prompt.macs == 128 * 1000 * 1000 * (192 + 128)
    assert token.products is not None and token.products.macs == 128 * 1000 * (576 + 512)
    assert token.data == Q_(2 * (1000 * 576 + 128 * (576 + 512)), "byte")


@pytest.mark.parametrize("name", zoo.networks("language"))
def test_a_decoding_step_reads_weights_once_and_the_whole_cache(name: str) -> None:
    model = zoo.language_model(name)
    step, later = (model.decode(batch=2, context=context) for context in (100, 200))
    if not model.experts:
        read = 2 * (model.parameters().m_as("param") - model.vocabulary * model.hidden * (not model.tied))
        looked_up = step.operators[0].weights.m_as("byte")
        small = model.layers * (20 * model.hidden + 4 * model.ffn + 2 * model.head_dim + 4 * model.heads)
        small += model.layers * (model.latent + model.query_latent)
        small += model.positions * model.hidden + model.vocabulary + 4 * model.hidden
        assert 0 <= read + looked_up - step.weights.m_as("byte") <= 2 * small
    assert step.weights == later.weights
    if not model.window:
        assert_quantity_close(later.data - step.data, 2 * 100 * model.kv_cache_per_token())
    prefill = model.prefill(batch=2, prompt=1)
    assert_quantity_close(prefill.flops, model.decode(batch=2, context=1).flops)


def test_prefill_is_two_flops_for_each_active_parameter_and_token() -> None:
    """Kaplan et al. 2020, eq. 2.2, without the tables and with attention apart."""
    for name in ("llama-2-70b", "mixtral-8x7b", "gpt3-175b"):
        model, tokens = zoo.language_model(name), 64
        network = model.prefill(prompt=tokens)
        products = sum(op.flops.m_as("FLOP") for op in network if op.kind == "gemm")
        tables = (model.vocabulary * (not model.tied) + model.positions) * model.hidden
        assert products == pytest.approx(2 * tokens * (model.active_parameters().m_as("param") - tables), rel=1e-3)


def test_a_causal_mask_halves_the_scores_and_last_logits_drop_the_others() -> None:
    model = zoo.language_model("gpt2")
    full, causal = (model.prefill(2, 1000, causal=causal) for causal in (False, True))
    scores = [sum(op.flops.m_as("FLOP") for op in network if op.kind == "attention") for network in (full, causal)]
    assert scores[1] / scores[0] == pytest.approx(1001 / 2000)
    assert full.macs - causal.macs == Q_(2 * 12 * 12 * 2 * 64 * (1000 * 1000 - 1000 * 1001 // 2), "MAC")
    last = model.prefill(2, 1000, last_logits=True)
    assert full.macs - last.macs == Q_(2 * 999 * 768 * 50257, "MAC")


def test_experts_are_read_when_a_token_visits_them() -> None:
    """One token visits two of eight; a thousand tokens visit all."""
    model = zoo.language_model("mixtral-8x7b")
    alone = {op.name: op for op in model.decode(batch=1)}["experts gate and up"]
    crowd = {op.name: op for op in model.prefill(prompt=1000)}["experts gate and up"]
    expert = Q_(2 * 2 * 4096 * 14336, "byte")
    assert_quantity_close(alone.weights, 2 * expert)
    assert_quantity_close(crowd.weights, 8 * expert)
    assert_quantity_close(crowd.flops, 1000 * alone.flops)


def test_local_attention_stops_growing() -> None:
    model = zoo.language_model("mistral-7b-v0.1")
    near, far = model.decode(context=4096), model.decode(context=30000)
    assert near.flops == far.flops
    assert near.data == far.data
    half = zoo.language_model("gemma-2-9b")
    steps = [half.decode(context=context).data for context in (4096, 8192)]
    assert_quantity_close(steps[1] - steps[0], 4096 * half.kv_cache_per_token() / 2)


@pytest.mark.parametrize(("name", "gibibytes"), [("llama-3-8b", 4.58), ("llama-3-70b", 39.59)])
def test_sizes_of_quantised_files(name: str, gibibytes: float) -> None:
    """XiongjieDai/GPU-Benchmarks-on-LLM-Inference: Q4_K_M files of 4.58 and 39.59 GB, which are GiB.

    The bits of the format were measured over another model, Llama 2 7B: two per cent.
    """
    size = zoo.language_model(name).weight_bytes("Q4_K_M").m_as("GiB")
    assert size == pytest.approx(gibibytes, rel=0.02)


def test_block_formats_are_the_bytes_of_their_blocks() -> None:
    """ggml-common.h: bytes of a block and the weights in it."""
    blocks = {"q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32), "q8_0": (34, 32)}
    blocks |= {"q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256), "q6_k": (210, 256)}
    for name, (size, weights) in blocks.items():
        assert zoo.weight_bits(name) == 8 * size / weights
    assert zoo.weight_bits("bf16") == 16


def test_quantised_weights_shrink_and_activations_stay() -> None:
    plain, packed = (
        zoo.network("llama-2-7b", phase="decode", weight_format=form, precision="fp16") for form in (None, "q8_0")
    )
    assert_quantity_close(packed.weights, plain.weights * 8.5 / 16)
    assert_quantity_close(packed.data - packed.weights, plain.data - plain.weights)
    assert packed.flops == plain.flops


def test_a_smaller_cache_is_read_faster() -> None:
    model = zoo.language_model("llama-3-8b")
    wide, narrow = (model.decode(context=1000, cache_precision=precision) for precision in ("fp16", "fp8"))
    assert_quantity_close(wide.data - narrow.data, 1000 * model.kv_cache_per_token("fp8"))
    assert_quantity_close(model.kv_cache_per_token(), Q_(2 * 32 * 8 * 128 * 2, "byte"))


# --- published counts -------------------------------------------------------------------------

MILLIONS = [
    # millions of multiply-adds, as printed; the tolerance is what the printed digits leave open
    # Howard et al. 2017, table 6
    ("mobilenet_v1_1.0", 569, 1),
    ("mobilenet_v1_0.75", 325, 1),
    ("mobilenet_v1_0.5", 149, 1),
    ("mobilenet_v1_0.25", 41, 1),
    ("mobilenet_v2", 300, 1),  # Sandler et al. 2018, table 4
    ("mobilenet_v2_1.4", 585, 5),  # the same; ours, as torchvision's and timm's, is 582
    ("mobilenet_v3_large", 219, 4),  # Howard et al. 2019, table 3; ours, as torchvision's and timm's, is 217
    ("mobilenet_v3_small", 56, 1),
    ("shufflenet_v2_1.0", 146, 2),  # Ma et al. 2018, table 5
    ("shufflenet_v2_0.5", 41, 1),
    ("efficientnet_b0", 390, 5),  # Tan & Le 2019, table 2: 0.39B
    ("mnasnet_1.0", 315, 2),  # Tan et al. 2019, B1
    ("swin_tiny", 4500, 50),  # Liu et al. 2021, table 1: 4.5G
    ("swin_base", 15400, 50),
    ("convnext_tiny", 4500, 50),  # Liu et al. 2022, table 1: 4.5G
    ("convnext_large", 34400, 50),
    ("vgg16", 15500, 60),  # Canziani et al. 2016
    ("ssd_resnet34", 433000 / 2, 400),  # Reddi et al. 2020, table 1: 433 GOP, two to a multiply-accumulate
    ("ssd_mobilenet_v1", 2470 / 2, 5),  # 2.47 GOP
    ("alexnet_convolutions", 666, 1),  # Chen et al. 2017 (Eyeriss), table V: 0.9 GMAC of layer 2 for 4 pictures
]


@pytest.mark.parametrize(("name", "millions", "tolerance"), MILLIONS)
def test_published_work(name: str, millions: float, tolerance: float) -> None:
    assert zoo.network(name, precision="fp16").macs.m_as("MMAC") == pytest.approx(millions, abs=tolerance)


def test_layers_of_alexnet_in_two_towers() -> None:
    """Chen et al., JSSC 2017, table V: 0.9 and 0.3 GMAC in layers 2 and 5 for a batch of four."""
    layers = {operator.name: operator for operator in zoo.network("alexnet_convolutions", batch=4, precision="fp16")}
    assert layers["conv2"].flops.m_as("GFLOP") / 2 == pytest.approx(0.9, abs=0.05)
    assert layers["conv5"].flops.m_as("GFLOP") / 2 == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(
    ("name", "batch", "uses"),
    [("tpu_mlp0", 200, 200), ("tpu_mlp1", 168, 168), ("tpu_lstm1", 96, 96), ("tpu_cnn0", 8, 2888)],
)
def test_uses_of_a_weight_on_the_first_tpu(name: str, batch: int, uses: float) -> None:
    """Jouppi et al. 2017, table 1, "ops / weight byte", which counts a multiply-accumulate once."""
    network = zoo.network(name, batch=batch, precision="int8")
    assert network.macs.m_as("MAC") / network.weights.m_as("byte") == pytest.approx(uses)


def test_tables_of_the_recommender() -> None:
    """MLPerf Training v1: 26 tables, 128 wide, 24 billion parameters; 479 features reach the top network."""
    network = zoo.network("dlrm", batch=4, precision="fp16")
    tables = [operator for operator in network if operator.kind == "embedding"]
    assert len(tables) == 26
    assert network.parameters.m_as("Gparam") == pytest.approx(24.04, abs=0.01)
    assert next(operator for operator in network if operator.name == "top 1").shape["k"] == 479
    assert all(table.weights.m_as("byte") == 4 * 128 * 2 for table in tables)


def test_the_volume_of_mlperf() -> None:
    """nnU-Net's network for KiTS has 31.2 million parameters; its first layer sees one channel."""
    network = zoo.network("unet3d_kits19", precision="fp16")
    assert network.parameters.m_as("Mparam") == pytest.approx(31.2, abs=0.05)
    first = network.operators[0]
    assert first.products is not None
    assert (first.products.m, first.products.n, first.products.k) == (128**3, 32, 27)


def test_the_scan_of_mlperf_before_2022() -> None:
    """Counted level by level: convolutions of 27 taps on 224 × 224 × 160 voxels of four kinds, halved five times."""
    network = zoo.network("unet3d_brats", precision="fp16")
    down = ((4, 30), (30, 60), (60, 120), (120, 240), (240, 320), (320, 320))
    voxels = [224 * 224 * 160 // 8**level for level in range(6)]
    macs = sum(27 * size * (into * out + out * out) for size, (into, out) in zip(voxels, down, strict=True))
    for level in range(5):
        width, deeper = down[level][1], down[level + 1][1]
        macs += voxels[level] * (27 * 3 * width * width + deeper * width)
    macs += voxels[0] * 30 * 4
    assert network.flops.m_as("FLOP") == 2 * macs


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("clip_vit_base_patch32", 87_849_216),  # of the released network: openai/CLIP, its visual part
        # Layer by layer: the stages of ResNet-50 without its classifier, three laterals, two merged, contexts, heads.
        ("retinaface_resnet50", 23_508_032 + 256 * (512 + 1024 + 2048) + 2 * 9 * 256**2 + 5 * 512
         + 3 * (9 * (256 * 192 + 3 * 64**2) + 2 * (128 + 4 * 64) + 257 * 32)),
    ],
)  # fmt: skip
def test_networks_built_on_others_have_the_parameters_of_their_code(name: str, parameters: int) -> None:
    assert zoo.network(name, batch=1).parameters.m_as("param") == parameters
