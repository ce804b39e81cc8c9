"""Placement scenarios: devices, links, stages and caps, read from JSON or YAML with all errors reported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from mlsys.errors import ScenarioFileError, UnreadableError
from mlsys.faults import dotted
from mlsys.hardware.document import read_faultless
from mlsys.inputs import read_text
from mlsys.planner.placement.schema import scenario_faults

_MOST_BYTES = 20_000_000


def exact(value: float) -> Fraction:
    """Return a number as an exact decimal: 0.1 is a tenth, so that sums can equal caps.

    Examples
    --------
    >>> exact(0.1) + exact(0.2) == exact(0.3), 0.1 + 0.2 == 0.3
    (True, False)
    """
    return Fraction(repr(value) if isinstance(value, float) else value)


@dataclass(frozen=True)
class ScenarioDevice:
    """A device that stages can run on.

    Attributes
    ----------
    name, memory
        Its name, and the memory available to its stages, MB.
    streams
        Number of stages of a graph that can run at once.
    resistance, capacity, limit
        Thermal resistance, K/W, heat capacity, J/K, and highest temperature, °C; None without a limit.
    """

    name: str
    memory: Fraction
    streams: int = 1
    resistance: Fraction | None = None
    capacity: Fraction | None = None
    limit: Fraction | None = None


@dataclass(frozen=True)
class ScenarioLink:
    """One direction between two devices: ms, GB/s (that is MB/ms), mJ/MB."""

    latency: Fraction
    bandwidth: Fraction
    energy_per_mb: Fraction

    def cost(self, megabytes: Fraction) -> tuple[Fraction, Fraction]:
        """Return the time, ms, and energy, mJ, of transferring some megabytes."""
        return self.latency + megabytes / self.bandwidth, megabytes * self.energy_per_mb


@dataclass(frozen=True)
class StageOption:
    """A device and number format for a stage, with its costs: ms, mJ, MB, percentage points, MB."""

    device: str
    format: str
    latency: Fraction
    energy: Fraction
    memory: Fraction
    loss: Fraction
    output: Fraction


@dataclass(frozen=True)
class Stage:
    """A stage of the pipeline: its possible devices, and its predecessors."""

    name: str
    choices: tuple[StageOption, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """Input of a plan.

    Attributes
    ----------
    data
        Contents of a file; all properties are read from it.

    Raises
    ------
    ScenarioFileError
        If anything is wrong; every error is listed, with its place.

    Examples
    --------
    >>> from mlsys.planner.placement import example
    >>> scenario = Scenario(example())
    >>> len(scenario.stages), [device.name for device in scenario.devices]
    (7, ['cpu', 'gpu', 'npu'])
    >>> Scenario({"devices": [{"name": "gpu", "memory_mb": 0}], "stages": []})
    Traceback (most recent call last):
        ...
    mlsys.errors.ScenarioFileError: devices.0.memory_mb: must be a number above 0 to 1e+12, got 0
    stages: must not be empty
    """

    data: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        complaints = scenario_faults(self.data)
        if complaints:
            raise ScenarioFileError("\n".join(f"{dotted(keys)}{text}" for keys, text in complaints))

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """Read a scenario from a file: YAML if it ends in .yaml or .yml, else JSON.

        Raises
        ------
        ScenarioFileError
            If the file is unreadable or invalid; every error is reported with its place.
        """
        path = Path(path)
        if path.suffix.lower() in (".yaml", ".yml"):
            return cls(read_faultless(path, "scenario", ScenarioFileError, scenario_faults))
        try:
            text = read_text(path, _MOST_BYTES)
        except UnreadableError as error:
            raise ScenarioFileError(str(error)) from None
        doubles: list[str] = []
        try:
            data = json.loads(text, object_pairs_hook=lambda pairs: _mapping(pairs, doubles))
        except (ValueError, RecursionError) as error:
            line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise ScenarioFileError(f"{path}{line}: not readable as JSON: {problem}") from None
        problems = [*doubles, *(f"{dotted(keys)}{text}" for keys, text in scenario_faults(data))]
        if problems:
            raise ScenarioFileError("\n".join(f"{path}: {line}" for line in problems))
        return cls(data)

    @property
    def name(self) -> str:
        """Title of the report."""
        return str(self.data.get("name", "scenario"))

    @cached_property
    def devices(self) -> tuple[ScenarioDevice, ...]:
        """Devices, sorted by name, so that the order of the file does not matter."""
        listed = []
        for entry in self.data["devices"]:
            heat = entry.get("thermal") or {}
            thermal = [
                exact(heat[key]) if heat else None for key in ("resistance_k_per_w", "capacity_j_per_k", "limit_c")
            ]
            listed.append(
                ScenarioDevice(entry["name"], exact(entry["memory_mb"]), int(entry.get("streams", 1)), *thermal)
            )
        return tuple(sorted(listed, key=lambda device: device.name))

    @cached_property
    def links(self) -> dict[tuple[str, str], ScenarioLink]:
        """Links by sender and receiver."""
        return {
            (entry["from"], entry["to"]): ScenarioLink(
                exact(entry["latency_ms"]), exact(entry["bandwidth_gb_s"]), exact(entry["energy_mj_per_mb"])
            )
            for entry in self.data.get("links", ())
        }

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages: of a pipeline in its order, of a graph in a topological order."""
        entries = self.data["stages"]
        graph = self.is_graph
        listed = []
        for index, entry in enumerate(entries):
            before = [entries[index - 1]["name"]] if index and not graph else []
            listed.append(Stage(entry["name"], _choices(entry), tuple(sorted(entry.get("after", before)))))
        if not graph:
            return tuple(listed)
        done: dict[str, Stage] = {}
        left = {stage.name: stage for stage in listed}
        while left:
            name = min(name for name, stage in left.items() if all(other in done for other in stage.after))
            done[name] = left.pop(name)
        return tuple(done.values())

    @property
    def is_graph(self) -> bool:
        """Whether any stage lists its predecessors."""
        return any("after" in entry for entry in self.data["stages"])

    @property
    def peak(self) -> bool:
        """Whether only the running stage holds memory."""
        return bool(self.data.get("memory", "cumulative") == "peak")

    def cap(self, name: str) -> Fraction | None:
        """Return a constraint, or None if there is none."""
        value = (self.data.get("constraints") or {}).get(name)
        return None if value is None else exact(value)

    @property
    def most_loss(self) -> Fraction | None:
        """Limit of the total accuracy loss, percentage points."""
        floor = self.cap("accuracy")
        return None if floor is None else exact(self.data["accuracy"]) - floor

    @property
    def ambient(self) -> Fraction:
        """Ambient temperature, °C."""
        return exact(self.data.get("ambient_c", 25))


def _mapping(pairs: list[tuple[str, Any]], doubles: list[str]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            doubles.append(f"duplicate key {key!r}, in the mapping of {', '.join(dict(pairs))}"[:200])
        unique[key] = value
    return unique


def _choices(stage: Mapping[str, Any]) -> tuple[StageOption, ...]:
    choices = []
    for device, profile in stage["profiles"].items():
        for name, costs in (("", profile), *profile.get("formats", {}).items()):
            choices.append(
                StageOption(
                    device,
                    name,
                    exact(costs["latency_ms"]),
                    exact(costs["energy_mj"]),
                    exact(costs["memory_mb"]),
                    exact(costs.get("accuracy_loss", 0)),
                    exact(costs.get("output_mb", stage["output_mb"])),
                )
            )
    return tuple(sorted(choices, key=lambda choice: (choice.device, choice.format)))
