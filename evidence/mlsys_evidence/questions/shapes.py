"""Shapes of language models that rows name and the catalogue has no entry for; see ``data/shapes.yaml``."""

import re
from functools import lru_cache

from mlsys.inputs import shipped_text, yaml_of
from mlsys.workloads.zoo.language import LanguageModel

_KNOWN = yaml_of(shipped_text("mlsys_evidence", "data/shapes.yaml"))
_SHAPES: dict[str, dict[str, int]] = _KNOWN["shapes"]
OTHER_NAMES: dict[str, str] = _KNOWN["names"]


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    owned = name.rpartition("/")[2]
    plain = re.sub(r"\(.*?\)|[ :_-]+(it|chat|instruct|hf|base)$", "", owned.lower())
    return re.sub(r"[^a-z0-9.]", "", plain)


def language_shape(name: str) -> LanguageModel | None:
    """Return the shape that a row's name or words give, where the catalogue has none.

    Examples
    --------
    >>> model = language_shape("GPT (16 layers, 16 heads x64, hidden 1024, vocab 51200)")
    >>> model.layers, model.head_dim, model.ffn
    (16, 64, 4096)
    """
    words = re.fullmatch(r"GPT \((\d+) layers, (\d+) heads x(\d+), hidden (\d+), vocab (\d+)\)", name)
    if words:
        layers, heads, width, hidden, vocabulary = (int(part) for part in words.groups())
        return LanguageModel(
            name, layers, hidden, heads, heads, width, 4 * hidden, vocabulary, gated=False, tied=True,
            positions=2048, biases=("qkv", "output", "ffn"), norm_size=2, act="gelu",
        )  # fmt: skip
    shape = _SHAPES.get(next((key for key in _SHAPES if _plain(key) == _plain(name)), ""))
    if shape is None:
        return None
    heads, hidden, gated = shape["heads"], shape["hidden"], bool(shape.get("gated", True))
    return LanguageModel(
        name, shape["layers"], hidden, heads, shape["kv_heads"], shape.get("head_dim", hidden // heads), shape["ffn"],
        shape["vocabulary"], gated=gated, act="silu" if gated else "gelu",
    )  # fmt: skip


@lru_cache(maxsize=4096)
def usual_name(name: str) -> str:
    """Return the name under which a model is in the catalogue, or the table above, or the name itself."""
    return OTHER_NAMES.get(_plain(name), name)
