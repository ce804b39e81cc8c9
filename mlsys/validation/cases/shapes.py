"""Shapes of language models that rows name and the catalogue has no entry for.

As the configurations that their makers publish give them, recalled and not looked up again: layers,
width, heads of queries, heads of keys and values, width of a head, inner width, vocabulary.
"""

from __future__ import annotations

import re

from mlsys.workloads.zoo.language import LanguageModel

# (layers, hidden, heads, kv heads, head width or 0, inner width, vocabulary, gated)
_SHAPES: dict[str, tuple[int, int, int, int, int, int, int, bool]] = {
    "qwen2.5-1.5b": (28, 1536, 12, 2, 0, 8960, 151936, True),
    "qwen2.5-3b": (36, 2048, 16, 2, 0, 11008, 151936, True),
    "qwen2.5-14b": (48, 5120, 40, 8, 0, 13824, 152064, True),
    "qwen2.5-32b": (64, 5120, 40, 8, 0, 27648, 152064, True),
    "qwen1.5-7b": (32, 4096, 32, 32, 0, 11008, 151936, True),
    "qwen1.5-14b": (40, 5120, 40, 40, 0, 13696, 152064, True),
    "qwen3-1.7b": (28, 2048, 16, 8, 128, 6144, 151936, True),
    "qwen3-4b": (36, 2560, 32, 8, 128, 9728, 151936, True),
    "qwen3-14b": (40, 5120, 40, 8, 128, 17408, 151936, True),
    "codellama-7b": (32, 4096, 32, 32, 0, 11008, 32016, True),
    "codellama-34b": (48, 8192, 64, 8, 0, 22016, 32000, True),
    "baichuan2-7b": (32, 4096, 32, 32, 0, 11008, 125696, True),
    "baichuan2-13b": (40, 5120, 40, 40, 0, 13696, 125696, True),
    "decilm-7b": (32, 4096, 32, 2, 0, 14336, 32000, True),
    "yi-6b": (32, 4096, 32, 4, 0, 11008, 64000, True),
    "yi-34b": (60, 7168, 56, 8, 0, 20480, 64000, True),
    "c4ai-command-r-v01": (40, 8192, 64, 64, 0, 22528, 256000, True),
    "chatglm2-6b": (28, 4096, 32, 2, 0, 13696, 65024, True),
    "chatglm3-6b": (28, 4096, 32, 2, 0, 13696, 65024, True),
    "glm-4-9b": (40, 4096, 32, 2, 0, 13696, 151552, True),
    "codegen2-1b": (16, 2048, 16, 16, 0, 8192, 51200, False),
    "codegen-2b": (32, 2560, 32, 32, 0, 10240, 51200, False),
    "falcon-180b": (80, 14848, 232, 8, 64, 59392, 65024, False),
    "gemma-3-1b": (26, 1152, 4, 1, 256, 6912, 262144, True),
    "gemma-3-4b": (34, 2560, 8, 4, 256, 10240, 262208, True),
    "gemma-3-12b": (48, 3840, 16, 8, 256, 15360, 262208, True),
    "gemma-3-27b": (62, 5376, 32, 16, 128, 21504, 262208, True),
    "gpt-neo-1.3b": (24, 2048, 16, 16, 0, 8192, 50257, False),
    "gpt-neo-2.7b": (32, 2560, 20, 20, 0, 10240, 50257, False),
    "persimmon-8b": (36, 4096, 64, 64, 0, 16384, 262144, False),
    "stablelm-2-1.6b": (24, 2048, 32, 32, 0, 5632, 100352, True),
    "stablelm-2-12b": (40, 5120, 32, 8, 0, 13824, 100352, True),
    "starcoder": (40, 6144, 48, 1, 0, 24576, 49152, False),
    "starcoder2-3b": (30, 3072, 24, 2, 0, 12288, 49152, False),
    "starcoder2-7b": (32, 4608, 36, 4, 0, 18432, 49152, False),
    "starcoder2-15b": (40, 6144, 48, 4, 0, 24576, 49152, False),
    "xglm-1.7b": (24, 2048, 16, 16, 0, 8192, 256008, False),
    "phi-4": (40, 5120, 40, 10, 0, 17920, 100352, True),
    "phi-1.5": (24, 2048, 32, 32, 0, 8192, 51200, False),
    "mistral-nemo-12b": (40, 5120, 32, 8, 128, 14336, 131072, True),
    "mistral-small-24b": (40, 5120, 32, 8, 128, 32768, 131072, True),
    "internlm2-7b": (32, 4096, 32, 8, 0, 14336, 92544, True),
    "tinyllama-1.1b": (22, 2048, 32, 4, 0, 5632, 32000, True),
    "bloom-1.7b": (24, 2048, 16, 16, 0, 8192, 250880, False),
    "bloom-3b": (30, 2560, 32, 32, 0, 10240, 250880, False),
}  # fmt: skip
# What rows call a model of the catalogue, or of the table above: distilled and tuned ones keep their shape.
OTHER_NAMES = {
    "deepseekr11.5b": "qwen2.5-1.5b", "deepseekr17b": "qwen2.5-7b", "deepseekr18b": "llama-3-8b",
    "deepseekr114b": "qwen2.5-14b", "deepseekr132b": "qwen2.5-32b", "deepseekr170b": "llama-3-70b",
    "metallama38b": "llama-3-8b", "metallama370b": "llama-3-70b", "metallama3.18b": "llama-3-8b",
    "metallama3.170b": "llama-3-70b", "qwen27b": "qwen2.5-7b",
    "qwen272b": "qwen2.5-72b", "phi3.5mini": "phi-3-mini",
    "bloomz7b1": "bloom-7.1b", "mixtral8x7bv0.1": "mixtral-8x7b", "mixtral8x7binstructv0.1": "mixtral-8x7b",
    "codellama34bhf": "codellama-34b", "mnasnet_100": "mnasnet_1.0", "mnasnet100": "mnasnet_1.0",
    "starcoderbase": "starcoder", "phi4": "phi-4", "phi1.5": "phi-1.5",
}  # fmt: skip


