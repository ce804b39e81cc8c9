"""Counting conventions where several are in use: masked attention, and products of three or more tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import torch

from mlsys.workloads.einsum_order import order_in_words
from mlsys.workloads.torch_import.nodes import was_stopped
from mlsys.workloads.totals import AttentionCount

_ATTENTION = "aten::scaled_dot_product_attention"
_MADE = frozenset({"ones", "zeros", "full", "arange", "eye", "tril_indices", "triu_indices", "scalar_tensor", "empty"})
_LARGEST_MASK = 2**26  # elements of a mask that is worked out
_CHECKPOINTS = (
    "activation checkpoints are counted as torch runs them: the second forward pass stops once the backward pass has "
    "all that it needs"
)


class Conventions(NamedTuple):
    """Counting conventions of a graph.

    Attributes
    ----------
    attention
        Products of masked attention; None where no attention has a mask.
    notes
        Sentences about other choices.
    """

    attention: AttentionCount | None = None
    notes: tuple[str, ...] = ()


def conventions_of(module: torch.fx.GraphModule) -> Conventions:
    """Return the counting conventions of a captured module.

    Examples
    --------
    >>> from torch.nn import functional
    >>> class Causal(torch.nn.Module):
    ...     def forward(self, x):
    ...         return functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    >>> program = torch.export.export(Causal(), (torch.zeros(1, 1, 4, 8),))
    >>> conventions_of(program.graph_module).attention
    AttentionCount(dense=512, unmasked=320)
    """
    dense, unmasked, known, notes = 0, 0, True, list[str]()
    for node in _calls(module):
        target: Any = node.target
        name = target._schema.name
        given = _given(node)
        if was_stopped(node):
            notes.append(_CHECKPOINTS)
            continue
        if name == "aten::einsum" and len(given.get("tensors", ())) > 2:
            notes.append(_einsum_note(given))
        if name == _ATTENTION and (given.get("is_causal") or given.get("attn_mask") is not None):
            count = _attention_flops(given)
            part = None if count is None else _unmasked_part(given)
            dense += count or 0
            known = known and part is not None
            unmasked += int(count * part) if count is not None and part is not None else 0
    attention = AttentionCount(dense, unmasked if known else None) if dense else None
    return Conventions(attention, tuple(dict.fromkeys(notes)))


def _calls(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                    yield node


def _given(node: torch.fx.Node) -> dict[str, Any]:
    target: Any = node.target
    names = [argument.name for argument in target._schema.arguments]
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def _shape(node: Any) -> tuple[int, ...] | None:
    """Return the shape of a node's tensor, or None where a size is free."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
        return None
    return tuple(value.shape)


def _attention_flops(given: Mapping[str, Any]) -> int | None:
    query, key, value = (_shape(given.get(name)) for name in ("query", "key", "value"))
    if query is None or key is None or value is None:
        return None
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _unmasked_part(given: Mapping[str, Any]) -> Fraction | None:
    """Return the part of all pairs of query and key that a mask leaves, or None where its values are not known."""
    if given.get("is_causal"):
        query, key = _shape(given["query"]), _shape(given["key"])
        assert query is not None and key is not None
        queries, keys = query[-2], key[-2]
        return Fraction(sum(min(row + 1, keys) for row in range(queries)), max(queries * keys, 1))
    mask = _worked_out(given["attn_mask"])
    if mask is None or not mask.numel():
        return None
    left = mask if mask.dtype == torch.bool else mask > -math.inf
    return Fraction(int(left.sum()), left.numel())


def _worked_out(node: Any) -> torch.Tensor | None:
    """Return the values of a tensor that depends on constants alone; None if it depends on the inputs."""
    order: list[torch.fx.Node] = []
    waiting, seen = [node], set[Any]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        if not isinstance(current, torch.fx.Node) or current.op != "call_function" or not _is_small(current):
            return None
        made_by: Any = current.target
        if not current.all_input_nodes and made_by._schema.name.rpartition("::")[2] not in _MADE:
            return None
        seen.add(current)
        order.append(current)
        waiting += current.all_input_nodes
    order.sort(key=list(node.graph.nodes).index)
    values: dict[torch.fx.Node, Any] = {}
    try:
        for current in order:
            args, kwargs = torch.fx.node.map_arg((current.args, dict(current.kwargs)), values.__getitem__)
            on_cpu = {"device": "cpu"} if "device" in kwargs else {}
            target: Any = current.target
            values[current] = target(*args, **{**kwargs, **on_cpu})
    except Exception:  # an operator that wants more than constants
        return None
    result = values[node]
    return result if isinstance(result, torch.Tensor) else None


def _is_small(node: torch.fx.Node) -> bool:
    shape = _shape(node)
    return isinstance(node.target, torch._ops.OpOverload) and shape is not None and math.prod(shape) <= _LARGEST_MASK


def _einsum_note(given: Mapping[str, Any]) -> str:
    path, equation = given.get("path"), str(given["equation"])
    order = "in the order that opt_einsum gave torch" if path else "left to right, as torch runs it without opt_einsum"
    shapes = [shape for tensor in given["tensors"] if (shape := _shape(tensor)) is not None]
    if len(shapes) < len(given["tensors"]):
        return f"einsum {equation.replace(' ', '')} is counted {order}"
    pairs = [(path[at], path[at + 1]) for at in range(0, len(path), 2)] if path else None
    return order_in_words(equation, shapes, order, pairs, outer=1)
