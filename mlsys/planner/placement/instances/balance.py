"""The largest load of an assignment, compiled: kept with every move, and groups moved so that it falls."""

import numpy as np

from mlsys.compiled import njit


@njit(nogil=True)
def move(node: int, to: int, state: tuple[np.ndarray, ...], work: tuple[np.ndarray, ...]) -> None:
    """Move one operator and keep the loads: `count[u, d]` consumers of u are on d."""
    device, count, loads, held = state
    cpu, acc, size, transfer, before, producers, after = work
    here = device[node]
    total = after[node + 1] - after[node]
    cost = transfer[node]
    if here:
        loads[here] -= acc[node]
        held[here] -= size[node]
        if total > count[node, here]:
            loads[here] -= cost
        if count[node, here]:
            loads[here] += cost  # its consumers there must fetch it from now on
    else:
        loads[0] -= cpu[node]
    if to:
        loads[to] += acc[node]
        held[to] += size[node]
        if total > count[node, to]:
            loads[to] += cost
        if count[node, to]:
            loads[to] -= cost
    else:
        loads[0] += cpu[node]
    device[node] = to
    for edge in range(before[node], before[node + 1]):
        source = producers[edge]
        at = device[source]
        fee = transfer[source]
        outside = after[source + 1] - after[source] - count[source, at]
        count[source, here] -= 1
        count[source, to] += 1
        if at:
            left = after[source + 1] - after[source] - count[source, at]
            if outside == 0 and left > 0:
                loads[at] += fee
            elif outside > 0 and left == 0:
                loads[at] -= fee
        if here and here != at and count[source, here] == 0:
            loads[here] -= fee
        if to and to != at and count[source, to] == 1:
            loads[to] += fee


@njit(nogil=True)
def recount(state: tuple[np.ndarray, ...], work: tuple[np.ndarray, ...]) -> None:
    """Sum loads and bytes anew, because sums drift by a hair with every move."""
    device, count, loads, held = state
    cpu, acc, size, transfer, _, _, after = work
    loads[:] = 0.0
    held[:] = 0.0
    for node in range(len(device)):
        at = device[node]
        loads[at] += acc[node] if at else cpu[node]
        held[at] += size[node]
        total = after[node + 1] - after[node]
        if at and total > count[node, at]:
            loads[at] += transfer[node]
        for there in range(1, len(loads)):
            if there != at and count[node, there]:
                loads[there] += transfer[node]
    held[0] = 0.0


@njit(nogil=True)
def soft_maximum(loads: np.ndarray, held: np.ndarray, memory: float, sharp: float) -> float:
    """Return a soft maximum of the loads (a norm), and more where memory overflows."""
    top = 0.0
    for load in loads:
        top = max(top, load)
    if top <= 0.0:
        return 0.0
    total = 0.0
    for load in loads:
        share = load / top
        if share > 0.0:
            total += share**sharp
    over = 0.0
    for accelerator in range(1, len(held)):
        if held[accelerator] > memory:
            over += held[accelerator] / memory - 1.0
    value: float = top * total ** (1.0 / sharp) * (1.0 + 2.0 * over)
    return value


@njit(nogil=True)
def gather(
    start: int, most: int, keep: float, way: int, stamp: int, on: np.ndarray, rank: np.ndarray,
    near_starts: np.ndarray, near: np.ndarray, moved: np.ndarray, mark: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``moved`` with a group and neighbours of its device; return how many.

    ``keep`` is the chance of each neighbour; ``way`` is 0 for all round, 1 only onward and 2 only back in
    the order of running.
    """
    moved[0] = start
    mark[start] = stamp
    count, reached = 1, 0
    while reached < count and count < most:
        this = moved[reached]
        for edge in range(near_starts[this], near_starts[this + 1]):
            other = near[edge]
            if (way == 1 and rank[other] < rank[this]) or (way == 2 and rank[other] > rank[this]):
                continue
            if count < most and mark[other] != stamp and on[other] == on[start] and np.random.random() < keep:
                mark[other] = stamp
                moved[count] = other
                count += 1
        reached += 1
    return count


@njit(nogil=True)
def change_loads(
    stamp: int, lowest: int, loads: np.ndarray, allowed: np.ndarray, on: np.ndarray, order: np.ndarray,
    rank: np.ndarray, near_starts: np.ndarray, near: np.ndarray, moved: np.ndarray, goals: np.ndarray,
    mark: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``moved`` and ``goals`` with groups and where each goes; return how many."""
    groups, devices = len(on), len(loads)
    kind = np.random.random()
    start = np.random.randint(groups)
    if kind < 0.3:  # from the fullest device
        fullest = np.argmax(loads)
        for _ in range(6):
            if on[start] == fullest:
                break
            start = np.random.randint(groups)
    goal = np.random.randint(lowest, devices)
    degree = near_starts[start + 1] - near_starts[start]
    if degree and np.random.random() < 0.6:
        goal = on[near[near_starts[start] + np.random.randint(degree)]]
    if 0.55 <= kind < 0.75:  # two change places
        other = np.random.randint(groups)
        if on[other] == on[start] or not (allowed[start] and allowed[other]):
            return 0
        moved[0], moved[1] = start, other
        goals[0], goals[1] = on[other], on[start]
        return 2
    if kind < 0.55:
        moved[0] = start
        count = 1
    elif kind < 0.96:  # one with neighbours of the same device
        most = 2 << np.random.randint(0, 7)
        keep = 0.3 + 0.7 * np.random.random()
        count = gather(start, most, keep, 0, stamp, on, rank, near_starts, near, moved, mark)
    else:  # a stretch of the order of running
        count = min(groups, 2 << np.random.randint(0, 6))
        first = np.random.randint(groups - count + 1)
        moved[:count] = order[first : first + count]
    goals[:count] = goal
    return count
