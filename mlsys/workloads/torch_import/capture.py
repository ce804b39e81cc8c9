"""Capture a torch module as a graph, without allocating or computing anything."""

import contextlib
import importlib
import inspect
import io
import itertools
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from mlsys.errors import ArgumentError
from mlsys.workloads.torch_import.compiled_parts import forgotten_afterwards
from mlsys.workloads.torch_import.recorded import UnrecordedOperation, recorded_graph

_FX_CONFIG: Any = importlib.import_module("torch.fx.experimental._config")


@dataclass(frozen=True)
class Graph:
    """A captured module.

    Attributes
    ----------
    module
        The graph itself.
    roles
        ``"parameter"``, ``"buffer"``, ``"constant"`` or ``"input"`` of each placeholder, by name.
    names
        What the module calls the placeholder, such as ``"layer1.0.weight"``, where it has a name for it.
    free
        The symbol that stands for each free size, by the name it was given.
    fixed
        The value of each size that was to be free and is not, by its name.
    hints
        The value of each symbol in the example.
    how
        Which tracer, and why not the first choice.
    """

    module: torch.fx.GraphModule
    roles: dict[str, str]
    names: dict[str, str]
    free: dict[str, tuple[str, ...]]
    fixed: dict[str, int]
    hints: dict[str, int]
    how: str


def captured(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic: Mapping[str, Mapping[str, int]],
) -> Graph:
    """Return the graph of ``module`` by torch.export, or by torch.fx where that fails.

    A picture network without free sizes is recorded more quickly, if it has no unusual operators.

    ``dynamic`` gives, for each name of a free size, the axis in each input by the input's name.
    """
    with in_evaluation_mode(module, (args, kwargs)), quietly(), forgotten_afterwards():
        if not dynamic and not kwargs:
            with contextlib.suppress(
                Exception
            ):  # UnrecordedOperation, or what the module raises: torch.export puts it in words
                return _recorded(module, args)
        try:
            exported = _exported(module, args, kwargs, dynamic)
            if not _transformed(exported.module):
                return exported
            refusal: Exception = ArgumentError("it would count one sample of torch.func.vmap, not all")
        except Exception as error:  # torch.export raises dozens of kinds
            refusal = error
        try:
            return _traced(module, args, kwargs, dynamic, f"torch.fx, because torch.export: {in_words(refusal)}")
        except Exception as error:
            from mlsys.workloads.torch_import.faults import fault_of

            raise ArgumentError(
                f"from_torch(): `module` {type(module).__name__} cannot be captured with `example_inputs`: "
                f"{fault_of(module, args, kwargs, error)}"
            ) from refusal


def in_words(error: Exception) -> str:
    """Return the first line of an error that says something, without torch's advice on debugging."""
    for line in str(error).splitlines():
        text = line.strip().rstrip(".")
        if text and not text.startswith(("Traceback", "While executing", "The following call")):
            return text if len(text) < 160 else text.split(". ")[0]
    return type(error).__name__


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress torch's output about a failure, which the raised error reports."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def in_evaluation_mode(module: nn.Module, inputs: object) -> Iterator[None]:
    """Hold the module in evaluation mode, without gradients and without fused inference kernels.

    Tensors that its code makes are on the device of its weights, or of its inputs if it has none.
    """
    layers: Any = nn.modules.transformer
    by_value = layers._detect_is_causal_mask  # it compares a mask with a causal one, number by number
    gradients = [(parameter, parameter.grad) for parameter in module.parameters()]
    training = [part for part in module.modules() if part.training]
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    layers._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    for part in training:
        part.training = False
    try:
        with torch.no_grad(), torch.device(_device(module, inputs) or "cpu"):
            yield
    finally:
        layers._detect_is_causal_mask = by_value
        for parameter, gradient in gradients:  # a module may hold a whole training step
            parameter.grad = gradient
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for part in training:
            part.training = True


def _device(module: nn.Module, inputs: object = None) -> torch.device | None:
    given = (leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor))
    return next((tensor.device for tensor in itertools.chain(module.parameters(), module.buffers(), given)), None)


