"""DBRX: its sizes of attention and of experts stand in two configurations of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault

_PARTS = {
    "attn_config": {"kv_n_heads": "num_key_value_heads"},
    "ffn_config": {
        "ffn_hidden_size": "intermediate_size", "moe_num_experts": "num_experts", "moe_top_k": "num_experts_per_tok",
    },
}  # fmt: skip


def flattened(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the sizes of its parts under the names that other decoders have for them.

    Raises
    ------
    ArgumentError
        If a part is missing or lacks a size.

    Examples
    --------
    >>> experts = {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2}
    >>> flattened({"model_type": "dbrx", "attn_config": {"kv_n_heads": 8}, "ffn_config": experts})["num_experts"]
    4
    """
    fields = {name: value for name, value in given.items() if name not in _PARTS}
    for part, names in _PARTS.items():
        within = given.get(part)
        if not isinstance(within, Mapping):
            raise fault(f"`{part}` must be a JSON object with {', '.join(names)}, got {short(within)}")
        missing = next((name for name in names if within.get(name) is None), None)
        if missing is not None:
            raise fault(f"`{missing}` is missing in `{part}`. Add it")
        fields |= {field: within[name] for name, field in names.items()}
        activation = within.get("ffn_act_fn")
        if isinstance(activation, Mapping) and activation.get("name") is not None:
            fields["hidden_act"] = activation["name"]
    return fields


def resolve_dbrx(of: Common) -> ArchitectureFields:
    """Return the layers: two LayerNorms without biases, keys shared by groups of heads, gated experts."""
    if of.fields.flag("tie_word_embeddings"):
        raise fault("`tie_word_embeddings` is true, which DBRX cannot be. Remove it")
    layer = replace(of.layer(), centred=True)
    return of.resolved(of.all_layers(of.routed(layer)))
