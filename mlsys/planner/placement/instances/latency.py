"""Annealing of the latency of one sample, compiled: every accelerator runs its operators as one block."""

from __future__ import annotations

import numpy as np
from numba import njit

from mlsys.planner.placement.instances.balance import move

__all__ = ["anneal_latency", "latest_end"]

_LARGE = 1e290


@njit(cache=True, nogil=True)
def latest_end(device, loads, cpu, after, consumers, waiting, ends, queue, first_of, next_of):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def anneal_latency(  # type: ignore[no-untyped-def]
    start,
    cpu,
    acc,
    size,
    transfer,
    memory,
    devices,
    after,
    consumers,
    before,
    producers,
    group,
    member_starts,
    members,
    near_starts,
    near,
    order,
    steps,
    hot,
    cold,
    weight,
    seed,
):
    """Return the best placement that fits, and the end of a sample (a huge number if none fits).

    `weight` is what a millisecond of load counts beside one of the end, so that the search has a slope where
    the longest path is not touched.
    """
    np.random.seed(seed)
    number = len(cpu)
    groups = len(member_starts) - 1
    device = np.zeros(number, np.int64)
    count = np.zeros((number, devices), np.int64)
    for node in range(number):
        count[node, 0] = after[node + 1] - after[node]
    loads = np.zeros(devices)
    held = np.zeros(devices)
    for node in range(number):
        if start[node]:
            move(node, start[node], device, count, loads, held, cpu, acc, size, transfer, before, producers, after)
    waiting = np.zeros(number + devices, np.int64)
    ends = np.zeros(number + devices)
    queue = np.zeros(number + devices, np.int64)
    first_of = np.zeros(devices, np.int64)
    next_of = np.zeros(number, np.int64)
    on = np.zeros(groups, np.int64)
    for one in range(groups):
        on[one] = device[members[member_starts[one]]]
    allowed = np.ones(groups, np.bool_)
    lowest = 0
    for node in range(number):
        if acc[node] > _LARGE:
            allowed[group[node]] = False
        if cpu[node] > _LARGE:
            lowest = 1
    rank = np.empty(groups, np.int64)
    for place in range(groups):
        rank[order[place]] = place
    best = device.copy()
    best_value = 1e308
    energy = 1e308
    moved = np.empty(groups, np.int64)
    came = np.empty(groups, np.int64)
    mark = np.zeros(groups, np.int64)
    for step in range(steps):
        if step & 0xFFF == 0:
            loads[:] = 0.0
            held[:] = 0.0
            for node in range(number):
                at = device[node]
                loads[at] += acc[node] if at else cpu[node]
                held[at] += size[node]
                total = after[node + 1] - after[node]
                if at and total > count[node, at]:
                    loads[at] += transfer[node]
                for there in range(1, devices):
                    if there != at and count[node, there]:
                        loads[there] += transfer[node]
            held[0] = 0.0
            energy = 1e308
        if step & 0xFFF:
            changes = 0
            kind = np.random.random()
            one = np.random.randint(groups)
            to = np.random.randint(lowest, devices)
            degree = near_starts[one + 1] - near_starts[one]
            if degree and np.random.random() < 0.7:
                to = on[near[near_starts[one] + np.random.randint(degree)]]
            if kind < 0.4:
                moved[0] = one
                changes = 1
            elif kind < 0.8:
                most = 2 << np.random.randint(0, 8)
                keep = 0.3 + 0.7 * np.random.random()
                way = np.random.randint(3)  # all round, only onward, only back
                moved[0] = one
                mark[one] = step + 1
                changes = 1
                place = 0
                while place < changes and changes < most:
                    this = moved[place]
                    for edge in range(near_starts[this], near_starts[this + 1]):
                        other = near[edge]
                        if (way == 1 and rank[other] < rank[this]) or (way == 2 and rank[other] > rank[this]):
                            continue
                        if (
                            changes < most
                            and mark[other] != step + 1
                            and on[other] == on[one]
                            and np.random.random() < keep
                        ):
                            mark[other] = step + 1
                            moved[changes] = other
                            changes += 1
                    place += 1
            elif kind < 0.9:  # a stretch of the order of running, of one device
                length = min(groups, 2 << np.random.randint(0, 8))
                first = np.random.randint(groups - length + 1)
                for place in range(length):
                    if on[order[first + place]] == on[one]:
                        moved[changes] = order[first + place]
                        changes += 1
            else:  # a stretch of whatever devices
                length = min(groups, 2 << np.random.randint(0, 8))
                first = np.random.randint(groups - length + 1)
                for place in range(length):
                    moved[place] = order[first + place]
                changes = length
            done = 0
            for place in range(changes):
                this = moved[place]
                if on[this] == to or (to and not allowed[this]):
                    continue
                moved[done] = this
                came[done] = on[this]
                for at in range(member_starts[this], member_starts[this + 1]):
                    move(
                        members[at], to, device, count, loads, held, cpu, acc, size, transfer, before, producers, after
                    )
                on[this] = to
                done += 1
            changes = done
            if not changes:
                continue
        else:
            changes = 0
        over = 0.0
        total_load = 0.0
        for place in range(1, devices):
            total_load += loads[place]
            if held[place] > memory:
                over += held[place] / memory - 1.0
        end = -1.0
        if over < 0.5 or changes == 0:
            end = latest_end(device, loads, cpu, after, consumers, waiting, ends, queue, first_of, next_of)
        then = 1e308
        if end >= 0.0:
            then = (end + weight * total_load) * (1.0 + 2.0 * over)
        temperature = max(1e-300, best_value if best_value < 1e300 else then) * hot * (cold / hot) ** (step / steps)
        if then <= energy or (then < 1e300 and np.random.random() < np.exp((energy - then) / temperature)):
            energy = then
            if end >= 0.0 and over == 0.0 and end < best_value - 1e-12:
                best_value = end
                best[:] = device
        else:
            for back in range(changes):
                place = changes - 1 - back
                this = moved[place]
                for at in range(member_starts[this], member_starts[this + 1]):
                    move(
                        members[at], came[place], device, count, loads, held, cpu, acc, size, transfer, before,
                        producers, after,
                    )  # fmt: skip
                on[this] = came[place]
    return best, best_value
