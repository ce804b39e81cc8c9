"""Configurations read without torch, against transformers' own classes, published reports and laws."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.api.flops import flops
from mlsys.errors import ArgumentError
from mlsys.units import Q_
from mlsys.workloads import Workload, load, zoo
from mlsys.workloads.transformer_config import read_config
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.transformer_config.fields import known_models
from mlsys.workloads.transformer_config.hybrids import HYBRIDS

sys.path += [str(Path(__file__).parents[2] / "tools"), str(Path(__file__).parent)]
from small_configurations import TOKENS, small

from transformer_defaults import described

transformers.utils.logging.set_verbosity_error()
CLASSES = {
    **transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "mistral4": "Mistral4ForCausalLM"
}  # fmt: skip

LLAMA_405B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
    "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "max_position_embeddings": 163840,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
    "torch_dtype": "bfloat16",
}  # fmt: skip
GPT_OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "torch_dtype": "bfloat16"}
GEMMA_3 = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024,
        "sliding_window_pattern": 6, "vocab_size": 262208,
    },
}  # fmt: skip
DBRX = {
    "model_type": "dbrx", "architectures": ["DbrxForCausalLM"], "d_model": 6144, "n_heads": 48, "n_layers": 40,
    "max_seq_len": 32768, "vocab_size": 100352, "torch_dtype": "bfloat16", "attn_config": {"kv_n_heads": 8},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}  # fmt: skip
ATTENDING = (2, 5, 8, 10, 12, 14)  # of the 16 layers of LFM2 1.2B
LFM2 = {
    "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_key_value_heads": 8,
    "layer_types": ["full_attention" if layer in ATTENDING else "conv" for layer in range(16)],
    "torch_dtype": "bfloat16",
}  # fmt: skip
LFM2_GGUF = {
    "general.architecture": "lfm2", "lfm2.block_count": 16, "lfm2.embedding_length": 2048,
    "lfm2.attention.head_count": 32,
    "lfm2.attention.head_count_kv": [8 if layer in ATTENDING else 0 for layer in range(16)],
}  # fmt: skip
FALCON_40B = {
    "architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
    "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": True, "multi_query": True,
    "torch_dtype": "bfloat16",
}  # fmt: skip
FALCON_7B = {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "torch_dtype": "bfloat16"}
MIXTRAL = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "torch_dtype": "bfloat16"}
QWEN_7B = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "torch_dtype": "float16", "quantization_config": {"bits": 8, "group_size": 128, "quant_method": "gptq"},
}  # fmt: skip
QWEN_72B = QWEN_7B | {
    "hidden_size": 8192, "intermediate_size": 29696, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "quantization_config": {"bits": 4, "group_size": 128, "sym": True, "quant_method": "gptq"},
}  # fmt: skip

# Configuration, bytes of cache a token, tokens, bytes of cache after them.
CACHES = {
    "Llama 3.1 405B: huggingface/blog#2345": (LLAMA_405B, 516_096, 131_072, 63 * 2**30),
    "8-bit weights, 16-bit cache: vllm#22291": (QWEN_7B, 57_344, 3_072, 168 * 2**20),
    "latent: gguf-parser-go#8": (DEEPSEEK, 70_272, 65_536, 70_272 * 65_536),
    "windows: hf-mem#60": (GPT_OSS, 73_728, 131_072, 4_836_556_800),
    "nested: unsloth PR#4757": (GEMMA_3, 507_904, 131_072, 11_173_625_856),
    "convolutions: gguf-parser-go#31": (LFM2, 12_288, 32_768, 384 * 2**20),
    "GGUF metadata: gguf-parser-go#31": (LFM2_GGUF, 12_288, 32_768, 384 * 2**20),
    "Falcon 40B: vllm PR#1164": (FALCON_40B, 122_880, 2_048, 122_880 * 2_048),
    "Falcon 7B: vllm PR#1164": (FALCON_7B, 8_192, 2_048, 8_192 * 2_048),
}


def written(folder: Path, config: object) -> Path:
    """Return the path of a configuration."""
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


@pytest.mark.parametrize("case", CACHES)
def test_the_cache_of_public_reports(case: str, tmp_path: Path) -> None:
    config, each, tokens, after = CACHES[case]
    decoder = read_config(config)
    assert decoder.kv_cache_per_token() == Q_(each, "byte")
    assert decoder.kv_cache(tokens) == Q_(after, "byte")
    step = load(written(tmp_path, config), phase="decode", sequence=tokens, batch=3)
    assert (step.kv_cache_bytes_per_token, step.kv_cache_bytes) == (Q_(each, "byte"), Q_(3 * after, "byte"))


def test_pages_of_all_tokens_and_contexts_that_are_scaled_already(tmp_path: Path) -> None:
    """hf-mem#60: full pages; gguf-parser-go#8: 163,840 tokens are those that YaRN reaches."""
    assert read_config(GPT_OSS).kv_cache(131_072, windows=False) == Q_(9 * 2**30, "byte")
    message = flops(written(tmp_path, GPT_OSS), phase="decode", sequence=131_072, batch=2).explain()
    assert f", {2 * 9 * 2**30 / 1e9:.6g} GB if local layers keep all tokens" in message
    assert "keep all tokens" not in flops(written(tmp_path, LFM2), phase="decode").explain()
    assert read_config(DEEPSEEK).context == 163_840
    assert read_config(DEEPSEEK | {"max_position_embeddings": 4096}).context == 163_840
    scaled = {"type": "linear", "factor": 8.0}
    assert read_config(LLAMA_405B | {"rope_scaling": scaled}).context == 131_072


