"""What no placement of an instance can beat."""

from __future__ import annotations

import numpy as np

from mlsys.planner.placement.instances.grouped import Grouped

__all__ = ["lower_bound"]

_LARGE = 1e290


def lower_bound(grouped: Grouped) -> float:
    """Return a value that no placement beats, ms.

    For the largest load: what is left after the CPU has taken the best share for it, spread evenly over the
    accelerators as if operators could be cut and carried for nothing; and the least time of every group by
    itself. For the latency: the longest path with every operator on the faster class and nothing carried.

    Parameters
    ----------
    grouped
        The instance as arrays.

    Returns
    -------
    float
        Never above the least objective.
    """
    return _load_bound(grouped) if grouped.instance.objective == "max_load" else _path_bound(grouped)


def _load_bound(grouped: Grouped) -> float:
    cpu = np.bincount(grouped.group, grouped.cpu, grouped.groups)
    acc = np.bincount(grouped.group, grouped.acc, grouped.groups)
    size = np.bincount(grouped.group, grouped.size, grouped.groups)
    acc[size > grouped.memory] = np.inf  # too large for any accelerator
    single = float(np.max(np.minimum(cpu, acc)))
    number = grouped.devices - 1
    if not number:
        return max(single, float(cpu.sum()))
    order = np.argsort(-np.minimum(acc, 1e12) / np.maximum(cpu, 1e-300), kind="stable")
    cpu, acc = cpu[order], acc[order]
    low, high = single, max(single, float(np.minimum(acc, 1e12).sum()))
    for _ in range(60):
        limit = (low + high) / 2
        taken = np.clip((limit - (np.cumsum(cpu) - cpu)) / np.maximum(cpu, 1e-300), 0.0, 1.0)
        left = float((np.where(acc > _LARGE, 1e12, acc) * (1 - taken)).sum())
        low, high = (low, limit) if left <= number * limit else (limit, high)
    return low * (1 - 1e-12)


def _path_bound(grouped: Grouped) -> float:
    instance = grouped.instance
    fastest = np.minimum(grouped.cpu, grouped.acc if grouped.devices > 1 else np.inf)
    before, producers = grouped.before
    after, consumers = grouped.after
    waiting = np.diff(before).copy()
    ready = np.flatnonzero(waiting == 0).tolist()
    ends = np.zeros(len(instance.ids))
    for one in ready:
        ends[one] = fastest[one] + ends[producers[before[one] : before[one + 1]]].max(initial=0.0)
        for later in consumers[after[one] : after[one + 1]].tolist():
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return float(ends.max(initial=0.0)) * (1 - 1e-12)
