"""Annealing of the largest load, compiled: groups of operators move between devices, alone or with neighbours."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["anneal_load", "move"]

_LARGE = 1e290


@njit(cache=True, nogil=True)
def move(node, to, device, count, loads, held, cpu, acc, size, transfer, before, producers, after):  # type: ignore[no-untyped-def]
    """Move one operator and keep the loads: `count[u, d]` consumers of u are on d."""
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


@njit(cache=True, nogil=True)
def _energy(loads, held, memory, sharp):  # type: ignore[no-untyped-def]
    """Return a soft maximum of the loads (a norm), and more where memory overflows."""
    top = 0.0
    for one in loads:
        top = max(top, one)
    if top <= 0.0:
        return 0.0
    total = 0.0
    for one in loads:
        share = one / top
        if share > 0.0:
            total += share**sharp
    over = 0.0
    for place in range(1, len(held)):
        if held[place] > memory:
            over += held[place] / memory - 1.0
    return top * total ** (1.0 / sharp) * (1.0 + 2.0 * over)


@njit(cache=True, nogil=True)
def anneal_load(  # type: ignore[no-untyped-def]
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
    sharp,
    seed,
):
    """Return the best placement that fits, and its largest load (a huge number if none fits).

    `hot` and `cold` are temperatures as shares of the largest load; `sharp` is the exponent of the norm.
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
        loads[0] += cpu[node]
    for node in range(number):
        if start[node]:
            move(node, start[node], device, count, loads, held, cpu, acc, size, transfer, before, producers, after)
    on = np.zeros(groups, np.int64)
    for one in range(groups):
        on[one] = device[members[member_starts[one]]]
    allowed = np.ones(groups, np.bool_)
    for node in range(number):
        if acc[node] > _LARGE:
            allowed[group[node]] = False
    best = device.copy()
    best_value = 1e308
    energy = _energy(loads, held, memory, sharp)
    moved = np.empty(groups, np.int64)
    came = np.empty(groups, np.int64)
    mark = np.zeros(groups, np.int64)
    lowest = 0
    for node in range(number):
        if cpu[node] > _LARGE:
            lowest = 1
    for step in range(steps):
        if step & 0xFFF == 0:  # sums drift by a hair with every move: begin anew
            fresh = device.copy()
            loads[:] = 0.0
            held[:] = 0.0
            for node in range(number):
                at = fresh[node]
                loads[at] += acc[node] if at else cpu[node]
                held[at] += size[node]
                total = after[node + 1] - after[node]
                if at and total > count[node, at]:
                    loads[at] += transfer[node]
                for there in range(1, devices):
                    if there != at and count[node, there]:
                        loads[there] += transfer[node]
            held[0] = 0.0
            energy = _energy(loads, held, memory, sharp)
        temperature = energy * hot * (cold / hot) ** (step / steps)
        changes = 0
        kind = np.random.random()
        one = np.random.randint(groups)
        if kind < 0.3:  # from the fullest device
            fullest = np.argmax(loads)
            for _ in range(6):
                if on[one] == fullest:
                    break
                one = np.random.randint(groups)
        to = np.random.randint(lowest, devices)
        degree = near_starts[one + 1] - near_starts[one]
        if degree and np.random.random() < 0.6:
            to = on[near[near_starts[one] + np.random.randint(degree)]]
        if kind < 0.55:
            moved[0] = one
            changes = 1
        elif kind < 0.75:  # two change places
            other = np.random.randint(groups)
            if on[other] == on[one] or not (allowed[one] and allowed[other]):
                continue
            moved[0] = one
            moved[1] = other
            changes = 2
        elif kind < 0.96:  # one with neighbours of the same device
            most = 2 << np.random.randint(0, 7)
            keep = 0.3 + 0.7 * np.random.random()
            moved[0] = one
            mark[one] = step + 1
            changes = 1
            place = 0
            while place < changes and changes < most:
                this = moved[place]
                for edge in range(near_starts[this], near_starts[this + 1]):
                    other = near[edge]
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
        else:  # a stretch of the order of running
            length = min(groups, 2 << np.random.randint(0, 6))
            first = np.random.randint(groups - length + 1)
            for place in range(length):
                moved[place] = order[first + place]
            changes = length
        if kind >= 0.55 and kind < 0.75:
            came[0] = on[moved[0]]
            came[1] = on[moved[1]]
            for place in range(2):
                target = came[1 - place]
                this = moved[place]
                for at in range(member_starts[this], member_starts[this + 1]):
                    move(
                        members[at],
                        target,
                        device,
                        count,
                        loads,
                        held,
                        cpu,
                        acc,
                        size,
                        transfer,
                        before,
                        producers,
                        after,
                    )
                on[this] = target
        else:
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
        then = _energy(loads, held, memory, sharp)
        if then <= energy or np.random.random() < np.exp((energy - then) / temperature):
            energy = then
            top = 0.0
            for load in loads:
                top = max(top, load)
            if top < best_value - 1e-12:
                fits = True
                for place in range(1, devices):
                    if held[place] > memory:
                        fits = False
                if fits:
                    best_value = top
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