@contextlib.contextmanager
def as_if_exported() -> Iterator[None]:
    """Let ``torch.compiler.is_compiling`` and ``is_exporting`` be true, as they are under ``torch.export``."""
    flags: Any = torch.compiler
    names = ("_is_compiling_flag", "_is_exporting_flag")
    before = [getattr(flags, name) for name in names]
    try:
        for name in names:
            setattr(flags, name, True)
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(flags, name, value)


def run_without_data(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *modes: contextlib.AbstractContextManager[Any]
) -> Any:
    """Run a module in evaluation mode on tensors without data, in further modes, and return its output.

    Layers whose weights are packed, as those of quantised ones are, are run as they are.
    """
    positional, named = args, dict(kwargs)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    with contextlib.ExitStack() as stack:
        stack.enter_context(in_evaluation_mode(module, (args, kwargs)))
        stack.enter_context(quietly())
        stack.enter_context(forgotten_afterwards())
        stack.enter_context(_FX_CONFIG.patch(meta_nonzero_assume_all_nonzero=True))
        device = _device(module, (args, kwargs))
        if device is not None and device.type != "meta" and not any(map(is_packed, module.modules())):
            from torch._subclasses.fake_tensor import FakeTensorMode

            fake = stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            positional, named, state = pytree.tree_map(
                lambda leaf: fake.from_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf,
                (positional, named, state),
            )
        for mode in modes:
            stack.enter_context(mode)
        return torch.func.functional_call(module, state, positional, named)


def is_packed(part: nn.Module) -> bool:
    """Return whether a layer keeps its weights out of the module's parameters, in one packed object."""
    return isinstance(getattr(part, "_packed_params", None), torch.ScriptObject)


def placed(module: nn.Module, inputs: object) -> Any:
    """Return the inputs on the device of the module, without data where that device has none.

    A tensor that was given twice, as an example of two inputs, becomes two.
    """
    device, seen = _device(module), set[int]()

    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and id(value) in seen:
            value = torch.empty_like(value)
        elif isinstance(value, torch.Tensor):
            seen.add(id(value))
        if isinstance(value, torch.Tensor) and device is not None and value.device != device:
            return torch.zeros_like(value, device=device)
        return value

    return pytree.tree_map(moved, inputs)


def _recorded(module: nn.Module, args: tuple[Any, ...]) -> Graph:
    named = inputs_by_name(module, args, {})
    if len(named) != len(args) or not any(isinstance(part, nn.Conv2d) for part in module.modules()):
        raise UnrecordedOperation
    graph, roles, names = recorded_graph(module, named)
    return Graph(torch.fx.GraphModule(nn.Module(), graph), roles, names, {}, {}, {}, "torch's dispatcher")


def _exported(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Mapping[str, Mapping[str, int]]
) -> Graph:
    named = inputs_by_name(module, args, kwargs)
    axes: dict[str, dict[int, Any]] = {}
    for places in dynamic.values():
        for name, axis in places.items():
            axes.setdefault(name, {})[axis] = torch.export.Dim.AUTO
    shapes: dict[str, Any] = {}
    for name, value in named.items():
        spec = axes.get(name) if isinstance(value, torch.Tensor) else pytree.tree_map(lambda _: None, value)
        whole, several, _ = name.partition(".")
        shapes[whole] = (*shapes.get(whole, ()), spec) if several else spec
    program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes if dynamic else None, strict=False)
    roles, names, places_of = {}, {}, {}
    for spec in program.graph_signature.input_specs:
        kind = spec.kind.name
        role = {"PARAMETER": "parameter", "BUFFER": "buffer", "USER_INPUT": "input"}.get(kind, "constant")
        roles[spec.arg.name] = role
        if spec.target is not None:
            names[spec.arg.name] = spec.target
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    flat = [name for name in values if roles.get(name) == "input"]
    tensors = [name for name, value in named.items() if isinstance(value, torch.Tensor)]
    if len(flat) == len(named):
        places_of = dict(zip(named, flat, strict=True))
    else:
        places_of = {name: name for name in tensors if name in values}
    free, fixed = _free_sizes(dynamic, {name: values[placeholder] for name, placeholder in places_of.items()})
    return Graph(program.graph_module, roles, names, free, fixed, _hints(values.values()), "torch.export")


