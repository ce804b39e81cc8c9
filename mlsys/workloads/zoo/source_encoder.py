"""The encoder of an encoder-decoder: what a decoder reads through cross-attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mlsys.workloads.zoo.decoder_layer import DecoderLayer


class Convolution(NamedTuple):
    """A one-dimensional convolution with a bias in front of an encoder.

    Attributes
    ----------
    name
        Name of its operator.
    inputs, outputs
        Channels.
    length
        Outputs for each token that the encoder then reads.
    stride
        Inputs between two outputs.
    kernel
        Taps.
    """

    name: str
    inputs: int
    outputs: int
    length: int
    stride: int
    kernel: int = 3

    @property
    def elements(self) -> int:
        """Weights, without the bias."""
        return self.inputs * self.outputs * self.kernel


@dataclass(frozen=True)
class SourceEncoder:
    """The encoder of an encoder-decoder; it reads a sequence once, every token attending to all.

    Attributes
    ----------
    layers
        Its layers, as wide as those of the decoder.
    tokens
        Tokens of one sequence that it reads; 0 if not set yet.
    fixed
        Whether the model always reads so many: Whisper pads audio to 30 s.
    stem
        Convolutions in front of the layers; without any, tokens are looked up in the table of the decoder.
    small
        Parameters outside the layers that are no convolution: biases of these, tables of positions, the last norm.
    """

    layers: tuple[DecoderLayer, ...]
    tokens: int = 0
    fixed: bool = False
    stem: tuple[Convolution, ...] = ()
    small: int = 0

    def parameters(self, hidden: int) -> int:
        """Return its parameters, without the table of tokens, which is the decoder's."""
        stem = sum(each.elements for each in self.stem)
        return stem + self.small + sum(layer.parameters(hidden) for layer in self.layers)
