"""An instance as arrays for compiled search: operators of one colour as one group, edges as compressed rows."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlsys.planner.placement.instances.instance import Instance

_LARGE = 1e300


def compressed(number: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the row of each of ``number`` starts, and the entries: ``pairs[:, 1]`` by ``pairs[:, 0]``.

    Examples
    --------
    >>> compressed(3, np.array([[2, 0], [0, 1], [2, 1]]))
    (array([0, 1, 1, 3]), array([1, 0, 1]))
    """
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    starts = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=number), out=starts[1:])
    return starts, np.ascontiguousarray(pairs[order, 1])


@dataclass(frozen=True, eq=False)
class Grouped:
    """Arrays of an instance; operators in the order of the file.

    Attributes
    ----------
    instance
        What they come from.
    """

    instance: Instance

    @property
    def number(self) -> int:
        """How many operators there are."""
        return len(self.instance.ids)

    @property
    def devices(self) -> int:
        """Accelerators and the CPU."""
        return self.instance.accelerators + 1

    @cached_property
    def cpu(self) -> np.ndarray:
        """Time on a CPU, ms, shape (operators,)."""
        times = np.array(self.instance.cpu_ms)
        return times if self.instance.cpus else np.full(self.number, _LARGE)

    @cached_property
    def acc(self) -> np.ndarray:
        """Time on an accelerator, ms; a very large number where it, or its group, may not run there or is too large."""
        refused = np.bincount(self.group, ~np.array(self.instance.acc_ok), self.groups) > 0
        refused |= np.bincount(self.group, self.size, self.groups) > self.memory
        return np.where(refused[self.group], _LARGE, np.array(self.instance.acc_ms))

    @cached_property
    def size(self) -> np.ndarray:
        """Bytes of each operator."""
        return np.array(self.instance.size)

    @cached_property
    def transfer(self) -> np.ndarray:
        """Cost of carrying each output, ms."""
        return np.array(self.instance.transfer_ms)

    @property
    def memory(self) -> float:
        """Bytes of an accelerator; a very large number for no cap."""
        return self.instance.memory if math.isfinite(self.instance.memory) else _LARGE

    @cached_property
    def group(self) -> np.ndarray:
        """Group of each operator, numbered in the order of the file."""
        seen: dict[tuple[str, int], int] = {}
        return np.array(
            [
                seen.setdefault(("colour", colour) if colour >= 0 else ("alone", index), len(seen))
                for index, colour in enumerate(self.instance.colour)
            ],
            np.int64,
        )

    @cached_property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1

    @cached_property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Operators of each group."""
        return compressed(self.groups, np.stack((self.group, np.arange(self.number)), 1))

    @cached_property
    def _edges(self) -> np.ndarray:
        return np.array(self.instance.edges, np.int64).reshape(-1, 2)

    @cached_property
    def after(self) -> tuple[np.ndarray, np.ndarray]:
        """Consumers of each operator."""
        return compressed(self.number, self._edges)

    @cached_property
    def before(self) -> tuple[np.ndarray, np.ndarray]:
        """Producers of each operator."""
        return compressed(self.number, self._edges[:, ::-1])

    @cached_property
    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """Groups that share an edge, each neighbour once."""
        ends = self.group[self._edges]
        ends = ends[ends[:, 0] != ends[:, 1]]
        both = np.concatenate((ends, ends[:, ::-1]))
        return compressed(self.groups, np.unique(both, axis=0) if len(both) else both.reshape(-1, 2))

    @cached_property
    def knots(self) -> np.ndarray:
        """Knot of each group: groups that reach each other, which no accelerator may share out, form one."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ends = self.group[self._edges]
        links = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(self.groups, self.groups))
        component: np.ndarray = connected_components(links, connection="strong")[1]
        return component.astype(np.int64)

    def order(self, rng: np.random.Generator | None = None) -> np.ndarray:
        """Return groups so that producers come first: depth first, ties by the file or by chance, knots together."""
        knot = self.knots[self.group]
        number = int(knot.max()) + 1
        links = np.unique(knot[self._edges], axis=0)
        links = links[links[:, 0] != links[:, 1]]
        starts, targets = compressed(number, links.reshape(-1, 2))
        waiting = np.bincount(links[:, 1], minlength=number)
        first = np.full(number, self.number)
        np.minimum.at(first, knot, np.arange(self.number))
        rank = first if rng is None else rng.permutation(number)
        stack = sorted(np.flatnonzero(waiting == 0).tolist(), key=lambda group: -int(rank[group]))
        position = np.empty(number, np.int64)
        for count in range(number):
            stage = stack.pop()
            position[stage] = count
            fresh = []
            for later in targets[starts[stage] : starts[stage + 1]].tolist():
                waiting[later] -= 1
                if not waiting[later]:
                    fresh.append(later)
            stack += sorted(fresh, key=lambda later: -int(rank[later]))
        return np.argsort(position[self.knots], kind="stable")
