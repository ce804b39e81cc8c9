"""Placement and schedule of a graph of stages, on devices that run several stages at once.

Some order of starting in which start times never decrease leads to an optimal schedule
(:mod:`mlsys.planner.placement.schedule`), so the search appends stages in such orders, with bounds for the rest.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError
from mlsys.planner.placement.costs import Caps, caps_of
from mlsys.planner.placement.result import PlanResult, Ranked
from mlsys.planner.placement.scenario import Scenario, exact
from mlsys.planner.placement.schedule import ZERO, Scheduled, schedule
from mlsys.planner.placement.words import cap_in_words

_NEAR = 1e-9


class _Search:
    """Depth-first search over start orders and choices, for a weighted sum of costs."""

    def __init__(
        self, scenario: Scenario, caps: Caps, weights: tuple[float, float, float, float], top: int, most: int,
        deadline: Deadline,
    ) -> None:  # fmt: skip
        self.deadline = deadline
        self.scenario, self.caps, self.weights, self.top, self.most = scenario, caps, weights, top, most
        stages = scenario.stages
        self.number = len(stages)
        index_of = {stage.name: number for number, stage in enumerate(stages)}
        self.before = [[index_of[name] for name in stage.after] for stage in stages]
        self.after: list[list[int]] = [[] for _ in stages]
        for node, earlier in enumerate(self.before):
            for other in earlier:
                self.after[other].append(node)
        self.devices = [device.name for device in scenario.devices]
        index = {name: number for number, name in enumerate(self.devices)}
        self.streams = [device.streams for device in scenario.devices]
        self.choices = [
            [
                (index[c.device], float(c.latency), float(c.energy), float(c.memory), float(c.loss), float(c.output))
                for c in stage.choices
            ]
            for stage in stages
        ]
        self.hops = {
            (index[a], index[b]): (float(link.latency), float(1 / link.bandwidth), float(link.energy_per_mb))
            for (a, b), link in scenario.links.items()
        }
        self.least_time = [min(choice[1] for choice in choices) for choices in self.choices]
        self.least_energy = [min(choice[2] for choice in choices) for choices in self.choices]
        self.least_loss = [min(choice[4] for choice in choices) for choices in self.choices]
        self.tails = self.least_time[:]
        for node in reversed(range(self.number)):
            self.tails[node] += max((self.tails[later] for later in self.after[node]), default=0.0)
        limits = dict(caps.entries)
        self.cap = {
            kind: float(limits[kind]) * (1 + _NEAR) if kind in limits else math.inf
            for kind in ("latency_ms", "energy_mj", "loss")
        }
        self.room = {
            kind: [float(limits.get(f"{kind} {name}", math.inf)) * (1 + _NEAR) for name in self.devices]
            for kind in ("memory_mb", "heat_mj", "busy_ms")
        }
        self.kept: dict[tuple[tuple[str, str], ...], tuple[Fraction, Scheduled]] = {}
        self.spent, self.stopped = 0, False

    def score(self, placed: Scheduled) -> Fraction:
        parts = (placed.latency, placed.energy, Fraction(placed.switches), placed.bottleneck)
        return sum((exact(weight) * part for weight, part in zip(self.weights, parts, strict=True)), ZERO)

    def ranked(self) -> list[tuple[Fraction, Scheduled]]:
        entries = sorted(self.kept.values(), key=lambda entry: (entry[0], entry[1].switches, entry[1].key))
        return entries[: self.top]

    def ceiling(self) -> float:
        ranked = self.ranked()
        return float(ranked[-1][0]) * (1 + _NEAR) + 1e-12 if len(ranked) >= self.top else math.inf

    def offer(self, picks: Sequence[int], order: Sequence[int]) -> bool:
        """Store a complete placement if it is feasible and better than the same one in another order."""
        choices = [stage.choices[pick] for stage, pick in zip(self.scenario.stages, picks, strict=True)]
        placed = schedule(self.scenario, choices, order)
        if placed is None or not self.caps.allow(self.scenario, placed):
            return False
        score = self.score(placed)
        old = self.kept.get(placed.key)
        if old is None or score < old[0]:
            self.kept[placed.key] = (score, placed)
            self.limit = self.ceiling()
        return True

    def run(self) -> None:
        """Search everything that the bounds leave, starting from list schedules by the longest tail."""
        self.limit = math.inf
        self._improve()
        number = self.number
        self.pick = [-1] * number
        self.end = [0.0] * number
        self.free = [[0.0] * count for count in self.streams]
        self.memory = [[] for _ in self.devices]  # type: list[list[float]]
        self.heat = [0.0] * len(self.devices)
        self.busy = [0.0] * len(self.devices)
        self.order: list[int] = []
        self._extend(0.0, -1, 0.0, 0.0, 0, 0.0)

    def _improve(self) -> None:
        """Propose placements by list scheduling, improved one stage at a time."""
        order = sorted(range(self.number), key=lambda node: (-self.tails[node], node))
        done: list[int] = []
        while len(done) < self.number:
            done.append(
                next(node for node in order if node not in done and all(other in done for other in self.before[node]))
            )
        starts = [[min(range(len(c)), key=lambda index: c[index][key]) for c in self.choices] for key in (1, 2)]
        starts += [
            [next((index for index, choice in enumerate(c) if choice[0] == device), 0) for c in self.choices]
            for device in range(len(self.devices))
        ]
        for picks in starts:
            best = self._worth(picks, done)
            for _ in range(4):
                changed = False
                for node in range(self.number):
                    if self.deadline.passed:
                        break
                    for other in range(len(self.choices[node])):
                        trial = [*picks[:node], other, *picks[node + 1 :]]
                        worth = self._worth(trial, done) if other != picks[node] else math.inf
                        if worth < best - 1e-12:
                            best, picks, changed = worth, trial, True
                if not changed:
                    break
            self.offer(picks, done)

    def _worth(self, picks: Sequence[int], order: Sequence[int]) -> float:
        choices = [stage.choices[pick] for stage, pick in zip(self.scenario.stages, picks, strict=True)]
        placed = schedule(self.scenario, choices, order)
        if placed is None:
            return math.inf
        over = 0 if self.caps.allow(self.scenario, placed) else 1
        return float(self.score(placed)) * (1 + over) + 1e6 * over

    def _extend(self, last: float, last_one: int, energy: float, loss: float, changes: int, makespan: float) -> None:
        self.spent += 1
        if self.spent > self.most or (not self.spent % 64 and self.deadline.passed):
            self.stopped = True
        if self.stopped:
            return
        if len(self.order) == self.number:
            self.offer(self.pick, self.order)
            return
        rest = [node for node in range(self.number) if self.pick[node] < 0]
        bound = makespan
        for node in rest:
            known = [self.end[other] for other in self.before[node] if self.pick[other] >= 0]
            bound = max(bound, max(known, default=0.0) + self.tails[node])
        open_time = sum(map(sum, self.free)) + sum(self.least_time[node] for node in rest)
        bound = max(bound, open_time / sum(self.streams))
        rest_energy = energy + sum(self.least_energy[node] for node in rest)
        rest_loss = loss + sum(self.least_loss[node] for node in rest)
        if (
            bound > self.cap["latency_ms"]
            or rest_energy > self.cap["energy_mj"]
            or rest_loss > self.cap["loss"] + 1e-12
        ):
            return
        a, b, c, d = self.weights
        if a * bound + b * rest_energy + c * changes + d * max(self.busy) > self.limit:
            return
        ready = [node for node in rest if all(self.pick[other] >= 0 for other in self.before[node])]
        moves = []
        for node in ready:
            for option, (device, time, cost, size, lost, _) in enumerate(self.choices[node]):
                arrival = self._arrival(node, device)
                if arrival is None:
                    continue
                arrives, fee, crossed = arrival
                start = max(arrives, min(self.free[device]))
                if start < last - 1e-12 or (abs(start - last) <= 1e-12 and node < last_one):
                    continue
                moves.append((start + time, start, node, option, device, time, cost + fee, size, lost, crossed))
        for end, start, node, option, device, time, cost, size, lost, crossed in sorted(moves):
            held = self.memory[device]
            many = sorted([*held, size], reverse=True)[: self.streams[device] if self.scenario.peak else None]
            share = time / self.streams[device]
            if (
                sum(many) > self.room["memory_mb"][device] + 1e-12
                or self.heat[device] + cost > self.room["heat_mj"][device]
                or self.busy[device] + share > self.room["busy_ms"][device]
            ):
                continue
            stream = min(range(len(self.free[device])), key=lambda which: self.free[device][which])
            old = self.free[device][stream]
            self.free[device][stream], self.pick[node], self.end[node] = end, option, end
            held.append(size)
            self.heat[device] += cost
            self.busy[device] += share
            self.order.append(node)
            self._extend(start, node, energy + cost, loss + lost, changes + crossed, max(makespan, end))
            self.order.pop()
            self.busy[device] -= share
            self.heat[device] -= cost
            held.pop()
            self.free[device][stream], self.pick[node] = old, -1

    def _arrival(self, node: int, device: int) -> tuple[float, float, int] | None:
        arrives, fee, crossed = 0.0, 0.0, 0
        for other in self.before[node]:
            chosen = self.choices[other][self.pick[other]]
            wait = 0.0
            if chosen[0] != device:
                hop = self.hops.get((chosen[0], device))
                if hop is None:
                    return None
                wait = hop[0] + chosen[5] * hop[1]
                fee += chosen[5] * hop[2]
                crossed += 1
            arrives = max(arrives, self.end[other] + wait)
        return arrives, fee, crossed

    def bound(self) -> float:
        """Return a lower bound of the score, without any search."""
        work = sum(self.least_time) / sum(self.streams)
        a, b, _, d = self.weights
        return a * max(*self.tails, work) + b * sum(self.least_energy) + d * work


def plan_graph(
    scenario: Scenario, goal: str, *, top: int, weight: float, switch_penalty: float, strategy: str, most_states: int,
    deadline: Deadline,
) -> PlanResult:  # fmt: skip
    """Return the best placements of a graph; called by :func:`mlsys.planner.placement.plan`."""
    caps = caps_of(scenario)
    most = min(most_states, 300_000) if strategy != "beam" else 1
    proven, spent = True, 0

    def best(weights: tuple[float, float, float, float], within: Caps, count: int) -> _Search:
        nonlocal proven, spent
        search = _Search(scenario, within, weights, count, most, deadline)
        search.run()
        proven &= not search.stopped
        spent += search.spent
        return search

    weights = {
        "latency": (1.0, 0.0, switch_penalty, 0.0),
        "efficiency": (0.0, 1.0, switch_penalty, 0.0),
        "throughput": (0.0, 0.0, switch_penalty, 1.0),
    }.get(goal)
    if weights is None:
        quickest, lowest_energy = best((1.0, 0, 0, 0), caps, 1).ranked(), best((0, 1.0, 0, 0), caps, 1).ranked()
        least = [float(best[0][0]) if best else 1.0 for best in (quickest, lowest_energy)]
        weights = (weight / least[0], (1 - weight) / least[1], switch_penalty, 0.0)
    search = best(weights, caps, top)
    ranked = search.ranked()
    if strategy == "exact" and not proven:
        raise ArgumentError(
            f"plan(): `strategy` 'exact' found no proof within {most:,} partial schedules of {search.number} stages. "
            "Write e.g. strategy='auto'"
        )
    score = float(ranked[0][0]) if ranked else math.inf
    bound = score if proven else min(score, search.bound())
    binding: list[str] = []
    if not ranked:
        kept = caps
        for name, _ in caps.entries:
            if not best((1.0, 0, 0, 0), kept.without(name), 1).ranked():
                kept = kept.without(name)
        binding = [cap_in_words(scenario, name, limit, None) for name, limit in kept.entries]
        binding = binding or ["no link: some stage cannot be reached from any device that its inputs may run on"]
    placements = tuple(Ranked(float(value), placed) for value, placed in ranked)
    return PlanResult(
        scenario, goal, "exact" if proven else "beam", proven, placements, bound, tuple(binding), spent, weight,
        stopped=deadline.passed,
    )  # fmt: skip
