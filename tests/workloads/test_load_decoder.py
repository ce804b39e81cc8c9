"""The single way to a decoder: names, configurations and folders, and what is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.units import Q_
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


@pytest.mark.parametrize(("name", "content", "said"), REFUSED)
def test_other_files_are_named(name: str, content: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ArgumentError) as caught:
        load_decoder(tmp_path / name)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_what_names_no_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no language model 'lama-3-8b'. Did you mean 'llama-3-8b'"):
        load_decoder("lama-3-8b")
    with pytest.raises(ArgumentError, match="'resnet50' is a picture network"):
        load_decoder("resnet50")
    with pytest.raises(ArgumentError, match="has no config.json"):
        load_decoder(tmp_path)
    with pytest.raises(ArgumentError, match="there is no file"):
        load_decoder(tmp_path / "model.safetensors")
