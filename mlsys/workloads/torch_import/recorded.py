"""Record an image network from torch's dispatcher, with the result of torch.export but without importing it.

``torch.export`` brings a compiler, sympy and networkx along, which takes longer to load than a network to trace. A
network of convolutions, pools and pointwise layers needs none of that: its operators are noted as they pass torch's
dispatcher, before any is taken apart, and the shape of each result is known by arithmetic. Whatever is not in the
table of operators here, or would be an error, is left to ``torch.export`` (:class:`UnrecordedOperation`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils import _pytree as pytree

aten: Any = torch.ops.aten


class UnrecordedOperation(Exception):
    """The module does something that is not recorded here."""


def recorded_graph(
    module: nn.Module, inputs: dict[str, torch.Tensor]
) -> tuple[torch.fx.Graph, dict[str, str], dict[str, str]]:
    """Return the graph of ``module``, the role of each placeholder and its name in the module.

    Parameters
    ----------
    module
        In evaluation mode, without gradients.
    inputs
        Its positional arguments, by name.

    Raises
    ------
    UnrecordedOperation
        If it calls an operator that is not in the table, shares modules or weights, or its shapes do not fit.
    """
    _require(not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()))
    for listed in (module.named_modules, module.named_parameters, module.named_buffers):
        _require(len(list(listed(remove_duplicate=False))) == len(list(listed())))
    kinds = {"parameter": module.named_parameters(), "buffer": module.named_buffers(), "input": inputs.items()}
    given = [(role, name, tensor) for role, named in kinds.items() for name, tensor in named]
    graph, roles, names, nodes = torch.fx.Graph(), {}, {}, {}
    state: dict[str, torch.Tensor] = {}
    arguments: list[torch.Tensor] = []
    for role, name, tensor in given:
        _require(type(tensor) in (torch.Tensor, nn.Parameter) and tensor.is_contiguous())
        empty = torch.empty_like(tensor, device="meta")
        arguments.append(empty) if role == "input" else state.update({name: empty})
        node = nodes[id(empty)] = graph.placeholder(f"{role}_{name}".replace(".", "_"))
        node.meta["val"], roles[node.name], names[node.name] = empty, role, name
    with _paths(module) as where, _recording(_Recorder(graph, nodes, where)):
        result = torch.func.functional_call(module, state, tuple(arguments))
    leaves = pytree.tree_leaves(result)
    _require(all(isinstance(leaf, torch.Tensor) and id(leaf) in nodes for leaf in leaves))
    graph.output(tuple(nodes[id(leaf)] for leaf in leaves))
    return graph, roles, names


def _require(holds: bool) -> None:
    if not holds:
        raise UnrecordedOperation


@contextmanager
def _paths(module: nn.Module) -> Iterator[list[str]]:
    """Yield a list whose last entry is the path of the running module."""
    name_of = {part: name for name, part in module.named_modules()}
    stack: list[str] = []

    def enter(part: nn.Module, _: Any) -> None:
        _require(part in name_of)
        stack.append(name_of[part])

    def leave(part: nn.Module, _: Any, __: Any) -> None:
        stack.pop()

    before, after = register_module_forward_pre_hook(enter), register_module_forward_hook(leave)
    try:
        yield stack
    finally:
        before.remove()
        after.remove()


class _Recorder(torch.fx.experimental.proxy_tensor.ProxyTorchDispatchMode):  # type: ignore[no-untyped-call]
    """Record each operator and return its result from the table; only a dispatch mode sees operators whole."""

    def __init__(self, graph: torch.fx.Graph, nodes: dict[int, torch.fx.Node], where: Sequence[str]) -> None:
        key = torch._C.DispatchKey.PreDispatch
        torch.utils._python_dispatch.TorchDispatchMode.__init__(self, key)  # type: ignore[no-untyped-call]
        self._mode_key = torch._C._TorchDispatchModeKey.PROXY
        self.enter_stack = []
        self.graph, self.nodes, self.where = graph, nodes, where

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to be skipped by the compiler, it would have to be loaded

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = _RESULTS.get(operator)
        _require(rule is not None and not kwargs)
        tensors = [leaf for leaf in pytree.arg_tree_leaves(*args) if isinstance(leaf, torch.Tensor)]
        _require(all(id(tensor) in self.nodes for tensor in tensors))
        floating = [tensor for tensor in tensors if tensor.is_floating_point()]
        _require(len(floating) == len(tensors) and len({tensor.dtype for tensor in tensors}) == 1)
        with torch._C._DisablePythonDispatcher():
            value = rule(*args)  # type: ignore[misc]
        written = tuple(self._node_of(argument) for argument in args)
        node = self.graph.create_node("call_function", operator, written, {}, operator.overloadpacket.__name__)
        node.meta["val"] = value
        path = self.where[-1] if self.where else ""
        node.meta["nn_module_stack"] = {path: (path, None)}
        self.nodes[id(value)] = node
        return value

    def _node_of(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return self.nodes[id(argument)]
        return [self._node_of(item) for item in argument] if isinstance(argument, (list, tuple)) else argument


@contextmanager
def _recording(recorder: _Recorder) -> Iterator[None]:
    with torch._C._EnablePythonDispatcher(), torch._C._EnablePreDispatch(), recorder:
        yield


def _new(shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    _require(all(extent > 0 for extent in shape))
    return torch.empty(tuple(shape), dtype=like.dtype, device="meta")


def _pairs(*values: Any) -> Iterator[tuple[int, ...]]:
    """Yield the value for rows, then for columns; a single number holds for both."""
    both = [list(value) * 2 if len(value) == 1 else value for value in values]
    return zip(*both, strict=True)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = (1,),
    padding: Any = (0,),
    dilation: Any = (1,),
    groups: int = 1,
) -> torch.Tensor:
    _require(x.dim() == 4 and x.shape[1] == weight.shape[1] * groups and weight.shape[0] % groups == 0)
    _require(bias is None or bias.shape == weight.shape[:1])
    windows = _pairs(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    sizes = [(size + 2 * pad - far * (kernel - 1) - 1) // step + 1 for size, kernel, step, pad, far in windows]
    return _new((x.shape[0], weight.shape[0], *sizes), x)


def _normalised(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, *_: Any) -> torch.Tensor:
    vectors = [vector for vector in (weight, bias, mean, variance) if vector is not None]
    _require(not training and mean is not None and all(vector.shape == x.shape[1:2] for vector in vectors))
    return _new(x.shape, x)


def _pooled(
    x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil: bool = False
) -> Any:
    _require(x.dim() == 4 and not ceil)
    windows = _pairs(x.shape[2:], kernel, stride or kernel, padding, dilation)
    _require(all(2 * pad <= size for size, pad in _pairs(kernel, padding)))
    windows = _pairs(x.shape[2:], kernel, stride or kernel, padding, dilation)
    sizes = [(size + 2 * pad - far * (size_of - 1) - 1) // step + 1 for size, size_of, step, pad, far in windows]
    return _new((*x.shape[:2], *sizes), x)


def _averaged(x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), ceil: bool = False, *_: Any) -> Any:
    return _pooled(x, kernel, stride, padding, (1,), ceil)


def _adapted(x: Any, sizes: Any) -> torch.Tensor:
    _require(x.dim() == 4 and len(sizes) == 2)
    return _new((*x.shape[:2], *sizes), x)


def _product(x: Any, weight: Any, bias: Any = None) -> torch.Tensor:
    _require(x.dim() > 1 and x.shape[-1] == weight.shape[1] and (bias is None or bias.shape == weight.shape[:1]))
    return _new((*x.shape[:-1], weight.shape[0]), x)


def _joined(tensors: Any, axis: int = 0) -> torch.Tensor:
    first = tensors[0]
    _require(-first.dim() <= axis < first.dim())
    axis %= first.dim()
    others = {(*tensor.shape[:axis], *tensor.shape[axis + 1 :]) for tensor in tensors}
    _require(len(others) == 1 and len({tensor.dim() for tensor in tensors}) == 1)
    return _new((*first.shape[:axis], sum(tensor.shape[axis] for tensor in tensors), *first.shape[axis + 1 :]), first)


def _pointwise(x: Any, *_: Any) -> torch.Tensor:
    return _new(x.shape, x)


def _in_place(x: Any, *_: Any) -> Any:
    return x


def _of_two(x: Any, other: Any) -> torch.Tensor:
    _require(isinstance(other, torch.Tensor))
    longest = max(x.dim(), other.dim())
    pairs = zip(*((*(1,) * (longest - tensor.dim()), *tensor.shape) for tensor in (x, other)), strict=True)
    extents = [set(pair) - {1} for pair in pairs]
    _require(all(len(extent) < 2 for extent in extents))
    return _new([max(extent, default=1) for extent in extents], x)


def _into(x: Any, other: Any) -> Any:
    _require(_of_two(x, other).shape == x.shape)
    return x


def _flattened(x: Any, start: int = 0, end: int = -1) -> Any:
    first, last = start % max(x.dim(), 1), end % max(x.dim(), 1)
    _require(first < last)
    return x.view(*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])


_RESULTS: dict[Any, Callable[..., Any]] = {
    aten.conv2d.default: _convolution,
    aten.batch_norm.default: _normalised,
    aten.max_pool2d.default: _pooled,
    aten.avg_pool2d.default: _averaged,
    aten.adaptive_avg_pool2d.default: _adapted,
    aten.linear.default: _product,
    aten.cat.default: _joined,
    aten.add.Tensor: _of_two,
    aten.mul.Tensor: _of_two,
    aten.add_.Tensor: _into,
    aten.mul_.Tensor: _into,
    aten.flatten.using_ints: _flattened,
    **dict.fromkeys(
        (
            aten.relu.default,
            aten.relu6.default,
            aten.hardtanh.default,
            aten.hardswish.default,
            aten.hardsigmoid.default,
            aten.leaky_relu.default,
            aten.sigmoid.default,
            aten.silu.default,
            aten.tanh.default,
        ),
        _pointwise,
    ),
    **dict.fromkeys(
        (
            aten.relu_.default,
            aten.relu6_.default,
            aten.hardtanh_.default,
            aten.hardswish_.default,
            aten.hardsigmoid_.default,
            aten.leaky_relu_.default,
            aten.silu_.default,
        ),
        _in_place,
    ),
}
