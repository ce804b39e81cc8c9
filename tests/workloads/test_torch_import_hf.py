"""Transformers models from their configurations, against the recorded references; nothing is downloaded."""

import csv
import json
import socket
from pathlib import Path

import pytest
import transformers

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.units import Q_
from mlsys.workloads import Workload, load, zoo

with (Path(__file__).parents[1] / "oracles" / "data" / "flop_counters.csv").open(newline="") as file:
    REFERENCES = {row["model"]: row for row in csv.DictReader(file) if row["params"]}

CONFIGURATIONS = {
    "gpt2": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, {"sequence": 1024}),
    "bert_base": ({"model_type": "bert"}, {"sequence": 128}),
    "resnet50": (
        {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "num_labels": 1000},
        {"image": 224},
    ),
    "mobilenet_v2": (
        {"model_type": "mobilenet_v2", "architectures": ["MobileNetV2ForImageClassification"], "num_labels": 1000},
        {"image": 224},
    ),
}
SMALL = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 64}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("model", CONFIGURATIONS)
def test_hand_derived_references(model: str) -> None:
    config, sizes = CONFIGURATIONS[model]
    network = Workload.from_hf_config(config, **sizes)
    assert network.macs == Q_(int(REFERENCES[model]["ref_macs"]), "MAC")
    assert network.parameters == Q_(int(REFERENCES[model]["params"]), "param")
    assert (network.coverage, network.source) == (1, "torch.export")


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_both_forms_of_attention_have_the_same_products(attention: str) -> None:
    config = transformers.GPT2Config(n_layer=2, attn_implementation=attention)
    network = Workload.from_hf_config(config, sequence=32)
    width, tokens = 768, 32
    assert network.macs == Q_(2 * (12 * width * width * tokens + 2 * tokens * tokens * width), "MAC")
    kinds = {row.kind for row in network.by_kind()}
    assert ("attention" in kinds, "softmax" in kinds) == (attention == "sdpa", attention == "eager")


def test_detr_is_ours_but_for_the_number_of_classes() -> None:
    config = {
        "model_type": "detr", "architectures": ["DetrForObjectDetection"], "use_timm_backbone": False, "num_labels": 91,
        "use_pretrained_backbone": False, "backbone": None,
        "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]},
    }  # fmt: skip
    network = Workload.from_hf_config(config, image=800)
    assert network.macs == load("detr-r50").macs
    # their normalisations in the backbone are frozen, which makes 53,120 parameters buffers
    assert network.parameters + Q_(53_120, "param") == load("detr-r50").parameters


