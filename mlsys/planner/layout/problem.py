"""The choice of layouts as an optimisation problem, and three exact solvers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph, Value
    from mlsys.workloads.operator import Operator

BRUTE_FORCE_LIMIT = 200_000
"""Limit of choices for brute force."""
_IMAGE_KINDS = ("conv2d", "conv_transpose2d", "pooling", "resize")
_ANY_LAYOUT = ("reduction", "pooling")

TrafficRule = Callable[["OperatorGraph", int, str], float]


def turning_bytes(value: Value) -> int:
    """Return the bytes moved by transposing an image; 0 if all its layouts are identical."""
    _, channels, height, width = value.shape
    return 0 if channels == 1 or height * width == 1 else 2 * value.bytes


def members(operator: Operator) -> tuple[Operator, ...]:
    """Return the operators that a fused kernel consists of, or the operator itself."""
    return tuple(getattr(operator, "members", ())) or (operator,)


class Hub(NamedTuple):
    """An image: its producer, its readers, and its transpose cost; None stands for the outside."""

    value: Value
    cost: int
    maker: int | None
    readers: tuple[int, ...]
    outside: bool


class LayoutProblem:
    """Operators on images, and the images between them.

    Attributes
    ----------
    operators
        Indices of the operators with a layout to choose.
    own
        Additional bytes of each operator in each layout, shape (operators, layouts).
    """

    def __init__(self, graph: OperatorGraph, layouts: tuple[str, ...], outside: str, traffic: TrafficRule) -> None:
        self.names = (*layouts, *(() if outside in layouts else (outside,)))
        self.choices = len(layouts)
        self.outside = self.names.index(outside)
        images = _images(graph)
        self.operators = [
            index
            for index, operator in enumerate(graph.operators)
            if images.intersection(graph.outputs_of[index])
            or (operator.kind in _ANY_LAYOUT and images.intersection(graph.inputs_of[index]))
        ]
        number = {operator: node for node, operator in enumerate(self.operators)}
        self.own = np.array(
            [[traffic(graph, operator, name) for name in layouts] for operator in self.operators], float
        )
        self.hubs = [
            Hub(
                graph.values[image],
                turning_bytes(graph.values[image]),
                None if graph.values[image].producer is None else number[graph.values[image].producer or 0],
                tuple(number[user] for user in graph.values[image].consumers if user in number),
                graph.values[image].output or any(user not in number for user in graph.values[image].consumers),
            )
            for image in sorted(images)
        ]

    def transposed_layouts(self, hub: Hub, choice: Sequence[int]) -> Iterator[int]:
        """Yield the layouts that an image is transposed to."""
        made = self.outside if hub.maker is None else choice[hub.maker]
        wanted = {choice[reader] for reader in hub.readers} | ({self.outside} if hub.outside else set())
        yield from sorted(wanted - {made})

    def made_in(self, hub: Hub, choice: Sequence[int]) -> str:
        """Return the layout in which an image is made."""
        return str(self.names[self.outside if hub.maker is None else choice[hub.maker]])

    def cost(self, choice: Sequence[int]) -> float:
        """Return the bytes moved for a choice of layouts."""
        between = sum(hub.cost * len(list(self.transposed_layouts(hub, choice))) for hub in self.hubs)
        return float(self.own[range(len(choice)), list(choice)].sum() + between)

    def brute_force(self) -> list[int]:
        """Return the best of all choices."""
        number = self.choices ** len(self.operators)
        if number > BRUTE_FORCE_LIMIT:
            raise ArgumentError(
                f"choose_layouts(): `method` 'brute force' would try {number:,} choices, more than "
                f"{BRUTE_FORCE_LIMIT:,}. Write e.g. method='auto'"
            )
        every = itertools.product(range(self.choices), repeat=len(self.operators))
        return list(min(every, key=lambda choice: self.cost(tuple(choice))))

    # --- dynamic programming on trees --------------------------------------------------

    @property
    def is_tree(self) -> bool:
        """Whether operators and the images between them form a forest."""
        return self._walk() is not None

    def _neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        hubs = [[*(() if hub.maker is None else (hub.maker,)), *hub.readers] for hub in self.hubs]
        operators: list[list[int]] = [[] for _ in self.operators]
        for index, members in enumerate(hubs):
            for node in members:
                operators[node].append(index)
        return operators, hubs

    def _walk(self) -> list[tuple[int, int | None]] | None:
        """Return each operator with the image it was reached by, None for roots; None if there is a cycle."""
        operators, hubs = self._neighbours()
        seen: dict[int, int | None] = {}
        done: set[int] = set()
        for root in range(len(self.operators)):
            if root in seen:
                continue
            seen[root] = None
            stack = [root]
            while stack:
                node = stack.pop()
                for hub in operators[node]:
                    if hub == seen[node]:
                        continue
                    if hub in done:
                        return None
                    done.add(hub)
                    for other in hubs[hub]:
                        if other != node:
                            if other in seen:
                                return None
                            seen[other] = hub
                            stack.append(other)
        return list(seen.items())

    def tree(self) -> list[int]:
        """Return the best choice by dynamic programming from the leaves to the roots."""
        walk = self._walk()
        if walk is None:
            raise ArgumentError(
                "choose_layouts(): `method` 'tree' applies to operators that form a tree; here two paths lead from one "
                "operator to another. Write e.g. method='auto'"
            )
        operators, hubs = self._neighbours()
        parent = dict(walk)
        order = self._outward(walk, operators, hubs)
        total = self.own.copy()  # bytes of an operator and its subtree, by its layout
        for node in reversed(order):
            for hub in operators[node]:
                if hub != parent[node]:
                    total[node] += [self._beyond(hub, node, layout, total)[0] for layout in range(self.choices)]
        choice = [0] * len(order)
        for node in order:
            if parent[node] is None:
                choice[node] = int(np.argmin(total[node]))
            for hub in operators[node]:
                if hub != parent[node]:
                    for other, layout in self._beyond(hub, node, choice[node], total)[1].items():
                        choice[other] = layout
        return choice

    @staticmethod
    def _outward(walk: list[tuple[int, int | None]], operators: list[list[int]], hubs: list[list[int]]) -> list[int]:
        """Return the operators in an order in which each follows its parent."""
        parent, order = dict(walk), []
        front = [node for node, hub in walk if hub is None]
        while front:
            node = front.pop()
            order.append(node)
            front += [other for hub in operators[node] if hub != parent[node] for other in hubs[hub] if other != node]
        return order

    def _beyond(self, index: int, near: int, layout: int, total: np.ndarray) -> tuple[float, dict[int, int]]:
        """Return the fewest bytes moved beyond one image, given the layout of ``near``, and the layouts there."""
        hub = self.hubs[index]
        readers = [reader for reader in hub.readers if reader != near]
        if hub.maker is None:
            makers = [(self.outside, 0.0)]
        elif hub.maker == near:
            makers = [(layout, 0.0)]
        else:
            makers = [(made, float(total[hub.maker, made])) for made in range(self.choices)]
        needed = ({layout} if near in hub.readers else set()) | ({self.outside} if hub.outside else set())
        best: tuple[float, dict[int, int]] = (float("inf"), {})
        for made, before in makers:
            others = [name for name in range(len(self.names)) if name != made]
            for copies in itertools.chain.from_iterable(
                itertools.combinations(others, k) for k in range(len(others) + 1)
            ):
                there = {made, *copies}
                usable = [choice for choice in there if choice < self.choices]
                if not needed <= there or (readers and not usable):
                    continue
                picks = {reader: min(usable, key=lambda choice: total[reader, choice]) for reader in readers}
                cost = before + hub.cost * len(copies) + sum(float(total[r, pick]) for r, pick in picks.items())
                if cost < best[0]:
                    if hub.maker is not None and hub.maker != near:
                        picks[hub.maker] = made
                    best = cost, picks
        return best

    # --- the general case --------------------------------------------------------------

    def solver(self) -> list[int]:
        """Return the best choice by a mixed-integer program."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        number, width = len(self.operators), len(self.names)
        picks = number * width
        turns = len(self.hubs) * width
        scale = max(float(self.own.max(initial=0)), float(max((hub.cost for hub in self.hubs), default=0)), 1.0)
        cost = np.zeros(picks + turns)
        upper = np.ones(picks + turns)
        for layout in range(width):
            if layout < self.choices:
                cost[np.arange(number) * width + layout] = self.own[:, layout] / scale
            else:
                upper[np.arange(number) * width + layout] = 0  # an outside layout that is not among the choices
        rows, columns, entries, least = [], [], [], []
        for node in range(number):  # one layout each
            rows += [node] * width
            columns += list(range(node * width, (node + 1) * width))
            entries += [1.0] * width
            least.append(1.0)
        for index, hub in enumerate(self.hubs):  # transposed if requested and not made so
            cost[picks + index * width : picks + (index + 1) * width] = hub.cost / scale
            readers: list[int | None] = [*hub.readers, *([None] if hub.outside else [])]
            for reader, layout in itertools.product(readers, range(width)):
                row = len(least)
                bound = 0.0
                rows.append(row)
                columns.append(picks + index * width + layout)
                entries.append(1.0)
                for who, sign in ((hub.maker, 1.0), (reader, -1.0)):
                    if who is None:
                        bound -= sign * (layout == self.outside)
                    else:
                        rows.append(row)
                        columns.append(who * width + layout)
                        entries.append(sign)
                least.append(bound)
        matrix = coo_array((entries, (rows, columns)), shape=(len(least), picks + turns))
        most = np.full(len(least), np.inf)
        most[:number] = 1.0
        solution = milp(
            cost,
            integrality=np.r_[np.ones(picks), np.zeros(turns)],
            bounds=Bounds(np.zeros(picks + turns), upper),
            constraints=LinearConstraint(matrix, np.array(least), most),
            options={"mip_rel_gap": 0},
        )
        return [int(np.argmax(row)) for row in solution.x[:picks].reshape(number, width)]


def _images(graph: OperatorGraph) -> set[int]:
    """Return the values that are images: with four axes, and connected to a convolution, pooling or resizing."""
    four = {
        index for index, value in enumerate(graph.values) if len(value.shape) == 4 and value.role in ("input", "made")
    }
    touches = [
        four.intersection(graph.inputs_of[node]) | four.intersection(graph.outputs_of[node])
        for node in range(len(graph))
    ]
    images: set[int] = set()
    for node, operator in enumerate(graph.operators):
        if _works_on_images(operator):
            images |= touches[node]
    while True:
        more = set().union(*(near for near in touches if near & images)) - images
        if not more:
            return images
        images |= more


def _works_on_images(operator: Operator) -> bool:
    return any(member.kind.startswith(_IMAGE_KINDS) for member in members(operator))
