"""A pipeline as a mixed-integer program, for instances that the label search cannot finish.

A binary variable selects a choice of a stage, a flow a step between two choices. With integral binaries the flows are
integral too, so branching is on binaries only.
"""

import math

import numpy as np

from mlsys.deadline import Deadline
from mlsys.planner.placement.layers import Layers

_TOLERANCE = 1e-6  # feasibility tolerance of HiGHS
_NEEDED, _NEEDED_BY_FLOW = 1.0, 2e-5  # seconds of setup and presolve, during which HiGHS ignores its time limit


def solver_needs(layers: Layers) -> float:
    """Return the least remaining seconds for which the solver is worth starting."""
    return _NEEDED + 2 * _NEEDED_BY_FLOW * _flows(layers)


def _flows(layers: Layers) -> int:
    return sum(table.shape[0] * table.shape[1] for table in layers.steps)


def solve_chain(
    layers: Layers, deadline: Deadline, *, bottleneck: bool = False
) -> tuple[tuple[int, ...] | None, float]:
    """Return the choices of a good placement, or None, and a lower bound of the score.

    Parameters
    ----------
    layers
        The pipeline; with ``bottleneck``, its caps named ``busy_ms`` are minimised instead of being limits.
    deadline
        Time limit of the solver; a bound found by then is valid.
    bottleneck
        Whether to minimise the time of the busiest device instead of the score.

    Returns
    -------
    tuple
        Indices of the choices and the bound, which is infinite if no placement exists.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix

    sizes = [table.shape[1] for table in layers.steps]
    first = np.concatenate(([0], np.cumsum(sizes)))  # index of each stage's first binary
    binaries = int(first[-1])
    parts = [np.argwhere(np.isfinite(table[..., 0])) for table in layers.steps]
    flows = sum(map(len, parts))
    width = binaries + flows + 1  # the last variable is the bottleneck
    uses = np.concatenate([table[tuple(part.T)] for table, part in zip(layers.steps, parts, strict=True)])
    rows, columns, values, low, high = [], [], [], [], []
    count = 0

    def add(variables: np.ndarray, amounts: np.ndarray, least: float, most: float) -> None:
        nonlocal count
        rows.append(np.full(len(variables), count))
        columns.append(variables)
        values.append(amounts)
        low.append(least)
        high.append(most)
        count += 1

    begin = binaries
    for stage, part in enumerate(parts):
        flow = begin + np.arange(len(part))
        begin += len(part)
        for choice in range(sizes[stage]):  # the flow into a choice equals its binary
            into = flow[part[:, 1] == choice]
            add(np.r_[into, first[stage] + choice], np.r_[np.ones(len(into)), -1.0], 0.0, 0.0)
        for choice in range(sizes[stage - 1]) if stage else ():  # and so does the flow out of it
            out = flow[part[:, 0] == choice]
            add(np.r_[out, first[stage - 1] + choice], np.r_[np.ones(len(out)), -1.0], 0.0, 0.0)
        add(np.arange(first[stage], first[stage + 1]), np.ones(sizes[stage]), 1.0, 1.0)
    every = binaries + np.arange(flows)
    for index, (name, cap) in enumerate(zip(layers.names, layers.caps, strict=True), start=1):
        used = np.flatnonzero(uses[:, index])
        if bottleneck and name.startswith("busy_ms"):
            add(np.r_[every[used], width - 1], np.r_[uses[used, index], -1.0], -np.inf, 0.0)
        elif len(used):
            scale = max(float(uses[used, index].max()), 1e-12)
            add(every[used], uses[used, index] / scale, -np.inf, float(cap) / scale)
    cost = np.zeros(width)
    if bottleneck:
        cost[-1] = 1.0
    else:
        cost[binaries:-1] = uses[:, 0]
    scale = max(float(np.abs(cost).max()), 1e-300)
    matrix = coo_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(count, width)
    ).tocsr()
    answer = milp(
        cost / scale,
        constraints=LinearConstraint(matrix, np.array(low), np.array(high)),
        integrality=np.r_[np.ones(binaries), np.zeros(flows + 1)],
        bounds=Bounds(np.zeros(width), np.r_[np.ones(binaries + flows), np.inf]),
        options={"time_limit": max(deadline.remaining - _NEEDED_BY_FLOW * flows, 0.1), "mip_rel_gap": 1e-9},
    )
    if answer.status == 2:
        return None, math.inf
    dual = getattr(answer, "mip_dual_bound", None)
    bound = -math.inf if dual is None or not math.isfinite(dual) else float(dual) * scale
    bound -= _TOLERANCE * abs(bound)
    if answer.x is None:
        return None, bound
    places = tuple(int(np.argmax(answer.x[first[s] : first[s + 1]])) for s in range(len(sizes)))
    return places, bound
