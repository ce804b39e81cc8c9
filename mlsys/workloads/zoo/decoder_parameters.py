"""Parameters of a decoder language model, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlsys.workloads.zoo.language import LanguageModel


def _of_a_block(model: LanguageModel, expert_count: float, dense: bool = False) -> float:
    attention, norms = _of_attention(model), small_parameters(model)
    if model.experts and not dense:
        router = model.experts * (model.hidden + ("ffn" in model.biases))
        experts = expert_count * _of_feed_forward(model, model.ffn)
        return attention + norms + router + experts + _of_feed_forward(model, model.shared_ffn)
    return attention + norms + _of_feed_forward(model, model.dense_ffn if dense else model.ffn)


def _of_attention(model: LanguageModel) -> int:
    if model.latent:
        queries = model.heads * key_width(model)
        asked = model.query_latent * (model.hidden + queries) if model.query_latent else model.hidden * queries
        cached = model.hidden * (model.latent + model.rotary)
        expanded = model.latent * model.heads * (model.head_dim + model.value_dim)
        return asked + cached + expanded + model.heads * model.value_dim * model.hidden
    queries, shared = model.heads * model.head_dim, model.kv_heads * model.head_dim
    biases = (queries + 2 * shared) * ("qkv" in model.biases) + model.hidden * ("output" in model.biases)
    return model.hidden * (2 * queries + 2 * shared) + biases


def key_width(model: LanguageModel) -> int:
    """Return the width of a key, its rotary part included where that is apart."""
    return model.head_dim + model.rotary


def small_parameters(model: LanguageModel) -> int:
    """Return the parameters of a block's normalisations and sinks."""
    norms = model.norms * model.norm_size * model.hidden + model.head_norms * model.head_dim
    norms += model.latent + model.query_latent
    return norms + (model.heads if model.sinks else 0)


def _of_feed_forward(model: LanguageModel, inner: int) -> int:
    matrices = 3 if model.gated else 2
    biases = ((matrices - 1) * inner + model.hidden) if "ffn" in model.biases and inner else 0
    return matrices * model.hidden * inner + biases


def _outside_the_blocks(model: LanguageModel) -> int:
    tables = (model.vocabulary + model.positions) * model.hidden
    head = 0 if model.tied else model.vocabulary * model.hidden
    bias = model.vocabulary if "head" in model.biases else 0
    return tables + head + bias + model.other_norms * model.norm_size * model.hidden


def parameters_with(model: LanguageModel, expert_count: float) -> int:
    """Return all parameters of a model that has so many experts in a layer."""
    blocks = (model.layers - model.dense_layers) * _of_a_block(model, expert_count)
    return round(blocks + model.dense_layers * _of_a_block(model, 0, dense=True)) + _outside_the_blocks(model)
