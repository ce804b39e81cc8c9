"""The single way to a decoder: names, configurations and folders, and what is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from mlsys.api.analyze import analyze
from mlsys.api.compare import compare
from mlsys.api.flops import flops
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.units import Q_
from mlsys.workloads import load
from mlsys.workloads.transformer_config import load_decoder, read_config
from mlsys.workloads.zoo import language_model

MISTRAL: dict[str, Any] = {"model_type": "mistral", "architectures": ["MistralForCausalLM"]}


def test_names_files_and_folders_are_one_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MISTRAL))
    read = read_config(MISTRAL)
    assert load_decoder(path) == load_decoder(str(tmp_path)) == load_decoder(read) == read
    assert load_decoder("Mistral 7B v0.1").parameters() == read.parameters() == Q_(7_241_732_096, "param")
    assert load_decoder("mistral-7b-v0.1") is language_model("mistral-7b-v0.1")


REFUSED: list[tuple[str, Any, str]] = [
    ("config.json", {"tokenizer_class": "LlamaTokenizer"}, "this is a tokenizer's configuration"),
    ("adapter_config.json", {"peft_type": "LORA", "r": 8}, "this is an adapter's configuration (it has `peft_type`)"),
    ("model_index.json", {"_class_name": "X", "_diffusers_version": "0.30"}, "this is a diffusion pipeline's index"),
    ("preprocessor_config.json", {"image_processor_type": "X"}, "this is an image processor's configuration"),
    ("config.json", [1], "must be a JSON object"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED)
def test_other_files_are_named(name: str, content: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ArgumentError) as caught:
        load_decoder(tmp_path / name)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_what_names_no_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no language model 'lama-3-8b'. Did you mean 'llama-3-8b'"):
        load_decoder("lama-3-8b")
    with pytest.raises(ArgumentError, match="'resnet50' is a picture network"):
        load_decoder("resnet50")
    with pytest.raises(ArgumentError, match="has no config.json"):
        load_decoder(tmp_path)
    with pytest.raises(ArgumentError, match="there is no file"):
        load_decoder(tmp_path / "model.safetensors")


@pytest.mark.parametrize("model", ["llama-3-8b", "config"])
def test_formats_of_weights_and_cache_are_apart_from_that_of_the_activations(model: str, tmp_path: Path) -> None:
    if model == "config":
        model = str(tmp_path / "config.json")
        eight_billion = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
                         "num_attention_heads": 32, "num_key_value_heads": 8}  # fmt: skip
        llama = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "float16"}
        Path(model).write_text(json.dumps(llama | eight_billion))
    given: dict[str, Any] = {"phase": "decode", "sequence": 4096, "batch": 16, "precision": "fp16"}
    plain, small = flops(model, **given), flops(model, **given, weight_format="int4 g128", kv_format="fp8")
    weights = 8_030_261_248
    assert plain.record()["weight_bytes"] == 2 * weights
    assert small.record()["weight_bytes"] == round(weights * 4.125 / 8)
    assert small.record()["kv_cache_bytes"] * 2 == plain.record()["kv_cache_bytes"] == 4096 * 16 * 131_072
    assert small.record()["weight_format"] == "int4 g128" and small.record()["precision"] == "fp16"
    assert small.flops == plain.flops
    # A step reads all weights but the table of tokens, and the whole cache.
    saved = (weights - 128_256 * 4096) * (16 - 4.125) / 8 + 4096 * 16 * 131_072 / 2
    assert plain.network.data.magnitude - small.network.data.magnitude == pytest.approx(saved, rel=1e-3)
    slow, quick = (analyze("A100", model, **given, **each) for each in ({}, {"weight_format": "int4 g128"}))
    assert quick.bound < slow.bound and "weights in int4 g128" in quick.record()["recipe"]
    both = compare(["A100", "H100"], model, **given, kv_format="fp8").record()
    assert both[0]["bound_seconds"] < slow.record()["bound_seconds"]


def test_formats_of_what_has_none_are_refused(tmp_path: Path) -> None:
    for network in ("resnet50", "torch.nn:Identity"):
        with pytest.raises(ArgumentError, match="`kv_format`"):
            load(network, kv_format="fp8")
    with pytest.raises(UnknownNameError, match="`weight_format`: unknown weight format 'q4_9'"):
        load("llama-3-8b", weight_format="q4_9")
    with pytest.raises(UnknownNameError, match="`kv_format`: .*'fp9'"):
        load("llama-3-8b", kv_format="fp9")
    with pytest.raises(ArgumentError, match="`weight_format` applies to networks loaded by name"):
        flops(load("llama-3-8b"), weight_format="int8")


@pytest.mark.parametrize("weights", [None, "int4 g128"])
def test_what_must_lie_in_memory_is_what_is_stored(weights: str | None) -> None:
    answer = analyze("H100", "llama-3-70b", phase="decode", sequence=1024, batch=4, weight_format=weights)
    bits, parameters = {None: 16, "int4 g128": 4.125}[weights], 70_553_706_496
    cache = 4 * 1024 * 327_680
    assert answer.memory.needed.m_as("GB") == pytest.approx((parameters * bits / 8 + cache) / 1e9, rel=0.002)
    assert answer.memory.fits is (weights is not None)


def test_recurrent_states_lie_in_memory_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "mamba2", "architectures": ["Mamba2ForCausalLM"], "torch_dtype": "bfloat16"})
    )
    one, many = (analyze("H100", tmp_path, phase="decode", batch=batch).memory.needed for batch in (1, 65))
    each = 64 * (8192 * 128 * 4 + (8192 + 2 * 8 * 128) * 4 * 2)  # layers, state in FP32, four columns in 16 bits
    scan = 2 * 8192 * 128 * 4  # and what the scan of one layer reads and writes of its state
    assert (many - one).m_as("byte") == pytest.approx(64 * (each + scan), rel=0.002)
    record = flops(tmp_path, phase="decode", batch=3, sequence=100_000).record()
    assert (record["state_bytes"], record["kv_cache_bytes"]) == (3 * each, 0)
