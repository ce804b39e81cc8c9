"""Steps of a pattern, each a predicate on one operator in its graph."""

import functools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Operator

Answer = TypeVar("Answer")

# Kinds of operators as the importers name them.
OPERATOR_KINDS = frozenset(
    {
        *("gemm", "attention", "recurrent", "embedding", "gather", "scatter", "copy", "fill", "sort", "resize"),
        *(f"conv{dims}d" for dims in (1, 2, 3)),
        *(f"conv_transpose{dims}d" for dims in (1, 2, 3)),
        *("normalisation", "softmax", "pooling", "reduction"),
    }
)
_CASTS = frozenset({"to", "_to_copy", "type_as", "float", "half", "cast", "castlike"})
_ADDITIONS = frozenset({"add", "add_"})
_BATCH_NORMS = frozenset(
    {
        "batch_norm",
        "_native_batch_norm_legit_no_training",
        "cudnn_batch_norm",
        "native_batch_norm",
        "batchnormalization",
    }
)


def operation(operator: Operator) -> str:
    """Return the framework's name of an operator without its package and overload.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> operation(relu(4))
    ''
    """
    target = str(getattr(operator, "target", "")).rpartition(" → ")[2]
    if target.startswith("ai.onnx."):
        return target.removeprefix("ai.onnx.").lower()
    parts = target.split(".")
    return parts[1] if len(parts) > 1 else target


def kept_with_graph(ask: Callable[[OperatorGraph, int], Answer]) -> Callable[[OperatorGraph, int], Answer]:
    """Return a question about one place of a graph whose answer is kept with the graph, which never changes."""
    name = f"_{ask.__name__.strip('_')}_at"

    @functools.wraps(ask)
    def answered(graph: OperatorGraph, index: int) -> Answer:
        kept: dict[str, dict[int, Answer]] = graph.__dict__
        known = kept[name] if name in kept else kept.setdefault(name, {})
        if index not in known:
            known[index] = ask(graph, index)
        return known[index]

    return answered


@kept_with_graph
def elements_made(graph: OperatorGraph, index: int) -> int:
    """Return the elements of what an operator makes, or -1 where it makes several tensors or none."""
    made = graph.outputs_of[index]
    used = [value for value in made if value in graph.lasting or graph.values[value].consumers] or made
    return size_of(graph, used[0]) if len(used) == 1 else -1


@kept_with_graph
def size_of(graph: OperatorGraph, value: int) -> int:
    """Return the elements of a value."""
    return math.prod(graph.values[value].shape)


@kept_with_graph
def _learned(graph: OperatorGraph, index: int) -> list[bool]:
    """Return, for each value an operator reads, whether it is a weight or a constant."""
    return [value.role in ("weight", "constant") for value in graph.read_by(index)]


@kept_with_graph
def _is_batch_norm(graph: OperatorGraph, index: int) -> bool:
    """Tell whether it is a batch normalisation with stored statistics: one product and one sum for each element."""
    operator = graph.operators[index]
    if operator.kind != "normalisation" or operation(operator) not in _BATCH_NORMS:
        return False
    return bool(operator.flops.m_as("FLOP") == 2 * operator.shape.get("elements", 0))


@kept_with_graph
def is_elementwise(graph: OperatorGraph, index: int) -> bool:
    """Tell whether an operator makes each element of its result from one element of each operand."""
    operator = graph.operators[index]
    if operator.kind in ("elementwise", "activation"):
        return elements_made(graph, index) >= 0
    return operation(operator) in _CASTS or _is_batch_norm(graph, index)


def _is_addition(graph: OperatorGraph, index: int) -> bool:
    """Tell whether it adds two tensors of which neither is learned."""
    if graph.operators[index].kind != "elementwise" or operation(graph.operators[index]) not in _ADDITIONS:
        return False
    return _learned(graph, index) == [False, False]


def _is_bias(graph: OperatorGraph, index: int) -> bool:
    if graph.operators[index].kind != "elementwise" or operation(graph.operators[index]) not in _ADDITIONS:
        return False
    return sorted(_learned(graph, index)) == [False, True]


def _is_product(graph: OperatorGraph, index: int) -> bool:
    return graph.operators[index].kind == "gemm"


# What a pattern may ask for beside the kinds of operators.
STEPS: dict[str, Callable[[OperatorGraph, int], bool]] = {
    "conv": lambda graph, index: graph.operators[index].kind.startswith("conv"),
    "linear": lambda graph, index: _is_product(graph, index) and any(_learned(graph, index)),
    "matmul": lambda graph, index: _is_product(graph, index) and not any(_learned(graph, index)),
    "batch_norm": _is_batch_norm,
    "norm": lambda graph, index: graph.operators[index].kind == "normalisation" and not _is_batch_norm(graph, index),
    "add": _is_addition,
    "bias": _is_bias,
    "activation": is_elementwise,  # as a step after another it must look at nothing else: see match.py
    "elementwise": is_elementwise,
}


class PatternStep(NamedTuple):
    """One step of a pattern: what it asks for, whether it may be left out, whether it may come again."""

    kind: str
    optional: bool
    repeated: bool

    def accepts(self, graph: OperatorGraph, index: int) -> bool:
        """Tell whether the operator at a place is what the step asks for."""
        return index in self._accepted(graph)

    def places(self, graph: OperatorGraph) -> Iterable[int]:
        """Return the places of all operators that are what the step asks for, in order."""
        return self._accepted(graph)

    def _accepted(self, graph: OperatorGraph) -> dict[int, None]:
        known = vars(graph).setdefault("_accepted", {})
        if self.kind not in known:
            test = STEPS.get(self.kind)
            known[self.kind] = {
                index: None
                for index in range(len(graph))
                if (test(graph, index) if test else graph.operators[index].kind == self.kind)
            }
        accepted: dict[int, None] = known[self.kind]
        return accepted


_MARKS = {"?": (True, False), "*": (True, True), "+": (False, True)}


def parsed_step(name: str, text: str) -> PatternStep:
    """Return a step parsed from its notation: ``"add"``, ``"bias?"``, ``"elementwise*"``, ``"elementwise+"``."""
    if not isinstance(text, str) or not text:
        raise ArgumentError(
            f"Pattern(): `steps` of {name!r} must be names of steps, got {text!r}. "
            "Write e.g. steps=('conv', 'batch_norm', 'activation')"
        )
    kind = text.rstrip("?*+")
    mark = text[len(kind) :]
    if mark not in ("", *_MARKS):
        raise ArgumentError(
            f"Pattern(): the step {text!r} of {name!r} ends in {mark!r}. "
            "Use one of '?' (may be missing), '*' (any number) and '+' (one or more)"
        )
    if kind not in STEPS and kind not in OPERATOR_KINDS:
        known = (*STEPS, *sorted(OPERATOR_KINDS))
        raise UnknownNameError(
            f"Pattern(): {name!r} has an unknown step {kind!r}. Known: {', '.join(known)}.{did_you_mean(kind, known)}"
        )
    return PatternStep(kind, *_MARKS.get(mark, (False, False)))
