"""Write the defaults of transformers' configuration classes, as ``mlsys.workloads.transformer_config`` reads them."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import transformers
import yaml

from mlsys.files import write_text
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.transformer_config.encoders import ENCODERS

FILE = Path(__file__).parents[1] / "mlsys" / "workloads" / "transformer_config" / "defaults.yaml"
MODEL_TYPES = sorted({*ARCHITECTURES, *ENCODERS})
# The name that a field has in most classes, by the name it has in some.
CANONICAL = {
    "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "num_layers": "num_hidden_layers",
    "n_head": "num_attention_heads", "num_heads": "num_attention_heads", "n_positions": "max_position_embeddings",
    "num_kv_heads": "num_key_value_heads", "n_inner": "intermediate_size", "ffn_dim": "intermediate_size",
    "ffn_hidden_size": "intermediate_size", "hidden_activation": "hidden_act", "activation": "hidden_act",
    "activation_function": "hidden_act", "num_local_experts": "num_experts", "n_routed_experts": "num_experts",
    "attention_heads": "num_attention_heads", "afn": "hidden_act",
    "top_k_experts": "num_experts_per_tok",
    "num_experts_per_token": "num_experts_per_tok", "d_ff": "intermediate_size", "d_kv": "head_dim",
    "d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "conv_L_cache": "conv_kernel", "max_seq_len": "max_position_embeddings", "layers_block_type": "layer_types",
    "attention_window_size": "sliding_window", "mlp_hidden_act": "hidden_act", "conv1d_width": "conv_kernel",
    "mamba_d_conv": "conv_kernel", "linear_conv_kernel_dim": "conv_kernel", "mamba_conv_bias": "use_conv_bias",
    "mamba_d_state": "state_size", "ssm_state_size": "state_size", "mamba_n_groups": "n_groups",
    "mamba_expand": "expand", "mamba_dt_rank": "time_step_rank", "mamba_n_heads": "mamba_num_heads",
    "mamba_d_head": "mamba_head_dim", "moe_k": "num_experts_per_tok", "moe_topk": "num_experts_per_tok",
    "moe_num_experts": "num_experts", "moe_num_shared_experts": "n_shared_experts",
    "num_shared_experts": "n_shared_experts", "num_shared_expert": "n_shared_experts",
}  # fmt: skip
# Names that a class accepts only in its `__post_init__`.
KEYWORDS = {"bloom": {"n_embed": "hidden_size"}, "falcon": {"n_embed": "hidden_size"}}
FIELDS = {
    *CANONICAL.values(), "vocab_size", "head_dim", "tie_word_embeddings", "attention_bias", "mlp_bias",
    "sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "qkv_bias", "use_bias", "bias",
    "use_qkv_bias",
    "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size", "n_shared_experts",
    "decoder_sparse_step", "mlp_only_layers", "first_k_dense_replace", "kv_lora_rank", "q_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "qk_layernorm", "use_qk_norm", "new_decoder_architecture",
    "multi_query", "parallel_attn", "num_ln_in_parallel_attn", "alibi", "use_parallel_residual",
    "do_layer_norm_before", "_remove_final_layer_norm", "word_embed_proj_dim", "enable_bias",
    "layer_norm_elementwise_affine", "conv_bias", "full_attn_idxs", "block_multiple_of",
    "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim", "use_bidirectional_attention", "add_cross_attention",
    "attention_types", "lm_head_bias", "lru_width", "block_types", "attn_layer_period", "attn_layer_offset",
    "expert_layer_period", "expert_layer_offset", "mamba_proj_bias", "attn_layer_indices", "mamba_d_ssm",
    "mamba_rms_norm", "projectors_bias", "moe_shared_expert_intermediate_size", "moe_latent_size",
    "shared_intermediate_size", "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads",
    "linear_num_value_heads", "num_dense_layers", "intermediate_size_mlp", "moe_layers",
    "interleave_moe_layer_step", "no_rope_layers", "attention_chunk_size", "moe_layer_start_index",
    "moe_layer_end_index", "moe_layer_interval", "num_kv_shared_layers", "altup_num_inputs", "laurel_rank",
    "hidden_size_per_layer_input", "vocab_size_per_layer_input", "qk_norm", "window_size", "use_conv_bias",
    "type_vocab_size", "image_size", "patch_size",
    "num_channels", "pooler_output_size", "num_decoder_layers", "relative_attention_num_buckets", "feed_forward_proj",
    "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim",
    "decoder_ffn_dim", "max_source_positions", "max_target_positions", "num_mel_bins",
    "mlp_layer_types", "index_topk", "index_n_heads", "index_head_dim", "indexer_types", "use_post_norm",
    "linear_head_dim", "linear_num_heads",
    "attention_k_eq_v", "enable_moe_block", "use_double_wide_mlp", "prefix_dense_sliding_window_pattern",
    "prefix_dense_intermediate_size",
    "global_attn_every_n_layers", "sliding_window_pattern",
    "decoder_vocab_size", "share_encoder_decoder_embeddings",
}  # fmt: skip


def described(model_type: str) -> dict[str, Any]:
    """Return a configuration class's field aliases, defaults, and whether it checks its width."""
    kind = transformers.CONFIG_MAPPING[model_type]
    names: dict[str, str] = dict(KEYWORDS.get(model_type, {}))
    defaults: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        canonical = CANONICAL.get(field.name, field.name)
        if canonical not in FIELDS:
            continue
        if canonical != field.name:
            names[field.name] = canonical
        if field.default is not dataclasses.MISSING and field.default is not None:
            defaults[canonical] = list(field.default) if isinstance(field.default, tuple) else field.default
    for name, meant in kind.attribute_map.items():
        canonical = CANONICAL.get(meant, meant)
        if canonical in FIELDS and name != canonical:
            names[name] = canonical
        if canonical in FIELDS and meant != canonical:
            names[meant] = canonical
    own = (
        {field.name for field in dataclasses.fields(kind)} | set(kind.attribute_map) | set(kind.attribute_map.values())
    )
    ignored = sorted(set(names.values()) - own)
    width = inspect.getsource(kind)
    checked = "not a multiple of" in width or "not divisible by" in width
    record: dict[str, Any] = {"defaults": defaults}
    if names:
        record["names"] = names
    if ignored:
        record["ignores"] = ignored
    if checked:
        record["checks_width"] = True
    return record


def text() -> str:
    """Return the text of the file."""
    head = (
        "# Defaults of transformers' configuration classes, written by tools/transformer_defaults.py.\n"
        "# `names` are the names that a field has in this class, with the name that most classes have for it.\n"
        "# `ignores` are names of other classes that this one does not take.\n"
        "# `checks_width`: the class refuses a hidden_size that is no multiple of num_attention_heads.\n"
    )
    source = f"huggingface/transformers {transformers.__version__}, src/transformers/models/*/configuration_*.py"
    record = {"source": source, "models": {kind: described(kind) for kind in MODEL_TYPES}}
    return head + yaml.safe_dump(record, sort_keys=True, width=118, default_flow_style=None)


if __name__ == "__main__":
    write_text(FILE, text())
