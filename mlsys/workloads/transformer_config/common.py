"""Layers, heads, windows and experts of a decoder, from the fields that nearly all architectures have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.faults import short
from mlsys.workloads.transformer_config.fields import Fields, fault
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix

_ACTIVATIONS = {
    "silu": "silu", "swish": "silu", "gelu": "exact gelu", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu",
    "gelu_fast": "gelu", "gelu_python": "exact gelu", "relu": "relu", "relu2": "squared relu", "mish": "mish",
    "quick_gelu": "quick gelu", "xielu": "xielu", "tanh": "tanh", "sigmoid": "sigmoid",
}  # fmt: skip
_FIRST_DENSE = (
    "axk1",
    "cohere2_moe",
    "kimi_linear",
)  # classes that read `first_k_dense_replace` without having it as a field
SLIDING, FULL = "sliding_attention", "full_attention"
"""Kinds of attention in ``layer_types``."""


@dataclass
class ArchitectureFields:
    """Fields that an architecture adds to the common ones.

    Attributes
    ----------
    layers
        The layers.
    tied, head_bias
        As in :class:`~mlsys.workloads.transformer_config.TransformerConfig`.
    outer
        Parameters of normalisations outside the layers.
    learned, offset
        Learned positions, and the rows of their table beyond them.
    embedding_width
        Width of the table of tokens, where it differs.
    outer_matrices, per_layer_table
        As in :class:`~mlsys.workloads.zoo.decoder.Decoder`.
    """

    layers: list[DecoderLayer]
    tied: bool
    outer: int
    head_bias: bool = False
    learned: int = 0
    offset: int = 0
    embedding_width: int = 0
    outer_matrices: tuple[WeightMatrix, ...] = ()
    per_layer_table: tuple[int, ...] = ()


def activation(fields: Fields) -> str:
    """Return the activation of a configuration, by our name.

    Raises
    ------
    ArgumentError
        If it is not known.
    """
    name = fields.text("hidden_act") or "silu"
    if name not in _ACTIVATIONS:
        raise fault(
            f"`{fields.spelled('hidden_act')}` is {name!r}, an activation that is not known here."
            f"{did_you_mean(name, _ACTIVATIONS)}"
        )
    return _ACTIVATIONS[name]


@dataclass
class Common:
    """The fields that nearly all decoders have."""

    fields: Fields
    hidden: int = field(init=False)
    layers: int = field(init=False)
    heads: int = field(init=False)
    head_dim: int = field(init=False)

    def __post_init__(self) -> None:
        read = self.fields
        self.hidden, self.layers = read.whole("hidden_size"), read.whole("num_hidden_layers")
        if not read.takes("num_attention_heads"):  # no layer has attention
            self.heads = self.head_dim = 0
            return
        self.heads = read.whole("num_attention_heads")
        if read.takes("kv_lora_rank"):  # latent attention has widths of its own
            self.head_dim = read.whole("qk_nope_head_dim")
            return
        stated = read.optional("head_dim")
        if (stated is None or read.checks_width) and self.hidden % self.heads:
            raise fault(
                f"`{read.spelled('hidden_size')}` is {self.hidden}, no multiple of the {self.heads} of "
                f"`{read.spelled('num_attention_heads')}`"
                + ("" if read.checks_width else ". Mend one, or state `head_dim`")
            )
        self.head_dim = stated or self.hidden // self.heads

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values: as many as heads where the field is absent."""
        stated = self.fields.optional("num_key_value_heads")
        if stated is None:
            self.fields.assumed["num_key_value_heads"] = f"num_key_value_heads {self.heads} (as many as heads)"
        shared = stated or self.heads
        if self.heads % shared:
            raise fault(
                f"`{self.fields.spelled('num_key_value_heads')}` is {shared}, which does not divide the "
                f"{self.heads} of `{self.fields.spelled('num_attention_heads')}`"
            )
        return shared

    @property
    def act(self) -> str:
        """The activation, by our name."""
        return activation(self.fields)

    def layer(self, *biases: str, norm_size: int = 1, norms: int = 2, more: int = 0, **sizes: Any) -> DecoderLayer:
        """Return a layer with norms over ``hidden``, of so many parameters for each element, and ``more`` others."""
        usual: dict[str, Any] = {"kv_heads": 0, "rotary": self.head_dim, "act": self.act} | sizes
        return DecoderLayer(
            heads=self.heads,
            head_dim=usual.pop("head_dim", self.head_dim),
            kv_heads=usual.pop("kv_heads") or self.kv_heads,
            ffn=usual.pop("ffn", None) or self.fields.whole("intermediate_size"),
            biases=frozenset(name for name in biases if name),
            norms=norms,
            centred=norm_size > 1,
            small=norms * norm_size * self.hidden + more,
            **usual,
        )

    def inner(self) -> int:
        """Inner width of the feed-forward part, four times the width where it is absent."""
        return self.fields.optional("intermediate_size") or 4 * self.hidden

    def flagged(self, **names: str) -> list[str]:
        """Return the values of those fields that are true."""
        return [name for flag, name in names.items() if self.fields.flag(flag)]

    def attention_biases(self, *which: str) -> tuple[str, ...]:
        """Return the biases that ``attention_bias`` switches on."""
        return which if self.fields.flag("attention_bias") else ()

    def all_layers(self, layer: DecoderLayer, windows: Sequence[int] | None = None) -> list[DecoderLayer]:
        """Return the layers that are alike but for their windows."""
        if windows is None:
            return [layer] * self.layers
        kinds = {window: replace(layer, window=window) for window in set(windows)}
        return [kinds[window] for window in windows]

    def window(self) -> int:
        """Return the window, 0 for none; ``use_sliding_window`` may switch it off."""
        read = self.fields
        if "use_sliding_window" in read.defaults and not read.flag("use_sliding_window"):
            return 0
        return read.optional("sliding_window", least=0) or 0

    def listed(self, name: str, allowed: tuple[str, ...], older: Mapping[str, str] | None = None) -> list[str] | None:
        """Return a list that has one entry for each layer, ``older`` names replaced, or None."""
        kinds = self.fields.entries(name, str, "names, one for each layer")
        if kinds is None:
            return None
        kinds = [(older or {}).get(kind, kind) for kind in kinds]
        if len(kinds) != self.layers:
            raise fault(
                f"`{name}` has {len(kinds)} entries for the {self.layers} layers of "
                f"`{self.fields.spelled('num_hidden_layers')}`"
            )
        for kind in kinds:
            if kind not in allowed:
                raise fault(f"`{name}` has {short(kind)}, which is not known here for {self.fields.model_type}. "
                            f"Known: {', '.join(allowed)}")  # fmt: skip
        return kinds

    def windows(self, local: Callable[[int], bool]) -> list[int]:
        """Return the window of each layer: by ``layer_types``, or by which layers are local."""
        window, kinds = self.window(), self.listed("layer_types", (SLIDING, FULL))
        if kinds is None:
            return [window if local(index) else 0 for index in range(self.layers)]
        return [window if kind == SLIDING else 0 for kind in kinds]

    def late_windows(self) -> list[int]:
        """Return the window of each layer, where those from ``max_window_layers`` on are local."""
        first = self.fields.optional("max_window_layers", least=0) or 0
        return self.windows(lambda index: index >= first)

    def pattern(self, usual: int) -> Callable[[int], bool]:
        """Return which layers are local, where every n-th is not: ``sliding_window_pattern``."""
        every = self.fields.optional("sliding_window_pattern") or usual
        return lambda index: bool((index + 1) % every)

    def auto(self, name: str, usual: int) -> int:
        """Return a whole number that may be ``"auto"`` or null, and is then ``usual``."""
        return usual if self.fields.value(name) in (None, "auto") else self.fields.whole(name)

    def sparse(self, index: int) -> bool:
        """Return whether a layer has experts: each ``decoder_sparse_step``-th but for ``mlp_only_layers``."""
        step = self.fields.optional("decoder_sparse_step") or 1
        plain = self.fields.entries("mlp_only_layers", int, "numbers of layers") or []
        return index not in plain and not (index + 1) % step

    def routed_layers(self, usual: int) -> list[bool]:
        """Return which layers have experts: by ``mlp_layer_types``, or all but the first, by default ``usual``."""
        kinds = self.listed("mlp_layer_types", ("dense", "sparse"))
        if kinds is not None:
            return [kind == "sparse" for kind in kinds]
        stated, kind = self.fields.optional("first_k_dense_replace", least=0), self.fields.model_type
        first = usual if stated is None else stated
        if first != usual and not self.fields.takes("first_k_dense_replace") and kind not in _FIRST_DENSE:
            raise fault(
                f"`first_k_dense_replace` is {first}, which transformers ignores for {kind}: it makes {usual} layers "
                "dense. Write the kinds of the layers as `mlp_layer_types`"
            )
        return [index >= first for index in range(self.layers)]

    def shared_experts(self, width: int) -> int:
        """Return the width of all shared experts together, each as wide as a routed one: ``n_shared_experts``."""
        return width * (self.fields.optional("n_shared_experts", least=0) or 0)

    def routed(self, layer: DecoderLayer, **sizes: Any) -> DecoderLayer:
        """Return a layer with experts, of which a token visits ``num_experts_per_tok``."""
        experts, active = self.fields.whole("num_experts"), self.fields.whole("num_experts_per_tok")
        if active > experts:
            raise fault(
                f"`num_experts_per_tok` is {active}, more than the {experts} of `{self.fields.spelled('num_experts')}`"
            )
        return replace(layer, experts=experts, active_experts=active, **sizes)

    def resolved(self, layers: list[DecoderLayer], outer: int = 1, **more: Any) -> ArchitectureFields:
        """Return the architecture; ``outer`` are parameters outside the layers for each element of the width."""
        return ArchitectureFields(layers, self.fields.flag("tie_word_embeddings"), outer * self.hidden, **more)
