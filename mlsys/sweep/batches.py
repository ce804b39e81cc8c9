"""Kernels of a network at many batches, interpolated from a few.

Every size that depends on the batch is proportional to it, and decisions in lowering a network to kernels compare such
sizes. Two straight lines cross at most once: a decision that is the same at two batches is the same between them. So if
a network has the same kernels at three batches, with numbers on one line, the line holds between them. It is exact for
whole numbers, and holds to twelve digits for numbers that an algorithm scales, such as Winograd's multiplications.
Where a number has a bend, such as the rows of an embedding table that are read, two lines are used. Any other batch is
built directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.dedupe import distinct_columns
from mlsys.models.estimate.running import Running, as_counted, kernels_run
from mlsys.models.estimate.work import Work
from mlsys.precision import element_size
from mlsys.workloads import Network

_EXACT = 2.0**53  # largest whole number up to which floats are exact
_ROUNDING = 1e-12  # tolerance for numbers that are not whole
_POINTS = 3  # points that confirm a line
_COUNT = Work.FIELDS.index("count")


@dataclass(frozen=True, eq=False)
class CountedKernels:
    """Kernels of a network at one batch, as plain numbers.

    Layers repeat: :meth:`distinct` merges equal kernels and records their counts.

    Attributes
    ----------
    name
        Name of the network.
    columns
        Shape (fields of :class:`~mlsys.models.estimate.work.Work`, kernels), in the order in which they run.
    precisions, kinds
        Of the operator of each kernel.
    names
        Names of the operators.
    multiplicity
        Number of kernels of each column; None if each is one.
    stored
        Weight bytes of the whole module; None if unknown.
    parameters
        Number of parameters.
    """

    name: str
    columns: NDArray[np.float64]
    precisions: tuple[str, ...]
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    stored: float | None
    parameters: float
    multiplicity: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, network: Network, running: Running | None = None) -> CountedKernels:
        """Return the kernels of a network for a way of running it; layout copies follow the operators."""
        counted = as_counted(network, running or Running())
        ran = kernels_run(counted, running or Running())
        order, rows = network.arrays.order, len(network.arrays)
        columns = np.concatenate([ran.work.columns[:, order], ran.work.columns[:, rows:]], axis=1)
        columns[_COUNT, : len(order)] /= network.arrays.repeats[order]
        whose = [*order.tolist(), *ran.owner[rows:].tolist()]
        first = network.distinct
        held = getattr(network, "weight_bytes", None)
        return cls(
            network.name,
            columns,
            tuple(first[row].precision for row in whose),
            tuple(first[row].kind for row in whose),
            tuple(operator.name for operator in network),
            None if held is None else float(held.m_as("byte")),
            float(network.parameters.m_as("param")),
        )

    @property
    def times(self) -> NDArray[np.float64]:
        """Number of kernels of each column, shape (kernels,)."""
        return np.ones(self.columns.shape[1]) if self.multiplicity is None else self.multiplicity

    def distinct(self) -> CountedKernels:
        """Return the same kernels with equal ones merged into one column.

        Examples
        --------
        >>> from mlsys.workloads import zoo
        >>> kernels = CountedKernels.of(zoo.network("vgg16"))
        >>> kernels.columns.shape[1], kernels.distinct().columns.shape[1], int(kernels.distinct().times.sum())
        (16, 12, 16)
        """
        return _together(self, np.zeros(self.columns.shape))[0]

    @property
    def value_bytes(self) -> NDArray[np.float64]:
        """Bytes per value in the number format of each operator, shape (operators,)."""
        sizes = {name: float(element_size(name).m_as("byte")) for name in set(self.precisions)}
        return np.array([sizes[name] for name in self.precisions])

    def is_like(self, other: CountedKernels) -> bool:
        """Return whether everything is equal except the numbers of the kernels."""
        plain = [
            (kernels.name, kernels.precisions, kernels.kinds, kernels.names, kernels.stored, kernels.parameters)
            for kernels in (self, other)
        ]
        return plain[0] == plain[1]


def _whole(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers are whole and exact."""
    whole: NDArray[np.bool_] = (numbers == np.rint(numbers)) & (np.abs(numbers) < _EXACT)
    return whole


