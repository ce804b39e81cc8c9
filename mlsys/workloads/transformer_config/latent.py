"""Layers of architectures with multi-head latent attention: DeepSeek and its like, some with an indexer of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import FULL, ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.transformer_config.hybrids import LINEAR, recurrent
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix
from mlsys.workloads.zoo.recurrence import kimi_delta_attention


def latent_layer(of: Common) -> DecoderLayer:
    """Return a layer with latent attention and a dense feed-forward block."""
    read = of.fields
    query, latent, rotary = read.optional("q_lora_rank"), read.whole("kv_lora_rank"), read.whole("qk_rope_head_dim")
    return of.layer(
        *of.attention_biases("latent", "output"), *(() if read.takes("index_topk") else of.flagged(mlp_bias="ffn")),
        more=latent + (query or 0), head_dim=read.whole("qk_nope_head_dim"), kv_heads=of.heads, latent=latent,
        rotary=rotary, query_latent=query or 0, value_dim=read.optional("v_head_dim") or of.hidden // of.heads,
    )  # fmt: skip


def _dense(of: Common) -> ArchitectureFields:
    """MiniCPM3, Youtu: latent attention, no experts."""
    return of.resolved(of.all_layers(latent_layer(of)))


def _deepseek(of: Common) -> ArchitectureFields:
    """DeepSeek V2 and V3, GLM-4.7-Flash: the first layers dense, the others with shared experts."""
    read = of.fields
    if (read.optional("moe_layer_freq") or 1) != 1:
        raise fault("`moe_layer_freq` is not 1: transformers ignores it, and layers would be counted wrongly")
    dense = latent_layer(of)
    inner = read.whole("moe_intermediate_size")
    experts = of.routed(dense, ffn=inner, shared_ffn=of.shared_experts(inner))
    if read.model_type == "axk1":
        experts = replace(experts, small=experts.small + of.hidden)  # a norm after the experts
    usual = 1 if read.model_type in ("axk1", "glm4_moe_lite", "kimi_linear") else 0
    return of.resolved([experts if each else dense for each in of.routed_layers(usual)])


def _indexed(of: Common) -> ArchitectureFields:
    """DeepSeek V3.2, GLM-5: an indexer scores all keys, and a token attends to those with the highest scores.

    Layers may reuse the choice of the layer before.
    """
    read, resolved = of.fields, _deepseek(of)
    heads, width = read.whole("index_n_heads"), read.whole("index_head_dim")
    side = (
        WeightMatrix("indexer query", "self_attn.indexer.wq_b", read.whole("q_lora_rank"), heads * width),
        # Two matrices, which one product reads.
        WeightMatrix("indexer key, weights", "self_attn.indexer.wk", of.hidden, width + heads),
    )
    kinds = of.listed("indexer_types", ("full", "shared")) or _schedule(of)
    layers = []
    for layer, kind in zip(resolved.layers, kinds, strict=True):
        selecting = replace(layer, selects=read.whole("index_topk"))
        if kind == "full":
            selecting = replace(
                selecting, side=side, index_heads=heads, index_width=width, small=layer.small + 2 * width
            )
        layers.append(selecting)
    return replace(resolved, layers=layers)


def _schedule(of: Common) -> list[str]:
    """Return which layers run the indexer, by the older fields of GLM-5."""
    pattern = of.fields.value("index_topk_pattern")
    if pattern is not None:
        raise fault("`index_topk_pattern` is not known here. Write the kinds of the layers as `indexer_types`")
    every = of.fields.optional("index_topk_freq", least=0) or 1
    offset = of.fields.optional("index_skip_topk_offset", least=0)
    first = 2 if offset is None else offset
    return ["shared" if max(index - first + 1, 0) % every else "full" for index in range(of.layers)]


def kimi_flattened(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration of Kimi Linear with the fields of its linear attention beside the others.

    Raises
    ------
    ArgumentError
        If they are no JSON object.
    """
    fields, linear = dict(given), given.get("linear_attn_config")
    if linear is None:
        return fields
    if not isinstance(linear, Mapping):
        raise fault(f"`linear_attn_config` must be a JSON object, got {short(linear)}")
    names = {
        "head_dim": "linear_head_dim",
        "num_heads": "linear_num_heads",
        "short_conv_kernel_size": "linear_conv_kernel_dim",
    }
    fields |= {ours: linear[name] for name, ours in names.items() if name in linear}
    full, layers = linear.get("full_attn_layers"), given.get("num_hidden_layers")
    if isinstance(full, list) and isinstance(layers, int):  # counted from 1
        fields["layer_types"] = [FULL if index in full else LINEAR for index in range(1, layers + 1)]
    return fields


def _kimi_linear(of: Common) -> ArchitectureFields:
    """Kimi Linear: a delta rule in most layers, latent attention without rotary positions in the others, experts."""
    read = of.fields
    mixer = kimi_delta_attention(
        of.hidden, read.whole("linear_num_heads"), read.whole("linear_head_dim"), read.whole("conv_kernel")
    )
    kinds = of.listed("layer_types", (LINEAR, FULL))
    kinds = kinds or [FULL if index and not index % 4 else LINEAR for index in range(of.layers)]
    layers = [
        layer if kind == FULL else recurrent(layer, mixer, 2 * of.hidden)
        for layer, kind in zip(_deepseek(of).layers, kinds, strict=True)
    ]
    return of.resolved(layers)


LATENT: dict[str, Callable[[Common], ArchitectureFields]] = {
    "axk1": _deepseek, "deepseek_v2": _deepseek, "deepseek_v3": _deepseek, "deepseek_v32": _indexed,
    "glm4_moe_lite": _deepseek, "glm_moe_dsa": _indexed, "kimi_linear": _kimi_linear, "minicpm3": _dense,
    "mistral4": _deepseek, "youtu": _dense,
}  # fmt: skip
"""How the layers of each ``model_type`` with latent attention follow from its fields."""
