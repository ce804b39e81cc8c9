"""Read the nodes of a captured graph as calls: names, arguments, shapes, which memory is shared.

Memory is identified by its storage, which views share. Each storage has a wire, the tensor that lies in it; a node that
writes in place puts a new wire there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.capture import Graph
from mlsys.workloads.torch_import.rules import is_known
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.tensors import (
    is_module,
    last_stride,
    layout_of,
    leaves,
    path_of,
    results,
    storage,
    unpacked_weights,
)
from mlsys.workloads.torch_import.wiring import Ends, View, Wire

# Arithmetic and assertions on sizes: they touch no data.
_HUGE = 2**40  # torch's bound for what it cannot bound
_NO_DATA = ("sym_", "_assert", "_functional_assert", "_functional_sym")
# They are called in place, and change how memory is looked at, not what is in it.
_LOOKS = frozenset({"detach_", "squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "t_", "as_strided_"})


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its name in the graph, the operator's full name, its module, the call, its tensors."""

    name: str
    target: str
    path: str
    call: Call
    ends: Ends


class Nodes(NamedTuple):
    """Contents of a graph: nodes in order, the tensors between them, its inputs and its outputs."""

    nodes: list[Node]
    wires: list[Wire]
    inputs: list[Tensor]
    returned: tuple[int, ...]


def read_nodes(graph: Graph, expressions: Expressions) -> Nodes:
    """Return every node that reads or writes a tensor, including views, but not arithmetic on sizes."""
    reader = _Reader(expressions)
    inputs = []
    for node in graph.module.graph.nodes:
        if node.op == "placeholder":
            role = graph.roles.get(node.name, "input")
            reader.hold(node.meta.get("val"), role, graph.names.get(node.name, node.name))
            if role == "input":
                inputs += [reader.tensor(tensor, 0) for tensor in leaves(node.meta.get("val"))]
    nodes = list(reader.nodes(graph.module, ""))
    return Nodes(nodes, reader.wires, inputs, tuple(dict.fromkeys(reader.returned(graph.module))))


def was_stopped(node: torch.fx.Node) -> bool:
    """Return whether an operator never ran: checkpoints stop their second run once they have what they need."""
    target = node.target
    makes_tensors = isinstance(target, torch._ops.OpOverload) and any(
        "Tensor" in str(made.type) for made in target._schema.returns
    )
    return makes_tensors and "val" not in node.meta and not node.users


