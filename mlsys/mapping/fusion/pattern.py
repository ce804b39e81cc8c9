"""Patterns: which chains of operators become one kernel, by name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.mapping.fusion.steps import OPERATOR_KINDS, PatternStep, parsed_step
from mlsys.workloads.graph import OperatorGraph

_PRODUCTS = frozenset({"conv", "linear", "matmul", "gemm", "attention", "recurrent"})


@dataclass(frozen=True)
class Pattern:
    """A chain of operators, each the consumer of the one before, that runs as one kernel.

    Attributes
    ----------
    name
        What the reader calls it.
    steps
        What each operator must be, in order. Each is the kind of an operator, such as
        ``"pooling"``, or one of ``"conv"``, ``"linear"`` (a product with a weight), ``"matmul"``
        (of two activations), ``"batch_norm"`` (with stored statistics), ``"norm"`` (any other),
        ``"add"`` (of two activations), ``"bias"`` (an addition of a weight), ``"activation"``
        (element-wise operators, however many, that together look at nothing else) and
        ``"elementwise"`` (one of them, whatever else it reads).
        ``"?"`` after it says it may be missing, ``"*"`` any number, ``"+"`` one or more.
    keeps
        Whether what passes between the steps may be needed elsewhere too. It is then written
        as before, and only read once less.
    fits
        A last condition on the places of the operators that were found.

    Raises
    ------
    ArgumentError
        If there is no name, no step, or nothing that could be fused.
    UnknownNameError
        If a step is of no known kind.

    Examples
    --------
    >>> Pattern("norm-act", ("norm", "activation")).steps
    ('norm', 'activation')
    """

    name: str
    steps: tuple[str, ...]
    keeps: bool = False
    fits: Callable[[OperatorGraph, Sequence[int]], bool] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ArgumentError(f"Pattern(): `name` must be a text, got {self.name!r}. Write e.g. name='norm-act'")
        steps: object = self.steps
        if not isinstance(steps, (tuple, list)) or not steps:
            raise ArgumentError(
                f"Pattern(): `steps` of {self.name!r} must name at least one step, got {self.steps!r}. "
                "Write e.g. steps=('norm', 'activation')"
            )
        object.__setattr__(self, "steps", tuple(steps))
        first = self.parsed[0]
        if first.optional:
            raise ArgumentError(
                f"Pattern(): {self.name!r} begins with {self.steps[0]!r}, which may be missing: "
                "begin with a step that must be there"
            )
        if len(self.parsed) == 1 and not first.repeated:
            raise ArgumentError(
                f"Pattern(): {self.name!r} has the one step {self.steps[0]!r}: one operator alone fuses with nothing. "
                f"Write e.g. steps=({self.steps[0]!r}, 'activation')"
            )

    @cached_property
    def parsed(self) -> tuple[PatternStep, ...]:
        """The parsed steps."""
        return tuple(parsed_step(self.name, step) for step in self.steps)

    @property
    def rank(self) -> int:
        """When it is looked for: 0 with a product in it, 1 with a reduction or copy, 2 element-wise alone."""
        kinds = {step.kind for step in self.parsed}
        if any(kind in _PRODUCTS or kind.startswith("conv") for kind in kinds):
            return 0
        return 1 if kinds & (OPERATOR_KINDS | {"norm"}) else 2


class PatternRegistry:
    """Patterns by name, in the order in which they were registered.

    Examples
    --------
    >>> mine = PatternRegistry(DEFAULT_PATTERNS)
    >>> mine.register(Pattern("norm-act", ("norm", "activation")))
    >>> "norm-act" in mine, len(mine) - len(DEFAULT_PATTERNS)
    (True, 1)
    """

    def __init__(self, patterns: Iterable[Pattern] = ()) -> None:
        self._patterns: dict[str, Pattern] = {}
        for pattern in patterns:
            self.register(pattern)

    def register(self, pattern: Pattern) -> None:
        """Add a pattern.

        Raises
        ------
        ArgumentError
            If it is no pattern, or its name is taken.
        """
        if not isinstance(pattern, Pattern):
            raise ArgumentError(
                f"PatternRegistry.register(): `pattern` must be a Pattern, got {pattern!r}. "
                "Write e.g. Pattern('norm-act', ('norm', 'activation'))"
            )
        if pattern.name in self._patterns:
            raise ArgumentError(
                f"PatternRegistry.register(): there is a pattern {pattern.name!r} already, "
                f"of the steps {self._patterns[pattern.name].steps}. Give this one another name"
            )
        self._patterns[pattern.name] = pattern

    def __getitem__(self, name: str) -> Pattern:
        if name not in self._patterns:
            raise UnknownNameError(
                f"unknown pattern {name!r}. Known: {', '.join(self._patterns)}.{did_you_mean(name, self._patterns)}"
            )
        return self._patterns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._patterns

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self._patterns.values())

    def __len__(self) -> int:
        return len(self._patterns)

    def __repr__(self) -> str:
        return f"<patterns: {', '.join(self._patterns)}>"


def _is_attention(graph: OperatorGraph, places: Sequence[int]) -> bool:
    """Tell whether two products and a softmax are attention: weights of rows that sum to one, over the same keys."""
    first, last = graph.operators[places[0]].products, graph.operators[places[-1]].products
    weights = next(index for index in places if graph.operators[index].kind == "softmax")
    if first is None or last is None or graph.operators[weights].shape.get("axis", -1) != -1:
        return False
    made = {value for member in places[:-1] for value in graph.outputs_of[member]}
    inside = [access for member in places for access in graph.reads[member] if access.value in made]
    if graph.reads[places[-1]][0].value not in made or any(access.turned for access in inside):
        return False
    return (first.m, first.n, first.k, first.copies) == (last.m, last.k, last.n, last.copies)


DEFAULT_PATTERNS = (
    Pattern("attention", ("matmul", "elementwise*", "softmax", "elementwise*", "matmul"), fits=_is_attention),
    Pattern("conv-bn-add-act", ("conv", "batch_norm", "add", "activation")),
    Pattern("conv-bn-act", ("conv", "batch_norm", "activation")),
    Pattern("conv-bn-add", ("conv", "batch_norm", "add")),
    Pattern("conv-bn", ("conv", "batch_norm")),
    Pattern("conv-add-act", ("conv", "add", "activation")),
    Pattern("conv-add", ("conv", "add")),
    Pattern("conv-act", ("conv", "activation")),
    Pattern("linear-act", ("linear", "bias?", "activation")),
    Pattern("linear-bias", ("linear", "bias")),
    Pattern("add-norm", ("add", "norm"), keeps=True),
    Pattern("element-wise", ("elementwise+",)),
)
"""What :func:`mlsys.mapping.fusion.fuse` uses by default."""

LOOP_PATTERNS = (
    DEFAULT_PATTERNS[0],
    Pattern("norm-elementwise", ("batch_norm", "elementwise*")),
    *DEFAULT_PATTERNS[-2:],
)
"""What a compiler fuses that leaves convolutions and products to a library: all between two of them."""

PATTERNS = PatternRegistry(DEFAULT_PATTERNS)
"""The registry that :func:`mlsys.mapping.fusion.fuse` uses unless given another; register your own patterns here."""
