"""What no placement of an instance can beat."""

import math

import numpy as np

from mlsys.planner.placement.instances.grouped import Grouped

_LARGE = 1e290
_SURE = 1 - 1e-12  # of a bound is kept, and of a need for memory: sums are rounded


def lower_bound(grouped: Grouped) -> float:
    """Return a value that no placement beats, ms; infinite if it is certain that none is allowed.

    For the largest load: what is left after the CPU has taken the best share for it, spread evenly over the
    accelerators as if operators could be cut and carried for nothing; what the CPU must take because it does not
    fit on the accelerators; and the least time of every group by itself. For the latency: the longest path with
    every operator on the faster class that may hold it and nothing carried.

    Parameters
    ----------
    grouped
        The instance as arrays.

    Returns
    -------
    float
        Never above the least objective.
    """
    cpu = np.bincount(grouped.group, grouped.cpu, grouped.groups)
    acc = np.bincount(grouped.group, grouped.acc, grouped.groups)
    size = np.bincount(grouped.group, grouped.size, grouped.groups)
    number = grouped.devices - 1
    accelerated = (acc < _LARGE) & (number > 0)
    freed = (cpu < _LARGE) & (cpu > 0)
    if not ((cpu < _LARGE) | accelerated).all():
        return math.inf  # a group may run nowhere
    too_much = float(size[accelerated].sum()) * _SURE - number * grouped.memory
    too_much -= float(size[accelerated & (cpu == 0)].sum())
    if too_much > float(size[accelerated & freed].sum()):
        return math.inf  # without a CPU all must fit on the accelerators
    if grouped.instance.objective == "latency":
        return _path_bound(grouped)
    either = accelerated & freed
    forced = float(cpu[~accelerated].sum())
    single = float(np.where(accelerated, np.minimum(cpu, acc), cpu).max())
    crowded = forced + _least_cost(cpu[either], size[either], too_much)
    kept = float(acc[accelerated & (cpu > _LARGE)].sum())
    return max(single, crowded, _even_load(forced, kept, cpu[either], acc[either], number)) * _SURE


def _least_cost(cost: np.ndarray, worth: np.ndarray, need: float) -> float:
    """Return the least cost of parts whose worth adds up to a need; costs are positive."""
    cost, worth = cost[worth > 0], worth[worth > 0]
    order = np.argsort(np.log(cost) - np.log(worth), kind="stable")
    spent = 0.0
    for stage in order:
        if need <= 0:
            break
        spent += float(cost[stage]) * min(1.0, need / float(worth[stage]))
        need -= float(worth[stage])
    return spent


def _even_load(load: float, left: float, cpu: np.ndarray, acc: np.ndarray, number: int) -> float:
    """Return the least load to which the CPU and a number of accelerators can be brought by cutting groups.

    The CPU begins with ``load``; ``left`` and what it does not take of the groups is spread over the accelerators.
    It takes first what spares them most, until its load is theirs.
    """
    cpu, acc = cpu[acc > 0], acc[acc > 0]
    left += float(acc.sum())
    for stage in np.argsort(np.log(cpu) - np.log(acc), kind="stable"):
        if left <= number * load:
            return load
        slow, fast = float(cpu[stage]), float(acc[stage])
        share = (left - number * load) / (number * slow + fast)
        if share <= 1.0:
            return load + share * slow
        load, left = load + slow, left - fast
    return max(load, left / number if number else 0.0)


def _path_bound(grouped: Grouped) -> float:
    instance = grouped.instance
    fastest = np.minimum(grouped.cpu, grouped.acc) if grouped.devices > 1 else grouped.cpu
    before, producers = grouped.before
    after, consumers = grouped.after
    waiting = np.diff(before).copy()
    ready = np.flatnonzero(waiting == 0).tolist()
    ends = np.zeros(len(instance.ids))
    for stage in ready:
        ends[stage] = fastest[stage] + ends[producers[before[stage] : before[stage + 1]]].max(initial=0.0)
        for later in consumers[after[stage] : after[stage + 1]].tolist():
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return float(ends.max(initial=0.0)) * _SURE