def test_a_window_is_counted_as_the_catalogue_counts_it(tmp_path: Path) -> None:
    """hf-mem#60: scores of a sliding layer at 2,048 tokens are 2.147 GMAC, not 34.36."""
    work = load(written(tmp_path, GPT_OSS), sequence=2048)
    scores = sorted({op.product_flops.to("GMAC").magnitude for op in work if op.kind == "attention"})
    assert scores == pytest.approx([2.147, 34.36], rel=1e-3)
    assert work.macs == load("gpt-oss-120b", sequence=2048).macs


def test_a_token_reads_the_experts_that_it_visits(tmp_path: Path) -> None:
    """vllm-fit#27: Mixtral 8x7B, one token in BF16."""
    path = written(tmp_path, MIXTRAL)
    one = load(path, sequence=1)
    assert one.data.m_as("GB") == pytest.approx(25.5, rel=0.001)
    assert one.parameters == Q_(46_702_792_704, "param")
    assert one.active_parameters == Q_(12_879_925_248, "param")
    read = [load(path, phase="decode", sequence=64, batch=batch).weights.magnitude for batch in (1, 2, 4, 8, 64, 4096)]
    assert read == sorted(read) and read[-1] < one.weight_bytes.magnitude
    experts, active, batch = 8, 2, 4
    visited = experts * (1 - (1 - active / experts) ** batch)
    step = load(path, phase="decode", sequence=64, batch=batch)
    (down,) = {op.weights.magnitude for op in step if op.name == "experts down"}
    assert down == pytest.approx(visited * 14336 * 4096 * 2)


def test_a_gptq_file_is_as_large_as_it_is(tmp_path: Path) -> None:
    """gpustack#645: Qwen2.5 72B in GPTQ-Int4 is 41.62 GB: packed weights, scales, zeros, tables and the rest."""
    path = written(tmp_path, QWEN_72B)
    work = load(path)
    assert work.weight_bytes.m_as("GB") == pytest.approx(41.62, abs=0.005)
    linear = 80 * (8192 * (2 * 8192 + 2 * 1024) + 3 * 8192 * 29696)
    tables, rows = 2 * 152064 * 8192, 80 * (6 * 8192 + 29696)
    small = 80 * (8192 + 2 * 1024 + 2 * 8192) + 8192
    parts = (linear / 2, linear / 128 * 2, linear / 128 / 2, tables * 2, rows * 4, small * 2)
    assert [part / 1e9 for part in parts[:4]] == pytest.approx([35.232, 1.101, 0.275, 4.983], abs=0.001)
    assert work.weight_bytes.magnitude == pytest.approx(sum(parts), abs=1)
    assert "gptq, 4 bits, groups of 128" in work.recipe
    # Of one step all is read but the table of tokens and the small parameters.
    step = load(path, phase="decode", sequence=1)
    assert step.weights.magnitude == pytest.approx(sum(parts[:5]) - tables + 8192 * 2, rel=1e-6)
    plain = load(path, precision="fp16")
    assert plain.weight_bytes == Q_(2 * plain.parameters.magnitude, "byte")
    assert "`quantization_config` is overridden by fp16" in plain.recipe


