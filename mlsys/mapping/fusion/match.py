"""Find patterns in a graph: along the edges from producers to consumers, never along the list of operators.

What is swallowed. A value is not written where every operator that reads it is in the group that
makes it, and nothing needs it after the run: the network does not return it, and it is not what
an input or a weight is left with. A pattern is
matched only where that holds for every value between its steps, unless it says that it keeps
them: then such a value is written as before and only not read again.

Order. Patterns with a product in them come first, then those with a reduction or a copy, then
element-wise ones; among each the longer match first, then the order of registration, then the
match that saves more bytes, then the names of its operators. So the order in which independent
operators are listed makes no difference.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlsys.mapping.fusion.pattern import Pattern
from mlsys.mapping.fusion.steps import PatternStep, elements_made, is_elementwise, kept_with_graph, size_of
from mlsys.workloads.graph import OperatorGraph

_LONGEST_ACTIVATION = 24  # operators; GELU written out takes eight


@dataclass(frozen=True)
class FusionGroup:
    """Operators that run as one kernel.

    Attributes
    ----------
    pattern
        Name of the pattern; empty for an operator on its own.
    members
        Their places in the graph, in the order in which they run.
    swallowed
        Places of the values that are not written any more.
    saved
        Bytes that the group moves less than its members one by one.
    """

    pattern: str
    members: tuple[int, ...]
    swallowed: tuple[int, ...] = ()
    saved: int = 0


@dataclass(frozen=True)
class GroupTraffic:
    """Traffic of a group: bytes of each value read and written, and of those that stay inside."""

    reads: dict[int, int]
    writes: dict[int, int]
    swallowed: tuple[int, ...]

    @property
    def moved(self) -> int:
        """All bytes that cross."""
        return sum(self.reads.values()) + sum(self.writes.values())


def traffic_of(graph: OperatorGraph, members: Sequence[int]) -> GroupTraffic:
    """Return the traffic of a group: its inputs and weights, read once each, and the outputs that others read.

    Two looks at different parts of a tensor add up, to no more than the tensor.
    """
    known: dict[tuple[int, ...], GroupTraffic] = vars(graph).setdefault("_traffic_of", {})
    group = tuple(members)
    if group not in known:
        known[group] = _traffic(graph, group)
    return known[group]


def _traffic(graph: OperatorGraph, members: tuple[int, ...]) -> GroupTraffic:
    inside = set(members)
    made = {value for member in members for value in graph.outputs_of[member]}
    swallowed = {value for value in made if len(members) > 1 and _is_swallowed(graph, value, inside)}
    views: dict[int, dict[int, int]] = {}
    for member in members:
        for access in graph.reads[member]:
            if access.value not in made:
                seen = views.setdefault(access.value, {})
                seen[access.view] = max(seen.get(access.view, 0), access.bytes)
    reads = {
        value: min(sum(seen.values()), max(graph.values[value].bytes, *seen.values())) for value, seen in views.items()
    }
    writes: dict[int, int] = {}
    for member in members:
        for access in graph.writes[member]:
            if access.value not in swallowed:
                writes[access.value] = writes.get(access.value, 0) + access.bytes
    return GroupTraffic(reads, writes, tuple(sorted(swallowed)))


def _is_swallowed(graph: OperatorGraph, index: int, inside: set[int]) -> bool:
    users = graph.values[index].consumers
    return index not in graph.lasting and bool(users) and inside.issuperset(users)


def find_groups(graph: OperatorGraph, patterns: Iterable[Pattern]) -> tuple[FusionGroup, ...]:
    """Partition the operators into fusion groups, listed in an executable order."""
    patterns = tuple(patterns)
    taken: set[int] = set()
    chosen: list[FusionGroup] = []
    for rank in (0, 1, 2):
        ranked = [(order, pattern) for order, pattern in enumerate(patterns) if pattern.rank == rank]
        grown = True
        while grown:
            grown = False
            for group in _candidates(graph, ranked, taken):
                if taken.isdisjoint(group.members):
                    taken.update(group.members)
                    chosen.append(group)
                    grown = True
    return _ordered(graph, chosen)


def _candidates(graph: OperatorGraph, patterns: list[tuple[int, Pattern]], taken: set[int]) -> list[FusionGroup]:
    """Return the matches of ``patterns`` among the operators that are free, best first."""
    keyed = []
    for order, pattern in patterns:
        for start in pattern.parsed[0].places(graph):
            if start in taken:
                continue
            members = _longest(graph, pattern, start, taken)
            if members:
                crossing = traffic_of(graph, members)
                saved = sum(_moved(graph, member) for member in members) - crossing.moved
                names = tuple(graph.operators[member].name for member in members)
                group = FusionGroup(pattern.name, members, crossing.swallowed, saved)
                keyed.append(((-len(members), order, -saved, names), group))
    return [group for key, group in sorted(keyed, key=lambda pair: pair[0]) if group.saved > 0]


@kept_with_graph
def _moved(graph: OperatorGraph, index: int) -> int:
    """Return the bytes that an operator moves by itself."""
    return sum(access.bytes for access in (*graph.reads[index], *graph.writes[index]))


def _longest(graph: OperatorGraph, pattern: Pattern, start: int, taken: set[int]) -> tuple[int, ...]:
    """Return the longest match that starts at an operator of the first kind (element-wise trees: that ends there)."""
    first = pattern.parsed[0]
    heads: list[tuple[int, ...]] = [(start,)]
    if first.repeated:
        heads = (
            [_tree(graph, start, taken)] if first.kind == "elementwise" else list(_repeated(graph, start, first, taken))
        )
    best: tuple[int, ...] = ()
    for head in heads:
        for members in _continued(graph, pattern, 1, head, taken):
            whole = tuple(sorted(members))
            if len(whole) > max(len(best), 1) and (pattern.fits is None or pattern.fits(graph, whole)):
                best = whole
    return best


def _repeated(graph: OperatorGraph, start: int, step: PatternStep, taken: set[int]) -> Iterator[tuple[int, ...]]:
    chain: tuple[int, ...] = (start,)
    while chain:
        yield chain
        following = [longer for longer in _next(graph, chain, step, taken, False) if len(longer) == len(chain) + 1]
        chain = following[0] if following else ()


def _continued(
    graph: OperatorGraph, pattern: Pattern, number: int, members: tuple[int, ...], taken: set[int]
) -> Iterator[tuple[int, ...]]:
    """Yield every way to go on from the operators that were found with the steps from ``number`` on."""
    if number == len(pattern.parsed):
        yield members
        return
    step = pattern.parsed[number]
    continuations = tuple(_next(graph, members, step, taken, pattern.keeps))
    for longer in continuations:
        if step.repeated:
            yield from _again(graph, pattern, number, longer, taken)
        yield from _continued(graph, pattern, number + 1, longer, taken)
    if step.optional:
        yield from _continued(graph, pattern, number + 1, members, taken)


def _again(
    graph: OperatorGraph, pattern: Pattern, number: int, members: tuple[int, ...], taken: set[int]
) -> Iterator[tuple[int, ...]]:
    for longer in _next(graph, members, pattern.parsed[number], taken, pattern.keeps):
        yield from _again(graph, pattern, number, longer, taken)
        yield from _continued(graph, pattern, number + 1, longer, taken)


def _next(
    graph: OperatorGraph, members: tuple[int, ...], step: PatternStep, taken: set[int], keeps: bool
) -> Iterator[tuple[int, ...]]:
    """Yield the members with the next step's: one operator, or for an activation as many as it is made of."""
    value = _handed_on(graph, members[-1])
    if value < 0 or (value in graph.lasting and not keeps):
        return
    if step.kind == "activation":
        for region in _functions(graph, value, taken):
            yield (*members, *region)
        return
    users = [user for user in graph.values[value].consumers if user not in taken and step.accepts(graph, user)]
    if len(users) != 1 or (len(graph.values[value].consumers) > 1 and not keeps):
        return
    if _reads_all(graph, users[0], value) and _keeps_size(graph, users[0], value):
        yield (*members, users[0])


