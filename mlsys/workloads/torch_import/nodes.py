"""Read the nodes of a captured graph as calls: names, arguments, shapes, which memory is shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.capture import Graph
from mlsys.workloads.torch_import.rules import is_known
from mlsys.workloads.torch_import.symbolic import Expressions

__all__ = ["Node", "graph_inputs", "read_nodes"]

# Arithmetic and assertions on sizes: they touch no data.
_HUGE = 2**40  # torch's bound for what it cannot bound
_NO_DATA = ("sym_", "_assert", "_functional_assert", "_functional_sym")


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its name in the graph, the operator in full, the module it was written in, the call."""

    name: str
    target: str
    path: str
    call: Call


def read_nodes(graph: Graph, expressions: Expressions) -> list[Node]:
    """Return every node that takes or makes a tensor; views among them, pure arithmetic of sizes not."""
    reader = _Reader(expressions)
    for node in graph.module.graph.nodes:
        if node.op == "placeholder":
            reader.hold(node.meta.get("val"), graph.roles.get(node.name, "input"))
    return list(reader.nodes(graph.module, ""))


def graph_inputs(graph: Graph, expressions: Expressions) -> list[Tensor]:
    """Return the tensors that are handed to the network, weights and constants apart."""
    reader = _Reader(expressions)
    return [
        reader.tensor(tensor, 0)
        for node in graph.module.graph.nodes
        if node.op == "placeholder" and graph.roles.get(node.name, "input") == "input"
        for tensor in _leaves(node.meta.get("val"))
    ]


def _leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse and other exotic layouts
        return id(tensor)


