"""Conversion of a torch module to a workload."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.workloads.torch_import.assemble import Template
from mlsys.workloads.torch_import.capture import captured, in_words, inputs_by_name, is_packed, placed
from mlsys.workloads.torch_import.conventions import conventions_of
from mlsys.workloads.torch_import.nodes import Node, read_nodes
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.tensors import unpacked_weights
from mlsys.workloads.totals import Held
from mlsys.workloads.workload import Workload


def from_torch(
    module: object,
    example_inputs: object,
    *,
    dynamic: Mapping[str, int | Mapping[str, int]] | None = None,
    name: str | None = None,
) -> Workload:
    """Capture a torch module as a workload, without allocating weights or computing anything.

    Parameters
    ----------
    module
        A ``torch.nn.Module``, or a function without arguments that returns one, which is
        called on the meta device. It is captured as it stands in evaluation mode.
    example_inputs
        A tensor, a tuple of the arguments of ``forward``, or a dict of them by name. Only
        shapes and dtypes matter: tensors on the meta device do.
    dynamic
        Sizes to leave free, by a name of your own: ``{"batch": 0}`` frees axis 0 of every
        tensor, ``{"sequence": {"input_ids": 1}}`` axis 1 of one. See :meth:`Workload.at`.
    name
        What to call it; by default the name of the class.

    Returns
    -------
    Workload
        With one operator for each node that moves data.

    Raises
    ------
    ArgumentError
        If ``module`` is no module, or cannot be run on the inputs.

    Examples
    --------
    >>> import torch
    >>> layer = from_torch(lambda: torch.nn.Conv2d(64, 64, 3, padding=1, groups=64), torch.zeros(1, 64, 56, 56))
    >>> print(layer.product_flops, layer.parameters)
    3612672 FLOP 640 param
    >>> mlp = from_torch(torch.nn.Linear(128, 256), torch.zeros(4, 50, 128), dynamic={"batch": 0, "tokens": 1})
    >>> print(mlp.product_flops, mlp.at(batch=1, tokens=7).product_flops)
    13107200 FLOP 458752 FLOP
    """
    template = template_of(module, example_inputs, dynamic=dynamic, name=name)
    return template.at(template.sizes)


def template_of(
    module: object,
    example_inputs: object,
    *,
    dynamic: Mapping[str, int | Mapping[str, int]] | None = None,
    name: str | None = None,
) -> Template:
    """Return the captured module before its free sizes are filled in; arguments as of :func:`from_torch`."""
    module = _module(module)
    args, kwargs = placed(module, arguments_of(example_inputs))
    named = inputs_by_name(module, args, kwargs)
    free = _axes(dynamic or {}, named)
    sizes = {size: _extent(size, places, named) for size, places in free.items()}
    graph = captured(module, *_with_room(named, free, args, kwargs), free)
    stuck = {size: sizes[size] for size in graph.fixed}
    if any(graph.fixed[size] != sizes[size] for size in stuck):  # fixed at a size that only made room
        free = {size: places for size, places in free.items() if size not in stuck}
        graph = captured(module, *_with_room(named, free, args, kwargs), free)
    expressions = Expressions()
    template = Template(
        name or type(module).__name__,
        graph.how,
        _held(module),
        expressions,
        {**graph.free, **dict.fromkeys(stuck, ())},
        stuck,
    )
    nodes = read_nodes(graph, expressions)
    for node in nodes.nodes:
        _check_formats(node)
        template.add(node.name, node.target, node.path, node.call, node.ends)
    template.wires, template.inputs, template.returned = nodes.wires, nodes.inputs, nodes.returned
    template.values = (
        expressions.bounds
        | graph.hints
        | {symbol: sizes[size] for size, symbols in graph.free.items() for symbol in symbols}
    )
    template.sizes = sizes
    template.masked_attention, template.notes = conventions_of(graph.module)
    return template


def _module(module: Any) -> nn.Module:
    if isinstance(module, nn.Module):
        return runnable(module)
    if not callable(module):
        raise ArgumentError(
            f"from_torch(): `module` must be a torch.nn.Module or a function that returns one, got {module!r}. "
            "Write e.g. from_torch(model, torch.zeros(1, 3, 224, 224))"
        )
    try:
        with torch.device("meta"):
            made = module()
    except TypeError as error:
        raise ArgumentError(
            f"from_torch(): `module` was called without arguments to make a torch.nn.Module: {in_words(error)}. "
            "Write e.g. module=lambda: Net(width=64)"
        ) from error
    if not isinstance(made, nn.Module):
        raise ArgumentError(
            f"from_torch(): `module` returned {type(made).__name__} where a torch.nn.Module was wanted. "
            "Write e.g. module=lambda: Net(width=64)"
        )
    return runnable(made)


def runnable(module: nn.Module) -> nn.Module:
    """Return the module to capture: the inner module of a torch.compile or DataParallel wrapper.

    Raises
    ------
    ArgumentError
        If it is a TorchScript module, or a lazy layer has no sizes yet.

    Examples
    --------
    >>> runnable(nn.DataParallel(nn.ReLU()))
    ReLU()
    """
    while isinstance(module, nn.DataParallel) or hasattr(module, "_orig_mod"):
        within: Any = module.module if isinstance(module, nn.DataParallel) else module._orig_mod
        module = within
    if isinstance(module, torch.jit.ScriptModule):
        raise ArgumentError(
            "from_torch(): `module` is a TorchScript module, whose code cannot be captured. "
            "Give the torch.nn.Module that it was made from"
        )
    for name, part in module.named_modules():
        if any(is_lazy(tensor) for tensor in (*part.parameters(recurse=False), *part.buffers(recurse=False))):
            raise ArgumentError(
                f"from_torch(): the layer {name or type(part).__name__!r} ({type(part).__name__}) has no sizes before "
                "its first run. Run the module once on its inputs, or give the layer its sizes"
            )
    return module


def _check_formats(node: Node) -> None:
    """Raise for a product of two number formats, which torch can trace but not run."""
    if "dynamic" in node.call.op:
        return
    if not node.call.op.startswith(("linear", "conv", "matmul", "mm", "bmm", "addmm", "scaled_dot")):
        return
    formats = {tensor.dtype: tensor.role for tensor in node.call.inputs if tensor.dtype != "bool"}
    if len(formats) > 1:
        given = " and ".join(f"{dtype} ({role})" for dtype, role in formats.items())
        raise ArgumentError(
            f"from_torch(): `example_inputs` have another dtype than the weights: {node.name} would multiply {given}. "
            "Give the inputs in the dtype of the weights, or module.to(dtype)"
        )


def arguments_of(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return example inputs as positional and named arguments.

    Raises
    ------
    ArgumentError
        If they are no tensors.
    """
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, (tuple, list)) and example_inputs:
        if all(isinstance(item, int) for item in example_inputs):
            raise ArgumentError(
                f"from_torch(): `example_inputs` must be tensors, got the numbers {tuple(example_inputs)}. "
                f"Write e.g. example_inputs=torch.zeros{tuple(example_inputs)}"
            )
        return tuple(example_inputs), {}
    raise ArgumentError(
        "from_torch(): `example_inputs` must be a tensor, a tuple of arguments or a dict of them, "
        f"got {example_inputs!r}. Write e.g. example_inputs=torch.zeros(1, 3, 224, 224)"
    )