QUANTIZED: list[tuple[dict[str, Any], float, float]] = [
    # quantization_config, bits of a weight of a layer of 256 × 256, bits of the classifier
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128, 16),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8 + 24 / 256 + 32 / 256, 16),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}, 4 + 20 / 128 + 32 / 256, 4.40625 - 0.125),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5, 16),
    ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4 + 8.125 / 64, 16),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8 + 32 / 256, 16),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2, 16),
    ({"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}, 16, 16),
    (
        {"quant_method": "compressed-tensors", "ignore": ["lm_head"],
         "config_groups": {"group_0": {"weights": {"num_bits": 4, "strategy": "group", "group_size": 32}}}},
        4.5, 16,
    ),
    (
        {"quant_method": "compressed-tensors", "ignore": ["re:.*self_attn.*"],
         "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}},
        16, 16,
    ),
    (
        {"quant_method": "compressed-tensors",
         "config_groups": {"group_0": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "strategy": "channel"}}}},
        16, 16,
    ),
    (
        {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
            "num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 64]}}}},
        8 + 16 / (128 * 64), 16,
    ),
    ({"quant_method": "gptq", "bits": 4, "modules_in_block_to_quantize": [["mlp.up_proj"]]}, 16, 16),
    (
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "modules_in_block_to_quantize": [["self_attn.o_proj"]]},
        4 + 20 / 128 + 32 / 256, 16,
    ),
    ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, 8 + 32 / 256, 16),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5, 16),
    ({"quant_method": "mxfp4"}, 16, 16),  # of the experts alone
]  # fmt: skip


@pytest.mark.parametrize(("quantization", "layer", "head"), QUANTIZED)
def test_formats_of_weights(quantization: dict[str, Any], layer: float, head: float) -> None:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "vocab_size": 512,
              "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 512}  # fmt: skip
    decoder = read_config(config | {"quantization_config": quantization})
    assert decoder.quantization is not None
    bits = decoder.quantization.operator_bits(decoder, 1, 16)
    assert bits["attention output"] == pytest.approx(layer)
    outside = decoder.quantization.operator_bits(decoder, None, 16)
    assert outside["embedding"] == 16
    assert outside["logits"] == pytest.approx(head, abs=0.2 if head < 16 else 0)


def test_one_layer_may_keep_its_format() -> None:
    config = LLAMA_405B | {"quantization_config": {"quant_method": "awq", "modules_to_not_convert": ["model.layers.0"]}}
    decoder = read_config(config)
    assert decoder.quantization is not None
    first, second, tenth = (
        decoder.quantization.operator_bits(decoder, layer, 16)["feed-forward down"] for layer in (0, 1, 10)
    )
    assert first == 16 and second == tenth == 4 + 20 / 128


def test_only_experts_are_mxfp4_and_the_cache_has_a_format_of_its_own() -> None:
    quantized = read_config(GPT_OSS | {"quantization_config": {"quant_method": "mxfp4"}})
    assert quantized.weight_bytes().m_as("GB") == pytest.approx(65.25, abs=0.05)
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"},
              "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}  # fmt: skip
    eight = read_config(LLAMA_405B | {"quantization_config": scheme})
    assert eight.kv_cache_per_token() == Q_(516_096 / 2, "byte")


