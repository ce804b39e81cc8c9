"""Operator graphs: producers and consumers of tensors."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mlsys.errors import ArgumentError
from mlsys.unit_checks import plain_fields
from mlsys.workloads.operator import Operator

ROLES = ("input", "weight", "constant", "made")


@dataclass(frozen=True)
class Value:
    """A tensor passed between operators; views of it are the same value.

    Attributes
    ----------
    name
        Name in the framework; unique in a graph.
    role
        ``"input"``, ``"weight"`` (parameters and buffers), ``"constant"`` or ``"made"`` (by an operator).
    bytes
        Size in memory.
    shape, dtype
        Shape when it was made, and number format as named by the framework.
    producer
        Index of the operator that makes it; None unless it is made.
    consumers
        Indices of the operators that read it, in execution order.
    output
        Whether the network returns it.
    overwrites
        Index of the value whose memory it reuses, for an operator that works in place.
    """

    name: str
    role: str
    bytes: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    producer: int | None = None
    consumers: tuple[int, ...] = ()
    output: bool = False
    overwrites: int | None = None

    def __post_init__(self) -> None:
        plain_fields(self)


class Access(NamedTuple):
    """An operator's access to a value.

    Attributes
    ----------
    value
        Index of the value.
    bytes
        Bytes accessed: less than all for slices and gathers.
    view
        Equal for two operators that use the same view of the value; 0 for the original.
    turned
        Whether the last axis differs from that of the original.
    """

    value: int
    bytes: int
    view: int = 0
    turned: bool = False


@dataclass(frozen=True, repr=False)
class OperatorGraph:
    """Operators in execution order, and the values that pass between them.

    Attributes
    ----------
    name
        Name of the network.
    operators
        In a valid execution order.
    values
        Inputs, weights, constants and intermediate values.
    reads, writes
        For each operator its accesses to each value; by default to all of it.

    Raises
    ------
    ArgumentError
        If a value is read before it is made, or an index is out of range.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> x = Value("x", "input", 8192, consumers=(0,))
    >>> hidden = Value("hidden", "made", 8192, producer=0, consumers=(1,))
    >>> y = Value("y", "made", 8192, producer=1, output=True)
    >>> graph = OperatorGraph("two rectifiers", (relu(4096), relu(4096)), (x, hidden, y))
    >>> graph.consumers(0), [value.name for value in graph.read_by(1)], graph.intermediates
    ((1,), ['hidden'], (1,))
    """

    name: str
    operators: tuple[Operator, ...]
    values: tuple[Value, ...]
    reads: tuple[tuple[Access, ...], ...] = ()
    writes: tuple[tuple[Access, ...], ...] = ()

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ArgumentError(f"OperatorGraph(): {self.name!r} {fault}")
        if not self.reads:
            object.__setattr__(self, "reads", self._whole(v.consumers for v in self.values))
        if not self.writes:
            made = (() if value.producer is None else (value.producer,) for value in self.values)
            object.__setattr__(self, "writes", self._whole(made))
        for label in ("reads", "writes"):
            if len(getattr(self, label)) != len(self.operators):
                raise ArgumentError(
                    f"OperatorGraph(): `{label}` must have one entry for each of {len(self.operators)} operators, "
                    f"got {len(getattr(self, label))}"
                )

    def _whole(self, touching: Iterable[tuple[int, ...]]) -> tuple[tuple[Access, ...], ...]:
        rows: list[list[Access]] = [[] for _ in self.operators]
        for index, operators in enumerate(touching):
            for operator in operators:
                rows[operator].append(Access(index, self.values[index].bytes))
        return tuple(tuple(row) for row in rows)

    def _faults(self) -> Iterable[str]:
        operators, values = len(self.operators), len(self.values)
        if len({value.name for value in self.values}) < values:
            yield "has duplicate value names. Give each value its own name"
        for value in self.values:
            named = f"{value.name!r}"
            if value.role not in ROLES:
                yield f"value {named} has the role {value.role!r}. Roles: {', '.join(ROLES)}"
            if (value.role == "made") != (value.producer is not None):
                yield (
                    f"value {named} has the role {value.role!r} and producer {value.producer}: "
                    "values that are made have a producer, and no others"
                )
            first = -1 if value.producer is None else value.producer
            users = value.consumers
            if not -1 <= first < operators or (users and (min(users) < 0 or max(users) >= operators)):
                yield f"value {named} names an operator that does not exist; indices are 0 to {operators - 1}"
            if users and min(users) <= first:
                yield f"value {named} is read by an operator that runs before {first}, which makes it"
            if len(users) > 1 and users != tuple(sorted(set(users))):
                yield f"value {named} lists its consumers {users} out of order or twice"
            if value.overwrites is not None:
                if value.producer is None or not 0 <= value.overwrites < values:
                    yield f"value {named} overwrites {value.overwrites}, whose memory it cannot reuse"
                elif any(user > value.producer for user in self.values[value.overwrites].consumers):
                    yield f"value {named} overwrites {self.values[value.overwrites].name!r}, which is read later"

    @cached_property
    def inputs_of(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the indices of the values it reads, without duplicates."""
        return tuple(tuple(dict.fromkeys(access.value for access in row)) for row in self.reads)

    @cached_property
    def outputs_of(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the indices of the values it makes."""
        rows: list[list[int]] = [[] for _ in self.operators]
        for index, value in enumerate(self.values):
            if value.producer is not None:
                rows[value.producer].append(index)
        return tuple(tuple(row) for row in rows)

    def read_by(self, operator: int) -> tuple[Value, ...]:
        """Return the values read by an operator, given its index."""
        return tuple(self.values[value] for value in self.inputs_of[operator])

    def made_by(self, operator: int) -> tuple[Value, ...]:
        """Return the values made by an operator, given its index."""
        return tuple(self.values[value] for value in self.outputs_of[operator])

    def producers(self, operator: int) -> tuple[int, ...]:
        """Return the operators whose results a given operator reads."""
        makers = {self.values[value].producer for value in self.inputs_of[operator]}
        return tuple(sorted(maker for maker in makers if maker is not None))

    def consumers(self, operator: int) -> tuple[int, ...]:
        """Return the operators that read the results of a given operator."""
        return tuple(sorted({user for value in self.outputs_of[operator] for user in self.values[value].consumers}))

    def waits_for(self, operator: int) -> tuple[int, ...]:
        """Return the operators that must run before: producers, and readers of memory that is overwritten."""
        makers = set(self.producers(operator))
        for value in self.outputs_of[operator]:
            overwritten = self.values[value].overwrites
            if overwritten is not None:
                old = self.values[overwritten]
                makers.update(old.consumers)
                makers.update(() if old.producer is None else (old.producer,))
        return tuple(sorted(makers - {operator}))

    @cached_property
    def intermediates(self) -> tuple[int, ...]:
        """Indices of the values that are made and not returned."""
        return tuple(
            index for index, value in enumerate(self.values) if value.producer is not None and not value.output
        )

    @cached_property
    def lasting(self) -> frozenset[int]:
        """Indices of the values that outlive a run: returned ones, and inputs and weights."""
        replaced = {value.overwrites for value in self.values}
        kept = {index for index, value in enumerate(self.values) if value.output}
        for index, value in enumerate(self.values):
            first = value
            while first.overwrites is not None:
                first = self.values[first.overwrites]
            if value is not first and index not in replaced and first.producer is None:
                kept.add(index)
        return frozenset(kept)

    def __len__(self) -> int:
        return len(self.operators)

    def __repr__(self) -> str:
        return f"<operator graph {self.name}: {len(self.operators)} operators, {len(self.values)} values>"
