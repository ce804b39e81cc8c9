"""Published shapes of decoder language models, as ``language_models.yaml`` lists them."""

from typing import Any

from mlsys.inputs import shipped_text, yaml_of
from mlsys.workloads.zoo.language import LanguageModel


def _listed(entry: dict[str, Any], source: str) -> tuple[LanguageModel, str, tuple[str, ...]]:
    """Return a model with defaults filled in, its source, and its aliases."""
    also = tuple(entry.pop("also", ()))
    usual = {"kv_heads": entry["heads"], "head_dim": entry["hidden"] // entry["heads"], "ffn": 4 * entry["hidden"]}
    model = LanguageModel(**{**usual, **entry, "biases": tuple(entry.get("biases", ()))})
    return model, source, also


LANGUAGE_MODELS = {
    name: _listed(entry, paper["source"])
    for paper in yaml_of(shipped_text("mlsys.workloads.zoo", "language_models.yaml"))["published"]
    for name, entry in paper["models"].items()
}
"""Catalogue entries by name: model, source and aliases."""
