"""Layers of architectures with a mixture of experts: which layers have experts, their widths, and which are shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlsys.workloads.transformer_config.common import FULL, ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault


def _mixtral(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.routed(of.layer()), [of.window()] * of.layers))


def _phimoe(of: Common) -> ArchitectureFields:
    layer = of.routed(of.layer(*of.attention_biases("qkv", "output"), norm_size=2))
    bias = of.fields.flag("lm_head_bias")
    return of.resolved(of.all_layers(layer, [of.window()] * of.layers), 2, head_bias=bias)


def _granitemoe(of: Common) -> ArchitectureFields:
    return of.resolved(of.all_layers(of.routed(of.layer(*of.attention_biases("qkv", "output")))))


def _olmoe(of: Common) -> ArchitectureFields:
    """OLMoE, FlexOlmo: norms of queries and keys over all heads."""
    normed = of.hidden + of.kv_heads * (of.hidden // of.heads)
    layer = of.layer(*of.attention_biases("qkv", "output"), more=normed)
    return of.resolved(of.all_layers(of.routed(layer)))


def _qwen2_moe(of: Common) -> ArchitectureFields:
    dense = of.layer(*of.flagged(qkv_bias="qkv"))
    shared = of.fields.whole("shared_expert_intermediate_size")
    experts = of.routed(dense, ffn=of.fields.whole("moe_intermediate_size"), shared_ffn=shared, shared_gate=True)
    most = of.fields.optional("max_window_layers", least=0) or 0
    windows = of.windows(lambda index: bool((index + 1) % 2) and index < most)
    layers = [experts if of.sparse(index) else dense for index in range(of.layers)]
    return of.resolved([replace(layer, window=window) for layer, window in zip(layers, windows, strict=True)])


def _qwen3_moe(of: Common) -> ArchitectureFields:
    dense = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim, window=of.window())
    experts = of.routed(dense, ffn=of.fields.whole("moe_intermediate_size"))
    return of.resolved([experts if of.sparse(index) else dense for index in range(of.layers)])


def _glm4_moe(of: Common) -> ArchitectureFields:
    read = of.fields
    more = 2 * of.head_dim if read.flag("use_qk_norm") else 0
    dense = of.layer(*of.attention_biases("qkv"), more=more)
    inner = read.whole("moe_intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=of.shared_experts(inner))
    first = read.optional("first_k_dense_replace", least=0) or 0
    return of.resolved([dense if index < first else experts for index in range(of.layers)])


def _solar_open(of: Common) -> ArchitectureFields:
    inner = of.fields.whole("moe_intermediate_size")
    shared = of.shared_experts(inner)
    layer = of.layer(*of.attention_biases("qkv"), ffn=inner)
    return of.resolved(of.all_layers(of.routed(layer, shared_ffn=shared)))


def _hy_v3(of: Common) -> ArchitectureFields:
    biases = (*of.attention_biases("qkv", "output"), *of.flagged(mlp_bias="ffn"))
    dense = of.layer(*biases, more=2 * of.head_dim)
    inner = of.fields.whole("moe_intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=of.shared_experts(inner))
    return of.resolved([experts if each else dense for each in of.routed_layers(1)])


def _exaone_moe(of: Common) -> ArchitectureFields:
    dense = of.layer(more=2 * of.head_dim)
    inner = of.fields.whole("moe_intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=inner * of.fields.whole("n_shared_experts"))
    windows, routed = of.windows(of.pattern(4)), of.routed_layers(0)
    return of.resolved(
        [replace(experts if sparse else dense, window=window) for sparse, window in zip(routed, windows, strict=True)]
    )


def _mimo_v2_flash(of: Common) -> ArchitectureFields:
    """MiMo-V2-Flash: local layers have twice the key-value heads, and sinks; values are narrower than keys."""
    read = of.fields
    dense = of.layer(*of.attention_biases("qkv"), value_dim=read.whole("v_head_dim"))
    experts = of.routed(dense, ffn=read.whole("moe_intermediate_size"))
    after = read.optional("sliding_window_size")
    windows = of.windows(lambda index: bool(index and (index + 1) % 6))
    layers = []
    for sparse, window in zip(of.routed_layers(1), windows, strict=True):
        layer = experts if sparse else dense
        if window:
            window = window if after is None else after + 1
            layer = replace(layer, kv_heads=2 * layer.kv_heads, window=window, small=layer.small + of.heads)
        layers.append(layer)
    return of.resolved(layers)


def _afmoe(of: Common) -> ArchitectureFields:
    """Trinity (AFMoE): a gate of the attention's output, the first layers dense, local layers."""
    read = of.fields
    if read.flag("attention_bias"):
        raise fault("`attention_bias` is true: biases beside a gate without one are not known here for afmoe")
    dense = of.layer(norms=4, more=2 * of.head_dim, gated_query=True)
    inner, first = read.whole("moe_intermediate_size"), read.optional("num_dense_layers", least=0) or 0
    shared = of.shared_experts(inner)
    experts = of.routed(dense, ffn=inner, shared_ffn=shared, small=dense.small + read.whole("num_experts"))
    every = read.optional("global_attn_every_n_layers") or 4
    windows = of.windows(lambda index: bool((index + 1) % every))
    return of.resolved(
        [replace(dense if index < first else experts, window=window) for index, window in enumerate(windows)]
    )