@kept_with_graph
def _handed_on(graph: OperatorGraph, member: int) -> int:
    """Return the one value of an operator that anything needs, wholly written, or -1."""
    needed = [value for value in graph.outputs_of[member] if _is_needed(graph, value)]
    if len(needed) != 1:
        return -1
    written = sum(access.bytes for access in graph.writes[member] if access.value == needed[0])
    return needed[0] if written == graph.values[needed[0]].bytes else -1


def _reads_all(graph: OperatorGraph, user: int, value: int) -> bool:
    looks = [access.bytes for access in graph.reads[user] if access.value == value]
    return bool(looks) and all(size == graph.values[value].bytes for size in looks)


def _keeps_size(graph: OperatorGraph, user: int, value: int) -> bool:
    """Tell whether an element-wise operator makes as many elements as it reads: it does not spread them."""
    return not is_elementwise(graph, user) or elements_made(graph, user) == size_of(graph, value)


def _functions(graph: OperatorGraph, value: int, taken: set[int]) -> list[tuple[int, ...]]:
    """Return the sets of element-wise operators that compute a function of ``value`` alone, the longest first.

    Each set has one result, contains every reader of ``value`` and of its intermediates, and reads
    nothing else except scalars, or the weights of an activation such as PReLU.
    """
    live, seen = {value}, set[int]()
    region: list[int] = []
    regions: list[tuple[int, ...]] = []
    while len(region) < _LONGEST_ACTIVATION:
        users = {user for tensor in live for user in graph.values[tensor].consumers} - seen
        if not users or (user := min(users)) in taken or not _is_function(graph, user, value, seen):
            break
        region.append(user)
        seen.add(user)
        live.update(tensor for tensor in graph.outputs_of[user] if _is_needed(graph, tensor))
        live = {tensor for tensor in live if not _is_swallowed(graph, tensor, seen)}
        if live == {_handed_on(graph, user)}:
            regions.append(tuple(region))
    return regions[::-1]