def _plain(name: str) -> str:
    owned = name.rpartition("/")[2]
    plain = re.sub(r"\(.*?\)|[ :_-]+(it|chat|instruct|hf|base)$", "", owned.lower())
    return re.sub(r"[^a-z0-9.]", "", plain)


def language_shape(name: str) -> LanguageModel | None:
    """Return the shape that a row's name or words give, where the catalogue has none.

    Examples
    --------
    >>> model = language_shape("GPT (16 layers, 16 heads x64, hidden 1024, vocab 51200)")
    >>> model.layers, model.head_dim, model.ffn
    (16, 64, 4096)
    """
    words = re.fullmatch(r"GPT \((\d+) layers, (\d+) heads x(\d+), hidden (\d+), vocab (\d+)\)", name)
    if words:
        layers, heads, width, hidden, vocabulary = (int(part) for part in words.groups())
        return LanguageModel(
            name, layers, hidden, heads, heads, width, 4 * hidden, vocabulary, gated=False, tied=True,
            positions=2048, biases=("qkv", "output", "ffn"), norm_size=2, act="gelu",
        )  # fmt: skip
    found = _SHAPES.get(next((key for key in _SHAPES if _plain(key) == _plain(name)), ""))
    if found is None:
        return None
    layers, hidden, heads, kv_heads, width, inner, vocabulary, gated = found
    return LanguageModel(
        name, layers, hidden, heads, kv_heads, width or hidden // heads, inner, vocabulary, gated=gated,
        act="silu" if gated else "gelu",
    )  # fmt: skip


def usual_name(name: str) -> str:
    """Return the name under which a model is in the catalogue, or the table above, or the name itself."""
    return OTHER_NAMES.get(_plain(name), name)