def _transformed(module: torch.fx.GraphModule) -> bool:
    """Return whether a graph was recorded above torch.func's transformations.

    There an operator under ``vmap`` stands with the shapes of one sample, and a gradient is not taken yet.
    """
    return any(
        str(getattr(node.target, "__module__", "")).startswith("torch._functorch")
        for part in module.modules()
        if isinstance(part, torch.fx.GraphModule)
        for node in part.graph.nodes
    )


class _Transformations(TorchFunctionMode):
    """Record whether an operator is called under one of torch.func's transformations."""

    any = False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.any = self.any or torch._C._functorch.peek_interpreter_stack() is not None
        return function(*args, **(kwargs or {}))


def _hints(values: Iterable[Any]) -> dict[str, int]:
    sizes: list[Any] = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    return {str(size.node.expr): int(size.node.hint) for size in sizes if isinstance(size, torch.SymInt)}


def _free_sizes(
    dynamic: Mapping[str, Mapping[str, int]], values: Mapping[str, Any]
) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
    """Return which symbols stand for each named size, and which sizes the tracer fixed."""
    free: dict[str, tuple[str, ...]] = {}
    fixed: dict[str, int] = {}
    for size, places in dynamic.items():
        symbols = []
        for name, axis in places.items():
            extent = values[name].shape[axis] if name in values else None
            if isinstance(extent, torch.SymInt) and extent.node.expr.is_symbol:
                symbols.append(str(extent.node.expr))
            elif extent is not None:
                fixed[size] = int(extent)
        free[size] = tuple(dict.fromkeys(symbols))
    return free, fixed


def inputs_by_name(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs by the names that forward() gives them."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        taken = ", ".join(inspect.signature(module.forward).parameters)
        raise ArgumentError(
            f"from_torch(): `example_inputs` do not fit {type(module).__name__}.forward({taken}): {error}. "
            "Give them in that order, or as a dict by name"
        ) from None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"{name}.{index}": item for index, item in enumerate(value)})
        else:
            named[name] = value
    return named


def _traced(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic: Mapping[str, Mapping[str, int]],
    how: str,
) -> Graph:
    """Trace one run over tensors without data (torch.fx, as make_fx does it)."""
    from torch.fx.experimental.proxy_tensor import make_fx

    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    held = {**parameters, **buffers}
    flat, spec = pytree.tree_flatten((args, kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]

    def run(weights: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        given = iter(inputs)
        leaves = [next(given) if isinstance(value, torch.Tensor) else value for value in flat]
        positional, named = pytree.tree_unflatten(leaves, spec)
        state = dict(zip(held, weights, strict=True))
        result = torch.func.functional_call(module, state, positional, named)
        return list(tensors_in(result))

    trace: Callable[..., torch.fx.GraphModule] = make_fx(run, tracing_mode="fake", pre_dispatch=True)
    with _Transformations() as seen:
        graph = trace(list(held.values()), tensors)
    if seen.any:  # once more, below them
        trace = make_fx(run, tracing_mode="fake", pre_dispatch=False)
        graph = trace(list(held.values()), tensors)
    given = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    kinds = ["parameter"] * len(parameters) + ["buffer"] * len(buffers) + ["input"] * len(tensors)
    fixed = {
        size: next(iter(_extents(inputs_by_name(module, args, kwargs), places)), 0) for size, places in dynamic.items()
    }
    roles, names = dict(zip(given, kinds, strict=True)), dict(zip(given, held, strict=False))
    return Graph(graph, roles, names, {size: () for size in dynamic}, fixed, {}, how)


def tensors_in(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a result, those held by objects of the caller's own classes too."""
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif hasattr(leaf, "__dict__"):
            yield from tensors_in(list(vars(leaf).values()))


def _extents(named: Mapping[str, Any], places: Mapping[str, int]) -> list[int]:
    return [int(named[name].shape[axis]) for name, axis in places.items()]
