"""Search of a chain: partial placements layer by layer, under bounds that know the caps.

A label is a placement of the first stages. It may be dropped for three reasons that lose nothing: a cap is
already out of reach; its bound, with every cap priced by a multiplier (Lagrange), is above the worst of the
placements that are kept; or enough others on the same choice are no worse in everything. A search that drops
labels for want of room is a beam search, and the least bound among them is what no placement can beat: so
every answer comes with its gap, and one without a gap is proven.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mlsys.planner.placement.costs import Caps, Placed, price
from mlsys.planner.placement.scenario import Scenario

_NEAR = 1e-9
_DOMINATORS = 48
_SMALL = 20_000


@dataclass(frozen=True)
class Weights:
    """What counts: score = latency × ms + energy × mJ + switch × changes of device."""

    latency: Fraction
    energy: Fraction
    switch: Fraction = Fraction(0)

    def score(self, placed: Placed) -> Fraction:
        """Return the score of a placement, lower is better."""
        return self.latency * placed.latency + self.energy * placed.energy + self.switch * placed.switches


@dataclass(frozen=True)
class Found:
    """The best placements of a search.

    Attributes
    ----------
    best
        Placements with their scores, the best first.
    bound
        A score that no placement beats; infinite if it is proved that there is none.
    proven
        Whether these are the best, all of them, in this order.
    labels
        Partial placements that were looked at.
    """

    best: tuple[tuple[Fraction, Placed], ...]
    bound: float
    proven: bool
    labels: int


class _Layers:
    """The chain as arrays: for each stage its choices, and what a step from one choice to the next uses.

    A use is the score, then each capped resource: latency, energy, loss of accuracy, memory and heat by device.
    """

    def __init__(self, scenario: Scenario, weights: Weights, caps: Caps) -> None:
        self.stages = [stage.choices for stage in scenario.stages]
        self.caps = np.array([float(cap) for _, cap in caps.entries])
        self.names = [name for name, _ in caps.entries]
        self.steps: list[np.ndarray] = []  # (choices before, choices, uses)
        for number, stage in enumerate(scenario.stages):
            before = scenario.stages[number - 1].choices if number else (None,)
            table = np.empty((len(before), len(stage.choices), 1 + len(self.names)))
            for row, earlier in enumerate(before):
                for column, choice in enumerate(stage.choices):
                    use = caps.step(scenario, earlier, choice)
                    table[row, column] = np.inf if use is None else self._uses(use, choice.device, weights)
            self.steps.append(table)

    def _uses(self, use: dict[str, Fraction], device: str, weights: Weights) -> list[float]:
        score = (
            weights.latency * use["latency_ms"] + weights.energy * use["energy_mj"] + weights.switch * use["switches"]
        )
        return [float(score), *(float(use.get(name, 0)) for name in self.names)]

    def behind(self, multipliers: np.ndarray) -> list[np.ndarray]:
        """Return, for each stage and choice, the least priced use of all stages behind it."""
        tails = [np.zeros(self.steps[-1].shape[1])]
        for table in reversed(self.steps[1:]):
            priced = _priced(table, multipliers)
            tails.append((priced + tails[-1]).min(axis=1))
        return tails[::-1]

    def relaxed(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the least priced use of a whole chain, and what that chain uses of each resource."""
        tails = self.behind(multipliers)
        use, row = np.zeros(1 + len(self.names)), 0
        total = math.inf
        for number, table in enumerate(self.steps):
            priced = _priced(table[row], multipliers) + tails[number]
            column = int(np.argmin(priced))
            if not number:
                total = float(priced[column])
            if not math.isfinite(priced[column]):
                return math.inf, use
            use = use + table[row, column]
            row = column
        return total, use


