"""The end of one sample, compiled: every accelerator runs its operators as one block."""

import numpy as np

from mlsys.compiled import njit
from mlsys.planner.placement.instances.balance import gather


@njit(nogil=True)
def latest_end(
    device: np.ndarray, loads: np.ndarray, cpu: np.ndarray, after: np.ndarray, consumers: np.ndarray,
    waiting: np.ndarray, ends: np.ndarray, queue: np.ndarray, first_of: np.ndarray, next_of: np.ndarray,
) -> float:  # fmt: skip
    """Return the end of one sample, or -1 if blocks wait for each other in a circle.

    Units are the operators on a CPU, and the blocks after them; `waiting`, `ends` (units), `queue` (units),
    `first_of` (devices) and `next_of` (operators) are room to work in.
    """
    number = len(device)
    devices = len(loads)
    first_of[:] = -1
    for unit in range(number + devices):
        waiting[unit] = 0
        ends[unit] = 0.0
    units = 0
    for node in range(number - 1, -1, -1):
        at = device[node]
        if at:
            if first_of[at] < 0:
                units += 1
            next_of[node] = first_of[at]
            first_of[at] = node
        else:
            units += 1
    for node in range(number):
        at = device[node]
        for edge in range(after[node], after[node + 1]):
            other = consumers[edge]
            there = device[other]
            if there == 0:
                waiting[other] += 1
            elif there != at:
                waiting[number + there] += 1
    head = 0
    tail = 0
    for node in range(number):
        if device[node] == 0 and waiting[node] == 0:
            queue[tail] = node
            tail += 1
    for at in range(1, devices):
        if first_of[at] >= 0 and waiting[number + at] == 0:
            queue[tail] = number + at
            tail += 1
    last = 0.0
    while head < tail:
        unit = queue[head]
        head += 1
        if unit < number:
            end = ends[unit] + cpu[unit]
            node = unit
        else:
            end = ends[unit] + loads[unit - number]
            node = first_of[unit - number]
        last = max(last, end)
        while node >= 0:
            at = device[node]
            for edge in range(after[node], after[node + 1]):
                other = consumers[edge]
                there = device[other]
                target = other
                if there:
                    if there == at:
                        continue
                    target = number + there
                ends[target] = max(ends[target], end)
                waiting[target] -= 1
                if waiting[target] == 0:
                    queue[tail] = target
                    tail += 1
            node = next_of[node] if at else -1
    return last if tail == units else -1.0


@njit(nogil=True)
def change_path(
    stamp: int, lowest: int, devices: int, on: np.ndarray, order: np.ndarray, rank: np.ndarray,
    near_starts: np.ndarray, near: np.ndarray, moved: np.ndarray, goals: np.ndarray, mark: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``moved`` and ``goals`` with groups and where they go; return how many."""
    groups = len(on)
    kind = np.random.random()
    start = np.random.randint(groups)
    goal = np.random.randint(lowest, devices)
    degree = near_starts[start + 1] - near_starts[start]
    if degree and np.random.random() < 0.7:
        goal = on[near[near_starts[start] + np.random.randint(degree)]]
    count = 0
    if kind < 0.4:
        moved[0] = start
        count = 1
    elif kind < 0.8:
        most = 2 << np.random.randint(0, 8)
        keep = 0.3 + 0.7 * np.random.random()
        way = np.random.randint(3)
        count = gather(start, most, keep, way, stamp, on, rank, near_starts, near, moved, mark)
    else:  # a stretch of the order of running: of one device, or of whatever devices
        length = min(groups, 2 << np.random.randint(0, 8))
        first = np.random.randint(groups - length + 1)
        for group in order[first : first + length]:
            if kind >= 0.9 or on[group] == on[start]:
                moved[count] = group
                count += 1
    goals[:count] = goal
    return count