def _gpt_oss(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), "experts", "router", more=of.heads)
    return of.resolved(of.all_layers(of.routed(layer), of.windows(of.pattern(2))))


def _cohere2_moe(of: Common) -> ArchitectureFields:
    """Command A with experts: one norm and parallel blocks, shared experts, dense layers first."""
    read = of.fields
    plain = of.layer(*of.attention_biases("qkv", "output"), norms=1)
    inner = read.whole("intermediate_size")
    experts = of.routed(plain, shared_ffn=of.shared_experts(inner))
    dense = replace(plain, ffn=read.optional("prefix_dense_intermediate_size") or inner)
    routed = of.routed_layers(0)
    first = read.optional("first_k_dense_replace", least=0) or 0
    early, late = (read.optional(f"{name}sliding_window_pattern") or 1 for name in ("prefix_dense_", ""))
    windows = of.windows(lambda at: bool((at + 1) % early if at < first else (at - first + 1) % late))
    centred = read.value("rms_norm_eps") is None
    return of.resolved([
        replace(experts if sparse else dense, window=window, centred=centred)
        for sparse, window in zip(routed, windows, strict=True)
    ])  # fmt: skip


def _ernie_moe(of: Common) -> ArchitectureFields:
    read = of.fields
    dense = of.layer(*(("qkv", "output", "ffn") if read.flag("use_bias") else ()))
    inner = read.whole("moe_intermediate_size")
    shared = of.shared_experts(inner)
    experts = of.routed(dense, ffn=inner, shared_ffn=shared, small=dense.small + read.whole("num_experts"))
    first, every = read.whole("moe_layer_start_index", least=0), read.whole("moe_layer_interval")
    end = read.whole("moe_layer_end_index", least=-1)
    last = of.layers - 1 if end == -1 else end
    routed = [first <= index <= last and not (index + 1) % every for index in range(of.layers)]
    return of.resolved([experts if each else dense for each in routed], head_bias=read.flag("use_bias"))


def _hunyuan_moe(of: Common) -> ArchitectureFields:
    layer = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim)
    return of.resolved(of.all_layers(of.routed(layer, shared_ffn=of.fields.whole("intermediate_size"))))


def _dots1(of: Common) -> ArchitectureFields:
    read = of.fields
    dense = of.layer(*of.attention_biases("qkv", "output"), more=2 * of.head_dim)
    inner = read.whole("moe_intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=of.shared_experts(inner))
    first = read.optional("first_k_dense_replace", least=0) or 0
    windows = of.late_windows()
    return of.resolved(
        [replace(dense if index < first else experts, window=window) for index, window in enumerate(windows)]
    )


def _minimax_m2(of: Common) -> ArchitectureFields:
    layer = of.layer(more=(of.heads + of.kv_heads) * of.head_dim)
    return of.resolved(of.all_layers(of.routed(layer)))


def _llama4(of: Common) -> ArchitectureFields:
    """Llama 4: chunked attention in layers with rotary positions, experts beside a shared one in some or all layers."""
    read = of.fields
    dense = of.layer(*of.attention_biases("qkv", "output"), ffn=read.whole("intermediate_size_mlp"))
    inner = read.whole("intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=inner)
    step = read.optional("interleave_moe_layer_step") or 1
    routed = read.entries("moe_layers", int, "numbers of layers")
    routed = list(range(step - 1, of.layers, step)) if routed is None else routed
    rotary = read.entries("no_rope_layers", int, "0 or 1, one for each layer")
    every = read.optional("no_rope_layer_interval") or 4
    kinds = of.listed("layer_types", ("chunked_attention", FULL)) or [
        "chunked_attention" if (rotary[index : index + 1] == [1] if rotary else (index + 1) % every) else FULL
        for index in range(of.layers)
    ]
    chunk = read.optional("attention_chunk_size", least=0) or 0
    return of.resolved([
        replace(experts if index in routed else dense, window=0 if kind == FULL else chunk)
        for index, kind in enumerate(kinds)
    ])  # fmt: skip


MIXTURES: dict[str, Callable[[Common], ArchitectureFields]] = {
    "afmoe": _afmoe, "cohere2_moe": _cohere2_moe, "dots1": _dots1, "ernie4_5_moe": _ernie_moe,
    "exaone_moe": _exaone_moe, "flex_olmo": _olmoe, "glm4_moe": _glm4_moe, "gpt_oss": _gpt_oss,
    "granitemoe": _granitemoe, "hunyuan_v1_moe": _hunyuan_moe, "hy_v3": _hy_v3, "llama4_text": _llama4,
    "mimo_v2_flash": _mimo_v2_flash, "minimax_m2": _minimax_m2, "mixtral": _mixtral, "olmoe": _olmoe,
    "phimoe": _phimoe, "qwen2_moe": _qwen2_moe, "qwen3_moe": _qwen3_moe, "solar_open": _solar_open,
}  # fmt: skip
"""How the layers of each ``model_type`` with experts follow from its fields."""