# --- transformers as the oracle -------------------------------------------------------------------------

SIZES = st.fixed_dictionaries(
    {
        "layers": st.integers(1, 4),
        "heads": st.sampled_from([2, 4, 8]),
        "share": st.sampled_from([1, 2]),
        "head_dim": st.sampled_from([8, 16]),
        "inner": st.sampled_from([24, 40]),
        "tied": st.booleans(),
        "window": st.sampled_from([None, 4, 16]),
        "first": st.integers(0, 2),
        "latent": st.sampled_from([None, 12]),
        "bare": st.booleans(),
        "flags": st.sets(
            st.sampled_from(
                ["attention_bias", "mlp_bias", "use_bias", "bias", "qkv_bias", "use_qkv_bias", "qk_layernorm",
                 "use_qk_norm", "new_decoder_architecture", "multi_query", "parallel_attn", "use_parallel_residual",
                 "enable_bias", "do_layer_norm_before", "layer_norm_elementwise_affine", "use_sliding_window"]
            )
        ),
        "unset": st.booleans(),
    }
)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(ARCHITECTURES))
@settings(max_examples=6, deadline=None)
@given(sizes=SIZES)
def test_parameters_and_windows_are_those_of_transformers(kind: str, sizes: dict[str, Any]) -> None:
    config = small(kind, sizes)
    theirs = transformers.CONFIG_MAPPING[kind](**config)
    with torch.device("meta"):
        if sizes["bare"]:
            module = transformers.AutoModel.from_config(theirs)
        else:
            module = getattr(transformers, CLASSES[kind])._from_config(theirs)
    named = {} if sizes["bare"] else {"architectures": [CLASSES[kind]]}
    ours = read_config(config | named | {"model_type": kind})
    assert ours.parameters().magnitude == sum(weight.numel() for weight in module.parameters())
    window = (theirs.sliding_window or 0) if "sliding_window" in known_models()[kind]["defaults"] or (
        kind in ("ministral3", "mixtral", "phi3", "phimoe", "starcoder2", "smollm3")
    ) else 0  # fmt: skip
    kinds = getattr(theirs, "layer_types", None)
    if kind not in HYBRIDS and kind not in ("gpt_neo", "llama4_text"):
        local = [name == "sliding_attention" for name in kinds] if kinds else [True] * len(ours.layers)
        if kind == "smollm3" and "use_sliding_window" not in sizes["flags"]:
            local = [False] * len(local)
        assert [layer.window for layer in ours.layers] == [window if each else 0 for each in local]


@pytest.mark.parametrize("kind", sorted(ARCHITECTURES))
def test_defaults_are_those_of_transformers(kind: str) -> None:
    assert dict(known_models()[kind]) == described(kind)
    theirs = transformers.CONFIG_MAPPING[kind]()
    # what these leave open
    stated = {"deepseek_v2": {"num_experts_per_tok": 2}, "glm4_moe": {"head_dim": 128},
              "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2},
              "dbrx": {"attn_config": DBRX["attn_config"], "ffn_config": DBRX["ffn_config"]}}  # fmt: skip
    ours = read_config({"model_type": kind, **stated.get(kind, {})})
    assert (ours.hidden, len(ours.layers)) == (theirs.hidden_size, theirs.num_hidden_layers)
    assert ours.tied == theirs.tie_word_embeddings


@pytest.mark.parametrize(
    "kind", ["gpt_oss", "qwen2_moe", "gemma3_text", "deepseek_v3", "falcon", "opt", "bloom", "cohere", "phi"]
)
def test_work_is_that_of_the_traced_module(kind: str, tmp_path: Path) -> None:
    flags, share = {"parallel_attn", "attention_bias"}, 1 if kind in ("deepseek_v3", "falcon") else 2
    sizes = {"layers": 2, "heads": 4, "share": share, "head_dim": 16, "inner": 40, "tied": False, "window": 64,
             "first": 1, "latent": 12, "bare": False, "flags": flags, "unset": False}  # fmt: skip
    config = small(kind, sizes) | {"model_type": kind, "architectures": [CLASSES[kind]]}
    ours = load(written(tmp_path, config), batch=2, sequence=16)
    traced = Workload.from_hf_config(config, batch=2, sequence=16)
    assert (ours.product_flops, ours.parameters) == (traced.product_flops, traced.parameters)
    assert ours.flops.magnitude == pytest.approx(traced.flops.magnitude, rel=0.05)
    assert dict(ours.sizes) == dict(traced.sizes) == {"batch": 2, "sequence": 16}


