"""Published checkpoints: parameters, bytes of files, and caches that follow by hand from their configurations."""

import json
from pathlib import Path
from typing import Any

import pytest

from mlsys import size
from mlsys.api.flops import flops
from mlsys.workloads.transformer_config import read_config

LLAMA_8B = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
            "torch_dtype": "float16"}  # fmt: skip
LINEAR, OTHERS = 32 * 218_103_808, 2 * 128256 * 4096 * 2 + 65 * 4096 * 2  # weights of layers; bytes of the rest
GPT_OSS = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 2880,
           "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
           "sliding_window": 128, "vocab_size": 201088, "num_experts_per_tok": 4,
           "quantization_config": {"quant_method": "mxfp4"}}  # fmt: skip
DEEPSEEK = {"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"]}
QWEN_NEXT = {"model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048,
             "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
             "full_attention_interval": 4, "intermediate_size": 5120, "moe_intermediate_size": 512,
             "num_experts": 512, "num_experts_per_tok": 10, "shared_expert_intermediate_size": 512,
             "vocab_size": 151936}  # fmt: skip
GEMMA_4 = {  # google/gemma-4-26B-A4B-it, its language model
    "model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "vision_config": {},
    "text_config": {
        "model_type": "gemma4_text", "hidden_size": 2816, "num_hidden_layers": 30, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2,
        "attention_k_eq_v": True, "hidden_size_per_layer_input": 0, "enable_moe_block": True, "num_experts": 128,
        "top_k_experts": 8, "moe_intermediate_size": 704, "intermediate_size": 2112, "sliding_window": 1024,
    },
}  # fmt: skip


def written(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


# Weights in bytes, of the files or by hand from the layout of the format.
FILES: dict[str, tuple[dict[str, Any], float, float]] = {
    "gpt-oss-120b, 60.8 GiB by its card": (GPT_OSS | {"num_hidden_layers": 36, "num_local_experts": 128},
                                           60.8 * 2**30, 0.005),
    "gpt-oss-20b, 12.8 GiB by its card": (GPT_OSS | {"num_hidden_layers": 24, "num_local_experts": 32},
                                          12.8 * 2**30, 0.01),
    "AWQ": (LLAMA_8B | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128,
                                                "zero_point": True}},
            LINEAR / 2 + LINEAR / 128 * 20 / 8 + OTHERS, 1e-6),
    "FP8 in blocks": (LLAMA_8B | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
                      LINEAR + LINEAR / 128**2 * 4 + OTHERS, 1e-6),
    "NF4, scales quantised": (
        LLAMA_8B | {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True,
                                            "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}},
        LINEAR * (4 + 8 / 64 + 32 / (64 * 256)) / 8 + OTHERS, 1e-4),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_are_as_large_as_they_are(name: str, tmp_path: Path) -> None:
    config, expected, error = FILES[name]
    assert size(written(tmp_path, config)).weight_bytes == pytest.approx(expected, rel=error)


# Bytes of the cache at so many tokens, by hand: layers × tokens × elements × 2 bytes.
CACHES: dict[str, tuple[dict[str, Any], int, int]] = {
    "DeepSeek-V3.2: latents and index keys": (DEEPSEEK, 1000, 61 * 1000 * (512 + 64 + 128) * 2),
    "Qwen3-Next: every fourth layer": (QWEN_NEXT, 1000, 12 * 1000 * 2 * 2 * 256 * 2),
    "MiMo-V2-Flash: twice the heads in windows, narrower values": (
        {"model_type": "mimo_v2_flash"}, 10_000,
        9 * 10_000 * 4 * (192 + 128) * 2 + 39 * 129 * 8 * (192 + 128) * 2),
    "Gemma 4 26B-A4B: two wide heads in global layers": (
        GEMMA_4, 10_000, 5 * 10_000 * 2 * 2 * 512 * 2 + 25 * 1024 * 2 * 8 * 256 * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_caches_by_hand(name: str, tmp_path: Path) -> None:
    config, tokens, expected = CACHES[name]
    assert size(written(tmp_path, config), sequence=tokens).kv_cache_bytes == expected


def test_parameters_of_cards() -> None:
    """DeepSeek-V3.2: 671.9 B with its indexers; Gemma 4 26B-A4B: 25.2 B, of which 3.8 B are active."""
    assert read_config(DEEPSEEK).parameters().magnitude == pytest.approx(671.9e9, rel=1e-3)
    gemma = read_config(GEMMA_4)
    assert gemma.parameters().magnitude == pytest.approx(25.2e9, rel=0.01)
    assert gemma.active_parameters().magnitude == pytest.approx(3.8e9, rel=0.05)


def test_sparse_attention_grows_by_its_indexer_alone(tmp_path: Path) -> None:
    """Beyond 2,048 tokens a step of DeepSeek-V3.2 adds a score of 64 heads of 128, and their sum, for each token."""
    path = written(tmp_path, DEEPSEEK)
    short, long = (flops(path, sequence=tokens, phase="decode").record() for tokens in (2048, 131_072))
    added = 61 * (131_072 - 2048) * (2 * 64 * 128 + 2 * 64)
    assert long["product_flops"] - short["product_flops"] == added
