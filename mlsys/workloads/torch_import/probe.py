"""One run of a module over tensors without data: which operators it calls, on which shapes."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from mlsys.workloads.torch_import.capture import as_if_exported, run_without_data, tensors_in
from mlsys.workloads.torch_import.rules.products import CELLS
from mlsys.workloads.torch_import.tensors import storage

Shape = tuple[int, ...]

_DIMENSIONS = re.compile(r"(\d)d(?:_|$)")  # of a window: max_pool2d, reflection_pad1d
_ALONG_AXIS = {
    "_softmax": 1,
    "_safe_softmax": 1,
    "_log_softmax": 1,
    "cumsum": 1,
    "cumprod": 1,
    "logcumsumexp": 1,
    "sort": 1,
    "topk": 2,
}
_CONTRACTED = {
    "mm": 0,
    "bmm": 0,
    "mv": 0,
    "dot": 0,
    "addmm": 1,
    "baddbmm": 1,
    "addmv": 1,
}  # position of the left factor
_NO_BACKWARD = -1


class PastTableError(IndexError):
    """A sequence is longer than its position table."""


class ProbedOperator(NamedTuple):
    """One operator that a module called.

    Attributes
    ----------
    name
        Such as ``"addmm"``.
    made
        Shapes of its results.
    mixed
        Extents along which it combines values: what it contracts, normalises, attends to or slides a window over.
    macs
        Multiply-accumulates, if it is a product.
    """

    name: str
    made: tuple[Shape, ...]
    mixed: Shape
    macs: int


class Probe(NamedTuple):
    """Operators that a module called in one run, and the shapes that it returned."""

    steps: tuple[ProbedOperator, ...]
    returned: tuple[Shape, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all products."""
        return sum(step.macs for step in self.steps)

    def along(self) -> list[tuple[str, Shape]]:
        """Return every operator with the extents along which it works, in order; empty for contractions."""
        return [(step.name, () if step.name in _CONTRACTED else step.mixed) for step in self.steps]

    def windows(self, dimensions: int) -> set[Shape]:
        """Return the extents over which convolutions and poolings of so many dimensions slide their windows."""
        return {step.mixed for step in self.steps if step.name in (f"window{dimensions}d", f"convolution{dimensions}d")}


def probe(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Probe:
    """Run a module over inputs without data and return which operators it called.

    A module that fails so, as it reads values of a tensor, is run again as under ``torch.export``, where many take
    another branch; it is captured in the same way. Whatever it raises then is passed on.

    Examples
    --------
    >>> probe(nn.Linear(8, 4, device="meta"), (torch.zeros(2, 8, device="meta"),), {}).macs
    64
    """
    try:
        return _run(module, args, kwargs)
    except PastTableError:
        raise
    except Exception:  # whatever the module raises
        return _run(module, args, kwargs, as_if_exported())


def _run(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *modes: contextlib.AbstractContextManager[Any],
) -> Probe:
    watch = _Watch()
    result = run_without_data(module, args, kwargs, watch, _Recurrent(watch.steps), *modes)
    return Probe(tuple(watch.steps), tuple(tuple(tensor.shape) for tensor in tensors_in(result)))


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True  # torch.cond and its like, each of them one step

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[ProbedOperator] = []
        self._counted: dict[int, tuple[torch.Tensor, int]] = {}  # storages of consecutive numbers, with their count

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to be skipped by the compiler, it would have to be loaded

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        whole = isinstance(operator, torch._ops.HigherOrderOperator)
        name = str(operator) if whole else operator._schema.name.rpartition("::")[2]
        if name == "embedding":
            self._check_positions(args[0], args[1])
        result = operator(*args, **(kwargs or {}))
        if name == "arange":
            self._counted[storage(result)] = (result, result.numel())
        made = tuple(tuple(leaf.shape) for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.steps.append(_step(name, made, args))
        return result

    def _check_positions(self, table: torch.Tensor, rows: torch.Tensor) -> None:
        """Raise for positions beyond a table, which a run without data does not detect."""
        _, count = self._counted.get(storage(rows), (None, 0))
        if count > table.shape[0]:
            raise PastTableError(f"positions 0 to {count - 1} are looked up in a table of {table.shape[0]}")


class _Recurrent(TorchFunctionMode):
    """Record a recurrent layer as one step: torch would take it apart into thousands."""

    def __init__(self, steps: list[ProbedOperator]) -> None:
        super().__init__()
        self.steps = steps

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        if name not in CELLS or kwargs or len(args) != 9 or not isinstance(args[2], (list, tuple)):
            return function(*args, **(kwargs or {}))
        given, state, weights, _, _, _, _, both_ways, batch_first = args
        states = state if name == "lstm" else (state,)
        steps = given.shape[1 if batch_first and given.dim() == 3 else 0]
        result = given.new_empty((*given.shape[:-1], states[0].shape[-1] * (2 if both_ways else 1)))
        macs = math.prod(given.shape[:-1]) * sum(weight.numel() for weight in weights if weight.dim() == 2)
        made = (tuple(result.shape), *(tuple(tensor.shape) for tensor in states))
        self.steps.append(ProbedOperator(name, made, (steps,), macs))
        return (result, *(tensor.new_empty(tensor.shape) for tensor in states))


def _step(name: str, made: tuple[Shape, ...], args: tuple[Any, ...]) -> ProbedOperator:
    given = [tuple(leaf.shape) for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    if name == "convolution":
        data, weight = given[0], given[1]
        places = data[2:] if args[6] else made[0][2:]
        return ProbedOperator(
            f"convolution{len(weight) - 2}d", made, data[2:], data[0] * math.prod(weight) * math.prod(places)
        )
    if "attention" in name and "backward" not in name and len(given) > 2:
        query, key, value = given[:3]
        macs = math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
        return ProbedOperator(name, made, (query[-2], key[-2], query[-1]), macs)
    if name in _CONTRACTED:
        contracted = given[_CONTRACTED[name]][-1]
        backward = torch._C._current_graph_task_id() != _NO_BACKWARD  # a gradient of weights sums over the batch
        return ProbedOperator(name, made, () if backward else (contracted,), math.prod(made[0]) * contracted)
    if name == "sort" and not args[0].is_floating_point():
        return ProbedOperator(name, made, (), 0)  # rows put together by number, as those of one expert: none is changed
    if name in _ALONG_AXIS:
        position = _ALONG_AXIS[name]
        axis = args[position] if len(args) > position else -1
        return ProbedOperator(name, made, (given[0][axis],) if given[0] and isinstance(axis, int) else (), 0)
    if name == "native_layer_norm":
        return ProbedOperator(name, made, tuple(args[1]), 0)
    if name == "mkldnn_rnn_layer":
        return ProbedOperator(name, made, given[0][:1], 0)
    window = _DIMENSIONS.search(name)
    if window and given and "backward" not in name:
        return ProbedOperator(f"window{window.group(1)}d", made, given[0][-int(window.group(1)) :], 0)
    return ProbedOperator(name, made, (), 0)