def _together(kernels: CountedKernels, slope: NDArray[np.float64]) -> tuple[CountedKernels, NDArray[np.float64]]:
    """Return kernels and their slopes over the batch, with kernels that are equal at every batch merged."""
    labels = list(zip(kernels.precisions, kernels.kinds, strict=True))
    numbered = {label: number for number, label in enumerate(sorted(set(labels)))}
    number = np.array([[float(numbered[label]) for label in labels]])
    parts = [np.delete(kernels.columns, _COUNT, axis=0), np.delete(slope, _COUNT, axis=0), number]
    first, which = distinct_columns(np.concatenate(parts))

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(which, weights=values, minlength=len(first)).astype(np.float64, copy=False)

    columns, rise = kernels.columns[:, first], slope[:, first]
    columns[_COUNT], rise[_COUNT] = summed(kernels.columns[_COUNT]), summed(slope[_COUNT])
    precisions, kinds = (tuple(own[place] for place in first) for own in (kernels.precisions, kernels.kinds))
    return replace(
        kernels, columns=columns, precisions=precisions, kinds=kinds, multiplicity=summed(kernels.times)
    ), rise


class Line(NamedTuple):
    """Kernels as a linear function of the batch: values at the first batch, and slopes."""

    first: int
    last: int
    start: CountedKernels
    slope: NDArray[np.float64]

    def at(self, batch: int) -> CountedKernels:
        """Return the kernels at a batch."""
        return replace(self.start, columns=self.start.columns + self.slope * (batch - self.first))


class AcrossBatches:
    """Kernels of a network at all requested batches; ``made`` builds them for one batch.

    Equal kernels are merged into one column.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> def made(batch):
    ...     print("made at", batch)
    ...     return CountedKernels.of(load("lenet5", batch=batch))
    >>> lenet = AcrossBatches(made)
    >>> count, flops = Work.FIELDS.index("count"), Work.FIELDS.index("flops")
    >>> found = [lenet.at(batch, range(1, 101)).columns for batch in (1, 2, 3, 100)]
    made at 1
    made at 2
    made at 100
    >>> [int(kernels[flops] @ kernels[count]) for kernels in found]
    [878402, 1756804, 2635206, 87840200]
    """

    def __init__(self, made: Callable[[int], CountedKernels]) -> None:
        self._made = made
        self._known: dict[int, CountedKernels] = {}
        self._distinct: dict[int, CountedKernels] = {}
        self._lines: list[Line] = []
        self._tried: set[tuple[int, ...]] = set()

    def at(self, batch: int, among: Iterable[int] = ()) -> CountedKernels:
        """Return the kernels at a batch; ``among`` are all batches that will be requested."""
        kernels = self._drawn(batch)
        if kernels is None and (requested := tuple(sorted({batch, *among}))) not in self._tried:
            self._tried.add(requested)
            if len(requested) > _POINTS:
                self._draw(requested)
            kernels = self._drawn(batch)
        if kernels is None:
            kernels = self._distinct[batch] = self._make(batch).distinct()
        return kernels

    def _drawn(self, batch: int) -> CountedKernels | None:
        if batch in self._distinct:
            return self._distinct[batch]
        return next((line.at(batch) for line in self._lines if line.first <= batch <= line.last), None)

    def _make(self, batch: int) -> CountedKernels:
        if batch not in self._known:
            self._known[batch] = self._made(batch)
        return self._known[batch]

    def _draw(self, batches: tuple[int, ...]) -> None:
        """Fit one line through the requested batches, or two."""
        try:
            low, next_, top = (self._make(batches[index]) for index in (0, 1, -1))
            if self._straight(batches[0], batches[1], batches[-1]) or not low.is_like(top):
                return
            before = self._make(batches[-2])
            rise = (next_.columns - low.columns) / (batches[1] - batches[0])
            fall = (top.columns - before.columns) / (batches[-1] - batches[-2])
            ahead = low.columns - rise * batches[0] - (top.columns - fall * batches[-1])
            bends = (ahead + (rise - fall) * batches[-1] != 0) & (rise != fall)
            crossings = -ahead[bends] / (rise - fall)[bends]
            if crossings.size and low.is_like(before):
                below = max((batch for batch in batches if batch <= crossings.min()), default=batches[0])
                above = min((batch for batch in batches if batch >= crossings.max()), default=batches[-1])
                self._straight(batches[0], batches[1], below)
                self._straight(above, batches[-2], batches[-1])
        except (ValueError, LookupError):
            return  # a batch that the network does not accept is refused when it is requested

    def _straight(self, *batches: int) -> bool:
        """Return whether the kernels at three batches are on one line, and store the line."""
        first, second, last = sorted(batches)
        if len({first, second, last}) < _POINTS:
            return False
        points = [self._make(batch) for batch in (first, second, last)]
        if not all(point.is_like(points[0]) for point in points):
            return False
        x, y, z = (point.columns for point in points)
        slope = (y - x) / (second - first)
        off = np.abs(x + slope * (last - first) - z)
        whole = np.logical_and.reduce([_whole(numbers) for numbers in (x, y, z)])
        if np.where(whole, (off > 0) | (slope != np.rint(slope)), off > _ROUNDING * np.abs(z)).any():
            return False
        self._lines.append(Line(first, last, *_together(points[0], slope)))
        return True
