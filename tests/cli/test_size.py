"""``mlsys size``: public cases, one answer from call and command, limits, pages, and a start without torch."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import mlsys
from mlsys.cli import main
from mlsys.models.inference.result import NUMBERS

LLAMA_405B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
    "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_INT8 = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "tie_word_embeddings": False, "torch_dtype": "float16",
    "quantization_config": {"bits": 8, "group_size": 128, "quant_method": "gptq"},
}  # fmt: skip
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
    "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "vocab_size": 129280,
    "max_position_embeddings": 163840, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
}  # fmt: skip
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 18, "num_local_experts": 128,
    "num_experts_per_tok": 4, "vocab_size": 201088, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
GEMMA = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024,
        "sliding_window_pattern": 6, "query_pre_attn_scalar": 168, "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
}  # fmt: skip
FALCON_40B = {
    "architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
    "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": True, "multi_query": True,
    "parallel_attn": True, "bias": False, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
FALCON_7B = {
    "architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
    "num_attention_heads": 71, "new_decoder_architecture": False, "multi_query": True, "parallel_attn": True,
    "bias": False, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
MIXTRAL = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 32000, "sliding_window": None, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
LFM2 = {
    "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16", "max_position_embeddings": 128000,
    "layer_types": [
        "conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv",
        "full_attention", "conv", "full_attention", "conv", "full_attention", "conv",
    ],
}  # fmt: skip

# The cache of configurations of public reports: bytes a token, tokens, bytes of one sequence.
# huggingface/blog#2345, vllm#22291, gguf-parser-go#8, hf-mem#60, unsloth PR#4757, vllm PR#1164, gguf-parser-go#31.
CACHES: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "Llama 3.1 405B": (LLAMA_405B, 516_096, 131_072, 63 * 2**30),
    "Qwen2 7B in 8 bits": (QWEN_INT8, 57_344, 3_072, 168 * 2**20),
    "DeepSeek V3": (DEEPSEEK, 70_272, 65_536, 70_272 * 65_536),
    "gpt-oss 120B": (GPT_OSS, 73_728, 131_072, 4_836_556_800),
    "Gemma 3 27B": (GEMMA, 507_904, 131_072, 11_173_625_856),
    "Falcon 40B": (FALCON_40B, 122_880, 2_048, 122_880 * 2_048),
    "Falcon 7B": (FALCON_7B, 8_192, 2_048, 8_192 * 2_048),
    "LFM2": (LFM2, 12_288, 32_768, 384 * 2**20),
}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["size", *map(str, arguments)])


def printed(*arguments: object) -> dict[str, Any]:
    answer = run(*arguments, "--json")
    assert answer.exit_code == 0, answer.output
    record: dict[str, Any] = json.loads(answer.stdout)
    return record


def written(folder: Path, configuration: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(configuration))
    return path


@pytest.mark.parametrize("name", CACHES)
def test_caches_of_public_reports(name: str, tmp_path: Path) -> None:
    configuration, a_token, tokens, whole = CACHES[name]
    record = printed(written(tmp_path, configuration), "--sequence", tokens, "--kv-format", "fp16")
    assert record["kv_cache_bytes_per_token"] == a_token
    assert record["kv_cache_bytes"] == whole
    assert printed(tmp_path, "--sequence", tokens, "--batch", 3, "--kv-format", "fp8")["kv_cache_bytes"] == 1.5 * whole


def test_contexts_parameters_and_full_pages_of_public_reports(tmp_path: Path) -> None:
    assert printed(written(tmp_path, DEEPSEEK))["context"] == 163_840  # under YaRN, not scaled again
    record = printed(written(tmp_path, MIXTRAL))
    assert (record["parameters"], record["active_parameters"]) == (46_702_792_704, 12_879_925_248)
    pages = printed(written(tmp_path, GPT_OSS), "--sequence", 131_072, "--no-windows")
    assert pages["kv_cache_bytes"] == 9 * 2**30


def test_seventy_billion_in_four_bits_with_a_long_context_on_48_gigabytes() -> None:
    """40 GiB of weights and 10 GiB of cache: no; with the cache in 8 bits still no, at 4,096 tokens yes."""
    question = ("llama-3-70b", "--weight-format", "q4_k_m", "--on", "L40S", "--usable", 1)
    long = printed(*question, "--sequence", 32_768)
    assert long["weight_bytes"] == pytest.approx(70_553_706_496 * 4.84 / 8)
    assert long["kv_cache_bytes"] == 32_768 * 327_680
    assert not long["fits"] and long["largest_batch"] == 0
    short = printed(*question, "--sequence", 4_096)
    assert short["fits"] and short["needed_bytes"] <= short["capacity_bytes"]
    most = short["largest_sequence"]
    assert printed(*question, "--sequence", most)["fits"] and not printed(*question, "--sequence", most + 1)["fits"]


def test_every_number_is_a_member_of_the_result_and_stands_at_the_top() -> None:
    arguments = {"prompt": 700, "output": 300, "batch": 8, "tp": 4, "pp": 1, "ep": 1, "weight_format": "fp8"}
    sizing = mlsys.size("llama-3-70b", "DGX_H100", **arguments)  # type: ignore[arg-type]
    options = [word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", value)]
    record = printed("llama-3-70b", "--on", "DGX_H100", *options)
    assert record == json.loads(json.dumps(sizing.record()))
    for name in NUMBERS:
        assert record[name] == getattr(sizing, name)
        assert record[name] is None or isinstance(record[name], (int, float))
    assert record["kv_cache_bytes_per_token_per_chip"] == 327_680 / 4
    parts = record["memory_per_chip"]
    assert parts["needed"] == sum(parts[name] for name in ("weights", "kv_cache", "states", "activations"))
    assert record["needed_bytes"] == pytest.approx(4 * parts["needed"])
    for name in ("ttft_seconds", "tpot_seconds", "tokens_per_second"):
        assert record[f"{name}_low"] <= record[name] <= record[f"{name}_high"]
    assert record["tokens_per_second"] == pytest.approx(
        8 * 300 / (8 * record["ttft_seconds"] + 300 * record["tpot_seconds"])
    )
    assert record["tokens_per_second_per_chip"] == pytest.approx(record["tokens_per_second"] / 4)


def test_money_and_energy_are_those_of_an_hour_of_the_chips() -> None:
    record = printed("llama-3-8b", "--on", "A100", "--rent", "2 USD/hour", "--batch", 16)
    hours = 1e6 / record["tokens_per_second"] / 3600
    assert record["usd_per_million_tokens"] == pytest.approx(2 * hours)
    france, poland = (
        printed("llama-3-8b", "--on", "A100", "--batch", 16, "--grid", each) for each in ("France", "Poland")
    )
    assert france["kwh_per_million_tokens"] == poland["kwh_per_million_tokens"] == record["kwh_per_million_tokens"]
    assert france["gco2e_per_million_tokens"] < poland["gco2e_per_million_tokens"] / 5


def test_without_a_machine_it_says_what_needs_none() -> None:
    record = printed("llama-3-8b", "--sequence", 8192)
    assert record["fits"] is None and record["ttft_seconds"] is None and record["layouts"] == []
    assert record["needed_bytes"] == record["weight_bytes"] + record["kv_cache_bytes"] + record["activation_bytes"]
    split = printed("llama-3-8b", "--tp", 16)
    assert split["kv_cache_bytes_per_token_per_chip"] == record["kv_cache_bytes_per_token"] / 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("llama-3-8b", "--on", "DGX_H100", "--tp", 3), "`tp` must divide the 32 query heads"),
        (("llama-3-8b", "--on", "DGX_H100", "--pp", 5), "`pp` must divide the 32 layers"),
        (("llama-3-8b", "--on", "A100", "--tp", 2), "2 chips are needed"),
        (("llama-3-8b", "--on", "DGX_H100", "--ep", 2), "is for models with experts"),
        (("llama-3-8b", "--on", "DGX_H100", "--replicas", 9), "Give fewer replicas"),
        (("llama-3-8b", "--on", "A100", "--precision", "fp8"), "has no fp8 peak"),
        (("llama-3-8b", "--kv-format", "fp7"), "unknown storage format 'fp7'"),
        (("resnet50", "--on", "A100"), "a decoder language model is needed"),
        (("gpt2", "--sequence", 2048), "learned positions for 1024 tokens"),
        (("llama-3-8b", "--sequence", 10, "--prompt", 20), "leaves -10"),
        (("llama-3-8b", "--csv"), "needs a machine"),
        (("llama-3-8b", "--requests", "5/s"), "needs --find"),
        (("llama-3-8b", "--find", "fast"), "is no limit"),
        (("llama-3-8b", "--find", "TPOT>30 ms"), "TPOT takes <"),
        (("llama-3-8b", "--find", "TPOT<30 kg"), "TPOT"),
        (("llama-3-8b", "--find", "TPOT<30 ms", "--requests", "5/s"), "needs the length of an answer"),
        (("llama-3-8b", "--find", "TPOT<30 ms", "--batch", 3), "plays no part with --find"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: tuple[object, ...], words: str) -> None:
    answer = run(*arguments)
    assert answer.exit_code in (1, 2)
    assert words in answer.stderr and answer.stderr.strip().count("\n") == 0


def test_a_search_finds_what_a_sizing_confirms() -> None:
    limits = ("--find", "TPOT<15ms, TTFT<1 s", "--requests", "8/s", "--prompt", 800, "--output", 200)
    answer = printed("llama-3-8b", *limits, "--on", "DGX_H100,L40S,T4")
    assert answer["found"], answer
    hourly = [each["usd_per_hour"] for each in answer["found"] if each["usd_per_hour"] is not None]
    assert hourly == sorted(hourly)
    for each in answer["found"]:
        sizes = [word for name in ("tp", "pp", "ep", "dp") for word in (f"--{name}", each[name])]
        sized = printed(
            "llama-3-8b", "--on", each["system"], "--prompt", 800, "--output", 200, "--batch", each["batch"], *sizes
        )
        assert sized["fits"] and sized["tpot_seconds"] == each["tpot_seconds"] <= 0.015
        assert sized["ttft_seconds"] == each["ttft_seconds"] <= 1
        assert each["requests_per_second"] >= 8 > each["requests_per_second"] * (1 - 1 / each["replicas"]) - 1e-9
    assert {each["system"] for each in answer["without"]} >= {"T4"}


def test_the_page_needs_nothing_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    answer = run("llama-3-8b", "--on", "DGX_H100", "--html", page)
    assert answer.exit_code == 0, answer.output
    text = page.read_text("utf-8")
    assert "<svg" in text and "Pareto front" in text
    assert not re.findall(r"(?:src|href)=['\"]https?:", text) and "<script" not in text


def test_the_table_lists_every_layout() -> None:
    lines = run("llama-3-8b", "--on", "DGX_H100", "--csv").stdout.splitlines()
    assert len(lines) - 1 == len(printed("llama-3-8b", "--on", "DGX_H100")["layouts"]) > 3


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; from mlsys.cli.main import main\n"
        "try: main(['size', 'llama-3-8b', '--on', 'A100', '--json'])\n"
        "except SystemExit: pass\n"
        "sys.exit(', '.join({'torch', 'transformers', 'matplotlib', 'onnx'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]
