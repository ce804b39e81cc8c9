"""Metadata of a GGUF file, as JSON, in the words of a ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.fields import fault

# `general.architecture` of llama.cpp (ggml-org/llama.cpp, gguf-py/gguf/constants.py), and the `model_type` of each.
_ARCHITECTURES = {
    "llama": "llama", "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3", "qwen3moe": "qwen3_moe",
    "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3", "deepseek2": "deepseek_v3",
    "gpt-oss": "gpt_oss", "glm4": "glm4", "falcon": "falcon", "starcoder2": "starcoder2", "command-r": "cohere",
    "cohere2": "cohere2", "olmo2": "olmo2", "granite": "granite", "lfm2": "lfm2", "gpt2": "gpt2", "bloom": "bloom",
    "gptneox": "gpt_neox", "stablelm": "stablelm", "phi2": "phi",
    "gptj": "gptj", "mpt": "mpt", "baichuan": "llama", "internlm2": "llama", "granitemoe": "granitemoe",
    "olmoe": "olmoe", "olmo": "olmo", "exaone4": "exaone4", "ernie4_5": "ernie4_5", "glm4moe": "glm4_moe",
    "smollm3": "smollm3", "nemotron": "nemotron", "starcoder": "gpt_bigcode", "mamba": "mamba",
}  # fmt: skip
_KEYS = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.sliding_window": "sliding_window",
    "vocab_size": "vocab_size", "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size", "leading_dense_block_count": "first_k_dense_replace",
    "expert_shared_count": "n_shared_experts", "attention.q_lora_rank": "q_lora_rank",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "ssm.conv_kernel": "conv_kernel", "ssm.inner_size": "intermediate_size", "ssm.state_size": "state_size",
    "ssm.time_step_rank": "time_step_rank",
    "attention.kv_lora_rank": "kv_lora_rank", "attention.key_length": "head_dim", "shortconv.l_cache": "conv_L_cache",
}  # fmt: skip
_LATENT = "deepseek2"
ASSUMED = "assumed by mlsys"
"""Key of what a configuration made from GGUF metadata assumes."""


def is_gguf(given: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is the metadata of a GGUF file."""
    return "general.architecture" in given


def from_gguf(given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the metadata in the words of a ``config.json``, and the ``model_type``.

    Raises
    ------
    ArgumentError
        If the architecture is not known, or its counts contradict each other.
    """
    name = given["general.architecture"]
    if not isinstance(name, str) or name not in _ARCHITECTURES:
        raise fault(f"`general.architecture` is {short(name)}, which is not known here. "
                    f"Known: {', '.join(_ARCHITECTURES)}")  # fmt: skip
    kind = _ARCHITECTURES[name]
    if name == "llama" and given.get("llama.expert_count"):
        kind = "mixtral"
    fields: dict[str, Any] = {}
    for key, value in given.items():
        field = _KEYS.get(key.removeprefix(f"{name}."))
        if field and key.startswith(f"{name}."):
            fields[field] = value
    tokens = given.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list | range):
        fields.setdefault("vocab_size", len(tokens))
    if kind == "mamba":  # llama.cpp states heads and a feed-forward width of 0 for it
        fields = {key: value for key, value in fields.items() if value or key == "num_hidden_layers"}
    for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"):
        if key not in fields and (kind, key) != ("mamba", "num_attention_heads"):
            stated = next(ours for ours, theirs in _KEYS.items() if theirs == key)
            raise fault(f"`{name}.{stated}` is missing from the metadata of this GGUF file")
    if name == _LATENT:
        _latent(given, fields)
    _heads_by_layer(name, kind, fields)
    fields["architectures"] = [f"{kind}ForCausalLM"]
    fields["torch_dtype"] = "float16"  # what llama.cpp keeps in the cache, and what is not quantised
    if kind == "lfm2" and "intermediate_size" in fields:
        fields["block_auto_adjust_ff_dim"] = False  # the stated width is that of the matrices
    file_type = given.get("general.file_type")
    if file_type is not None:
        fields["quantization_config"] = {"quant_method": "gguf", "file_type": file_type}
    else:
        fields[ASSUMED] = ["weights in fp16 (the metadata has no general.file_type)"]
    return fields, kind


def _latent(given: Mapping[str, Any], fields: dict[str, Any]) -> None:
    rotary = given.get(f"{_LATENT}.rope.dimension_count")
    key = given.get(f"{_LATENT}.attention.key_length_mla", given.get(f"{_LATENT}.attention.key_length"))
    value = given.get(f"{_LATENT}.attention.value_length_mla", given.get(f"{_LATENT}.attention.value_length"))
    for name, number in (("rope.dimension_count", rotary), ("attention.key_length", key)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise fault(f"`{_LATENT}.{name}` must be a whole number, got {short(number)}")
    assert isinstance(rotary, int) and isinstance(key, int)
    fields |= {"qk_rope_head_dim": rotary, "qk_nope_head_dim": key - rotary, "v_head_dim": value}
    fields["num_key_value_heads"] = fields["num_attention_heads"]
    fields.pop("head_dim", None)


def _heads_by_layer(name: str, kind: str, fields: dict[str, Any]) -> None:
    """Turn a list of heads, zero where a layer has a short convolution, into one number and the kinds of layers."""
    shared = fields.get("num_key_value_heads")
    if not isinstance(shared, list):
        return
    heads = {count for count in shared if count != 0}
    if len(heads) != 1 or (len(heads) != len(set(shared)) and kind != "lfm2"):
        raise fault(f"`{name}.attention.head_count_kv` has {short(shared)}; layers with different heads are not known "
                    f"here for {name}")  # fmt: skip
    fields["num_key_value_heads"] = heads.pop()
    if 0 in shared:
        fields["layer_types"] = ["full_attention" if count else "conv" for count in shared]
