"""Fields of a ``config.json``: read by name, with the defaults of transformers, each checked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.inputs import shipped_text, yaml_of

_LARGEST = 10**8
_MOST_LAYERS = 1000
_LAYER_COUNT = "num_hidden_layers"
# Fields that set the size of a model; a default in their place is reported with the answer.
_SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", _LAYER_COUNT, "num_attention_heads", "num_key_value_heads",
    "head_dim", "sliding_window", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
    "max_position_embeddings",
)  # fmt: skip
_REPORTED = frozenset(_SIZES) - {"max_position_embeddings"}
# Names of sizes in configurations that transformers has no class for.
_OTHER_NAMES = {
    "d_model": "hidden_size", "dim": "hidden_size", "n_embed": "hidden_size", "n_layers": _LAYER_COUNT,
    "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads", "n_head_kv": "num_key_value_heads",
    "d_ff": "intermediate_size", "num_experts_per_token": "num_experts_per_tok",
}  # fmt: skip
_CLOSE = 0.9  # similarity of a misspelled field to the one that is meant


@lru_cache(maxsize=1)
def known_models() -> Mapping[str, Mapping[str, Any]]:
    """Return the fields and defaults of transformers' configuration classes, by ``model_type``."""
    models: Mapping[str, Mapping[str, Any]] = yaml_of(
        shipped_text("mlsys.workloads.transformer_config", "defaults.yaml")
    )["models"]
    return models


@lru_cache(maxsize=1)
def names_of_sizes() -> Mapping[str, str]:
    """Return every name that any model has for a size, and the name that most have for it."""
    names = {name: name for name in _SIZES} | _OTHER_NAMES
    for model in known_models().values():
        names |= {name: field for name, field in model.get("names", {}).items() if field in _SIZES}
    return names


class Fields:
    """The fields of one configuration.

    Parameters
    ----------
    given
        The JSON object.
    model_type
        One of :func:`known_models`.

    Raises
    ------
    ArgumentError
        If two names of one field contradict each other, or a size has another model's name or a misspelled one.
    """

    def __init__(self, given: Mapping[str, Any], model_type: str) -> None:
        model = known_models()[model_type]
        self.model_type = model_type
        self.checks_width = bool(model.get("checks_width"))
        self.defaults: Mapping[str, Any] = model["defaults"]
        self.assumed: dict[str, str] = {}
        self._names = names = model.get("names", {})
        self._given: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        for name, value in given.items():
            if name in model.get("ignores", ()):
                continue
            field = names.get(name, name)
            if value is None and field in self._given:
                continue
            if self._given.get(field) is not None and self._given[field] != value:
                raise fault(
                    f"`{name}` is {short(value)} and `{self._spelled[field]}` is {short(self._given[field])}, two "
                    f"names of one field of {model_type}. Remove one"
                )
            self._given[field], self._spelled[field] = value, name
        self._refuse_other_names(given, names)

    def _refuse_other_names(self, given: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Refuse a size under a name that this model does not read, where the default would take its place."""
        sizes = names_of_sizes()
        taken = {*self.defaults, *names.values(), "num_key_value_heads", "head_dim"}
        own = {field: name for name, field in reversed(list(names.items()))}
        absent = [name for name in (*names, *taken) if names.get(name, name) not in self._given]
        for name, value in given.items():
            if value is None or name in names or name in taken - set(own):
                continue
            field = sizes.get(name)
            if field is None:
                close = difflib.get_close_matches(name, absent, n=1, cutoff=_CLOSE)
                field = names.get(close[0], close[0]) if close else None
            if field in taken and field not in self._given:
                raise fault(
                    f"`{name}` is no field of {self.model_type}, and `{own.get(field, field)}` is missing. "
                    f"Rename it to `{own.get(field, field)}`"
                )

    def takes(self, name: str) -> bool:
        """Return whether the model's class has a field."""
        return name in self.defaults or name in self._names.values()

    def spelled(self, name: str) -> str:
        """Return the name of a field as the configuration writes it."""
        return self._spelled.get(name, name)

    def value(self, name: str) -> Any:
        """Return a field, null as None, or transformers' default of an absent one, or None."""
        if name in self._given:
            return self._given[name]
        if name in _REPORTED and name in self.defaults:
            self.assumed[name] = f"{name} {self.defaults[name]} (transformers' default)"
        return self.defaults.get(name)

    def optional(self, name: str, *, least: int = 1) -> int | None:
        """Return a whole number, or None where the field is absent and has no default."""
        value = self.value(name)
        if value is None:
            return None
        most = _MOST_LAYERS if name == _LAYER_COUNT else _LARGEST
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise fault(f"`{self.spelled(name)}` must be a whole number from {least} to {most:,}, got {short(value)}")
        return value

    def whole(self, name: str, *, least: int = 1) -> int:
        """Return a whole number that must be there."""
        value = self.optional(name, least=least)
        if value is None:
            what = "null" if name in self._given else "missing"
            raise fault(
                f"`{self.spelled(name)}` is {what}, and transformers has no default of it for {self.model_type}. Add it"
            )
        return value

    def flag(self, name: str) -> bool:
        """Return a field that is true or false, false where it is absent."""
        value = self.value(name)
        if value is not None and not isinstance(value, bool):
            raise fault(f"`{self.spelled(name)}` must be true or false, got {short(value)}")
        return bool(value)

    def number(self, name: str) -> float | None:
        """Return a finite number above zero, or None."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise fault(f"`{self.spelled(name)}` must be a number above zero, got {short(value)}")
        return float(value)

    def text(self, name: str) -> str | None:
        """Return a field of text, or None."""
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            raise fault(f"`{self.spelled(name)}` must be text, got {short(value)}")
        return value

    def entries(self, name: str, kind: type, wanted: str) -> list[Any] | None:
        """Return a list whose entries are of one kind, or None."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, kind) for each in value):
            raise fault(f"`{self.spelled(name)}` must be a list of {wanted}, got {short(value)}")
        return value


def fault(what: str) -> ArgumentError:
    """Return the error for a configuration."""
    return ArgumentError(f"config.json: {what}")
