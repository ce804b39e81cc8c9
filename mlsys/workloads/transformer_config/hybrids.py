"""Layers of architectures with state-space, linear-attention or other recurrent mixers, alone or among attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import FULL, ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.zoo import recurrence as mixers
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.recurrence import Recurrence

LINEAR = "linear_attention"
"""Kind of layer in ``layer_types`` that has a recurrence."""
_OLDER = {"attention": FULL, "mamba": LINEAR, "recurrent": LINEAR, "hybrid": FULL}
_PATTERN = {"M": LINEAR, "E": "moe", "*": FULL, "-": "mlp"}


def recurrent(layer: DecoderLayer, recurrence: Recurrence, small: int) -> DecoderLayer:
    """Return a layer whose attention is replaced by a recurrence; ``small`` parameters remain."""
    biases = layer.biases - {"qkv", "output", "latent"}
    return replace(
        layer, heads=0, kv_heads=0, rotary=0, window=0, biases=biases, small=small, gated_query=False,
        recurrence=recurrence, latent=0, query_latent=0, value_dim=0,
    )  # fmt: skip


def alone(of: Common, mixer: Recurrence) -> ArchitectureFields:
    """Return a model whose layers are a normalisation and a recurrence."""
    layer = DecoderLayer(0, 0, 0, 0, norms=1, small=of.hidden, recurrence=mixer)
    return of.resolved([layer] * of.layers)


def _rank(of: Common) -> int:
    return of.auto("time_step_rank", math.ceil(of.hidden / 16))


def _selective(of: Common, bias: str, small: int = 0) -> Recurrence:
    read = of.fields
    # Mamba's class takes a stated inner width over the one that it computes; Jamba's is that of feed-forward blocks.
    stated = None if of.heads else read.optional("intermediate_size")
    inner = stated or int((read.number("expand") or 2) * of.hidden)
    return mixers.mamba(
        of.hidden, inner, read.whole("state_size"), _rank(of), read.whole("conv_kernel"), bias=read.flag(bias),
        convolution_bias=read.flag("use_conv_bias"), small=small,
    )  # fmt: skip


def _mamba(of: Common) -> ArchitectureFields:
    return alone(of, _selective(of, "use_bias"))


def _headed(of: Common, heads: int, head_dim: int, bias: str, out_bias: str, *, normed: bool = True) -> Recurrence:
    read = of.fields
    return mixers.mamba2(
        of.hidden, heads, head_dim, read.whole("state_size"), read.whole("n_groups"), read.whole("conv_kernel"),
        bias=read.flag(bias), out_bias=read.flag(out_bias), convolution_bias=read.flag("use_conv_bias"), normed=normed,
    )  # fmt: skip


def _of_inner(of: Common, inner: int) -> tuple[int, int]:
    """Return heads of a state-space mixer and the width of each, which must fill its inner width."""
    heads = of.fields.whole("mamba_num_heads")
    if inner % heads:
        raise fault(
            f"`{of.fields.spelled('mamba_num_heads')}` is {heads}, which does not divide the inner width {inner}"
        )
    width = of.auto("mamba_head_dim", inner // heads)
    if heads * width != inner:
        raise fault(
            f"`{of.fields.spelled('mamba_num_heads')}` × `{of.fields.spelled('mamba_head_dim')}` is {heads * width}, "
            f"and the inner width is {inner}. Mend one"
        )
    return heads, width


def _mamba2(of: Common) -> ArchitectureFields:
    inner = int((of.fields.number("expand") or 2) * of.hidden)
    if of.heads * of.head_dim != inner:
        raise fault(f"`num_heads` × `head_dim` is {of.heads * of.head_dim}, and `expand` × `hidden_size` is {inner}")
    return alone(of, _headed(of, of.heads, of.head_dim, "use_bias", "use_bias"))


def _jamba(of: Common) -> ArchitectureFields:
    read = of.fields
    attention = of.layer(rotary=0)
    small = _rank(of) + 2 * read.whole("state_size")
    scanning = recurrent(attention, _selective(of, "mamba_proj_bias", small), 2 * of.hidden)
    every, first = read.whole("attn_layer_period"), read.whole("attn_layer_offset", least=0)
    step, start = read.whole("expert_layer_period"), read.whole("expert_layer_offset", least=0)
    layers = [attention if index % every == first else scanning for index in range(of.layers)]
    if read.whole("num_experts") > 1:
        layers = [of.routed(each) if index % step == start else each for index, each in enumerate(layers)]
    return of.resolved(layers)


def _bamba(of: Common) -> ArchitectureFields:
    read = of.fields
    attention = of.layer(*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"))
    inner = int((read.number("expand") or 2) * of.hidden)
    mixer = _headed(of, *_of_inner(of, inner), "mamba_proj_bias", "mamba_proj_bias")
    chosen = read.entries("attn_layer_indices", int, "numbers of layers") or []
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    return of.resolved([attention if index in chosen else scanning for index in range(of.layers)])


def _falcon_h1(of: Common) -> ArchitectureFields:
    """Falcon-H1: attention and a state-space mixer side by side in every layer."""
    read = of.fields
    inner = read.optional("mamba_d_ssm") or int((read.number("expand") or 2) * of.hidden)
    heads, width = _of_inner(of, inner)
    mixer = _headed(of, heads, width, "mamba_proj_bias", "projectors_bias", normed=read.flag("mamba_rms_norm"))
    layer = of.layer(*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"))
    return of.resolved(of.all_layers(replace(layer, recurrence=mixer)))


def spelled_out(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Nemotron-H configuration with the letters of its pattern as kinds of layers."""
    given = dict(fields)
    pattern = given.pop("hybrid_override_pattern", None)
    if pattern is not None:
        if not isinstance(pattern, str) or not pattern or set(pattern) - set(_PATTERN):
            raise fault(f"`hybrid_override_pattern` must be letters out of {', '.join(_PATTERN)}, got {short(pattern)}")
        given.setdefault("layers_block_type", [_PATTERN[letter] for letter in pattern])
    kinds = given.get("layers_block_type", given.get("layer_types"))
    given["num_hidden_layers"] = len(kinds) if isinstance(kinds, list) and kinds else 4
    return given


