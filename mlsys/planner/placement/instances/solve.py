"""Search of an instance: stretches of many orders of running, then annealing, the best answer at any time."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mlsys.planner.placement.instances.bounds import lower_bound
from mlsys.planner.placement.instances.grouped import Grouped
from mlsys.planner.placement.instances.instance import Instance, evaluate

_EXHAUSTIVE_GROUPS = 8
_ORDERS = 32
_LOAD = ((0.1, 1e-4, 12.0), (0.02, 1e-4, 12.0), (0.02, 1e-4, 40.0), (0.005, 1e-5, 40.0))
_LATENCY = ((0.05, 1e-4, 0.0), (0.02, 1e-4, 0.01), (0.02, 1e-4, 0.1), (0.1, 1e-4, 0.02))


@dataclass(frozen=True)
class InstancePlan:
    """A placement of an instance, and how good it is known to be.

    Attributes
    ----------
    instance
        What is placed.
    placement
        Device of each operator in the order of the file: 0 is the CPU, 1 and more an accelerator; None where
        nothing that is allowed was found.
    objective_ms, lower_bound_ms
        What the placement is worth by :func:`~mlsys.planner.placement.instances.instance.evaluate`, and what
        no placement beats; both infinite where it is certain that none is allowed.
    proven
        Whether no placement is better.
    rounds
        Rounds of annealing that were run.
    complete
        Whether all rounds were run: only then does the answer depend on the seed alone, not on the clock.
    """

    instance: Instance
    placement: tuple[int, ...] | None
    objective_ms: float
    lower_bound_ms: float
    proven: bool
    rounds: int
    complete: bool

    @property
    def impossible(self) -> bool:
        """Whether it is certain that no placement is allowed."""
        return self.lower_bound_ms == math.inf

    @property
    def gap(self) -> float:
        """How far above the bound the answer is, as a share of the bound."""
        if self.placement is None or not self.lower_bound_ms:
            return math.inf
        return self.objective_ms / self.lower_bound_ms - 1

    def record(self) -> dict[str, Any]:
        """Return what `mlsys plan --instance --format json` prints."""
        solved = self.placement is not None
        return {
            "name": self.instance.name,
            "objective": self.instance.objective,
            "objective_ms": self.objective_ms if solved else None,
            "lower_bound_ms": None if self.impossible else self.lower_bound_ms,
            "proven": self.proven,
            "impossible": self.impossible,
            "rounds": self.rounds,
            "complete": self.complete,
            "placement": None if self.placement is None else list(self.placement),
        }


def solve(
    instance: Instance,
    *,
    seconds: float = 300.0,
    rounds: int = 12,
    seed: int = 0,
    threads: int = 2,
    on_progress: Callable[[int, float], None] | None = None,
) -> InstancePlan:
    """Return the best placement found within a number of rounds and a time.

    The search starts from the best cuts into stretches of many orders of running and anneals: groups of one
    colour move alone, change places, or move together with what is connected to them. The answer at the end
    of a round never gets worse, and with the same seed it is the same, unless the clock stops the search.

    Parameters
    ----------
    instance
        What is placed.
    seconds
        Most time that is spent, s.
    rounds
        Of annealing, each ``threads`` times.
    seed
        Of the chances.
    threads
        Annealings that run at once; the answer depends on it.
    on_progress
        Called with the round and the best value after each round.

    Returns
    -------
    InstancePlan

    References
    ----------
    S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by simulated annealing, Science 220, 1983.
    """
    until = time.monotonic() + seconds
    grouped = Grouped(instance)
    bound = lower_bound(grouped)
    if bound == math.inf:
        return InstancePlan(instance, None, math.inf, bound, False, 0, True)
    if grouped.groups <= _EXHAUSTIVE_GROUPS:
        value, placement = _exhaustive(grouped)
        return InstancePlan(instance, placement, value, value, placement is not None, 0, True)
    if grouped.devices == 1:
        starts = [np.zeros(grouped.number, np.int64)]
        return _plan(instance, starts[0], bound, 0, True)
    pool = _starts(grouped, seed, until)
    best_value, best, _ = pool[0]
    done, complete = 0, True
    scale = _steps(grouped)
    per_step = math.inf
    with ThreadPoolExecutor(threads) as executor:
        for number in range(-1, rounds):  # the first is short: it compiles, and tells how long a step takes
            if best_value <= bound * (1 + 1e-9):
                break
            left = until - time.monotonic()
            steps = 2_000 if number < 0 else scale
            if number >= 0 and steps * per_step > left:
                complete = False
                steps = int(left / per_step)
                if steps < 2_000:
                    break
            jobs = list(_jobs(grouped, pool, best, max(number, 0), steps, seed, threads))
            begun = time.monotonic()
            answers = list(executor.map(lambda job: job(), jobs))
            spent = (time.monotonic() - begun) / steps
            per_step = math.inf if number < 0 else spent
            if number < 0:
                begun = time.monotonic()
                answers += list(executor.map(lambda job: job(), jobs))
                per_step = (time.monotonic() - begun) / steps
            for device, _ in answers:
                score = evaluate(instance, device.tolist())
                if not score.broken and score.value_ms < best_value * (1 - 1e-12):
                    best_value, best = score.value_ms, device
            done = number + 1
            if on_progress is not None and number >= 0:
                on_progress(done, best_value)
    return _plan(instance, best, bound, done, complete)


def _plan(instance: Instance, device: np.ndarray, bound: float, rounds: int, complete: bool) -> InstancePlan:
    score = evaluate(instance, device.tolist())
    if score.broken:
        return InstancePlan(instance, None, math.inf, bound, False, rounds, complete)
    proven = score.value_ms <= bound * (1 + 1e-9)
    return InstancePlan(
        instance, tuple(map(int, device)), score.value_ms, min(bound, score.value_ms), proven, rounds, complete
    )


def _steps(grouped: Grouped) -> int:
    """Return the steps of one annealing: more for larger instances, and fewer where a step looks at every operator."""
    if grouped.instance.objective == "max_load":
        return int(np.clip(10_000 * grouped.groups, 400_000, 20_000_000))
    return int(np.clip(2e8 / (grouped.number + len(grouped.instance.edges)), 200_000, 1_000_000))


def _arrays(grouped: Grouped) -> tuple[Any, ...]:
    return (
        *(grouped.cpu, grouped.acc, grouped.size, grouped.transfer, grouped.memory, grouped.devices),
        *grouped.after,
        *grouped.before,
        grouped.group,
        *grouped.members,
        *grouped.neighbours,
    )


Start = tuple[float, np.ndarray, np.ndarray]


def _starts(grouped: Grouped, seed: int, until: float) -> list[Start]:
    """Return placements to begin with, the best first, each with the order that it came from."""
    from mlsys.planner.placement.instances.stretches import stretches

    arrays = _arrays(grouped)
    starts: dict[bytes, Start] = {}
    serial = grouped.instance.objective == "latency"
    for number in range(_ORDERS):
        order = grouped.order(np.random.default_rng((seed, number)) if number else None)
        device = stretches(*arrays, order, grouped.knots, serial)
        for placement in (device, np.zeros_like(device)) if not number else (device,):
            score = evaluate(grouped.instance, placement.tolist())
            over = math.inf if score.broken else score.value_ms
            starts.setdefault(placement.tobytes(), (over, placement, order))
        if number and time.monotonic() > until:
            break
    return sorted(starts.values(), key=lambda start: (start[0], start[1].tolist()))


def _jobs(
    grouped: Grouped, pool: list[Start], best: np.ndarray, number: int, steps: int, seed: int, threads: int
) -> Iterator[Callable[[], Any]]:
    """Return the annealings of a round: in turn from the best answer, and from one of the starts."""
    from mlsys.planner.placement.instances.anneal import anneal

    load = grouped.instance.objective == "max_load"
    arrays = _arrays(grouped)
    for thread in range(threads):
        turn = number * threads + thread
        hot, cold, shape = (_LOAD if load else _LATENCY)[(number + 2 * thread) % 4]
        _, start, order = pool[turn % len(pool)]
        if number % 2:
            start = best
        chance = (seed * 1_000_003 + turn * 7919 + 1) % 2**31
        yield partial(anneal, not load, start, *arrays, order, steps, hot, cold, shape, chance)


def _exhaustive(grouped: Grouped) -> tuple[float, tuple[int, ...] | None]:
    """Return the best of all placements; accelerators are alike, so only new ones in order are tried."""
    best, best_placement = math.inf, None
    for labels in _labels(grouped.groups, grouped.devices - 1):
        placement = [labels[group] for group in grouped.group]
        score = evaluate(grouped.instance, placement)
        if not score.broken and score.value_ms < best:
            best, best_placement = score.value_ms, tuple(placement)
    return best, best_placement


def _labels(groups: int, accelerators: int, so_far: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(so_far) == groups:
        yield so_far
        return
    for device in range(min(accelerators, max(so_far, default=0) + 1) + 1):
        yield from _labels(groups, accelerators, (*so_far, device))
