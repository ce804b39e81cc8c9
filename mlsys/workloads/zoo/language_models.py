"""Published shapes of decoder language models, as ``language_models.yaml`` lists them."""

from typing import Any

from mlsys.inputs import shipped_text, yaml_of
from mlsys.workloads.zoo.language import LanguageModel


def _shape(entry: dict[str, Any]) -> LanguageModel:
    """Return a model; one with as many key heads as heads, that share its width, need not say so."""
    usual = {"kv_heads": entry["heads"], "head_dim": entry["hidden"] // entry["heads"], "ffn": 4 * entry["hidden"]}
    return LanguageModel(**{**usual, **entry, "biases": tuple(entry.get("biases", ()))})


LANGUAGE_MODELS = {
    name: (_shape(entry), paper["source"])
    for paper in yaml_of(shipped_text("mlsys.workloads.zoo", "language_models.yaml"))["published"]
    for name, entry in paper["models"].items()
}
"""The entries of the catalogue by name, each with where it is published."""
