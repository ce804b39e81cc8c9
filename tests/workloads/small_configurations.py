"""Small configurations of every architecture that is read, for tests against transformers."""

from typing import Any

from mlsys.workloads.transformer_config.fields import known_models
from mlsys.workloads.transformer_config.hybrids import HYBRIDS
from mlsys.workloads.transformer_config.latent import LATENT

TOKENS = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
OF_FALCON = {"num_key_value_heads": "num_kv_heads", "intermediate_size": "ffn_hidden_size"}
FIXED = {
    "tie_word_embeddings", "add_cross_attention", "alibi", "conv_bias", "use_bidirectional_attention",
    "_remove_final_layer_norm", "block_auto_adjust_ff_dim",
}  # fmt: skip
STATED_WIDTHS = (
    "hunyuan_v1_dense", "ministral", "hunyuan_v1_moe", "nemotron_h", "exaone4", "dots1", "minimax", "helium",
    "mimo_v2_flash", "gemma4_text",
)  # fmt: skip
NEVER_NULL = ("axk1", "cwm", "deepseek_v32", "exaone_moe", "gemma4_text", "glm_moe_dsa", "mimo_v2_flash")
OF_OPT = {"intermediate_size": "ffn_dim"}


def small(kind: str, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return a small configuration of one kind; fields that the kind does not have are left to be ignored."""
    config: dict[str, Any] = {
        "hidden_size": sizes["heads"] * sizes["head_dim"], "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"], "num_key_value_heads": sizes["heads"] // sizes["share"],
        "intermediate_size": sizes["inner"], "vocab_size": 97, "max_position_embeddings": 64,
        "tie_word_embeddings": sizes["tied"], "sliding_window": sizes["window"], "max_window_layers": sizes["first"],
        "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24, "n_shared_experts": 1 + sizes["bare"],
        "num_experts_per_tok": 2, "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "n_group": 1,
        "topk_group": 1, "q_lora_rank": sizes["latent"], "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 12, "first_k_dense_replace": sizes["first"], "decoder_sparse_step": 1,
        "word_embed_proj_dim": sizes["latent"], "block_multiple_of": 8, **TOKENS,
    }  # fmt: skip
    if kind in STATED_WIDTHS:
        config["head_dim"] = sizes["head_dim"]
    flags = {name for name, usual in known_models()[kind]["defaults"].items() if isinstance(usual, bool)} - FIXED
    chosen = flags & sizes["flags"] if sizes["unset"] else flags
    config |= {name: name in sizes["flags"] for name in chosen}
    inner = 2 * config["hidden_size"]  # of state-space layers
    config |= {
        "state_size": 8, "mamba_d_state": 8, "ssm_state_size": 8, "n_groups": 2, "mamba_n_heads": sizes["heads"],
        "mamba_num_heads": sizes["heads"], "mamba_head_dim": 8, "attn_layer_period": 2, "attn_layer_offset": 1,
        "expert_layer_offset": sizes["first"] % 2, "attn_layer_indices": [0, 2], "mamba_d_ssm": inner,
        "moe_shared_expert_intermediate_size": 24, "shared_intermediate_size": 24, "lru_width": sizes["heads"] * 8,
        "linear_key_head_dim": 8, "linear_value_head_dim": sizes["head_dim"], "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "num_dense_layers": sizes["first"], "intermediate_size_mlp": 40, "moe_topk": 2,
        "moe_k": 2, "moe_num_experts": 8, "interleave_moe_layer_step": 1 + sizes["bare"], "attention_chunk_size": 16,
    }  # fmt: skip
    if kind in HYBRIDS and kind != "nemotron_h":
        config.pop("n_group")  # too close to `n_groups`, which these have
    if kind == "olmo_hybrid":  # has layers of both kinds
        config["num_hidden_layers"] = max(2, sizes["layers"])
    if kind == "afmoe":
        config["attention_bias"] = False
    if kind in ("glm4_moe_lite", "hy_v3", "mimo_v2_flash"):
        config["first_k_dense_replace"] = 1  # no field of theirs
    if kind in NEVER_NULL:
        config |= {"q_lora_rank": sizes["latent"] or 12, "sliding_window": sizes["window"] or 16}
    if kind in LATENT:
        config["head_dim"] = 4  # of rotary positions, by which transformers sets up their table
        if kind == "mistral4":  # its rotary positions are a part of the whole width
            del config["head_dim"]
        config |= {"index_n_heads": 4, "index_head_dim": 8, "index_topk": 16}
    if kind == "kimi_linear":
        config |= {"linear_head_dim": 8, "linear_num_heads": 2}
        config["layer_types"] = (["linear_attention", "full_attention"] * 4)[: sizes["layers"]]
    if kind == "glm_moe_dsa":
        config["indexer_types"] = (["full", "shared"] * 4)[: sizes["layers"]]
    if kind == "gemma4_text":
        config |= {
            "num_kv_shared_layers": sizes["first"] if sizes["layers"] == 4 else 0, "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 50, "top_k_experts": 2, "global_head_dim": 2 * sizes["head_dim"],
            "layer_types": (["sliding_attention", "full_attention"] * 4)[: sizes["layers"]],
        }  # fmt: skip
        del config["attention_chunk_size"]
    if kind == "internlm3":  # refuses two values
        config |= dict.fromkeys(("mlp_bias", "attention_bias"), config.get("attention_bias", False))
    if kind == "cohere2_moe":
        config["first_k_dense_replace"] = min(sizes["first"], sizes["layers"])
        config |= {"num_shared_experts": 1, "prefix_dense_intermediate_size": 56}
    if kind == "mimo_v2_flash":  # local layers have twice as many
        config["num_key_value_heads"] = sizes["heads"] // 2
    if kind in ("gptj", "codegen"):
        config["rotary_dim"] = 4
    if kind == "exaone4":
        config["layer_types"] = (["sliding_attention", "full_attention"] * 4)[: sizes["layers"]]
    second = {"lfm2": "conv", "lfm2_moe": "conv", "granitemoehybrid": "linear_attention"}.get(kind)
    if second:
        config["layer_types"] = ([second, "full_attention"] * 4)[: sizes["layers"]]
    if kind == "nemotron_h":
        config["layers_block_type"] = (["linear_attention", "moe", "full_attention", "mlp"])[: sizes["layers"]]
    if kind == "mamba2":
        config |= {"num_heads": sizes["heads"], "head_dim": inner // sizes["heads"]}
    if kind == "gemma3n_text":
        config |= {
            "num_kv_shared_layers": sizes["first"] if sizes["layers"] == 4 else 0, "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 50, "laurel_rank": 4, "activation_sparsity_pattern": [0.0] * sizes["layers"],
            "layer_types": (["sliding_attention", "full_attention"] * 4)[: sizes["layers"]],
            "sliding_window": sizes["window"] or 4,
        }  # fmt: skip
    if kind == "gpt_neo":
        config["attention_types"] = [[["global"], 1], [["local"], sizes["layers"] - 1]]
        config["window_size"] = sizes["window"] or 256
    if kind == "dbrx":  # refuses tied tables, and has parts of its own for attention and experts
        attention = {"kv_n_heads": config["num_key_value_heads"], "rope_theta": 1e4, "clip_qkv": 8.0}
        experts = {"ffn_hidden_size": sizes["inner"], "moe_num_experts": 8, "moe_top_k": 2}
        return {
            "d_model": config["hidden_size"], "n_layers": sizes["layers"], "n_heads": sizes["heads"], "vocab_size": 97,
            "max_seq_len": 64, "attn_config": attention, "ffn_config": experts, **TOKENS,
        }  # fmt: skip
    renamed = OF_FALCON if kind == "falcon" else OF_OPT if kind == "opt" else {}
    refused = set(known_models()[kind].get("ignores", ())) - {"num_experts"}  # names of sizes that only others have
    return {renamed.get(name, name): value for name, value in config.items() if renamed.get(name, name) not in refused}


def small_encoder_decoder(kind: str, *, shared: bool = True) -> dict[str, Any]:
    """Return a small configuration of an encoder-decoder; Marian's tables of tokens may be ``shared``."""
    tokens = {**TOKENS, "vocab_size": 97, "decoder_start_token_id": 0}
    if "t5" in kind:
        sizes = {"d_kv": 8, "d_ff": 48, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 6}
        return {"d_model": 32, **sizes, "feed_forward_proj": "gated-gelu", **tokens}
    config = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40, **tokens,
    }  # fmt: skip
    if kind == "whisper":
        return config | {"num_mel_bins": 20, "max_source_positions": 24, "max_target_positions": 32}
    apart = {} if shared else {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 83}
    return config | {"max_position_embeddings": 32, "forced_eos_token_id": 0} | apart
