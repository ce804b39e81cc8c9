"""Rejection of impossible configurations: sizes that are not positive whole numbers, or unreasonably large."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import ArgumentError

MOST_LAYERS = 1000  # each is a module, which takes time to build; published models have 126 and fewer
_LARGEST = 10**8
_LAYERS = re.compile(r"^(n_layers?|num_layers|num_hidden_layers|(en|de)coder_layers|num_(en|de)coder_layers)$")
_SIZES = re.compile(
    r"^(n_heads?|num_heads|num_attention_heads|num_key_value_heads|(en|de)coder_attention_heads|n_embd|d_model|d_ff|d_kv|"
    r"hidden_size|hidden_dim|dim|embedding_size|intermediate_size|vocab_size|n_positions|n_ctx|max_position_embeddings|"
    r"image_size|patch_size|num_channels|head_dim|num_mel_bins)$"
)
_DEEPEST = 20


def refuse_impossible_config(config: Mapping[str, Any]) -> None:
    """Raise for a configuration with an impossible size.

    Raises
    ------
    ArgumentError
        With the key and its value.
    """
    for key, value in _entries(config, 0):
        layers = bool(_LAYERS.match(key))
        if not layers and not _SIZES.match(key):
            continue
        most = MOST_LAYERS if layers else _LARGEST
        for size in value if isinstance(value, (list, tuple)) else (value,):
            if size is None:
                continue
            if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most:
                shown = repr(size)
                raise ArgumentError(
                    f"from_hf_config(): `{key}` must be a whole number from 1 to {most:,}, "
                    f"got {shown if len(shown) < 60 else shown[:60] + '…'}"
                )


def refuse_other_parts(config: Mapping[str, Any], built: Any) -> None:
    """Raise for a configuration with a part of one kind that transformers built as another kind, with defaults.

    Raises
    ------
    ArgumentError
        With the part, its stated kind and the kind that was built.
    """
    for key, part in config.items():
        stated = part.get("model_type") if isinstance(part, Mapping) else None
        made = getattr(type(getattr(built, str(key), None)), "model_type", None)  # instances echo the configuration
        if stated is not None and made is not None and made != stated:
            raise ArgumentError(
                f"config.json: `model_type` of `{key}` is {stated!r}, but transformers builds a part of kind {made!r} "
                f"with its defaults. Write the actual kind of `{key}`"
            )


def _entries(config: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """Yield keys and values, including those of nested configurations."""
    if depth > _DEEPEST:
        raise ArgumentError(f"from_hf_config(): the configuration is nested more than {_DEEPEST} deep")
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _entries(value, depth + 1)
        else:
            yield str(key), value
