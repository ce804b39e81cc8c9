"""Costs of a placement in exact decimals, and its caps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mlsys.planner.placement.scenario import Scenario, StageOption

ZERO = Fraction(0)


@dataclass(frozen=True)
class StageCost:
    """One stage of a placement, including the fetch of its input: ms, mJ, MB."""

    stage: str
    choice: StageOption
    transfer_latency: Fraction
    transfer_energy: Fraction

    @property
    def latency(self) -> Fraction:
        """Time of transfer and run, ms."""
        return self.choice.latency + self.transfer_latency

    @property
    def energy(self) -> Fraction:
        """Energy of transfer and run, mJ."""
        return self.choice.energy + self.transfer_energy


@dataclass(frozen=True)
class Placed:
    """A chain with a device for every stage.

    Attributes
    ----------
    stages
        Stages in order.
    peak
        Whether only the running stage holds memory.
    """

    stages: tuple[StageCost, ...]
    peak: bool

    @cached_property
    def latency(self) -> Fraction:
        """End-to-end time, ms."""
        return sum((stage.latency for stage in self.stages), ZERO)

    @cached_property
    def energy(self) -> Fraction:
        """Energy of one run, mJ."""
        return sum((stage.energy for stage in self.stages), ZERO)

    @cached_property
    def loss(self) -> Fraction:
        """Accuracy loss, percentage points; losses of stages add up."""
        return sum((stage.choice.loss for stage in self.stages), ZERO)

    @cached_property
    def switches(self) -> int:
        """Number of device changes along the chain."""
        devices = [stage.choice.device for stage in self.stages]
        return sum(before != after for before, after in itertools.pairwise(devices))

    @cached_property
    def key(self) -> tuple[tuple[str, str], ...]:
        """Devices and formats: identifies placements, and orders equally good ones."""
        return tuple((stage.choice.device, stage.choice.format) for stage in self.stages)

    @cached_property
    def memory(self) -> dict[str, Fraction]:
        """Memory held on each used device, MB."""
        held: dict[str, Fraction] = {}
        for stage in self.stages:
            device, more = stage.choice.device, stage.choice.memory
            held[device] = max(held.get(device, ZERO), more) if self.peak else held.get(device, ZERO) + more
        return dict(sorted(held.items()))

    @cached_property
    def busy(self) -> dict[str, Fraction]:
        """Time that each device is occupied by its stages and their fetches, ms."""
        taken: dict[str, Fraction] = {}
        for stage in self.stages:
            taken[stage.choice.device] = taken.get(stage.choice.device, ZERO) + stage.latency
        return dict(sorted(taken.items()))

    @cached_property
    def heat(self) -> dict[str, Fraction]:
        """Heat that each device dissipates in one run, mJ."""
        taken: dict[str, Fraction] = {}
        for stage in self.stages:
            taken[stage.choice.device] = taken.get(stage.choice.device, ZERO) + stage.energy
        return dict(sorted(taken.items()))

    @property
    def bottleneck(self) -> Fraction:
        """Time of the busiest device, ms: the time per result of a full pipeline."""
        return max(self.busy.values())


@dataclass(frozen=True)
class Caps:
    """Upper limits of quantities that add up along the chain.

    Attributes
    ----------
    entries
        Names and limits: ``latency_ms``, ``energy_mj``, ``loss``, and ``memory_mb``, ``heat_mj`` or ``busy_ms``
        with a device, such as ``memory_mb gpu``.
    """

    entries: tuple[tuple[str, Fraction], ...]

    def without(self, name: str) -> Caps:
        """Return the caps except one."""
        return Caps(tuple(entry for entry in self.entries if entry[0] != name))

    def allow(self, scenario: Scenario, placed: Placed) -> bool:
        """Whether a placement meets every cap; using one exactly is allowed."""
        use = {"latency_ms": placed.latency, "energy_mj": placed.energy, "loss": placed.loss}
        for name, table in (("memory_mb", placed.memory), ("heat_mj", placed.heat), ("busy_ms", placed.busy)):
            use |= {f"{name} {device}": amount for device, amount in table.items()}
        if any(use.get(name, ZERO) > limit for name, limit in self.entries):
            return False
        rate = scenario.cap("rate_hz")
        if rate is None or not any(name.startswith("heat_mj") for name, _ in self.entries):
            return True
        from mlsys.planner.placement.thermal import holds_rate

        return holds_rate(scenario, placed, float(rate))


def caps_of(scenario: Scenario) -> Caps:
    """Return the caps of a scenario: its constraints, the memory of each device, and its thermal limits."""
    entries = [(name, cap) for name in ("latency_ms", "energy_mj") if (cap := scenario.cap(name)) is not None]
    if scenario.most_loss is not None:
        entries.append(("loss", scenario.most_loss))
    entries += [(f"memory_mb {device.name}", device.memory) for device in scenario.devices]
    rate = scenario.cap("rate_hz")
    if rate is not None:
        for device in scenario.devices:
            entries.append((f"busy_ms {device.name}", 1000 / rate))
            if device.resistance is not None and device.limit is not None:
                # at the average power P = rate × energy the chip settles at ambient + P × resistance
                entries.append(
                    (f"heat_mj {device.name}", 1000 * (device.limit - scenario.ambient) / device.resistance / rate)
                )
    return Caps(tuple(entries))


def price(scenario: Scenario, choices: Sequence[StageOption]) -> Placed | None:
    """Return the costs of a placement of a chain, or None if a link is missing."""
    stages: list[StageCost] = []
    before: StageOption | None = None
    for stage, choice in zip(scenario.stages, choices, strict=True):
        latency, energy = ZERO, ZERO
        if before is not None and before.device != choice.device:
            link = scenario.links.get((before.device, choice.device))
            if link is None:
                return None
            latency, energy = link.cost(before.output)
        stages.append(StageCost(stage.name, choice, latency, energy))
        before = choice
    return Placed(tuple(stages), scenario.peak)
