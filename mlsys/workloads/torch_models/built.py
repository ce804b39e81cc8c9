"""Catalogue networks as modules in plain torch, which run each call of the graph in order."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mlsys.workloads import zoo
from mlsys.workloads.graph_builder import GraphCall, NetworkBuilder, TensorRef


def _convolution(step: Mapping[str, Any]) -> nn.Module:
    out, into, *kernel = step["weight"].shape
    groups, rest = step["groups"], (step["stride"], step["padding"], step["dilation"])
    return nn.Conv2d(into * groups, out, (kernel[0], kernel[1]), *rest, groups, bias=step["bias"] is not None)


def _linear(step: Mapping[str, Any]) -> nn.Module:
    outputs, inputs = step["weight"].shape
    return nn.Linear(inputs, outputs, bias=step["bias"] is not None)


# Operators whose weights belong to them: the module that holds them and makes the call.
_LAYERS: dict[str, Callable[[Mapping[str, Any]], nn.Module]] = {
    "conv2d.default": _convolution,
    "batch_norm.default": lambda step: nn.BatchNorm2d(*step["weight"].shape),
    "linear.default": _linear,
    "layer_norm.default": lambda step: nn.LayerNorm(step["normalized_shape"]),
    "rms_norm.default": lambda step: nn.RMSNorm(step["normalized_shape"]),
    "embedding.default": lambda step: nn.Embedding(*step["weight"].shape),
}


def _split(x: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
    """Return a column of numbers, or the last axis as heads."""
    return x.view(-1, 1) if len(size) == 2 else x.view(x.shape[0], x.shape[1], *size[2:])


# The others: functions of the call's arguments, tensors in the place of sheets.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu.default": lambda self: functional.relu(self),
    "hardtanh.default": lambda self, min_val, max_val: functional.hardtanh(self, min_val, max_val),
    "silu.default": lambda self: functional.silu(self),
    "tanh.default": lambda self: self.tanh(),
    "gelu.default": lambda self, approximate: functional.gelu(self, approximate=approximate),
    "add.Tensor": lambda self, other, alpha: self + other,
    "mul.Tensor": lambda self, other: self * other,
    "div.Tensor": lambda self, other: self / other,
    "pow.Scalar": lambda self, exponent: self**exponent,
    "neg.default": lambda self: -self,
    "cos.default": lambda self: self.cos(),
    "sin.default": lambda self: self.sin(),
    "cat.default": lambda tensors, dim: torch.cat(tensors, dim),
    "repeat.default": lambda self, repeats: self.repeat(*repeats),
    "zeros_like.default": lambda self, **_: torch.zeros_like(self),
    "flatten.using_ints": lambda self, start_dim, end_dim: self.flatten(start_dim, end_dim),
    "transpose.int": lambda self, dim0, dim1: self.transpose(dim0, dim1),
    "chunk.default": lambda self, chunks, dim: self.chunk(chunks, dim),
    "view.default": lambda self, size: _split(self, size),
    "select.int": lambda self, dim, index: self[:, index],
    "max_pool2d.default": lambda self, kernel_size, stride, padding, dilation, ceil_mode: functional.max_pool2d(
        self, kernel_size, stride, padding, dilation, ceil_mode
    ),
    "adaptive_avg_pool2d.default": lambda self, output_size: functional.adaptive_avg_pool2d(self, output_size),
    "scaled_dot_product_attention.default": lambda query, key, value, is_causal, enable_gqa, **_: (
        functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=enable_gqa)
    ),
}


class BuiltModule(nn.Module):
    """A network that runs the steps of a graph builder, at any batch size and sequence length.

    Parameters
    ----------
    drawing
        Of the network, finished.
    """

    def __init__(self, drawing: NetworkBuilder) -> None:
        super().__init__()
        (given,), steps = drawing.graph.inputs, drawing.graph.steps
        self._given, self._returned = given.number, tuple(sheet.number for sheet in drawing.returned)
        self._program: list[tuple[GraphCall, str, str]] = []
        tables: dict[int, str] = {}  # the layer that holds each weight
        for step in steps:
            named: dict[str, Any] = dict(step.arguments)
            layer, table = "", ""
            if step.target in _LAYERS and named["weight"].number in tables:
                table = tables[named["weight"].number]
            elif step.target in _LAYERS:
                layer = tables[named["weight"].number] = _spelled(step.path)
                self.add_module(layer, _LAYERS[step.target](named))
            for value in named.values():
                self._hold(value, step, tables)
            self._program.append((step, layer, table))
        self._bare = {number: name for number, name in tables.items() if name not in self._modules}
        self._last = self._last_uses()

    def _hold(self, value: Any, step: GraphCall, tables: dict[int, str]) -> None:
        """Register a weight that belongs to no layer, such as one that is added to a tensor or concatenated with it."""
        if not isinstance(value, TensorRef) or value.role != "parameter" or step.target in _LAYERS:
            return
        if value.number not in tables and not any(value in call.made for call, *_ in self._program):
            tables[value.number] = _spelled(f"{step.path or step.target} weight")
            self.register_parameter(tables[value.number], nn.Parameter(torch.zeros(*value.shape)))

    def _last_uses(self) -> dict[int, list[int]]:
        """Return the tensors that are no longer needed after each step."""
        last: dict[int, int] = {}
        for index, (step, *_) in enumerate(self._program):
            for sheet in _sheets(tuple(value for _, value in step.arguments)):
                last[sheet.number] = index
        freed: dict[int, list[int]] = {}
        for number, index in last.items():
            if number not in self._returned:
                freed.setdefault(index, []).append(number)
        return freed

    def forward(self, x: torch.Tensor) -> Any:
        """Return the network's output for images, (batch, channels, height, width), or for (batch, tokens)."""
        values: dict[int, Any] = {number: getattr(self, name) for number, name in self._bare.items()}
        values[self._given] = x
        for index, (step, layer, table) in enumerate(self._program):
            made = self._run(step, layer, table, values, x)
            if len(step.made) == 1:
                made = (made,)
            values.update(zip((sheet.number for sheet in step.made), made, strict=True))
            for number in self._last.get(index, ()):
                values.pop(number, None)
        results = tuple(values[number] for number in self._returned)
        return results if len(results) > 1 else results[0]

    def _run(self, step: GraphCall, layer: str, table: str, values: Mapping[int, Any], x: torch.Tensor) -> Any:
        named = dict(step.arguments)
        if layer:
            return getattr(self, layer)(values[(named.get("indices") or named["input"]).number])
        if table:
            return functional.linear(values[named["input"].number], getattr(self, table).weight)
        if step.target == "arange.default":
            return torch.arange(x.shape[1], device=x.device)
        if step.target == "arange.start_step":
            return torch.arange(named["start"], named["end"], named["step"], device=x.device)
        filled = {label: _filled(value, values) for label, value in named.items()}
        if step.target == "expand.default":
            return filled["self"].expand(x.shape[0], -1, -1)
        if step.target == "to.dtype":
            return filled["self"].to(next(self.parameters()).dtype)
        return _FUNCTIONS[step.target](**filled)


def drawn_network(name: str, image: int | None = None) -> BuiltModule:
    """Return a network of the catalogue, for one image size if its weights depend on that."""
    return BuiltModule(zoo.entry(name).drawing(image=image))


def _sheets(value: Any) -> list[TensorRef]:
    if isinstance(value, TensorRef):
        return [value]
    return [sheet for item in value for sheet in _sheets(item)] if type(value) is tuple else []


def _filled(value: Any, values: Mapping[int, Any]) -> Any:
    if isinstance(value, TensorRef):
        return values[value.number]
    return tuple(_filled(item, values) for item in value) if type(value) is tuple else value


def _spelled(name: str) -> str:
    """Return a valid attribute name for a part of a module."""
    return re.sub(r"\W", "_", name)