class _Reader:
    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.roles: dict[int, str] = {}
        self._schemas: dict[Any, tuple[tuple[str, Any], ...]] = {}

    def hold(self, value: Any, role: str) -> None:
        for tensor in _leaves(value):
            self.roles[_storage(tensor)] = role

    def nodes(self, module: torch.fx.GraphModule, prefix: str) -> Iterator[Node]:
        for node in module.graph.nodes:
            if node.op == "get_attr":
                held = getattr(module, str(node.target), None)
                value = node.meta.get("val", held)
                if isinstance(held, torch.Tensor):
                    node.meta.setdefault("val", held)
                if isinstance(value, torch.Tensor):
                    self.hold(value, self.roles.get(_storage(value), "constant"))
            elif node.op == "call_function":
                yield from self._node(module, node, prefix)

    def _node(self, module: torch.fx.GraphModule, node: torch.fx.Node, prefix: str) -> Iterator[Node]:
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            name = str(target)
            inner = [argument for argument in node.args if _is_module(module, argument)]
            if name.startswith(("wrap", "hints_wrap", "tag_activation")) and len(inner) == 1:
                yield from self._inlined(module, node, inner[0], prefix)
                return
        elif isinstance(target, torch._ops.OpOverload):
            name = target._schema.name.rpartition("::")[2]
        else:  # picking from a tuple, arithmetic of sizes
            return
        if name.startswith(_NO_DATA):
            return
        call = self._call(name, node)
        if not call.outputs and not call.inputs:
            return
        if not is_known(call):
            parts = self._decomposed(node)
            if parts is not None:
                label = f"{prefix}{node.name}"
                yield from (
                    Node(f"{label}.{part.name}", f"{target} → {part.target}", _path(node), part.call) for part in parts
                )
                return
        yield Node(f"{prefix}{node.name}", str(target), _path(node), call)

    def _inlined(self, module: torch.fx.GraphModule, node: torch.fx.Node, inner: Any, prefix: str) -> Iterator[Node]:
        part = getattr(module, str(inner.target))
        given = list(node.args)[list(node.args).index(inner) + 1 :]
        places = [place for place in part.graph.nodes if place.op == "placeholder"]
        for place, argument in zip(places, given, strict=False):
            if isinstance(argument, torch.fx.Node) and isinstance(argument.meta.get("val"), torch.Tensor):
                role = self.roles.get(_storage(argument.meta["val"]), "activation")
                self.hold(place.meta.get("val"), role)
        yield from self.nodes(part, f"{prefix}{node.name}.")

    def _decomposed(self, node: torch.fx.Node) -> list[Node] | None:
        """Return the parts of an operator that is written in terms of others, or None where it is not."""
        target: Any = node.target
        if not isinstance(target, torch._ops.OpOverload) or not target._can_decompose():
            return None
        from torch.fx.experimental.proxy_tensor import make_fx

        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda given: given.meta["val"])
        flat, spec = torch.utils._pytree.tree_flatten((args, kwargs))
        places = [index for index, value in enumerate(flat) if isinstance(value, torch.Tensor)]

        def run(*tensors: torch.Tensor) -> Any:
            leaves = list(flat)
            for index, tensor in zip(places, tensors, strict=True):
                leaves[index] = tensor
            positional, named = torch.utils._pytree.tree_unflatten(leaves, spec)
            return target.decompose(*positional, **named)

        try:
            traced = make_fx(run)(*(flat[index] for index in places))
            made = [place for place in traced.graph.nodes if place.op == "placeholder"]
            for index, place in zip(places, made, strict=True):
                self.hold(place.meta.get("val"), self.roles.get(_storage(flat[index]), "activation"))
            return list(self.nodes(traced, ""))
        except Exception:  # it stays one unknown operator, which is reported
            return None

    def _call(self, name: str, node: torch.fx.Node) -> Call:
        target: Any = node.target
        value = node.meta.get("val")
        overload, in_place, is_pointwise = "", False, False
        if isinstance(target, torch._ops.OpOverload):
            overload = target._overloadname
            in_place = target._schema.is_mutable
            is_pointwise = torch.Tag.pointwise in target.tags
        identities: dict[Any, int] = {}
        arguments = tuple((label, self._value(given, identities)) for label, given in self._named(target, node))
        given_storages = {
            _storage(tensor) for given in node.all_input_nodes for tensor in _leaves(given.meta.get("val"))
        }
        made = list(_leaves(value))
        shared = bool(made) and all(_storage(tensor) in given_storages for tensor in made)
        is_view = shared and not in_place
        if is_view:
            role = self.roles.get(_storage(made[0]))
            if role:
                self.hold(value, role)
        outputs = tuple(self.tensor(tensor, -1 - index) for index, tensor in enumerate(made))
        return Call(name, overload, arguments, outputs, is_view, in_place, is_pointwise)

    def _named(self, target: Any, node: torch.fx.Node) -> list[tuple[str, Any]]:
        """Return name and value of every argument, those left at their defaults too."""
        if not isinstance(target, torch._ops.OpOverload):
            return [(str(index), given) for index, given in enumerate(node.args)] + list(node.kwargs.items())
        schema = self._schemas.get(target)
        if schema is None:
            schema = tuple((argument.name, argument.default_value) for argument in target._schema.arguments)
            self._schemas[target] = schema
        named = [(name, default) for name, default in schema[len(node.args) :]]
        return [
            *((name, given) for (name, _), given in zip(schema, node.args, strict=False)),
            *((name, node.kwargs.get(name, default)) for name, default in named),
        ]

    def _value(self, given: Any, identities: dict[Any, int]) -> Any:
        if isinstance(given, torch.fx.Node):
            value = given.meta.get("val")
            if isinstance(value, torch.Tensor):
                return self.tensor(value, identities.setdefault(given, len(identities)))
            if isinstance(value, (list, tuple)):
                return tuple(
                    self.tensor(item, identities.setdefault((given, index), len(identities)))
                    for index, item in enumerate(value)
                    if isinstance(item, torch.Tensor)
                )
            return self._plain(value)
        if isinstance(given, (list, tuple)):
            return tuple(self._value(item, identities) for item in given)
        return self._plain(given)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value)

    def _size(self, size: Any) -> Any:
        if not isinstance(size, torch.SymInt):
            return int(size)
        for symbol in size.node.expr.free_symbols:
            if str(symbol).startswith("u"):  # a size that values decide, such as how many elements a mask picks
                largest = size.node.shape_env.var_to_range[symbol].upper
                self.expressions.bounds[str(symbol)] = int(largest) if largest < _HUGE else 1
        return self.expressions.size(size.node.expr)

    def tensor(self, tensor: torch.Tensor, identity: int) -> Tensor:
        shape = tuple(self._size(size) for size in tensor.shape)
        stored = shape
        if tensor.layout is torch.strided:
            repeats = [isinstance(stride, int) and stride == 0 for stride in tensor.stride()]
            if True in repeats:
                stored = tuple(1 if repeat else size for size, repeat in zip(shape, repeats, strict=True))
        return Tensor(
            shape,
            stored,
            str(tensor.dtype).removeprefix("torch."),
            tensor.element_size(),
            self.roles.get(_storage(tensor), "activation"),
            identity,
        )


def _is_module(module: torch.fx.GraphModule, argument: Any) -> bool:
    return (
        isinstance(argument, torch.fx.Node)
        and argument.op == "get_attr"
        and isinstance(getattr(module, str(argument.target), None), torch.fx.GraphModule)
    )


def _path(node: torch.fx.Node) -> str:
    """Return where in the module the node was written, such as ``"blocks.3.attn"``."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path: str = next(reversed(stack.values()))[0]
    return path.removeprefix("L['self'].").removeprefix("L['self']")
