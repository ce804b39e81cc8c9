"""A pipeline as arrays: the cost and resource use of each step from one choice to the next."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mlsys.deadline import Deadline
from mlsys.planner.placement.costs import Caps, Placed
from mlsys.planner.placement.scenario import Scenario

_SMALL = 20_000


@dataclass(frozen=True)
class Weights:
    """Weights of the objective: score = latency × ms + energy × mJ + switch × device changes."""

    latency: Fraction
    energy: Fraction
    switch: Fraction = Fraction(0)

    def score(self, placed: Placed) -> Fraction:
        """Return the score of a placement; lower is better."""
        return self.latency * placed.latency + self.energy * placed.energy + self.switch * placed.switches


class Steps:
    """Latency, energy and device changes of every step of a pipeline, computed once for all searches."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        number_of = {device.name: number for number, device in enumerate(scenario.devices)}
        hops = np.zeros((3, len(number_of), len(number_of)))  # ms, ms per MB, mJ per MB
        hops[0] = np.where(np.eye(len(number_of), dtype=bool), 0.0, np.inf)
        for (origin, target), link in scenario.links.items():
            hops[:, number_of[origin], number_of[target]] = [
                float(link.latency), float(1 / link.bandwidth), float(link.energy_per_mb),
            ]  # fmt: skip
        hops[:, range(len(number_of)), range(len(number_of))] = 0.0
        self.tables: list[np.ndarray] = []  # (choices before, choices, ms and mJ and changes); inf without a link
        before, output = None, np.zeros((1, 1))
        for stage in scenario.stages:
            device = np.array([number_of[choice.device] for choice in stage.choices])
            own = np.array([[float(choice.latency), float(choice.energy)] for choice in stage.choices])
            table = np.zeros((len(output), len(device), 3))
            if before is not None:
                delay, per_mb, energy = hops[:, before[:, None], device]
                table = np.stack((delay + output * per_mb, output * energy, before[:, None] != device), axis=2)
            table[..., :2] += own
            table[~np.isfinite(table[..., 0])] = np.inf
            self.tables.append(table)
            before, output = device, np.array([[float(choice.output)] for choice in stage.choices])


class Layers:
    """A pipeline with given weights and caps.

    The uses are the score, then each capped resource: latency, energy, accuracy loss, memory and heat by device.
    """

    def __init__(self, steps: Steps, weights: Weights, caps: Caps) -> None:
        self.stages = [stage.choices for stage in steps.scenario.stages]
        self.caps = np.array([float(cap) for _, cap in caps.entries])
        self.names = [name for name, _ in caps.entries]
        peak, limits = steps.scenario.peak, dict(caps.entries)
        price = np.array([float(weights.latency), float(weights.energy), float(weights.switch)])
        self.steps: list[np.ndarray] = []  # (choices before, choices, uses)
        for choices, base in zip(self.stages, steps.tables, strict=True):
            table = np.empty((*base.shape[:2], 1 + len(self.names)))
            linked = np.isfinite(base[..., 0])
            table[..., 0] = np.where(linked, np.where(linked[..., None], base, 0.0) @ price, np.inf)
            for index, name in enumerate(self.names, start=1):
                kind, _, device = name.partition(" ")
                if kind in ("loss", "memory_mb"):
                    memory = [0.0 if peak else float(choice.memory) for choice in choices]
                    amount = np.array([float(choice.loss) for choice in choices] if kind == "loss" else memory)[None]
                else:
                    amount = base[..., 0 if kind in ("latency_ms", "busy_ms") else 1]
                if device:
                    amount = np.where([choice.device == device for choice in choices], amount, 0.0)
                table[..., index] = amount
            fits = [
                not peak or choice.memory <= limits.get(f"memory_mb {choice.device}", choice.memory)
                for choice in choices
            ]
            table[~(linked & np.array(fits))] = np.inf
            self.steps.append(table)

    def behind(self, multipliers: np.ndarray) -> list[np.ndarray]:
        """Return, for each stage and choice, the least priced use of all later stages."""
        tails = [np.zeros(self.steps[-1].shape[1])]
        for table in reversed(self.steps[1:]):
            priced = _priced(table, multipliers)
            tails.append((priced + tails[-1]).min(axis=1))
        return tails[::-1]

    def least_behind(self) -> list[np.ndarray]:
        """Return, for each stage and choice, the least use of each capped resource by all later stages."""
        tails = [np.zeros((self.steps[-1].shape[1], len(self.names)))]
        for table in reversed(self.steps[1:]):
            tails.append((table[..., 1:] + tails[-1]).min(axis=1))
        return tails[::-1]

    def cheapest_chain(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the least priced use of a whole chain, and that chain's use of each resource."""
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


def cap_prices(layers: Layers, deadline: Deadline | None = None) -> tuple[np.ndarray, float]:
    """Return Lagrange multipliers of the caps that give a high bound, and that bound.

    The bound is valid whenever the search for multipliers stops.
    """
    size = len(layers.names)
    prices = np.zeros(size)
    best, kept = -math.inf, prices.copy()
    least, _ = layers.cheapest_chain(np.r_[1.0, prices])
    step = max(abs(least), 1e-9) if math.isfinite(least) else 1.0
    scale = np.maximum(layers.caps, 1e-9)
    stale = 0
    small = math.prod(table.shape[1] for table in layers.steps[:32]) <= _SMALL  # a few thousand need no tight bound
    for number in range(1 if small else 120):
        if number and deadline is not None and deadline.passed:
            break
        total, use = layers.cheapest_chain(np.r_[1.0, prices])
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


def bottleneck_bound(layers: Layers, deadline: Deadline, rounds: int = 150) -> float:
    """Return a lower bound of the bottleneck time.

    For any device weights that sum to one, the bottleneck is at least the weighted mean of the devices' times, whose
    minimum is a shortest path. Devices that the path loads most get more weight in the next round.
    """
    busy = [index for index, name in enumerate(layers.names, start=1) if name.startswith("busy_ms")]
    weights = np.full(len(busy), 1 / len(busy))
    best = 0.0
    for number in range(rounds):
        multipliers = np.zeros(1 + len(layers.names))
        multipliers[busy] = weights
        total, use = layers.cheapest_chain(multipliers)
        best = max(best, total)
        if not math.isfinite(total) or deadline.passed:
            break
        load = use[busy] / max(float(use[busy].max()), 1e-300)
        weights = weights * np.exp(load / math.sqrt(1 + number))
        weights /= weights.sum()
    return best * (1 - 1e-9)