def _axes(dynamic: Mapping[str, int | Mapping[str, int]], named: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return, for each free size, its axis in each input."""
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    axes: dict[str, dict[str, int]] = {}
    for size, where in dynamic.items():
        if isinstance(where, int):
            places = {name: where for name, value in tensors.items() if -value.dim() <= where < value.dim()}
        else:
            places = dict(where)
        for name, axis in places.items():
            if name not in tensors:
                raise UnknownNameError(
                    f"from_torch(): `dynamic` names the input {name!r}, which is not there. "
                    f"Inputs: {', '.join(tensors)}.{did_you_mean(name, tensors)}"
                )
            if not -tensors[name].dim() <= axis < tensors[name].dim():
                raise ArgumentError(
                    f"from_torch(): `dynamic` frees axis {axis} of {name!r}, which has {tensors[name].dim()} axes. "
                    f"Write e.g. dynamic={{{size!r}: 0}}"
                )
        if not places:
            raise ArgumentError(
                f"from_torch(): `dynamic` frees axis {where} as {size!r}, and no input has that axis. "
                f"Write e.g. dynamic={{{size!r}: 0}}"
            )
        axes[size] = {name: axis % tensors[name].dim() for name, axis in places.items()}
    return axes


def _extent(size: str, places: Mapping[str, int], named: Mapping[str, Any]) -> int:
    extents = {name: int(named[name].shape[axis]) for name, axis in places.items()}
    if len(set(extents.values())) > 1:
        raise ArgumentError(
            f"from_torch(): `dynamic` calls sizes that differ by one name, {size!r}: {extents}. "
            "Give each its own name, e.g. dynamic={'batch': {'x': 0}, 'rows': {'y': 0}}"
        )
    return next(iter(extents.values()))


def _roomy(value: Any, axes: Mapping[int, int]) -> Any:
    """Return an input whose free axes are longer than one, since tracing treats a size of one as a constant."""
    shape = [axes.get(axis, extent) for axis, extent in enumerate(value.shape)]
    return value if shape == list(value.shape) else value.new_zeros(shape)


def _with_room(
    named: Mapping[str, Any], free: Mapping[str, Mapping[str, int]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    wider: dict[int, dict[int, int]] = {}
    for places in free.values():
        for name, axis in places.items():
            if named[name].shape[axis] < 2:
                wider.setdefault(id(named[name]), {})[axis] = 2

    def widen(value: Any) -> Any:
        return _roomy(value, wider[id(value)]) if id(value) in wider else value

    return tuple(widen(value) for value in args), {name: widen(value) for name, value in kwargs.items()}


def _held(module: nn.Module) -> Held:
    parameters, buffers = [*module.parameters(), *packed_tensors(module)], list(module.buffers())
    return Held(
        sum(parameter.numel() for parameter in parameters),
        sum(parameter.numel() * parameter.element_size() for parameter in parameters),
        sum(buffer.numel() * buffer.element_size() for buffer in buffers),
        counters=sum(buffer.numel() * buffer.element_size() for buffer in buffers if not buffer.is_floating_point()),
    )


def packed_tensors(module: nn.Module) -> Iterator[torch.Tensor]:
    """Yield weights and biases that quantised layers keep out of the module's parameters."""
    for part in module.modules():
        if is_packed(part):
            yield from (tensor for _, tensor in unpacked_weights(part._packed_params))
