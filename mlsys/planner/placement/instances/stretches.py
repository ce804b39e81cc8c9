"""The best cut of an order of running into stretches, one an accelerator: where the annealing begins."""

import numpy as np

from mlsys.compiled import njit

_LARGE = 1e290


@njit(nogil=True)
def stretches(
    cpu: np.ndarray, acc: np.ndarray, size: np.ndarray, transfer: np.ndarray, memory: float, devices: int,
    after: np.ndarray, consumers: np.ndarray, before: np.ndarray, producers: np.ndarray, group: np.ndarray,
    member_starts: np.ndarray, members: np.ndarray, near_starts: np.ndarray, near: np.ndarray, order: np.ndarray,
    knots: np.ndarray, serial: bool,
) -> np.ndarray:  # fmt: skip
    """Return the best placement in which every accelerator holds one stretch of `order`, a knot whole.

    What no stretch covers runs on the CPU. With `serial` the sum of all loads is made least (the end of one
    sample if nothing ran side by side), else the largest load of an accelerator, and the CPU is left out where
    it can be.
    """
    number = len(cpu)
    groups = len(order)
    units = 0
    unit_start = np.zeros(groups + 1, np.int64)
    for index in range(groups):
        if index == 0 or knots[order[index]] != knots[order[index - 1]]:
            unit_start[units] = index
            units += 1
    unit_start[units] = groups
    best = np.full((devices, units + 1), 1e308)
    came = np.full((devices, units + 1), -2, np.int64)  # -1: the last unit is on the CPU, else where a stretch began
    best[0, 0] = 0.0
    inside = np.zeros(number, np.int64)
    fetched = np.zeros(number, np.int64)
    for first in range(units):
        # whatever ends at `first` is settled: let the unit run on the CPU, or a stretch begin here
        slow = 0.0
        for index in range(unit_start[first], unit_start[first + 1]):
            stage = order[index]
            for at in range(member_starts[stage], member_starts[stage + 1]):
                slow += cpu[members[at]]
        for used in range(devices):
            if best[used, first] > _LARGE:
                continue
            if serial or slow < _LARGE:
                then = best[used, first] + slow
                if then < best[used, first + 1]:
                    best[used, first + 1] = then
                    came[used, first + 1] = -1
        tag = first + 1
        load = 0.0
        held = 0.0
        for last in range(first, units):
            for index in range(unit_start[last], unit_start[last + 1]):
                stage = order[index]
                for at in range(member_starts[stage], member_starts[stage + 1]):
                    node = members[at]
                    if inside[node] != tag and fetched[node] == tag:
                        load -= transfer[node]
                        fetched[node] = 0
                    inside[node] = tag
                    load += acc[node]
                    held += size[node]
                    left = 0
                    for edge in range(after[node], after[node + 1]):
                        if inside[consumers[edge]] != tag:
                            left += 1
                    if left:
                        load += transfer[node]
                    for edge in range(before[node], before[node + 1]):
                        source = producers[edge]
                        if inside[source] == tag:
                            left = 0
                            for onward in range(after[source], after[source + 1]):
                                if inside[consumers[onward]] != tag:
                                    left += 1
                            if left == 0:
                                load -= transfer[source]
                        elif fetched[source] != tag:
                            fetched[source] = tag
                            load += transfer[source]
            if held > memory or load > _LARGE:
                break
            for used in range(devices - 1):
                if best[used, first] > _LARGE:
                    continue
                then = best[used, first] + load if serial else max(best[used, first], load)
                if then < best[used + 1, last + 1]:
                    best[used + 1, last + 1] = then
                    came[used + 1, last + 1] = first
    device = np.zeros(number, np.int64)
    used = 0
    for stage in range(devices):
        if best[stage, units] < best[used, units]:
            used = stage
    end = units
    while end > 0 and came[used, end] != -2:
        if came[used, end] == -1:
            end -= 1
            continue
        begin = came[used, end]
        for index in range(unit_start[begin], unit_start[end]):
            stage = order[index]
            for at in range(member_starts[stage], member_starts[stage + 1]):
                device[members[at]] = used
        end = begin
        used -= 1
    return device
