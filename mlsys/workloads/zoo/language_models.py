"""Published shapes of decoder language models."""

from __future__ import annotations

from mlsys.workloads.zoo.language import LanguageModel


def _gpt(name: str, layers: int, hidden: int, heads: int, vocabulary: int = 50257, positions: int = 2048,
         head_dim: int = 0, tied: bool = True) -> LanguageModel:  # fmt: skip
    """GPT-2 and GPT-3: every layer biased, learned positions, the inner layer four times as wide."""
    return LanguageModel(
        name, layers, hidden, heads, heads, head_dim or hidden // heads, 4 * hidden, vocabulary, gated=False,
        tied=tied, positions=positions, biases=("qkv", "output", "ffn"), norm_size=2, act="gelu",
    )  # fmt: skip


def _llama(name: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocabulary: int = 32000,
           tied: bool = False, head_dim: int = 0, window: int = 0) -> LanguageModel:  # fmt: skip
    """LLaMA and its kin: RMS normalisation, rotary positions, SwiGLU, no biases."""
    head_dim = head_dim or hidden // heads
    return LanguageModel(
        name, layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, tied=tied, window=window
    )  # fmt: skip


def _opt(name: str, layers: int, hidden: int, heads: int) -> LanguageModel:
    return LanguageModel(
        name, layers, hidden, heads, heads, hidden // heads, 4 * hidden, 50272, gated=False, tied=True,
        positions=2050, biases=("qkv", "output", "ffn"), norm_size=2, act="relu",
    )  # fmt: skip


def _bloom(name: str, layers: int, hidden: int, heads: int) -> LanguageModel:
    return LanguageModel(
        name, layers, hidden, heads, heads, hidden // heads, 4 * hidden, 250880, gated=False, tied=True,
        biases=("qkv", "output", "ffn"), norm_size=2, other_norms=2, act="gelu",
    )  # fmt: skip


def _qwen(name: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocabulary: int,
          tied: bool = False) -> LanguageModel:  # fmt: skip
    return LanguageModel(
        name, layers, hidden, heads, kv_heads, hidden // heads, ffn, vocabulary, tied=tied, biases=("qkv",)
    )


def _qwen3(name: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, tied: bool = False,
           experts: int = 0, active: int = 0) -> LanguageModel:  # fmt: skip
    return LanguageModel(
        name, layers, hidden, heads, kv_heads, 128, ffn, 151936, tied=tied, head_norms=2, experts=experts,
        active_experts=active,
    )  # fmt: skip


def _maxtext(scale: int, doublings: tuple[int, int, int]) -> LanguageModel:
    """MaxText's ``global_parameter_scale``: width, heads with the inner layer, and depth double in turn."""
    wider, headed, deeper = (2**power for power in doublings)
    return LanguageModel(
        f"MaxText {scale}B", 16 * deeper, 2048 * wider, 16 * headed, 16 * headed, 128, 7168 * headed, 32000
    )