def _nemotron_h(of: Common) -> ArchitectureFields:
    """Nemotron-H: each layer is one normalisation and one of mixer, attention, feed-forward block or experts."""
    read = of.fields
    if read.optional("moe_latent_size") is not None:
        raise fault("`moe_latent_size` is set: experts on a narrower stream are not known here")
    kinds = of.listed("layer_types", (LINEAR, FULL, "moe", "mlp"), _OLDER) or [LINEAR, "moe", FULL, "mlp"]
    heads, width = read.whole("mamba_num_heads"), read.whole("mamba_head_dim")
    usual = {"norms": 1, "gated": False}
    attention = replace(of.layer(norms=1, rotary=0, gated=False), ffn=0)
    dense = DecoderLayer(
        0, 0, 0, read.whole("intermediate_size"), biases=frozenset(of.flagged(mlp_bias="ffn")), small=of.hidden,
        act=of.act, norms=1, gated=False,
    )  # fmt: skip
    built = {FULL: attention, "mlp": dense}
    if LINEAR in kinds:
        mixer = _headed(of, heads, width, "use_bias", "use_bias")
        built[LINEAR] = DecoderLayer(0, 0, 0, 0, small=of.hidden, recurrence=mixer, **usual)  # type: ignore[arg-type]
    if "moe" in kinds:
        shared = read.whole("moe_shared_expert_intermediate_size")
        built["moe"] = of.routed(dense, ffn=read.whole("moe_intermediate_size"), shared_ffn=shared)
    return replace(of.resolved([built[kind] for kind in kinds]), tied=False)  # its class ties nothing


def _granite(of: Common) -> ArchitectureFields:
    """Granite 4: a shared feed-forward block beside the experts, or alone."""
    read = of.fields
    shared = read.whole("shared_intermediate_size", least=0)
    attention = of.layer(*of.attention_biases("qkv", "output"), ffn=shared or 1)
    if read.optional("num_experts", least=0):
        attention = of.routed(attention, ffn=read.whole("intermediate_size"), shared_ffn=shared)
    if read.model_type == "granitemoeshared":
        return of.resolved(of.all_layers(attention))
    kinds = of.listed("layer_types", (LINEAR, FULL), _OLDER) or [LINEAR] * of.layers
    inner = int((read.number("expand") or 2) * of.hidden)
    mixer = _headed(of, *_of_inner(of, inner), "mamba_proj_bias", "mamba_proj_bias")
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    return of.resolved([attention if kind == FULL else scanning for kind in kinds])


def _recurrent_gemma(of: Common) -> ArchitectureFields:
    read = of.fields
    width = read.optional("lru_width") or of.hidden
    if width % of.heads:
        raise fault(f"`lru_width` is {width}, no multiple of the {of.heads} of `num_attention_heads`")
    attention = of.layer(
        *of.attention_biases("qkv"), "output", "ffn", ffn=read.whole("intermediate_size") // 2, window=of.window()
    )
    mixer = mixers.gated_linear_recurrence(of.hidden, width, of.heads, read.whole("conv_kernel"))
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    kinds = read.entries("block_types", str, "names") or ["recurrent", "recurrent", "attention"]
    if set(kinds) - {"recurrent", "attention"}:
        raise fault(f"`block_types` must have recurrent and attention alone, got {short(kinds)}")
    return of.resolved(
        [attention if kinds[index % len(kinds)] == "attention" else scanning for index in range(of.layers)]
    )