@pytest.mark.parametrize("kind", ["gemma3", "gemma4", "llava", "mistral3", "qwen2_vl", "qwen2_5_vl", "paligemma"])
@pytest.mark.parametrize("tied", [None, True, False])
def test_nested_configurations_are_those_of_transformers(kind: str, tied: bool | None) -> None:
    inner = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 48, "vocab_size": 97, "head_dim": 8, **TOKENS}  # fmt: skip
    outer = {} if tied is None else {"tie_word_embeddings": tied}
    theirs = transformers.CONFIG_MAPPING[kind](text_config=dict(inner), **outer)
    named = [transformers.models.auto.modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES[kind]]
    with torch.device("meta"):
        module = getattr(transformers, named[0])._from_config(theirs)
    language = {id(each): each.numel() for each in module.model.language_model.parameters()}
    language |= {id(each): each.numel() for each in module.lm_head.parameters()}
    ours = read_config({"model_type": kind, "architectures": named, "text_config": inner, **outer})
    # Transformers 5 ties what checkpoints of Mistral 3 store apart: their own count is below.
    apart = inner["hidden_size"] * inner["vocab_size"] if (kind, tied) == ("mistral3", None) else 0
    assert ours.parameters().magnitude == sum(language.values()) + apart
    assert "vision_config" in ours.left_out


def test_published_counts_under_older_names_and_without_flags() -> None:
    """BLOOM 560M writes `n_embed`; Mistral Small 3.1 has a classifier of its own and no flag that says so."""
    bloom = {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "n_layer": 24, "num_attention_heads": 16}
    assert read_config(bloom | {"n_embed": 1024}).parameters() == Q_(559_214_592, "param")
    inner = {"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
             "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072}  # fmt: skip
    small = {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "text_config": inner}
    assert read_config(small).parameters() == Q_(23_572_403_200, "param")
    tied = read_config(small | {"text_config": inner | {"tie_word_embeddings": True}})
    assert tied.parameters() == Q_(23_572_403_200 - 5120 * 131072, "param")


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_a_traced_row_reads_the_matrix_of_one_expert(tokens: int) -> None:
    experts, active = 16, 2
    config = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 64, "vocab_size": 100,
              "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
              "num_local_experts": experts, "num_experts_per_tok": active}  # fmt: skip
    traced = Workload.from_hf_config(config, sequence=tokens, precision="fp16")
    read = [op.weights.magnitude for op in traced if "grouped_mm" in op.name]
    assert sum(read) == pytest.approx(tokens * active * 3 * 64 * 128 * 2, rel=0.02)  # and the rows themselves


# --- laws ----------------------------------------------------------------------------------------------