@kept_with_graph
def _is_needed(graph: OperatorGraph, index: int) -> bool:
    return index in graph.lasting or bool(graph.values[index].consumers)


def _is_function(graph: OperatorGraph, user: int, value: int, seen: set[int]) -> bool:
    if not is_elementwise(graph, user) or not _keeps_size(graph, user, value) or _handed_on(graph, user) < 0:
        return False
    has_weights = graph.operators[user].kind == "activation"
    for operand in graph.inputs_of[user]:
        given = graph.values[operand]
        if operand == value or given.producer in seen:
            fine = _reads_all(graph, user, operand)
        else:
            fine = given.role in ("weight", "constant") and (has_weights or size_of(graph, operand) == 1)
        if not fine:
            return False
    return True


def _tree(graph: OperatorGraph, root: int, taken: set[int]) -> tuple[int, ...]:
    """Return the largest set of element-wise operators whose every result but the last stays inside.

    It is a tree that ends at ``root``, with as many leaves as there are, grown against the edges: an
    operator joins when all that read it have joined.
    """
    inside = {root}
    waiting = [-producer for producer in graph.producers(root)]
    heapq.heapify(waiting)
    while waiting:
        operator = -heapq.heappop(waiting)
        if operator in inside or operator in taken or not is_elementwise(graph, operator):
            continue
        value = _handed_on(graph, operator)
        if value < 0 or not _is_swallowed(graph, value, inside):
            continue
        users = graph.values[value].consumers
        if all(_reads_all(graph, user, value) and _keeps_size(graph, user, value) for user in users):
            inside.add(operator)
            for producer in graph.producers(operator):
                heapq.heappush(waiting, -producer)
    return tuple(sorted(inside))


def _ordered(graph: OperatorGraph, chosen: list[FusionGroup]) -> tuple[FusionGroup, ...]:
    """Return all groups, single operators among them, each after those it waits for.

    Where operators work in place, two groups may wait for each other; the one found last is then undone.
    """
    while True:
        taken = {member for group in chosen for member in group.members}
        groups = [*chosen, *(FusionGroup("", (index,)) for index in range(len(graph)) if index not in taken)]
        order = _topological(graph, groups)
        if len(order) == len(groups):
            return tuple(groups[number] for number in order)
        del chosen[max(number for number in _in_circles(graph, groups, order) if number < len(chosen))]


def _in_circles(graph: OperatorGraph, groups: Sequence[FusionGroup], order: Sequence[int]) -> set[int]:
    """Return the groups that wait for each other: of those without an order, the ones that others still wait for."""
    stuck = set(range(len(groups))) - set(order)
    home = {member: number for number in stuck for member in groups[number].members}
    while True:
        awaited = {
            home[other]
            for number in stuck
            for member in groups[number].members
            for other in graph.waits_for(member)
            if home.get(other, number) != number and home[other] in stuck
        }
        if awaited == stuck:
            return stuck
        stuck = awaited


def _topological(graph: OperatorGraph, groups: Sequence[FusionGroup]) -> list[int]:
    """Return the numbers of the groups in an order in which they can run, without those that cannot."""
    home = {member: number for number, group in enumerate(groups) for member in group.members}
    waits = [
        {home[other] for member in group.members for other in graph.waits_for(member)} - {number}
        for number, group in enumerate(groups)
    ]
    followers: list[list[int]] = [[] for _ in groups]
    for number, others in enumerate(waits):
        for other in others:
            followers[other].append(number)
    left = [len(others) for others in waits]
    ready = [(groups[number].members[-1], number) for number, count in enumerate(left) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for follower in followers[number]:
            left[follower] -= 1
            if not left[follower]:
                heapq.heappush(ready, (groups[follower].members[-1], follower))
    return order
