"""Branch and bound on a chain: partial placements layer by layer, with Lagrangian bounds for the caps.

A label is a placement of the first stages. It is pruned without loss for three reasons: a cap can no longer be met; its
bound, with every cap priced by a Lagrange multiplier, exceeds the worst of the placements that are kept; or enough
other labels on the same choice dominate it. A search that also drops labels for lack of room is a beam search, and the
least bound among those labels is a lower bound of all placements: so every answer has a gap, and a gap of zero is a
proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mlsys.deadline import Deadline
from mlsys.planner.placement.costs import Caps, Placed, price
from mlsys.planner.placement.layers import Layers, Steps, Weights, cap_prices
from mlsys.planner.placement.milp import solve_chain, solver_needs
from mlsys.planner.placement.scenario import Scenario

_NEAR = 1e-9
_DOMINATORS = 48
_NARROW = 4  # labels per stage once the time is up and there is no placement yet
_AT_ONCE = 200_000
_MOST_NUMBERS = 40_000_000  # numbers in all labels of one stage: 320 MB, and as much again during sorting


@dataclass(frozen=True)
class ChainSearchResult:
    """Result of a search.

    Attributes
    ----------
    best
        Placements with their scores, the best first.
    bound
        Lower bound of the score; infinite if it is proved that there is no placement.
    proven
        Whether these are proved to be the best, in this order.
    labels
        Number of partial placements visited.
    """

    best: tuple[tuple[Fraction, Placed], ...]
    bound: float
    proven: bool
    labels: int


def search_chain(
    scenario: Scenario,
    weights: Weights,
    caps: Caps,
    *,
    top: int = 1,
    most_labels: int = 1_000_000,
    width: int | None = None,
    steps: Steps | None = None,
    deadline: Deadline | None = None,
    any_will_do: bool = False,
    progress: Callable[[float, float], object] = lambda best, bound: None,
) -> ChainSearchResult:
    """Return the best placements of a chain.

    Parameters
    ----------
    scenario
        A pipeline: each stage reads the output of the one before.
    weights
        Weights of the objective.
    caps
        Upper limits.
    top
        Number of placements to return.
    most_labels
        Maximum number of labels per stage; beyond it the search is a beam search.
    width
        Width of a pure beam search.
    steps
        Precomputed steps of the scenario, shared by several searches.
    deadline
        Time limit, after which the best placements so far are returned; none by default.
    any_will_do
        Whether to stop at the first feasible placement, to decide feasibility.
    progress
        Called with the best score so far and the bound after each pass.

    Returns
    -------
    ChainSearchResult
    """
    layers = Layers(steps or Steps(scenario), weights, caps)
    prices, bound = cap_prices(layers, None if deadline is None else deadline.part(0.3))
    if math.isinf(bound) and bound > 0:
        return ChainSearchResult((), math.inf, True, 0)
    kept: tuple[tuple[Fraction, Placed], ...] = ()
    spent = 0
    columns = max(table.shape[1] for table in layers.steps)
    room = max(_MOST_NUMBERS // (columns * (1 + len(layers.names))), 64)
    widths = [width] if width is not None else [64, 2_000, 40_000, most_labels]
    sweeps = None if deadline is None else deadline.part(0.5)  # the rest is for the solver
    floor = -math.inf
    for number, size in enumerate(dict.fromkeys(min(each, most_labels, room) for each in widths)):
        if number and sweeps is not None and sweeps.passed:
            break
        ceiling = float(kept[-1][0]) if len(kept) >= top else math.inf
        finals, dropped, labels = _sweep(
            layers, prices, ceiling, max(size, 1), top, sweeps, first=not number and not any_will_do
        )
        spent += labels
        fresh = _verified(scenario, weights, caps, finals, top, deadline)
        kept = _merged(kept, fresh, top)
        worst = float(kept[-1][0]) if len(kept) >= top else math.inf
        if dropped > worst + _NEAR * abs(worst) or dropped == math.inf:
            return ChainSearchResult(kept, float(kept[0][0]) if kept else math.inf, True, spent)
        if kept and any_will_do:
            return ChainSearchResult(kept, bound, True, spent)
        floor = max(floor, dropped)
        progress(float(kept[0][0]) if kept else math.inf, max(bound, floor))
    best = float(kept[0][0]) if kept else math.inf
    if deadline is not None and width is None and deadline.remaining > solver_needs(layers):
        places, solved = solve_chain(layers, deadline)
        if places is None and solved == math.inf and not kept:
            return ChainSearchResult((), math.inf, True, spent)
        floor = max(floor, min(solved, best))
        if places is not None:
            kept = _merged(kept, _verified(scenario, weights, caps, [(0.0, places)], top), top)
            best = float(kept[0][0]) if kept else math.inf
        progress(best, max(bound, floor))
    return ChainSearchResult(kept, min(best, max(bound, min(floor, best))), False, spent)


def _merged(
    first: tuple[tuple[Fraction, Placed], ...], second: tuple[tuple[Fraction, Placed], ...], top: int
) -> tuple[tuple[Fraction, Placed], ...]:
    by_key = {placed.key: (score, placed) for score, placed in (*first, *second)}
    ranked = sorted(by_key.values(), key=lambda entry: (entry[0], entry[1].switches, entry[1].key))
    return tuple(ranked[:top])


def _verified(
    scenario: Scenario,
    weights: Weights,
    caps: Caps,
    finals: list[tuple[float, tuple[int, ...]]],
    top: int,
    deadline: Deadline | None = None,
) -> tuple[tuple[Fraction, Placed], ...]:
    """Return the best of the candidates, scored in exact decimals and checked against every cap."""
    verified: list[tuple[Fraction, Placed]] = []
    for score, places in finals:
        if deadline is not None and deadline.passed and verified:
            break
        if len(verified) >= top:
            worst = sorted(entry[0] for entry in verified)[top - 1]
            if score > float(worst) + _NEAR * abs(float(worst)):
                break
        choices = tuple(stage.choices[index] for stage, index in zip(scenario.stages, places, strict=True))
        placed = price(scenario, choices)
        if placed is not None and caps.allow(scenario, placed):
            verified.append((weights.score(placed), placed))
    return _merged((), tuple(verified), top)


def _sweep(
    layers: Layers, prices: np.ndarray, ceiling: float, width: int, top: int, deadline: Deadline | None = None,
    *, first: bool = False,
) -> tuple[list[tuple[float, tuple[int, ...]]], float, int]:  # fmt: skip
    """Return complete placements by score, the least bound among dropped labels, and the number of labels.

    After the deadline a sweep ends without an answer, except the first one, which continues in a narrow beam.
    """
    tails = layers.behind(np.r_[1.0, prices])
    plain = layers.behind(np.r_[1.0, np.zeros(len(prices))])
    least = layers.least_behind()
    offset = float(prices @ layers.caps)
    slack = layers.caps * (1 + _NEAR) + 1e-12
    limit = ceiling + _NEAR * abs(ceiling) + 1e-12
    use = np.zeros((1, 1 + len(prices)))
    at, switches_rank = np.zeros(1, np.int64), np.zeros(1, np.int64)
    history: list[tuple[np.ndarray, np.ndarray]] = []
    dropped, spent = math.inf, 0
    for number, table in enumerate(layers.steps):
        if deadline is not None and deadline.passed:
            if not first:
                return [], -math.inf, spent
            width = min(width, max(_NARROW, top))
        columns = table.shape[1]
        parent = np.repeat(np.arange(len(at)), columns)
        column = np.tile(np.arange(columns), len(at))
        now = use[parent] + table[at[parent], column]
        linked = np.isfinite(now[:, 0])
        spent += len(linked)
        parent, column, now = parent[linked], column[linked], now[linked]
        alive = np.all(now[:, 1:] + least[number][column] <= slack, axis=1)
        bound = np.maximum(now[:, 0] + plain[number][column], now @ np.r_[1.0, prices] + tails[number][column] - offset)
        alive &= bound <= limit
        chosen = np.flatnonzero(alive)
        rank = switches_rank[parent[chosen]] * columns + column[chosen]  # lexicographic order of the prefixes
        if len(chosen) > 4 * _DOMINATORS:
            keep = _undominated(now[chosen], column[chosen], bound[chosen], rank, top)
            chosen, rank = chosen[keep], rank[keep]
        if len(chosen) > width:
            order = np.lexsort((rank, bound[chosen]))
            dropped = min(dropped, float(bound[chosen[order[width]]]))
            chosen, rank = chosen[order[:width]], rank[order[:width]]
        if not len(chosen):
            return [], dropped, spent
        history.append((parent[chosen], column[chosen]))
        use, at = now[chosen], column[chosen]
        switches_rank = np.empty(len(chosen), np.int64)
        switches_rank[np.argsort(rank, kind="stable")] = np.arange(len(chosen))
    order = np.lexsort((switches_rank, use[:, 0]))
    finals = []
    for label in order[:50_000].tolist():
        score, picks = float(use[label, 0]), []
        for parents, picked in reversed(history):
            picks.append(int(picked[label]))
            label = int(parents[label])
        finals.append((score, tuple(reversed(picks))))
    return finals, dropped, spent


def _undominated(use: np.ndarray, at: np.ndarray, bound: np.ndarray, rank: np.ndarray, top: int) -> np.ndarray:
    """Return the indices of labels that fewer than `top` others on the same choice dominate."""
    keep = np.ones(len(at), bool)
    for choice in np.unique(at):
        members = np.flatnonzero(at == choice)
        if len(members) <= _DOMINATORS:
            continue
        strong = members[np.lexsort((rank[members], bound[members]))[:_DOMINATORS]]
        mine, other = use[members], use[strong]
        step = max(_AT_ONCE // mine.size, 1)  # compared in blocks, which is faster than one by one
        better = np.zeros(len(members), np.int64)
        for begin in range(0, len(strong), step):
            some = other[begin : begin + step, None]
            margin = _NEAR * (1 + np.abs(some[..., 0]))
            worse = (mine[:, 0] > some[..., 0] + margin) & np.all(mine[:, 1:] >= some[..., 1:], axis=2)
            better += worse.sum(axis=0)
        keep[members[better >= top]] = False
    return np.flatnonzero(keep)