def test_experts_are_counted_as_often_as_they_are_called() -> None:
    """Mixtral: each token visits 2 of 8 experts, so the work is that of 2 and the weights are those of 8."""
    config = {"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 128,
              "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}  # fmt: skip
    network = Workload.from_hf_config(config, sequence=16)
    tokens, width, inner = 16, 64, 128
    projections = tokens * (2 * width * width + 2 * width * width // 2)
    attention = 2 * tokens * tokens * width
    router, experts = tokens * width * 8, tokens * 2 * 3 * width * inner
    assert network.macs == Q_(projections + attention + router + experts, "MAC")
    assert network.coverage == 1


@pytest.mark.parametrize("query_latent", [48, None])
def test_latent_attention_is_ours(query_latent: int | None) -> None:
    """Products and parameters of DeepSeek's attention, as transformers writes it, in the expanded form of a prompt."""
    config = {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 2,
              "first_k_dense_replace": 2, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
              "num_key_value_heads": 4, "vocab_size": 100, "kv_lora_rank": 32, "q_lora_rank": query_latent,
              "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 24}  # fmt: skip
    theirs = Workload.from_hf_config(config, sequence=16)
    ours = zoo.LanguageModel("small", 2, 64, 4, 4, 16, 96, 100, latent=32, rotary=8, query_latent=query_latent or 0,
                             value_dim=24)  # fmt: skip
    assert ours.parameters() == theirs.parameters
    here = ours.prefill(prompt=16).product_flops - theirs.product_flops
    # theirs also multiplies places with frequencies, once for all layers
    assert abs(here) <= Q_(2 * 16 * 8, "FLOP")


def test_a_switch_transformer_is_ours() -> None:
    """Its parameters to the last one, as transformers builds it; experts in every second layer of both halves."""
    import torch

    config = transformers.SwitchTransformersConfig(
        vocab_size=32128, d_model=1024, d_kv=128, d_ff=16384, num_heads=32, num_layers=24, num_decoder_layers=24,
        num_sparse_encoder_layers=12, num_sparse_decoder_layers=12, num_experts=4, feed_forward_proj="relu",
    )  # fmt: skip
    with torch.device("meta"):
        theirs = transformers.SwitchTransformersForConditionalGeneration(config)
    ours = zoo.network("switch_xl_4", sequence=128)
    assert ours.parameters == Q_(sum(weight.numel() for weight in theirs.parameters()), "param")
    # Experts compute 64 tokens of a sequence each, however long it is.
    longer = zoo.network("switch_xl_4", sequence=256)
    assert [op.flops for op in ours if op.name == "expert up"] == [op.flops for op in longer if op.name == "expert up"]


def test_gnmt_is_the_layers_that_its_code_lists() -> None:
    """Layers of NVIDIA's encoder.py, decoder.py and attention.py, counted by PyTorch."""
    from torch import nn

    width, words = 1024, 32320
    layers: list[nn.Module] = [
        nn.Embedding(words, width), nn.LSTM(width, width, bidirectional=True), nn.LSTM(2 * width, width),
        nn.LSTM(width, width, num_layers=2), nn.LSTM(width, width), nn.Linear(width, width, bias=False),
        nn.Linear(width, width, bias=False), nn.Linear(width, words),
        *(nn.LSTM(2 * width, width) for _ in range(3)),
    ]  # fmt: skip
    normalised = 2 * width + 1
    held = sum(weight.numel() for layer in layers for weight in layer.parameters()) + normalised
    ours = zoo.network("gnmt", sequence=20)
    assert ours.parameters == Q_(held, "param")
    matrices = sum(weight.numel() for layer in layers[1:] for weight in layer.parameters() if weight.dim() == 2)
    assert ours.macs == Q_(20 * matrices + 20 * 20 * width, "MAC")


@pytest.mark.parametrize("kind", ["Fourier", "Learned"])
def test_a_perceiver_is_ours(kind: str) -> None:
    """Its parameters to the last one, as transformers builds it."""
    import torch

    config = transformers.PerceiverConfig(
        num_latents=512, d_latents=1024, d_model=261 if kind == "Fourier" else 512, num_blocks=8,
        num_self_attends_per_block=6, num_self_attention_heads=8, num_cross_attention_heads=1, image_size=224,
        num_labels=1000,
    )  # fmt: skip
    with torch.device("meta"):
        theirs = getattr(transformers, f"PerceiverForImageClassification{kind}")(config)
    ours = zoo.network(f"perceiver_{kind.lower()}")
    assert ours.parameters == Q_(sum(weight.numel() for weight in theirs.parameters()), "param")


def test_a_file_a_dict_and_an_object_are_one_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SMALL))
    networks = [
        Workload.from_hf_config(given, sequence=16)
        for given in (SMALL, path, tmp_path, transformers.GPT2Config(**SMALL))
    ]
    assert len({(network.flops, network.parameters, network.data) for network in networks}) == 1


def test_free_sizes_and_precisions() -> None:
    free = Workload.from_hf_config(SMALL, dynamic=True, precision="bf16")
    anew = Workload.from_hf_config(SMALL, batch=3, sequence=20, precision="bf16")
    assert free.at(batch=3, sequence=20).flops == anew.flops
    assert free.weight_bytes == 2 * Q_(anew.parameters.magnitude, "byte")


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    for make, complaint in (
        (
            lambda: Workload.from_hf_config(tmp_path / "absent.json"),
            r"there is no file .* Model names are not looked up",
        ),
        (lambda: Workload.from_hf_config(tmp_path / "broken.json"), r"not readable as JSON"),
        (lambda: Workload.from_hf_config(3), r"must be a transformers configuration, its dict, or the path"),
        (lambda: Workload.from_hf_config(SMALL, image=224), r"`image` was given, but GPT2Model takes input_ids"),
        (
            lambda: Workload.from_hf_config({"model_type": "vit"}, sequence=8),
            r"`sequence` was given, but ViTModel takes",
        ),
        (lambda: Workload.from_hf_config(SMALL, batch=0), r"`batch` must be a whole number"),
    ):
        with pytest.raises(ArgumentError, match=complaint):
            make()
    for config, complaint in (
        ({"model_type": "gpt22"}, r"`model_type` is 'gpt22'.*Did you mean 'gpt2'"),
        ({**SMALL, "architectures": ["GPT2LMHeadModle"]}, r"names 'GPT2LMHeadModle'.*Did you mean 'GPT2LMHeadModel'"),
    ):
        with pytest.raises(UnknownNameError, match=complaint):
            Workload.from_hf_config(config)
