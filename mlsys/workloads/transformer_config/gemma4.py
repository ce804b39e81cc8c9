"""How the layers of Gemma 4 follow from its fields: wider global layers, shared caches, layer embeddings, experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix

_GLOBAL_WIDTH = 512  # of heads of global layers, where `global_head_dim` is absent


def resolve_gemma4(of: Common) -> ArchitectureFields:
    """Return the layers of a Gemma 4 model.

    Global layers have wider heads, and may take their values from the projection of the keys; the last layers may
    attend to the keys and values of an earlier one; experts run beside the feed-forward block
    (transformers, models/gemma4/modeling_gemma4.py).

    Raises
    ------
    ArgumentError
        If a field is impossible.
    """
    read, hidden = of.fields, of.hidden
    windows = of.windows(of.pattern(6))
    windows[-1] = 0  # transformers makes the last layer global, whatever `layer_types` says
    if read.text("use_bidirectional_attention") == "all":
        windows = [window // 2 + 1 if window else 0 for window in windows]
    each = read.optional("hidden_size_per_layer_input", least=0) or 0
    inputs = (
        WeightMatrix("layer embedding gate", "per_layer_input_gate", hidden, each),
        WeightMatrix("layer embedding up", "per_layer_projection", each, hidden),
    )
    first = of.layers - (read.optional("num_kv_shared_layers", least=0) or 0)
    if first < 0 or not {bool(window) for window in windows[:first]} >= {bool(window) for window in windows}:
        raise fault("`num_kv_shared_layers` leaves no earlier layer of a kind whose cache the last ones could share")
    inner, stated = read.whole("intermediate_size"), _stated_overrides(of)
    layers = []
    for index, window in enumerate(windows):
        shares = index >= first
        own = (_overrides(of) if not window else {}) if stated is None else stated.get(index, {})
        width = own.get("head_dim", of.head_dim)
        layer = of.layer(
            *of.attention_biases("qkv", "output"), norms=4, window=window, shares_cache=shares, head_dim=width,
            kv_heads=own.get("num_key_value_heads") or of.kv_heads,
            ffn=inner * (2 if shares and read.flag("use_double_wide_mlp") else 1),
            more=width * (2 - shares) + (hidden if each else 0), side=inputs if each else (),
            keys_as_values=not window and read.flag("attention_k_eq_v"),
        )  # fmt: skip
        layers.append(_with_experts(of, layer) if read.flag("enable_moe_block") else layer)
    resolved = of.resolved(layers)
    if not each:
        return resolved
    projection = WeightMatrix("layer embedding projection", "per_layer_model_projection", hidden, of.layers * each)
    table = (read.whole("vocab_size_per_layer_input"), of.layers * each)
    return replace(resolved, outer=resolved.outer + each, outer_matrices=(projection,), per_layer_table=table)


def _with_experts(of: Common, layer: DecoderLayer) -> DecoderLayer:
    """Return a layer whose experts run beside its feed-forward block, with three norms and two scales more."""
    more = 4 * of.hidden + of.fields.whole("num_experts")
    return of.routed(
        layer, ffn=of.fields.whole("moe_intermediate_size"), shared_ffn=layer.ffn, small=layer.small + more
    )


def _overrides(of: Common) -> dict[str, int]:
    """Return the sizes of global layers that differ from those of the others."""
    sizes = {"head_dim": of.fields.optional("global_head_dim") or _GLOBAL_WIDTH}
    shared = of.fields.optional("num_global_key_value_heads")
    return sizes | ({"num_key_value_heads": shared} if shared and of.fields.flag("attention_k_eq_v") else {})


def _stated_overrides(of: Common) -> dict[int, dict[str, int]] | None:
    """Return the sizes of single layers where the configuration states them by number; None where it does not."""
    stated = of.fields.value("per_layer_config")
    if stated is None:
        return None
    if (
        not isinstance(stated, Mapping)
        or not all(isinstance(sizes, Mapping) for sizes in stated.values())
        or not all(str(layer).isdecimal() for layer in stated)
    ):
        raise fault(f"`per_layer_config` must be a JSON object with an object for each number, got {short(stated)}")
    return {
        int(layer): {name: _checked(name, value) for name, value in sizes.items()} for layer, sizes in stated.items()
    }


def _checked(name: str, value: Any) -> int:
    known = name in ("head_dim", "num_key_value_heads")
    if not known or isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise fault(f"`per_layer_config` has `{name}` {short(value)}: head_dim and num_key_value_heads are known here")
    return value
