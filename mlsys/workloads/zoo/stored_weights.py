"""How the weights of a decoder are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlsys.workloads.zoo.decoder import Decoder

OUTSIDE = ("embedding", "logits", "embedding up", "embedding down", "embedding of layers")
"""Operators outside the layers that read weights."""
ABSORBED = ("query absorbed", "value absorbed")
"""Operators of a decoding step with latent attention that read the matrix of keys and values."""


class StoredWeights(Protocol):
    """How the weights of a decoder are stored when not all have one format."""

    def operator_bits(self, model: Decoder, layer: int | None, plain: float) -> Mapping[str, float]:
        """Return the bits per weight by operator: those of a layer, or with None those outside the layers."""

    def weight_bytes(self, model: Decoder, plain: float) -> float:
        """Return the bytes of all parameters; unquantised ones take ``plain`` bits each."""


@dataclass(frozen=True)
class UniformWeights:
    """All weights in one format, which need not be that of the activations.

    Attributes
    ----------
    form
        The format.
    bits
        Bits per weight, with the scales of its blocks.
    """

    form: str
    bits: float

    def __str__(self) -> str:
        return self.form

    def operator_bits(self, model: Decoder, layer: int | None, plain: float) -> Mapping[str, float]:
        """Return the bits of one weight by operator, all alike."""
        if layer is None:
            outside = (matrix.operator for matrix in model.outer_matrices)
            return dict.fromkeys((*OUTSIDE, *outside), self.bits)
        matrices = model.layer_list[layer].matrices(model.hidden)
        return dict.fromkeys((*ABSORBED, "convolution", *(matrix.operator for matrix in matrices)), self.bits)

    def weight_bytes(self, model: Decoder, plain: float) -> float:
        """Return the bytes of all parameters."""
        total: float = model.parameters().magnitude * self.bits / 8
        return total