PUBLISHED = {
    "llama-2-7b": {"model_type": "llama"},
    "mistral-7b-v0.1": {"model_type": "mistral"},
    "mixtral-8x7b": {"model_type": "mixtral"},
    "gpt2": {"model_type": "gpt2"},
    "gpt-oss-120b": {"model_type": "gpt_oss"},
    "deepseek-v3": {"model_type": "deepseek_v3"},
    "gemma-7b": {"model_type": "gemma"},
    "gemma-2-2b": {"model_type": "gemma2"},
    "llama-3.1-405b": LLAMA_405B,
    "gpt-neox-20b": {"model_type": "gpt_neox"},
    "falcon-7b": {"model_type": "falcon"},
    "qwen1.5-moe-a2.7b": {"model_type": "qwen2_moe"},
}
EXACT_GELU = ("gpt-neox-20b", "falcon-7b")  # the catalogue has the approximation by tanh
MORE = {"qwen1.5-moe-a2.7b": 24 * 2048}  # the gate of the shared expert, which the catalogue leaves out


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_configuration_is_the_network_of_the_catalogue(name: str, tmp_path: Path) -> None:
    config = {**PUBLISHED[name]}
    config["architectures"] = [CLASSES[config["model_type"]]]
    ours, theirs = read_config(config), zoo.language_model(name)
    assert ours.parameters().magnitude == theirs.parameters().magnitude + MORE.get(name, 0)
    assert ours.kv_cache(5000) == theirs.kv_cache(5000)
    if name in MORE:
        return
    path = written(tmp_path, config)
    for sizes in ({"phase": "decode", "sequence": 700, "batch": 3}, {"sequence": 64, "batch": 2}):
        ours_now, theirs_now = (load(net, precision="fp16", **sizes) for net in (path, name))
        assert ours_now.product_flops == theirs_now.product_flops
        if ours_now.has_graph == theirs_now.has_graph:  # a drawn network also counts what makes its positions
            assert ours_now.data == theirs_now.data
            if name not in EXACT_GELU:
                assert ours_now.flops == theirs_now.flops


@settings(max_examples=40, deadline=None)
@given(window=st.integers(1, 300), tokens=st.integers(1, 600), batch=st.integers(1, 8))
def test_the_cache_grows_by_what_each_layer_keeps(window: int, tokens: int, batch: int) -> None:
    decoder = read_config(GPT_OSS | {"sliding_window": window})
    grown = decoder.kv_cache(tokens + 1, batch=batch) - decoder.kv_cache(tokens, batch=batch)
    growing = sum(not layer.window or tokens < layer.window for layer in decoder.layers)
    assert grown.magnitude == batch * growing * decoder.kv_cache_per_token().magnitude / len(decoder.layers)
    assert decoder.kv_cache(tokens) <= decoder.kv_cache(tokens, windows=False)


