"""Properties of torch tensors and nodes: storage, layout of the view, and the module of a node."""

from collections.abc import Iterator
from typing import Any

import torch


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a value, which may be a list of lists of them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)


def storage(tensor: torch.Tensor) -> int:
    """Return the id of a tensor's storage, which its views share."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse and other exotic layouts
        return id(tensor)


def unpacked_weights(held: object) -> tuple[tuple[str, torch.Tensor], ...]:
    """Return the weight and the bias that a quantised layer packs into one object; nothing if it cannot be opened."""
    for unpack in (torch.ops.quantized.linear_unpack, torch.ops.quantized.conv2d_unpack):
        try:
            with torch._C._DisableTorchDispatch():
                weight, bias = unpack(held)
                tensors = (("weight", weight.int_repr()), *((("bias", bias),) if bias is not None else ()))
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        return tensors
    return ()


def results(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Return the tensors that a graph returns."""
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    return list(leaves(torch.fx.node.map_arg(end.args, lambda node: node.meta.get("val"))))


def layout_of(tensor: torch.Tensor) -> Any:
    """Return the key that distinguishes views of the same storage."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    return tuple(map(_number, (*tensor.shape, *tensor.stride(), tensor.storage_offset())))


def last_stride(layout: Any) -> Any:
    """Return the stride of the last axis of a layout, which has sizes, strides and the offset."""
    return layout[-2] if isinstance(layout, tuple) and len(layout) > 2 else 1


def _number(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def is_module(module: torch.fx.GraphModule, argument: Any) -> bool:
    """Return whether an argument of a node is a subgraph."""
    return (
        isinstance(argument, torch.fx.Node)
        and argument.op == "get_attr"
        and isinstance(getattr(module, str(argument.target), None), torch.fx.GraphModule)
    )


def path_of(node: torch.fx.Node) -> str:
    """Return the path of the submodule of a node, such as ``"blocks.3.attn"``."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path: str = next(reversed(stack.values()))[0]
    return path.removeprefix("L['self'].").removeprefix("L['self']")
