"""Totals of a captured network: work, bytes, weights, and coverage of its operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from mlsys.units import Quantity, ureg
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.operator import Network

_BYTE, _FLOP, _MAC, _PARAM = (ureg.Unit(name) for name in ("byte", "FLOP", "MAC", "param"))


class Held(NamedTuple):
    """Contents of a whole module as plain numbers: parameters, and bytes of weights, buffers and inputs.

    ``counters`` are the buffer bytes that are integers in every number format.
    """

    parameters: int = 0
    weights: int = 0
    buffers: int = 0
    inputs: int = 0
    counters: int = 0

    def scaled(self, ratio: float) -> Held:
        """Return the same with all bytes except the counters scaled by ``ratio``."""
        buffers = round((self.buffers - self.counters) * ratio) + self.counters
        return self._replace(weights=round(self.weights * ratio), buffers=buffers)


class AttentionCount(NamedTuple):
    """Products of masked attention, in FLOP.

    ``dense`` is the count of every query with every key; ``unmasked`` counts the pairs that the masks leave, None if
    their values are unknown.
    """

    dense: int
    unmasked: int | None

    def __str__(self) -> str:
        if self.unmasked is None:
            left = "the number of pairs left by its masks is unknown"
        else:
            left = f"the pairs left by its masks take {self.unmasked:,} FLOP"
        return f"masked attention is counted dense, every query with every key: {self.dense:,} FLOP; {left}"


@dataclass(frozen=True)
class KindTotal:
    """Totals of all operators of one kind; ``flops`` is all their work."""

    kind: str
    count: int
    macs: Quantity
    flops: Quantity
    product_flops: Quantity
    elementwise: Quantity
    data: Quantity


@dataclass(frozen=True, repr=False)
class TracedNetwork(Network):
    """A network whose operators were counted in whole numbers, with their totals.

    Attributes
    ----------
    held
        Contents of the whole module, each tensor once, used or not.
    views
        Nodes that only create views of memory, at no cost.
    """

    held: Held = field(default=Held(), kw_only=True)
    views: int = field(default=0, kw_only=True)

    @cached_property
    def _totals(self) -> tuple[int, ...]:
        counts = [operator.counts for operator in self._traced]
        return tuple(sum(values) for values in zip(*(count[1:7] for count in counts), strict=True)) or (0,) * 6

    @property
    def _traced(self) -> tuple[CountedOperator, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, CountedOperator))

    @property
    def macs(self) -> Quantity:
        """Multiply-accumulates of matrix products, convolutions and attention, MAC."""
        return ureg.Quantity(self._totals[0], _MAC)

    @property
    def parameters(self) -> Quantity:
        """Parameters of the whole module, shared ones once."""
        return ureg.Quantity(self.held.parameters, _PARAM)

    @property
    def weight_bytes(self) -> Quantity:
        """Bytes of all parameters."""
        return ureg.Quantity(self.held.weights, _BYTE)

    @property
    def buffer_bytes(self) -> Quantity:
        """Bytes that are stored but not learned, such as the statistics of a normalisation."""
        return ureg.Quantity(self.held.buffers, _BYTE)

    @property
    def input_bytes(self) -> Quantity:
        """Bytes of the input tensors."""
        return ureg.Quantity(self.held.inputs, _BYTE)

    @property
    def weights(self) -> Quantity:
        """Weight bytes that one pass reads; shared weights as often as they are read."""
        return ureg.Quantity(self._totals[4], _BYTE)

    @property
    def flops(self) -> Quantity:
        """All floating-point work: products and other operations."""
        return ureg.Quantity(2 * self._totals[0] + self._totals[1], _FLOP)

    @property
    def elementwise_flops(self) -> Quantity:
        """Element-wise work: biases, activations, normalisation, softmax, pooling, reductions."""
        return ureg.Quantity(self._totals[1], _FLOP)

    @property
    def data(self) -> Quantity:
        """Compulsory bytes of all operators, each run separately."""
        return ureg.Quantity(self._totals[2] + self._totals[3], _BYTE)

    @property
    def intensity(self) -> Quantity:
        """All work over bytes, FLOP/byte; zero if there is no traffic."""
        return super().intensity if self._totals[0] or self._totals[1] else ureg.Quantity(0.0, _FLOP / _BYTE)

    @property
    def read(self) -> Quantity:
        """Bytes that all operators read."""
        return ureg.Quantity(self._totals[2], _BYTE)

    @property
    def written(self) -> Quantity:
        """Bytes that all operators write."""
        return ureg.Quantity(self._totals[3], _BYTE)

    @property
    def activation_bytes(self) -> Quantity:
        """Bytes of every tensor made by an operator, each once; views and in-place operators make none."""
        return ureg.Quantity(self._totals[5], _BYTE)

    @property
    def unknown(self) -> tuple[CountedOperator, ...]:
        """Operators without a rule, counted as pure traffic."""
        return tuple(operator for operator in self._traced if not operator.counts.known)

    @property
    def coverage(self) -> float:
        """Fraction of the nodes that are understood, 0 to 1; views count as understood."""
        nodes = len(self.operators) + self.views
        return 1 - len(self.unknown) / nodes if nodes else 1.0

    def by_kind(self) -> tuple[KindTotal, ...]:
        """Return the totals of each kind of operator, most work first."""
        sums: dict[str, list[int]] = {}
        for operator in self._traced:
            row = sums.setdefault(operator.kind, [0, 0, 0, 0])
            counts = operator.counts
            for index, value in enumerate((1, counts.macs, counts.elementwise, counts.read + counts.written)):
                row[index] += value
        totals = [
            KindTotal(
                kind,
                count,
                ureg.Quantity(macs, _MAC),
                ureg.Quantity(2 * macs + elementwise, _FLOP),
                ureg.Quantity(2 * macs, _FLOP),
                ureg.Quantity(elementwise, _FLOP),
                ureg.Quantity(moved, _BYTE),
            )
            for kind, (count, macs, elementwise, moved) in sums.items()
        ]
        return tuple(
            sorted(totals, key=lambda total: (-total.macs.magnitude, -total.elementwise.magnitude, total.kind))
        )