def test_neither_torch_nor_transformers_is_imported(tmp_path: Path) -> None:
    path = written(tmp_path, DEEPSEEK)
    code = (
        "import sys; from mlsys.cli import main; main(['flops', sys.argv[1], '--phase', 'decode', '--json'], "
        "standalone_mode=False); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    assert record["kv_cache_bytes_per_token"] == 70_272
    assert record["active_parameters"] < record["params"] and record["context"] == 163_840
    assert (record["batch"], record["sequence"], record["precision"]) == (1, 512, "bf16")


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    recipe = load(written(tmp_path, {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4})).recipe
    assert "intermediate_size 11008 (transformers' default)" in recipe and "hidden_size" not in recipe
    assert "the bare model, without logits" in recipe
    assert "without vision_config" in load(written(tmp_path, GEMMA_3), sequence=8).recipe


def test_another_architecture_is_traced_and_it_is_said(tmp_path: Path) -> None:
    small_biogpt = {"model_type": "biogpt", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
                    "intermediate_size": 32, "vocab_size": 50, "torch_dtype": "float16"}  # fmt: skip
    path = written(tmp_path, small_biogpt)
    work = load(path, batch=3, sequence=8)
    assert "traced, as `model_type` 'biogpt' is not read here" in work.recipe
    assert (work.precision, dict(work.sizes)) == ("fp16", {"batch": 3, "sequence": 8})
    with pytest.raises(ArgumentError, match="`phase`: `model_type` 'biogpt' is not read here.*Leave `phase` out"):
        load(path, phase="decode")
    with pytest.raises(ArgumentError, match="`quantization_config` cannot be applied"):
        load(written(tmp_path, small_biogpt | {"quantization_config": {"quant_method": "gptq", "bits": 4}}))


# --- what cannot be ------------------------------------------------------------------------------------

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
WRONG: list[tuple[object, str]] = [
    ({"hidden_size": 64}, "`model_type` is missing. Add it"),
    ({"tokenizer_class": "LlamaTokenizer"}, "this is a tokenizer's configuration"),
    ({"do_sample": True}, "this is a generation configuration"),
    ({"architectures": ["NobodyForCausalLM"]}, "and `architectures` names 'NobodyForCausalLM', which is not known"),
    (LLAMA_405B | {"hidden_size": -4}, "`hidden_size` must be a whole number from 1 to 100,000,000, got -4"),
    (LLAMA_405B | {"num_hidden_layers": "126"}, "`num_hidden_layers` must be a whole number from 1 to 1,000"),
    (LLAMA_405B | {"num_key_value_heads": 7}, "`num_key_value_heads` is 7, which does not divide the 128"),
    (LLAMA_405B | {"num_attention_heads": 3}, "`hidden_size` is 16384, no multiple of the 3"),
    (LLAMA_405B | {"hidden_act": "sillu"}, "Did you mean 'silu'"),
    (LLAMA_405B | {"torch_dtype": "bloat16"}, "`torch_dtype` is 'bloat16'"),
    (LLAMA_405B | {"quantization_config": {"quant_method": "aqlm"}}, "`quant_method` of `quantization_config` is"),
    (LLAMA_405B | {"quantization_config": {"quant_method": "gptq", "bits": "4"}}, "`bits` of `quantization_config`"),
    ({"model_type": "qwen3", "layer_types": ["full_attention"]}, "`layer_types` has 1 entries for the 32 layers"),
    ({"model_type": "mixtral", "num_experts_per_tok": 9}, "`num_experts_per_tok` is 9, more than the 8"),
    ({"model_type": "deepseek_v2"}, "`num_experts_per_tok` is missing, and transformers has no default"),
    ({"model_type": "gpt2", "n_embd": 64, "hidden_size": 128}, "`hidden_size` is 128 and `n_embd` is 64, two names"),
    ({"model_type": "llama", "n_layer": 2}, "`n_layer` is no field of llama, and `num_hidden_layers` is missing. Ren"),
    ({"model_type": "llama", "d_model": 64}, "Rename it to `hidden_size`"),
    ({"model_type": "llama", "num_key_value_head": 8}, "Rename it to `num_key_value_heads`"),
    ({"model_type": "gpt2", "intermediate_size": 64}, "`intermediate_size` is no field of gpt2, and `n_inner`"),
    ({"model_type": "falcon", "num_key_value_heads": 8}, "Rename it to `num_kv_heads`"),
    (LLAMA_405B | {"dtype": "float16"}, "`dtype` is 'float16' and `torch_dtype` is 'bfloat16'. Remove one"),
    (LLAMA_405B | {"rope_scaling": "yarn"}, "`rope_scaling` must be a JSON object or null, got 'yarn'"),
    (LLAMA_405B | {"rope_scaling": {"factor": "40"}}, "`factor` of `rope_scaling` must be a number above zero"),
    (LLAMA_405B | {"rope_scaling": {"factor": 1e308}}, "`factor` of `rope_scaling` must be a number above zero"),
    (LLAMA_405B | {"architectures": ["MistralForCausalLM"]}, "'MistralForCausalLM', a class of mistral"),
    (GEMMA_3 | {"llm_config": {"model_type": "llama"}}, "`text_config` and `llm_config` are both there"),
    (LLAMA_405B | {"quantization_config": {"quant_method": "gptq", "bits": 99}}, "`bits` of `quantization_config`"),
    (
        LLAMA_405B | {"quantization_config": {"load_in_4bit": True, "load_in_8bit": True}},
        "has both `load_in_4bit` and `load_in_8bit`",
    ),
    (
        LLAMA_405B | {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": "false"}},
        "`load_in_4bit` of `quantization_config` must be true or false, got 'false'",
    ),
    (
        LLAMA_405B | {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["re:("]}},
        "'re:(', which is no regular expression",
    ),
    (
        LLAMA_405B | {"quantization_config": {
            "quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"},
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8}}}}},
        "`sparsity_config` of `quantization_config` has the format 'sparse-24-bitmask'",
    ),
    (
        GEMMA_3 | {"n_layers": 3, "text_config": {"model_type": "gemma3_text", "hidden_size": 64}},
        "`n_layers` 3 stands beside `text_config`",
    ),
    (GEMMA_3 | {"text_config": {"model_type": "gemma9_text"}}, "`model_type` of `text_config` is 'gemma9_text'"),
    (DBRX | {"attn_config": {"clip_qkv": 8}}, "`kv_n_heads` is missing in `attn_config`. Add it"),
    (DBRX | {"ffn_config": 4}, "`ffn_config` must be a JSON object"),
    (DBRX | {"tie_word_embeddings": True}, "`tie_word_embeddings` is true"),
    ({"model_type": "gemma3", "text_config": 3}, "`text_config` must be a JSON object"),
    ({"general.architecture": ["llama"]}, "`general.architecture` is ['llama']"),
    ({"general.architecture": "rwkv"}, "`general.architecture` is 'rwkv'"),
    ({"general.architecture": "llama", "llama.block_count": 2}, "`llama.embedding_length` is missing"),
    ('{"model_type": "llama", "hidden_size": 64, "hidden_size": 128}', "the key 'hidden_size' is there twice"),
    ('{"model_type": "llama", "hidden_size": NaN}', "NaN is not a number"),
]  # fmt: skip


