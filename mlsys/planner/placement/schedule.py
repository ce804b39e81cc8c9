"""Schedule of a graph of stages on given devices.

A stage starts when its inputs have arrived and a stream of its device is free. An input arrives when its producer has
ended and, from another device, the link has transferred it; links transfer any number of outputs at once, and a
transfer occupies no stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mlsys.planner.placement.costs import Placed, StageCost
from mlsys.planner.placement.scenario import Scenario, StageOption

ZERO = Fraction(0)


@dataclass(frozen=True)
class Scheduled(Placed):
    """A graph with a device and a time for every stage.

    Attributes
    ----------
    spans
        When each stage starts to fetch its last input, and when it ends, ms.
    streams
        Number of stages that each device runs at once.
    changes
        Inputs from another device.
    """

    spans: tuple[tuple[Fraction, Fraction], ...]
    streams: tuple[tuple[str, int], ...]
    changes: int

    @cached_property
    def latency(self) -> Fraction:
        """End of the last stage, ms."""
        return max(end for _, end in self.spans)

    @cached_property
    def switches(self) -> int:
        """Number of inputs from another device."""
        return self.changes

    @cached_property
    def busy(self) -> dict[str, Fraction]:
        """Time of the stages on each device, divided by its streams, ms."""
        taken: dict[str, Fraction] = {}
        for stage in self.stages:
            taken[stage.choice.device] = taken.get(stage.choice.device, ZERO) + stage.choice.latency
        streams = dict(self.streams)
        return {device: time / streams[device] for device, time in sorted(taken.items())}

    @cached_property
    def memory(self) -> dict[str, Fraction]:
        """Memory held on each device, MB; only that of concurrent stages if others hold none."""
        held: dict[str, list[Fraction]] = {}
        for stage in self.stages:
            held.setdefault(stage.choice.device, []).append(stage.choice.memory)
        streams = dict(self.streams)
        return {
            device: sum(sorted(sizes, reverse=True)[: streams[device] if self.peak else None], ZERO)
            for device, sizes in sorted(held.items())
        }


def schedule(scenario: Scenario, choices: Sequence[StageOption], order: Sequence[int]) -> Scheduled | None:
    """Return the schedule of stages started in the given order, each as early as possible; None if a link is missing.

    Parameters
    ----------
    scenario
        The scenario with the stages.
    choices
        Choice of each stage.
    order
        Indices of the stages, producers first.
    """
    stages = scenario.stages
    index_of = {stage.name: number for number, stage in enumerate(stages)}
    streams = {device.name: device.streams for device in scenario.devices}
    free = {name: [ZERO] * count for name, count in streams.items()}
    costs: dict[int, StageCost] = {}
    spans: dict[int, tuple[Fraction, Fraction]] = {}
    changes = 0
    for node in order:
        choice = choices[node]
        ready, wait, energy = ZERO, ZERO, ZERO
        for name in stages[node].after:
            other = index_of[name]
            arrives, hop = spans[other][1], ZERO
            if choices[other].device != choice.device:
                link = scenario.links.get((choices[other].device, choice.device))
                if link is None:
                    return None
                hop, fee = link.cost(choices[other].output)
                energy += fee
                changes += 1
            if arrives + hop > ready or (arrives + hop == ready and hop > wait):
                ready, wait = arrives + hop, hop
        stream = min(range(len(free[choice.device])), key=lambda which: free[choice.device][which])
        start = max(ready, free[choice.device][stream])
        free[choice.device][stream] = start + choice.latency
        costs[node] = StageCost(stages[node].name, choice, wait, energy)
        spans[node] = (start - wait, start + choice.latency)
    numbers = range(len(stages))
    return Scheduled(
        tuple(costs[node] for node in numbers),
        scenario.peak,
        tuple(spans[node] for node in numbers),
        tuple(streams.items()),
        changes,
    )


def critical_path(scenario: Scenario) -> Fraction:
    """Return the longest chain with each stage on its fastest device and free transfers: a lower bound, ms."""
    ends: dict[str, Fraction] = {}
    for stage in scenario.stages:
        ends[stage.name] = min(choice.latency for choice in stage.choices) + max(
            (ends[name] for name in stage.after), default=ZERO
        )
    return max(ends.values())