def _priced(table: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    dead = ~np.isfinite(table[..., 0])
    return np.where(dead, np.inf, np.where(dead[..., None], 0.0, table) @ multipliers)


def _multipliers(layers: _Layers) -> tuple[np.ndarray, float]:
    """Return prices of the caps that make the relaxed bound high, and that bound."""
    size = len(layers.names)
    prices = np.zeros(size)
    best, kept = -math.inf, prices.copy()
    least, _ = layers.relaxed(np.r_[1.0, prices])
    step = max(abs(least), 1e-9) if math.isfinite(least) else 1.0
    scale = np.maximum(layers.caps, 1e-9)
    stale = 0
    small = math.prod(table.shape[1] for table in layers.steps[:32]) <= _SMALL  # a few thousand need no good bound
    for _ in range(1 if small else 120):
        total, use = layers.relaxed(np.r_[1.0, prices])
        if not math.isfinite(total):
            return kept, math.inf
        value = total - float(prices @ layers.caps)
        if value > best + 1e-12 * abs(best) if math.isfinite(best) else True:
            best, kept, stale = value, prices.copy(), 0
        else:
            stale += 1
            if stale >= 4:
                step, stale, prices = step / 2, 0, kept.copy()
                continue
        slope = (use[1:] - layers.caps) / scale
        if not np.any((slope > 0) | (prices > 0)):
            break
        length = float(np.sqrt((slope**2).sum()))
        if length < 1e-12 or step < 1e-7 * max(abs(best), 1e-9):
            break
        prices = np.maximum(0.0, prices + step * slope / length / scale)
    return kept, best


def search_chain(
    scenario: Scenario,
    weights: Weights,
    caps: Caps,
    *,
    top: int = 1,
    most_labels: int = 1_000_000,
    width: int | None = None,
) -> Found:
    """Return the best placements of a chain.

    Parameters
    ----------
    scenario
        A pipeline: each stage reads the one before.
    weights
        What is to be made small.
    caps
        What may not be exceeded.
    top
        How many placements are wanted.
    most_labels
        Partial placements beside each other at most; beyond that the search is one by beam.
    width
        Search by a beam of this width alone.

    Returns
    -------
    Found
    """
    layers = _Layers(scenario, weights, caps)
    prices, bound = _multipliers(layers)
    if math.isinf(bound) and bound > 0:
        return Found((), math.inf, True, 0)
    kept: tuple[tuple[Fraction, Placed], ...] = ()
    spent = 0
    widths = (
        [width]
        if width is not None
        else [min(64, most_labels), min(2_000, most_labels), min(40_000, most_labels), most_labels]
    )
    dropped = math.inf
    for size in dict.fromkeys(widths):
        ceiling = float(kept[-1][0]) if len(kept) >= top else math.inf
        finals, dropped, labels = _sweep(layers, prices, ceiling, max(size, 1), top)
        spent += labels
        fresh = _verified(scenario, weights, caps, finals, top)
        kept = _merged(kept, fresh, top)
        worst = float(kept[-1][0]) if len(kept) >= top else math.inf
        if dropped > worst + _NEAR * abs(worst) or math.isinf(dropped):
            return Found(kept, float(kept[0][0]) if kept else math.inf, True, spent)
    best = float(kept[0][0]) if kept else math.inf
    return Found(kept, min(best, max(bound, min(dropped, best))), False, spent)


def _merged(
    first: tuple[tuple[Fraction, Placed], ...], second: tuple[tuple[Fraction, Placed], ...], top: int
) -> tuple[tuple[Fraction, Placed], ...]:
    by_key = {placed.key: (score, placed) for score, placed in (*first, *second)}
    ranked = sorted(by_key.values(), key=lambda entry: (entry[0], entry[1].switches, entry[1].key))
    return tuple(ranked[:top])


def _verified(
    scenario: Scenario, weights: Weights, caps: Caps, finals: list[tuple[float, tuple[int, ...]]], top: int
) -> tuple[tuple[Fraction, Placed], ...]:
    """Return the best of the candidates, priced as exact decimals and held against every cap."""
    verified: list[tuple[Fraction, Placed]] = []
    for score, places in finals:
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
    layers: _Layers, prices: np.ndarray, ceiling: float, width: int, top: int
) -> tuple[list[tuple[float, tuple[int, ...]]], float, int]:
    """Return whole placements by score, the least bound among labels dropped for want of room, and the labels."""
    tails = layers.behind(np.r_[1.0, prices])
    plain = layers.behind(np.r_[1.0, np.zeros(len(prices))])
    least = [layers.behind(np.eye(1 + len(prices))[1 + index]) for index in range(len(prices))]
    offset = float(prices @ layers.caps)
    slack = layers.caps * (1 + _NEAR) + 1e-12
    limit = ceiling + _NEAR * abs(ceiling) + 1e-12
    use = np.zeros((1, 1 + len(prices)))
    at, switches_rank = np.zeros(1, np.int64), np.zeros(1, np.int64)
    history: list[tuple[np.ndarray, np.ndarray]] = []
    dropped, spent = math.inf, 0
    for number, table in enumerate(layers.steps):
        columns = table.shape[1]
        parent = np.repeat(np.arange(len(at)), columns)
        column = np.tile(np.arange(columns), len(at))
        now = use[parent] + table[at[parent], column]
        linked = np.isfinite(now[:, 0])
        spent += len(linked)
        parent, column, now = parent[linked], column[linked], now[linked]
        alive = np.ones(len(now), bool)
        for index in range(len(prices)):
            alive &= now[:, 1 + index] + least[index][number][column] <= slack[index]
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
    """Return places of labels that fewer than `top` others on the same choice beat in score and match in all."""
    keep = np.ones(len(at), bool)
    for choice in np.unique(at):
        members = np.flatnonzero(at == choice)
        if len(members) <= _DOMINATORS:
            continue
        strong = members[np.lexsort((rank[members], bound[members]))[:_DOMINATORS]]
        better = np.zeros(len(members), np.int64)
        for label in strong:
            margin = _NEAR * (1 + abs(use[label, 0]))
            better += (use[members, 0] > use[label, 0] + margin) & np.all(use[members, 1:] >= use[label, 1:], axis=1)
        keep[members[better >= top]] = False
    return np.flatnonzero(keep)
