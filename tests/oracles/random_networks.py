"""Random small modules that PyTorch runs and its ONNX exporter writes, with the bytes by which the two graphs differ.

``random_networks:network`` is a factory: it returns what :func:`offer` was given last.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn

_WIDTH = 4  # bytes of a value
_ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Hardswish, nn.ELU, nn.LeakyReLU)
_offered: list[tuple[nn.Module, Any]] = []


def offer(module: nn.Module, inputs: Any = None) -> str:
    """Return the name of a factory that makes this module and these inputs."""
    _offered[:] = [(module, inputs)]
    return "random_networks:network"


def network() -> Any:
    """Return the module that was offered last, with its inputs if it has any."""
    module, inputs = copy.deepcopy(_offered[0])  # a factory makes a new module at each call
    return module if inputs is None else (module, inputs)


@dataclass(frozen=True)
class RandomNetwork:
    """A module, what its one input is like, and how its ONNX graph differs.

    Attributes
    ----------
    label
        What it is.
    module
        In evaluation mode, with parameters that all differ: the exporter merges equal ones.
    shape
        The shape of its input at a batch and a length.
    batch_axis, length_axes
        Axes of the batch, and of the sequence or the image.
    length
        ``"sequence"``, ``"image"``, or None where the input has neither.
    macs
        Multiply-accumulates at a batch and a length, by hand.
    more_in_onnx
        Bytes that only the ONNX graph moves, less those that only PyTorch moves, at a batch and a length, by cause.
    merged_when_free
        Bytes of tensors that the exporter merges at a batch where the sizes are free, and keeps apart where they are
        fixed.
    """

    label: str
    module: nn.Module
    shape: Callable[[int, int], tuple[int, ...]]
    batch_axis: int
    length_axes: tuple[int, ...]
    length: str | None
    macs: Callable[[int, int], int]
    more_in_onnx: Callable[[int, int], dict[str, int]]
    merged_when_free: Callable[[int], int] = lambda batch: 0

    def __repr__(self) -> str:
        return f"{self.label}: {self.module}"

    def sizes(self, batch: int, length: int) -> dict[str, int]:
        """Return the options of a batch and a length."""
        return {"batch": batch} | ({self.length: length} if self.length else {})

    def exported(self, file: Path, batch: int, length: int, *, free: bool) -> Path:
        """Write the module to an ONNX file, at a batch and a length or with both of them free."""
        named = {self.batch_axis: "batch"}
        if self.length == "sequence":
            named |= dict.fromkeys(self.length_axes, "sequence")
        example = torch.zeros(self.shape(batch, length))
        torch.onnx.export(
            self.module, (example,), file, dynamo=False, opset_version=17, input_names=["x"],
            dynamic_axes={"x": named} if free else None,
        )  # fmt: skip
        return file


class Block(nn.Module):
    """A layer of a transformer, with the normalisation first."""

    def __init__(self, heads: int, width: int, act: nn.Module, biased: bool) -> None:
        super().__init__()
        self.heads, self.act = heads, act
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, biased) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width, biased), nn.Linear(2 * width, width, biased)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        normed = self.norms[0](x)
        query, key, value = (
            layer(normed).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        seen = (query @ key.transpose(-1, -2)).softmax(-1) @ value
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(self.act(self.up(self.norms[1](x))))


def _filled(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.1)
    return module.eval()


def _added_biases(layers: list[nn.Linear], rows: int) -> int:
    """Return the bytes of biases that are added by a node of their own: each product is written and read again."""
    return sum(2 * rows * layer.out_features * _WIDTH for layer in layers if layer.bias is not None)


@st.composite
def perceptrons(draw: st.DrawFn) -> RandomNetwork:
    """Draw linear layers over rows, or over tokens with normalisations between them."""
    widths = draw(st.lists(st.integers(2, 24), min_size=2, max_size=4))
    tokens, biased = draw(st.booleans()), draw(st.booleans())
    layers = [nn.Linear(a, b, biased) for a, b in itertools.pairwise(widths)]
    parts: list[nn.Module] = []
    for layer in layers:
        parts += [layer, *([nn.LayerNorm(layer.out_features)] if tokens else []), draw(st.sampled_from(_ACTIVATIONS))()]
    pairs = sum(layer.in_features * layer.out_features for layer in layers)
    return RandomNetwork(
        "tokens" if tokens else "rows",
        _filled(nn.Sequential(*parts)),
        lambda batch, length: (batch, length, widths[0]) if tokens else (batch, widths[0]),
        0,
        (1,) if tokens else (),
        "sequence" if tokens else None,
        lambda batch, length: batch * (length if tokens else 1) * pairs,
        lambda batch, length: {"biases added apart": _added_biases(layers, batch * length) if tokens else 0},
    )


@st.composite
def convolutions(draw: st.DrawFn) -> RandomNetwork:
    """Draw convolutions over images, with pooling between them and a classifier behind."""
    channels = [2 * each for each in draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))]
    kernel, groups = draw(st.sampled_from((1, 3))), draw(st.sampled_from((1, 2)))
    biased, pool = draw(st.booleans()), draw(st.sampled_from((nn.MaxPool2d, nn.AvgPool2d)))
    layers = [
        nn.Conv2d(a, b, kernel, padding=kernel // 2, groups=groups, bias=biased)
        for a, b in itertools.pairwise(channels)
    ]
    parts: list[nn.Module] = []
    for layer in layers:
        parts += [layer, draw(st.sampled_from(_ACTIVATIONS))(), pool(2)]
    head = nn.Linear(channels[-1], 5)

    def macs(batch: int, side: int) -> int:
        work = head.weight.numel()
        for place, layer in enumerate(layers):
            work += layer.weight.numel() * (side // 2**place) ** 2
        return batch * work

    return RandomNetwork(
        "images",
        _filled(nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)),
        lambda batch, side: (batch, channels[0], side, side),
        0,
        (2, 3),
        "image",
        macs,
        lambda batch, side: {},
    )


@st.composite
def recurrences(draw: st.DrawFn) -> RandomNetwork:
    """Draw a recurrent layer, of one direction or two, one above the other or not."""
    made = draw(st.sampled_from((nn.LSTM, nn.GRU, nn.RNN)))
    features, hidden = draw(st.integers(2, 12)), draw(st.integers(2, 12))
    layers, both, first, biased = draw(st.tuples(st.integers(1, 2), *(st.booleans() for _ in range(3))))
    module = made(features, hidden, num_layers=layers, bidirectional=both, batch_first=first, bias=biased)
    matrices = sum(parameter.numel() for parameter in module.parameters() if parameter.dim() == 2)
    ways, states = 1 + both, 2 if made is nn.LSTM else 1

    def more(batch: int, steps: int) -> dict[str, int]:
        out = batch * steps * ways * hidden * _WIDTH
        last = layers * ways * batch * hidden * _WIDTH * states
        return {
            "zeros of the first state are filled by PyTorch and stored in ONNX": -last,
            "batch first is transposed before and after": first * 2 * (batch * steps * features * _WIDTH + out),
            "layers are nodes with a tensor between them": (layers - 1) * 2 * out,
            "last states of the layers are concatenated": (layers > 1) * 2 * last,
            "two directions are brought side by side": both * layers * 2 * out,
        }

    return RandomNetwork(
        "recurrence",
        _filled(module),
        lambda batch, steps: (batch, steps, features) if first else (steps, batch, features),
        0 if first else 1,
        (1,) if first else (0,),
        "sequence",
        lambda batch, steps: batch * steps * matrices,
        more,
        # One tensor of zeros is the hidden state and the cell of an LSTM of one layer; a read operand counts once.
        lambda batch: (states == 2 and layers == 1) * ways * batch * hidden * _WIDTH,
    )


@st.composite
def transformers(draw: st.DrawFn) -> RandomNetwork:
    """Draw a layer of a transformer over vectors of tokens."""
    heads, head, biased = draw(st.sampled_from((1, 2, 4))), 4 * draw(st.integers(1, 2)), draw(st.booleans())
    width, act = heads * head, draw(st.sampled_from((nn.GELU, nn.SiLU, nn.ReLU)))()
    block = Block(heads, width, act, biased)
    linear = [part for part in block.modules() if isinstance(part, nn.Linear)]

    def more(batch: int, tokens: int) -> dict[str, int]:
        row = batch * tokens * width * _WIDTH
        # x · ½ · (1 + erf(x / √2)) is five nodes, three of them with a number; x · σ(x) is two.
        apart = {nn.GELU: 9 * 2 * row + 3 * _WIDTH, nn.SiLU: 3 * 2 * row}.get(type(act), 0)
        return {
            "biases added apart": _added_biases(linear, batch * tokens),
            # Several heads are brought side by side by a copy in PyTorch, too.
            "heads are transposed, where PyTorch has a view": (3 if heads > 1 else 4) * 2 * row,
            "an activation of several nodes": apart,
        }

    return RandomNetwork(
        "transformer",
        _filled(block),
        lambda batch, tokens: (batch, tokens, width),
        0,
        (1,),
        "sequence",
        lambda batch, tokens: batch * tokens * (8 * width**2 + 2 * tokens * width),
        more,
    )


networks = st.one_of(perceptrons(), convolutions(), recurrences(), transformers())
