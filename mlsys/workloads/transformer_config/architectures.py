"""Layers of each architecture: which norms, biases and windows transformers gives a ``model_type``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import ArchitectureFields, Common
from mlsys.workloads.transformer_config.dbrx import resolve_dbrx
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.transformer_config.gemma3n import resolve_gemma3n
from mlsys.workloads.transformer_config.gemma4 import resolve_gemma4
from mlsys.workloads.transformer_config.hybrids import HYBRIDS
from mlsys.workloads.transformer_config.latent import LATENT
from mlsys.workloads.transformer_config.mixtures import MIXTURES


def _llama(of: Common) -> ArchitectureFields:
    """Llama, Granite, Arcee, SmolLM3, InternLM3: RMSNorm twice, rotary positions, biases by two flags."""
    biases = (*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"))
    layer = of.layer(*biases, gated=of.fields.model_type != "arcee")
    if of.fields.model_type != "smollm3" or not of.window():
        return of.resolved(of.all_layers(layer))
    rotary = of.fields.entries("no_rope_layers", int, "0 or 1, one for each layer")
    every = of.fields.optional("no_rope_layer_interval") or 4
    return of.resolved(of.all_layers(layer, of.windows(lambda at: not (rotary[at] if rotary else (at + 1) % every))))


def _apertus(of: Common) -> ArchitectureFields:
    """Apertus: norms of queries and keys; its activation has two parameters."""
    layer = of.layer(*of.attention_biases("qkv", "output"), gated=False, more=2 * of.head_dim + 2)
    return of.resolved(of.all_layers(layer))


def _bitnet(of: Common) -> ArchitectureFields:
    """BitNet: further norms before the output of attention and of the feed-forward block."""
    more = of.hidden + of.fields.whole("intermediate_size")
    return of.resolved(of.all_layers(of.layer(*of.attention_biases("qkv", "output"), more=more)))


def _helium(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv"), *of.flagged(mlp_bias="ffn"))
    return of.resolved(of.all_layers(layer))


def _hyperclovax(of: Common) -> ArchitectureFields:
    norms = 4 if of.fields.flag("use_post_norm") else 2
    layer = of.layer(*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"), norms=norms)
    return of.resolved(of.all_layers(layer))


def _nanochat(of: Common) -> ArchitectureFields:
    """Nanochat: norms without parameters."""
    layer = of.layer(*of.attention_biases("qkv", "output"), norm_size=0, gated=False)
    return of.resolved(of.all_layers(layer), 0)


def _cwm(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.flagged(mlp_bias="ffn"))
    return of.resolved(of.all_layers(layer, of.windows(lambda index: bool(index % 4))))


def _granite_swa(of: Common) -> ArchitectureFields:
    """Granite with local layers and attention sinks."""
    layer = of.layer(*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"), more=of.heads)
    return of.resolved(of.all_layers(layer, of.windows(lambda index: bool(index % 4))))


def _vaultgemma(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"))
    return of.resolved(of.all_layers(layer, of.windows(of.pattern(2))))


def _xglm(of: Common) -> ArchitectureFields:
    """XGLM: positions are sines, computed for as many tokens as there are."""
    if of.fields.flag("add_cross_attention"):
        raise fault("`add_cross_attention` is true: a decoder that reads an encoder is not known here")
    layer = of.layer("qkv", "output", "ffn", norm_size=2, kv_heads=of.heads, gated=False, rotary=0)
    return of.resolved(of.all_layers(layer), 2)


def _seed_oss(of: Common) -> ArchitectureFields:
    biases = [*of.attention_biases("qkv"), *of.flagged(attention_out_bias="output", mlp_bias="ffn")]
    return of.resolved(of.all_layers(of.layer(*biases)))


def _ernie(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer(*(("qkv", "output", "ffn") if of.fields.flag("use_bias") else ()))))


def _hunyuan(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim)
    return of.resolved(of.all_layers(layer))


def _nemotron(of: Common) -> ArchitectureFields:
    biases = (*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"))
    return of.resolved(of.all_layers(of.layer(*biases, norm_size=2, gated=False)), 2)


def _mistral(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer(), [of.window()] * of.layers))


def _ministral(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer(), of.windows(lambda _: True)))


def _qwen2(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer("qkv"), of.late_windows()))


def _qwen3(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim)
    return of.resolved(of.all_layers(layer, of.late_windows()))


def _gemma(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer(*of.attention_biases("qkv", "output"), act="gelu")))


def _gemma2(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), norms=4)
    return of.resolved(of.all_layers(layer, of.windows(of.pattern(2))))


def _gemma3(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), norms=4, more=2 * of.head_dim)
    windows = of.windows(of.pattern(6))
    if of.fields.flag("use_bidirectional_attention"):
        windows = [window // 2 + 1 if window else 0 for window in windows]
    return of.resolved(of.all_layers(layer, windows))


def _phi(of: Common) -> ArchitectureFields:
    more = 4 * of.head_dim if of.fields.flag("qk_layernorm") else 0
    layer = of.layer("qkv", "output", "ffn", norm_size=2, norms=1, more=more, gated=False)
    return of.resolved(of.all_layers(layer), 2, head_bias=True)


def _phi3(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.layer(), [of.window()] * of.layers))


def _glm(of: Common) -> ArchitectureFields:
    norms = 4 if of.fields.model_type == "glm4" else 2
    return of.resolved(of.all_layers(of.layer(*of.attention_biases("qkv"), norms=norms)))


def _falcon(of: Common) -> ArchitectureFields:
    """Falcon: three ways to share keys, parallel or serial blocks, one or two norms."""
    read, new, parallel = of.fields, of.fields.flag("new_decoder_architecture"), of.fields.flag("parallel_attn")
    kv_heads = of.kv_heads if new else 1 if read.flag("multi_query") else of.heads
    norms = 1 if parallel else 2
    if new:
        norms = read.optional("num_ln_in_parallel_attn") or 2
        norms = norms if norms == 2 else 1 if parallel else 2
    elif parallel and read.optional("num_ln_in_parallel_attn") == 2:
        norms = 2
    biases = ("qkv", "output", "ffn") if read.flag("bias") else ()
    layer = of.layer(
        *biases, norm_size=2, norms=norms, kv_heads=kv_heads, ffn=of.inner(), gated=False,
        rotary=0 if read.flag("alibi") else of.head_dim,
    )  # fmt: skip
    return of.resolved(of.all_layers(layer), 2)


def _openai_gpt(of: Common) -> ArchitectureFields:
    """Return GPT, whose norms come after each block."""
    layer = of.layer("qkv", "output", "ffn", norm_size=2, kv_heads=of.heads, ffn=4 * of.hidden, gated=False, rotary=0)
    return of.resolved(of.all_layers(layer), 0, learned=of.fields.whole("max_position_embeddings"))


def _opt(of: Common) -> ArchitectureFields:
    read = of.fields
    size = 2 if read.flag("layer_norm_elementwise_affine") else 0
    biases = ("qkv", "output", "ffn") if read.flag("enable_bias") else ()
    layer = of.layer(*biases, norm_size=size, kv_heads=of.heads, gated=False, rotary=0)
    layer = replace(layer, centred=True)
    last = read.flag("do_layer_norm_before") and not read.flag("_remove_final_layer_norm")
    width = read.optional("word_embed_proj_dim") or of.hidden
    return of.resolved(
        of.all_layers(layer), size * last, learned=read.whole("max_position_embeddings"), offset=2,
        embedding_width=0 if width == of.hidden else width,
    )  # fmt: skip


def _gpt2(of: Common) -> ArchitectureFields:
    if of.fields.flag("add_cross_attention"):
        raise fault("`add_cross_attention` is true: a decoder that reads an encoder is not known here")
    kv_heads = 1 if of.fields.model_type == "gpt_bigcode" and of.fields.flag("multi_query") else of.heads
    layer = of.layer("qkv", "output", "ffn", norm_size=2, kv_heads=kv_heads, ffn=of.inner(), gated=False, rotary=0)
    return of.resolved(of.all_layers(layer), 2, learned=of.fields.whole("max_position_embeddings"))


def _gptj(of: Common) -> ArchitectureFields:
    layer = of.layer("ffn", norm_size=2, norms=1, kv_heads=of.heads, ffn=of.inner(), gated=False)
    return of.resolved(of.all_layers(layer), 2, head_bias=True)


def _gpt_neox(of: Common) -> ArchitectureFields:
    biases = of.attention_biases("qkv", "output")
    layer = of.layer(*biases, "ffn", norm_size=2, kv_heads=of.heads, gated=False)
    return of.resolved(of.all_layers(layer), 2)


def _bloom(of: Common) -> ArchitectureFields:
    layer = of.layer("qkv", "output", "ffn", norm_size=2, kv_heads=of.heads, ffn=4 * of.hidden, gated=False,
                     rotary=0, act="gelu")  # fmt: skip
    return of.resolved(of.all_layers(layer), 4)


def _starcoder2(of: Common) -> ArchitectureFields:
    biases = ("qkv", "output", "ffn") if of.fields.flag("use_bias") else ()
    layer = of.layer(*biases, norm_size=2, gated=False)
    return of.resolved(of.all_layers(layer, [of.window()] * of.layers), 2)


def _cohere(of: Common) -> ArchitectureFields:
    local = of.fields.model_type == "cohere2"
    heads = (of.heads + of.kv_heads) * of.head_dim if of.fields.flag("use_qk_norm") and not local else 0
    layer = of.layer(*of.attention_biases("qkv", "output"), norms=1, more=heads)
    windows = of.windows(of.pattern(4)) if local else None
    return of.resolved([replace(each, centred=True) for each in of.all_layers(layer, windows)])


def _olmo(of: Common) -> ArchitectureFields:
    layer = replace(of.layer(*of.attention_biases("qkv", "output"), norm_size=0), centred=True)
    return of.resolved(of.all_layers(layer), 0)


def _olmo2(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), more=(of.heads + of.kv_heads) * of.head_dim)
    windows = of.windows(of.pattern(4)) if of.fields.model_type == "olmo3" else None
    return of.resolved(of.all_layers(layer, windows))


def _stablelm(of: Common) -> ArchitectureFields:
    read = of.fields
    more = (of.heads + of.kv_heads) * of.head_dim if read.flag("qk_layernorm") else 0
    norms = 1 if read.flag("use_parallel_residual") else 2
    layer = of.layer(*of.flagged(use_qkv_bias="qkv"), norm_size=2, norms=norms, more=more)
    return of.resolved(of.all_layers(layer), 2)


def _gpt_neo(of: Common) -> ArchitectureFields:
    """GPT-Neo: every second layer local, or as ``attention_types`` says."""
    read, window = of.fields, of.fields.whole("window_size")
    stated = read.value("attention_types") or [[["global", "local"], 12]]
    try:
        kinds = [kind for names, times in stated for _ in range(times) for kind in names]
    except (TypeError, ValueError):
        raise fault(f"`attention_types` must be pairs of names and a number, got {short(stated)}") from None
    if len(kinds) != of.layers or set(kinds) - {"global", "local"}:
        raise fault(f"`attention_types` must name global or local for each of the {of.layers} layers")
    layer = of.layer("output", "ffn", norm_size=2, kv_heads=of.heads, ffn=of.inner(), gated=False, rotary=0)
    return of.resolved(
        of.all_layers(layer, [window if kind == "local" else 0 for kind in kinds]), 2,
        learned=read.whole("max_position_embeddings"),
    )  # fmt: skip


def _persimmon(of: Common) -> ArchitectureFields:
    more = 4 * of.head_dim if of.fields.flag("qk_layernorm") else 0
    layer = of.layer("qkv", "output", "ffn", norm_size=2, kv_heads=of.heads, more=more, gated=False)
    return of.resolved(of.all_layers(layer), 2)


def _mpt(of: Common) -> ArchitectureFields:
    layer = of.layer(kv_heads=of.heads, ffn=4 * of.hidden, gated=False, rotary=0, act="exact gelu")
    return of.resolved(of.all_layers(replace(layer, centred=True)))


def _exaone4(of: Common) -> ArchitectureFields:
    stated = of.fields.value("layer_types") is not None
    windows = of.windows((lambda _: False) if stated else of.pattern(4))
    return of.resolved(of.all_layers(of.layer(more=2 * of.head_dim), windows))


ARCHITECTURES: dict[str, Callable[[Common], ArchitectureFields]] = {
    "apertus": _apertus, "arcee": _llama, "bitnet": _bitnet, "bloom": _bloom, "codegen": _gptj, "cohere": _cohere,
    "cohere2": _cohere, "cwm": _cwm, "dbrx": resolve_dbrx, "ernie4_5": _ernie, "exaone4": _exaone4, "falcon": _falcon,
    "gemma": _gemma, "gemma2": _gemma2, "gemma3_text": _gemma3, "gemma3n_text": resolve_gemma3n,
    "gemma4_text": resolve_gemma4, "glm": _glm, "glm4": _glm, "gpt2": _gpt2, "gpt_bigcode": _gpt2, "gpt_neo": _gpt_neo,
    "gpt_neox": _gpt_neox, "gptj": _gptj, "granite": _llama, "granite_swa": _granite_swa, "helium": _helium,
    "hunyuan_v1_dense": _hunyuan, "hyperclovax": _hyperclovax, "internlm3": _llama, "iquestcoder": _llama,
    "jais2": _nemotron, "llama": _llama, "ministral": _ministral, "ministral3": _mistral, "mistral": _mistral,
    "mpt": _mpt, "nanochat": _nanochat, "nemotron": _nemotron, "olmo": _olmo, "olmo2": _olmo2, "olmo3": _olmo2,
    "openai-gpt": _openai_gpt, "opt": _opt, "persimmon": _persimmon, "phi": _phi, "phi3": _phi3, "qwen2": _qwen2,
    "qwen3": _qwen3, "seed_oss": _seed_oss, "smollm3": _llama, "stablelm": _stablelm, "starcoder2": _starcoder2,
    "vaultgemma": _vaultgemma, "xglm": _xglm,
    **MIXTURES,
    **LATENT,
    **HYBRIDS,
}  # fmt: skip
"""How the layers of each ``model_type`` follow from its fields."""