def test_a_size_beside_a_nested_configuration_is_named() -> None:
    assert read_config(GEMMA_3 | {"hidden_size": 64, "vocab_size": 262208}).left_out == (
        "vision_config", "`hidden_size` 64 beside `text_config`",
    )  # fmt: skip


def test_models_with_code_of_their_own_that_have_the_layers_of_llama() -> None:
    """Baichuan 7B and InternLM2 7B: counts of the checkpoints, from their cards (7,000,559,616 and 7.74 G)."""
    seven = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu"}
    baichuan = seven | {"model_type": "baichuan", "architectures": ["BaiChuanForCausalLM"], "vocab_size": 64000,
                        "intermediate_size": 11008, "model_max_length": 4096}  # fmt: skip
    read = read_config(baichuan)
    assert (read.parameters(), read.context) == (Q_(7_000_559_616, "param"), 4096)
    intern = seven | {"model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "vocab_size": 92544,
                      "intermediate_size": 14336, "num_key_value_heads": 8, "bias": False}  # fmt: skip
    assert read_config(intern).parameters() == Q_(7_737_708_544, "param")
    with pytest.raises(ArgumentError, match="`bias` must be true or false for internlm2, got None"):
        read_config({name: value for name, value in intern.items() if name != "bias"})


def test_experts_of_dbrx_stand_in_a_part_of_their_own() -> None:
    """The model card, databricks/dbrx-base: 132 B parameters, of which 36 B are active on any input."""
    dbrx = read_config(DBRX)
    assert (round(dbrx.parameters().magnitude / 1e9), int(dbrx.active_parameters().magnitude / 1e9)) == (132, 36)


@pytest.mark.parametrize(("config", "message"), WRONG, ids=[message[:50] for _, message in WRONG])
def test_what_cannot_be_is_refused(config: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        load(written(tmp_path, config))
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_learned_positions_have_an_end(phase: Any, tmp_path: Path) -> None:
    path = written(tmp_path, GPT2 | {"n_positions": 128})
    with pytest.raises(ArgumentError, match="`sequence` must be at most 128, the positions learned by GPT2LMHeadModel"):
        load(path, sequence=200, phase=phase)
    assert load(path, phase=phase).sizes["sequence"] == 128
    assert load(path, precision="fp64").stored_as("fp16").weight_bytes == load(path, precision="fp16").weight_bytes


def test_null_is_no_default(tmp_path: Path) -> None:
    """Mistral without its window; heads of keys that are as many as heads."""
    assert read_config({"model_type": "mistral", "sliding_window": None}).layers[0].window == 0
    assert read_config({"model_type": "mistral"}).layers[0].window == 4096
    assert read_config({"model_type": "mistral", "num_key_value_heads": None}).layers[0].kv_heads == 32
