"""Annealing of an assignment to devices, compiled: one loop for the largest load and for the end of a sample."""

import numpy as np

from mlsys.compiled import njit
from mlsys.planner.placement.instances.balance import change_loads, move, recount, soft_maximum
from mlsys.planner.placement.instances.latency import change_path, latest_end

_LARGE = 1e290
_FAR = 1e300
_NONE = 1e308


@njit(nogil=True)
def anneal(
    serial: bool, start: np.ndarray, cpu: np.ndarray, acc: np.ndarray, size: np.ndarray, transfer: np.ndarray,
    memory: float, devices: int, after: np.ndarray, consumers: np.ndarray, before: np.ndarray, producers: np.ndarray,
    group: np.ndarray, member_starts: np.ndarray, members: np.ndarray, near_starts: np.ndarray, near: np.ndarray,
    order: np.ndarray, steps: int, hot: float, cold: float, shape: float, seed: int,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Return the best placement that fits, and its value, a huge number if none fits.

    The value is the largest load, or, if ``serial``, the end of one sample. ``hot`` and ``cold`` are temperatures as
    shares of it. ``shape`` is the exponent of the norm that stands for the largest load; or what a millisecond of
    load counts beside one of the end, so that the search has a slope where the longest path is not touched.
    """
    np.random.seed(seed)
    number, groups = len(cpu), len(member_starts) - 1
    work = (cpu, acc, size, transfer, before, producers, after)
    device = np.zeros(number, np.int64)
    count = np.zeros((number, devices), np.int64)
    loads, held = np.zeros(devices), np.zeros(devices)
    state = (device, count, loads, held)
    for node in range(number):
        count[node, 0] = after[node + 1] - after[node]
        loads[0] += cpu[node]
    for node in range(number):
        if start[node]:
            move(node, start[node], state, work)
    on, rank = np.empty(groups, np.int64), np.empty(groups, np.int64)
    for index in range(groups):
        on[index] = device[members[member_starts[index]]]
        rank[order[index]] = index
    allowed = np.ones(groups, np.bool_)
    lowest = 0
    for node in range(number):
        if acc[node] > _LARGE:
            allowed[group[node]] = False
        if cpu[node] > _LARGE:
            lowest = 1
    moved, goals, came = np.empty(groups, np.int64), np.empty(groups, np.int64), np.empty(groups, np.int64)
    mark = np.zeros(groups, np.int64)
    waiting, ends = np.zeros(number + devices, np.int64), np.zeros(number + devices)
    queue = np.zeros(number + devices, np.int64)
    first_of, next_of = np.zeros(devices, np.int64), np.zeros(number, np.int64)
    best, best_value, energy = device.copy(), _NONE, _NONE
    for step in range(steps):
        afresh = step & 0xFFF == 0
        if afresh:
            recount(state, work)
            energy = _NONE if serial else soft_maximum(loads, held, memory, shape)
        changes = 0
        if not serial:
            changes = change_loads(
                step + 1, lowest, loads, allowed, on, order, rank, near_starts, near, moved, goals, mark
            )
        elif not afresh:
            changes = change_path(step + 1, lowest, devices, on, order, rank, near_starts, near, moved, goals, mark)
        done = 0
        for index in range(changes):
            this, goal = moved[index], goals[index]
            if on[this] == goal or (goal and not allowed[this]):
                continue
            moved[done], came[done] = this, on[this]
            for member in members[member_starts[this] : member_starts[this + 1]]:
                move(member, goal, state, work)
            on[this] = goal
            done += 1
        if not done and not (serial and afresh):
            continue
        over = 0.0
        for accelerator in range(1, devices):
            if held[accelerator] > memory:
                over += held[accelerator] / memory - 1.0
        end, scale = -1.0, energy
        if serial:
            if over < 0.5 or not done:
                end = latest_end(device, loads, cpu, after, consumers, waiting, ends, queue, first_of, next_of)
            then = (end + shape * loads[1:].sum()) * (1.0 + 2.0 * over) if end >= 0.0 else _NONE
            scale = best_value if best_value < _FAR else then
        else:
            then = soft_maximum(loads, held, memory, shape)
        temperature = max(1e-300, scale) * hot * (cold / hot) ** (step / steps)
        likely = not serial or then < _FAR
        if then <= energy or (likely and np.random.random() < np.exp((energy - then) / temperature)):
            energy = then
            value = end if serial else loads.max()
            if over == 0.0 and value >= 0.0 and value < best_value - 1e-12:
                best_value = value
                best[:] = device
        else:
            for back in range(done - 1, -1, -1):
                this = moved[back]
                for member in members[member_starts[this] : member_starts[this + 1]]:
                    move(member, came[back], state, work)
                on[this] = came[back]
    return best, best_value