def _qwen3_next(of: Common) -> ArchitectureFields:
    read = of.fields
    routed = read.model_type != "qwen3_5_text"
    inner = read.optional("intermediate_size") or (read.whole("moe_intermediate_size") if routed else None)
    attention = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim, ffn=inner, gated_query=True)
    mixer = mixers.gated_delta_rule(
        of.hidden, read.whole("linear_num_key_heads"), read.whole("linear_num_value_heads"),
        read.whole("linear_key_head_dim"), read.whole("linear_value_head_dim"), read.whole("conv_kernel"),
        separate=read.model_type.startswith("qwen3_5"),
    )  # fmt: skip
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    every = read.optional("full_attention_interval") or 4
    kinds = of.listed("layer_types", (LINEAR, FULL), _OLDER)
    kinds = kinds or [LINEAR if (index + 1) % every else FULL for index in range(of.layers)]
    layers = [attention if kind == FULL else scanning for kind in kinds]
    if not routed:
        return of.resolved(layers)
    shared = read.whole("shared_expert_intermediate_size")
    sizes = {"ffn": read.whole("moe_intermediate_size"), "shared_ffn": shared, "shared_gate": True}
    return of.resolved([of.routed(each, **sizes) if of.sparse(index) else each for index, each in enumerate(layers)])


def _olmo_hybrid(of: Common) -> ArchitectureFields:
    read = of.fields
    attention = of.layer(*of.attention_biases("qkv", "output"), more=(of.heads + of.kv_heads) * of.head_dim)
    key_heads = read.optional("linear_num_key_heads") or of.heads
    value_heads = read.optional("linear_num_value_heads") or of.heads
    width = read.optional("linear_key_head_dim") or int(0.75 * of.hidden / key_heads)
    mixer = mixers.gated_delta_rule(
        of.hidden, key_heads, value_heads, width, read.optional("linear_value_head_dim") or 2 * width,
        read.whole("conv_kernel"), separate=True,
    )  # fmt: skip
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    kinds = of.listed("layer_types", (LINEAR, FULL), _OLDER)
    if kinds is None:
        kinds = [LINEAR if (index + 1) % 4 else FULL for index in range(of.layers)]
        kinds[-1] = kinds[-1] if FULL in kinds else FULL
    return of.resolved([attention if kind == FULL else scanning for kind in kinds])


def _minimax(of: Common) -> ArchitectureFields:
    attention = of.routed(of.layer(window=of.window()))
    mixer = mixers.lightning_attention(of.hidden, of.heads, of.head_dim)
    scanning = recurrent(attention, mixer, 2 * of.hidden)
    kinds = of.listed("layer_types", (LINEAR, FULL), _OLDER)
    kinds = kinds or [FULL if (index + 1) % 2 else LINEAR for index in range(of.layers)]
    return of.resolved([attention if kind == FULL else scanning for kind in kinds])


def _lfm2(of: Common) -> ArchitectureFields:
    """LFM2: gated short convolutions, and attention in some layers; of the larger ones also experts."""
    read = of.fields
    kinds = of.listed("layer_types", ("conv", FULL), {"short_conv": "conv"})
    if kinds is None:
        chosen = read.entries("full_attn_idxs", int, "numbers of layers")
        kinds = [FULL if chosen is None or index in chosen else "conv" for index in range(of.layers)]
    inner = read.optional("block_ff_dim") or read.whole("intermediate_size")
    if read.flag("block_auto_adjust_ff_dim"):
        inner = int((read.number("block_ffn_dim_multiplier") or 1) * int(2 * inner / 3))
        multiple = read.whole("block_multiple_of")
        inner = -(-inner // multiple) * multiple
    if read.flag("conv_bias"):
        raise fault("`conv_bias` is true: biases of short convolutions are not known here")
    attention = of.layer(ffn=inner, more=2 * of.head_dim)
    mixer = mixers.short_convolution(of.hidden, read.whole("conv_kernel"))
    convolving = recurrent(attention, mixer, 2 * of.hidden)
    layers = [attention if kind == FULL else convolving for kind in kinds]
    if read.model_type == "lfm2_moe":
        first, width = read.whole("num_dense_layers", least=0), read.whole("moe_intermediate_size")
        layers = [each if index < first else of.routed(each, ffn=width) for index, each in enumerate(layers)]
    tied = read.value("tie_embedding")
    resolved = of.resolved(layers)
    return replace(resolved, tied=tied) if isinstance(tied, bool) else resolved


HYBRIDS: dict[str, Callable[[Common], ArchitectureFields]] = {
    "bamba": _bamba, "falcon_h1": _falcon_h1, "falcon_mamba": _mamba, "granitemoehybrid": _granite,
    "granitemoeshared": _granite, "jamba": _jamba, "lfm2": _lfm2, "lfm2_moe": _lfm2, "mamba": _mamba,
    "mamba2": _mamba2, "minimax": _minimax, "nemotron_h": _nemotron_h, "olmo_hybrid": _olmo_hybrid,
    "qwen3_5_moe_text": _qwen3_next, "qwen3_5_text": _qwen3_next, "qwen3_next": _qwen3_next,
    "recurrent_gemma": _recurrent_gemma,
}  # fmt: skip
"""How the layers of each ``model_type`` with recurrent layers follow from its fields."""