_MPT = {
    "125m": (12, 768, 12),
    "350m": (24, 1024, 16),
    "760m": (24, 1536, 12),
    "1b": (24, 2048, 16),
    "3b": (32, 2560, 20),
    "7b": (32, 4096, 32),
    "13b": (40, 5120, 40),
    "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}

# key: (shape, where it is published)
_TABLE: dict[str, tuple[LanguageModel, str]] = {}


def _add(source: str, models: dict[str, LanguageModel]) -> None:
    _TABLE.update({key: (model, source) for key, model in models.items()})


_add("Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2", {
    "gpt2": _gpt("GPT-2 124M", 12, 768, 12, positions=1024),
    "gpt2-medium": _gpt("GPT-2 355M", 24, 1024, 16, positions=1024),
    "gpt2-large": _gpt("GPT-2 774M", 36, 1280, 20, positions=1024),
    "gpt2-xl": _gpt("GPT-2 1.5B", 48, 1600, 25, positions=1024),
})  # fmt: skip
_add("Brown et al. 2020, arXiv:2005.14165, table 2.1", {
    "gpt3-125m": _gpt("GPT-3 Small", 12, 768, 12),
    "gpt3-350m": _gpt("GPT-3 Medium", 24, 1024, 16),
    "gpt3-760m": _gpt("GPT-3 Large", 24, 1536, 16),
    "gpt3-1.3b": _gpt("GPT-3 XL", 24, 2048, 16, head_dim=128),
    "gpt3-2.7b": _gpt("GPT-3 2.7B", 32, 2560, 32),
    "gpt3-6.7b": _gpt("GPT-3 6.7B", 32, 4096, 32),
    "gpt3-13b": _gpt("GPT-3 13B", 40, 5140, 40, head_dim=128),
    "gpt3-175b": _gpt("GPT-3 175B", 96, 12288, 96),
})  # fmt: skip
_add("FasterTransformer, docs/gpt_guide.md: layers, heads × width, vocabulary", {
    "gpt-20b": _gpt("GPT-20B", 44, 6144, 48, 51200),
    "gpt-175b": _gpt("GPT-175B", 96, 12288, 96, 51200),
    "megatron-530b": _gpt("Megatron-530B", 105, 20480, 128, 51200),
})  # fmt: skip
_add("Wang & Komatsuzaki 2021, GPT-J-6B model card", {
    "gpt-j-6b": LanguageModel("GPT-J 6B", 28, 4096, 16, 16, 256, 16384, 50400, gated=False, biases=("ffn", "head"),
                              norms=1, norm_size=2, act="gelu"),
})  # fmt: skip
_add("Black et al. 2022, arXiv:2204.06745, section 2", {
    "gpt-neox-20b": LanguageModel("GPT-NeoX-20B", 44, 6144, 64, 64, 96, 24576, 50432, gated=False,
                                  biases=("qkv", "output", "ffn"), norm_size=2, act="gelu"),
})  # fmt: skip
_add("Zhang et al. 2022, arXiv:2205.01068, table 1", {
    "opt-125m": _opt("OPT-125M", 12, 768, 12),
    "opt-1.3b": _opt("OPT-1.3B", 24, 2048, 32),
    "opt-2.7b": _opt("OPT-2.7B", 32, 2560, 32),
    "opt-6.7b": _opt("OPT-6.7B", 32, 4096, 32),
    "opt-13b": _opt("OPT-13B", 40, 5120, 40),
    "opt-30b": _opt("OPT-30B", 48, 7168, 56),
    "opt-66b": _opt("OPT-66B", 64, 9216, 72),
    "opt-175b": _opt("OPT-175B", 96, 12288, 96),
})  # fmt: skip
_add("Le Scao et al. 2022, arXiv:2211.05100, table 3", {
    "bloom-560m": _bloom("BLOOM-560M", 24, 1024, 16),
    "bloom-7.1b": _bloom("BLOOM-7.1B", 30, 4096, 32),
    "bloom-176b": _bloom("BLOOM-176B", 70, 14336, 112),
})  # fmt: skip
_add("Touvron et al. 2023, arXiv:2302.13971, table 2", {
    "llama-7b": _llama("LLaMA 7B", 32, 4096, 32, 32, 11008),
    "llama-13b": _llama("LLaMA 13B", 40, 5120, 40, 40, 13824),
    "llama-33b": _llama("LLaMA 33B", 60, 6656, 52, 52, 17920),
    "llama-65b": _llama("LLaMA 65B", 80, 8192, 64, 64, 22016),
})  # fmt: skip
_add("Touvron et al. 2023, arXiv:2307.09288, and the released configurations", {
    "llama-2-7b": _llama("Llama 2 7B", 32, 4096, 32, 32, 11008),
    "llama-2-13b": _llama("Llama 2 13B", 40, 5120, 40, 40, 13824),
    "llama-2-70b": _llama("Llama 2 70B", 80, 8192, 64, 8, 28672),
    "codellama-13b": _llama("Code Llama 13B", 40, 5120, 40, 40, 13824, 32016),
})  # fmt: skip
_add("Grattafiori et al. 2024, arXiv:2407.21783, table 3; 1B and 3B: the Llama 3.2 model cards", {
    "llama-3-8b": _llama("Llama 3 8B", 32, 4096, 32, 8, 14336, 128256),
    "llama-3-70b": _llama("Llama 3 70B", 80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-405b": _llama("Llama 3.1 405B", 126, 16384, 128, 8, 53248, 128256),
    "llama-3.2-1b": _llama("Llama 3.2 1B", 16, 2048, 32, 8, 8192, 128256, tied=True),
    "llama-3.2-3b": _llama("Llama 3.2 3B", 28, 3072, 24, 8, 8192, 128256, tied=True),
})  # fmt: skip
_add("Jiang et al. 2023, arXiv:2310.06825, table 1 (v0.2 and later: without the window)", {
    "mistral-7b": _llama("Mistral 7B", 32, 4096, 32, 8, 14336),
    "mistral-7b-v0.1": _llama("Mistral 7B v0.1", 32, 4096, 32, 8, 14336, window=4096),
})  # fmt: skip
_add("Jiang et al. 2024, arXiv:2401.04088, table 1; 8x22B: the released configuration", {
    "mixtral-8x7b": LanguageModel("Mixtral 8x7B", 32, 4096, 32, 8, 128, 14336, 32000, experts=8, active_experts=2),
    "mixtral-8x22b": LanguageModel("Mixtral 8x22B", 56, 6144, 48, 8, 128, 16384, 32768, experts=8, active_experts=2),
})  # fmt: skip
_add("Almazrouei et al. 2023, arXiv:2311.16867, and the released configurations", {
    "falcon-7b": LanguageModel("Falcon 7B", 32, 4544, 71, 1, 64, 18176, 65024, gated=False, tied=True, norms=1,
                               norm_size=2, act="gelu"),
    "falcon-40b": LanguageModel("Falcon 40B", 60, 8192, 128, 8, 64, 32768, 65024, gated=False, tied=True,
                                norm_size=2, act="gelu"),
})  # fmt: skip
_add("MosaicML llm-foundry, scripts/train/yamls/pretrain: benchmarked with learned positions as long as the text", {
    f"mpt-{size}": _gpt(f"MPT-{size}", *shape, vocabulary=50368) for size, shape in _MPT.items()
})  # fmt: skip
_add("Gemma Team 2024, arXiv:2403.08295, table 1", {
    "gemma-2b": LanguageModel("Gemma 2B", 18, 2048, 8, 1, 256, 16384, 256000, tied=True, act="gelu"),
    "gemma-7b": LanguageModel("Gemma 7B", 28, 3072, 16, 16, 256, 24576, 256000, tied=True, act="gelu"),
})  # fmt: skip
_add("Gemma Team 2024, arXiv:2408.00118, table 1", {
    "gemma-2-2b": LanguageModel("Gemma 2 2B", 26, 2304, 8, 4, 256, 9216, 256000, tied=True, norms=4, window=4096,
                                full_every=2, act="gelu"),
    "gemma-2-9b": LanguageModel("Gemma 2 9B", 42, 3584, 16, 8, 256, 14336, 256000, tied=True, norms=4, window=4096,
                                full_every=2, act="gelu"),
    "gemma-2-27b": LanguageModel("Gemma 2 27B", 46, 4608, 32, 16, 128, 36864, 256000, tied=True, norms=4,
                                 window=4096, full_every=2, act="gelu"),
})  # fmt: skip
_add("Qwen Team 2024, arXiv:2412.15115, table 1", {
    "qwen2.5-0.5b": _qwen("Qwen2.5 0.5B", 24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2.5-7b": _qwen("Qwen2.5 7B", 28, 3584, 28, 4, 18944, 152064),
    "qwen2.5-72b": _qwen("Qwen2.5 72B", 80, 8192, 64, 8, 29568, 152064),
})  # fmt: skip
_add("Qwen Team 2025, arXiv:2505.09388, tables 1 and 2", {
    "qwen3-0.6b": _qwen3("Qwen3 0.6B", 28, 1024, 16, 8, 3072, tied=True),
    "qwen3-8b": _qwen3("Qwen3 8B", 36, 4096, 32, 8, 12288),
    "qwen3-32b": _qwen3("Qwen3 32B", 64, 5120, 64, 8, 25600),
    "qwen3-30b-a3b": _qwen3("Qwen3 30B-A3B", 48, 2048, 32, 4, 768, experts=128, active=8),
    "qwen3-235b-a22b": _qwen3("Qwen3 235B-A22B", 94, 4096, 64, 4, 1536, experts=128, active=8),
})  # fmt: skip
_add("Li et al. 2023, Phi-2 model card; Abdin et al. 2024, arXiv:2404.14219", {
    "phi-2": LanguageModel("Phi-2", 32, 2560, 32, 32, 80, 10240, 51200, gated=False,
                           biases=("qkv", "output", "ffn", "head"), norms=1, norm_size=2, act="gelu"),
    "phi-3-mini": _llama("Phi-3 mini", 32, 3072, 32, 32, 8192, 32064),
})  # fmt: skip
_add("OpenAI 2025, arXiv:2508.10925, table 1", {
    name: LanguageModel(name, layers, 2880, 64, 8, 64, 2880, 201088, biases=("qkv", "output", "ffn"),
                        experts=experts, active_experts=4, window=128, full_every=2, sinks=True)
    for name, layers, experts in (("gpt-oss-20b", 24, 32), ("gpt-oss-120b", 36, 128))
})  # fmt: skip
_add("Meta 2025, Llama 4 model card: every other layer is dense, here listed before the others", {
    "llama-4-maverick": LanguageModel("Llama 4 Maverick", 48, 5120, 40, 8, 128, 8192, 202048, experts=128,
                                      active_experts=1, shared_ffn=8192, dense_layers=24, dense_ffn=16384),
})  # fmt: skip
_add("MaxText, MaxText/configs/v5e and v5p with get_individual_scales", {
    "maxtext-16b": _maxtext(16, (1, 2, 1)),
    "maxtext-32b": _maxtext(32, (2, 2, 1)),
    "maxtext-64b": _maxtext(64, (2, 2, 2)),
    "maxtext-128b": _maxtext(128, (2, 3, 2)),
    "maxtext-256b": _maxtext(256, (3, 3, 2)),
    "maxtext-512b": _maxtext(512, (3, 3, 3)),
    "maxtext-1024b": _maxtext(1024, (3, 4, 3)),
})  # fmt: skip

LANGUAGE_MODELS = _TABLE