class _Reader:
    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.roles: dict[int, str] = {}
        self.wires: list[Wire] = []
        self._current: dict[int, int] = {}  # the wire that lies in each storage
        self._looks: dict[int, dict[Any, int]] = {}  # the views of each wire, numbered
        self._schemas: dict[Any, tuple[tuple[str, Any], ...]] = {}
        self._packed: dict[torch.fx.Node, tuple[tuple[str, torch.Tensor], ...]] = {}  # weights inside one object
        self._kept: list[Any] = []  # what holds storages: their numbers would be given out again

    def hold(self, value: Any, role: str, name: str) -> None:
        for tensor in leaves(value):
            self.roles[storage(tensor)] = role
            if storage(tensor) not in self._current:
                self._lay(tensor, name)

    def returned(self, module: torch.fx.GraphModule) -> Iterator[int]:
        """Yield the wire of every tensor that the graph returns."""
        for tensor in results(module):
            if storage(tensor) in self._current:
                yield self._current[storage(tensor)]

    def _lay(self, tensor: torch.Tensor, name: str, over: int = -1) -> int:
        """Return a new wire in the storage of ``tensor``; in place ``over`` another, whose size it keeps."""
        whole = self.tensor(tensor, 0) if over < 0 else self.wires[over].tensor._replace(role="activation")
        wire = self._current[storage(tensor)] = len(self.wires)
        self.wires.append(Wire(name, whole, over))
        self._looks[wire] = {layout_of(tensor): 0} if over < 0 else dict(self._looks[over])
        return wire

    def _look(self, tensor: torch.Tensor, name: str) -> View:
        wire = self._current.get(storage(tensor))
        if wire is None:
            wire = self._lay(tensor, name)
        looks, layout = self._looks[wire], layout_of(tensor)
        first = next(iter(looks))
        return View(wire, looks.setdefault(layout, len(looks)), last_stride(layout) != last_stride(first))

    def nodes(self, module: torch.fx.GraphModule, prefix: str) -> Iterator[Node]:
        for node in module.graph.nodes:
            if node.op == "get_attr":
                held = getattr(module, str(node.target), None)
                value = node.meta.get("val", held)
                if isinstance(held, torch.Tensor):
                    node.meta.setdefault("val", held)
                if isinstance(value, torch.Tensor):
                    self.hold(value, self.roles.get(storage(value), "constant"), f"{prefix}{node.target}")
                elif isinstance(held, torch.ScriptObject):
                    self._packed[node] = unpacked_weights(held)
                    for label, tensor in self._packed[node]:
                        self.hold(tensor, "parameter", f"{prefix}{node.target}.{label}")
            elif node.op == "call_function":
                yield from self._node(module, node, prefix)

    def _node(self, module: torch.fx.GraphModule, node: torch.fx.Node, prefix: str) -> Iterator[Node]:
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            name = str(target)
            inner = [argument for argument in node.args if is_module(module, argument)]
            if name.startswith(("wrap", "hints_wrap", "tag_activation")) and len(inner) == 1:
                yield from self._inlined(module, node, inner[0], prefix)
                return
        elif isinstance(target, torch._ops.OpOverload):
            name = target._schema.name.rpartition("::")[2]
        else:  # picking from a tuple, arithmetic of sizes
            return
        if name.startswith(_NO_DATA) or was_stopped(node):
            return
        label = f"{prefix}{node.name}"
        call, takes = self._call(name, node)
        if not call.outputs and not call.inputs:
            return
        if not is_known(call):
            parts = self._decomposed(node, f"{label}.")
            if parts is not None:
                yield from (
                    Node(part.name, f"{target} → {part.target}", path_of(node), part.call, part.ends) for part in parts
                )
                return
        yield Node(label, str(target), path_of(node), call, Ends(takes, self._output_wires(node, call, label)))

    def _inlined(self, module: torch.fx.GraphModule, node: torch.fx.Node, inner: Any, prefix: str) -> Iterator[Node]:
        part = getattr(module, str(inner.target))
        given = list(node.args)[list(node.args).index(inner) + 1 :]
        places = [node for node in part.graph.nodes if node.op == "placeholder"]
        for index, argument in zip(places, given, strict=False):
            if isinstance(argument, torch.fx.Node) and isinstance(argument.meta.get("val"), torch.Tensor):
                self._pass(argument.meta["val"], index.meta.get("val"), index.name)
        yield from self.nodes(part, f"{prefix}{node.name}.")
        for inside, outside in zip(results(part), leaves(node.meta.get("val")), strict=False):
            self._pass(inside, outside, node.name)

    def _pass(self, tensor: torch.Tensor, other: Any, name: str) -> None:
        """Give ``other``, the same tensor inside a subgraph, the role and the wire of ``tensor``."""
        for same in leaves(other):
            self.roles[storage(same)] = self.roles.get(storage(tensor), "activation")
            self._current[storage(same)] = self._look(tensor, name).wire

    def _decomposed(self, node: torch.fx.Node, prefix: str) -> list[Node] | None:
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
            with torch.no_grad():  # nothing is copied for a backward pass
                traced = make_fx(run)(*(flat[index] for index in places))
            self._kept.append(traced)
            made = [node for node in traced.graph.nodes if node.op == "placeholder"]
            for index, placeholder in zip(places, made, strict=True):
                self._pass(flat[index], placeholder.meta.get("val"), placeholder.name)
            parts = list(self.nodes(traced, prefix))
            for index, placeholder in zip(places, made, strict=True):  # it may have been written in place
                self._pass(placeholder.meta["val"], flat[index], node.name)
            for inside, outside in zip(results(traced), leaves(node.meta.get("val")), strict=False):
                self._pass(inside, outside, node.name)
            return parts
        except Exception:  # it stays one unknown operator, which is reported
            return None

    def _call(self, name: str, node: torch.fx.Node) -> tuple[Call, tuple[View, ...]]:
        target: Any = node.target
        value = node.meta.get("val")
        overload, in_place, is_pointwise = "", False, False
        if isinstance(target, torch._ops.OpOverload):
            overload = target._overloadname
            in_place = target._schema.is_mutable and name not in _LOOKS
            is_pointwise = torch.Tag.pointwise in target.tags
        takes: dict[Any, tuple[int, View]] = {}
        arguments = tuple(
            (label, self._value(given, takes))
            for label, given in self._named(target, node)
            if not self._is_packed(given)
        ) + tuple(
            (label, self._input_tensor(tensor, (given, label), given.name, takes))
            for _, given in self._named(target, node)
            if self._is_packed(given)
            for label, tensor in self._packed[given]
        )
        given_storages = {storage(tensor) for given in node.all_input_nodes for tensor in leaves(given.meta.get("val"))}
        made = list(leaves(value))
        shared = bool(made) and all(storage(tensor) in given_storages for tensor in made)
        is_view = shared and not in_place
        if is_view:
            role = self.roles.get(storage(made[0]))
            if role:
                self.hold(value, role, node.name)
        outputs = tuple(self.tensor(tensor, -1 - index) for index, tensor in enumerate(made))
        call = Call(name, overload, arguments, outputs, is_view, in_place, is_pointwise)
        return call, tuple(look for _, look in takes.values())

    def _output_wires(self, node: torch.fx.Node, call: Call, name: str) -> tuple[int, ...]:
        """Return the wires that a node lays: one for each new tensor and each that it writes into."""
        wires = []
        if call.in_place:
            target: Any = node.target
            for argument, (_, given) in zip(target._schema.arguments, self._named(target, node), strict=False):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for tensor in leaves(torch.fx.node.map_arg(given, lambda fx_node: fx_node.meta.get("val"))):
                        wires.append(self._lay(tensor, name, self._look(tensor, name).wire))
        new = [tensor for tensor in leaves(node.meta.get("val")) if storage(tensor) not in self._current]
        for index, tensor in enumerate(new):
            wires.append(self._lay(tensor, name if len(new) == 1 else f"{name}.{index}"))
        return tuple(wires)

    def _is_packed(self, given: Any) -> bool:
        return isinstance(given, torch.fx.Node) and given in self._packed

    def _named(self, target: Any, node: torch.fx.Node) -> list[tuple[str, Any]]:
        """Return the name and value of every argument, defaults included."""
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

    def _value(self, given: Any, takes: dict[Any, tuple[int, View]]) -> Any:
        if isinstance(given, torch.fx.Node):
            value = given.meta.get("val")
            if isinstance(value, torch.Tensor):
                return self._input_tensor(value, given, given.name, takes)
            if isinstance(value, (list, tuple)):
                return tuple(
                    self._input_tensor(item, (given, index), given.name, takes)
                    for index, item in enumerate(value)
                    if isinstance(item, torch.Tensor)
                )
            return self._plain(value)
        if isinstance(given, (list, tuple)):
            return tuple(self._value(item, takes) for item in given)
        return self._plain(given)

    def _input_tensor(self, tensor: torch.Tensor, key: Any, name: str, takes: dict[Any, tuple[int, View]]) -> Tensor:
        """Return an input tensor of a node, numbered among its inputs."""
        if key not in takes:
            takes[key] = (len(takes), self._look(tensor, name))
        return self.tensor(tensor, takes[key][0])

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
            self.roles.get(storage(tensor), "activation"),
            identity,
        )
