"""Profiles of a scenario, from our models or from measurements."""

import copy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlsys.amounts import parsed_number
from mlsys.errors import ArgumentError, ScenarioFileError, UnreadableError
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.inputs import csv_records
from mlsys.planner.placement.scenario import Scenario
from mlsys.workloads.operator import Network

_NEEDED = ("stage", "device", "latency_ms", "energy_mj", "memory_mb")


def scenario_of(
    network: Network, devices: Sequence[str], *, precision: str = "fp16", samples: int = 1
) -> dict[str, Any]:
    """Return a scenario whose stages are the operators of a network, as the data of a file.

    The time of an operator on a device is the estimate of :func:`mlsys.models.analysis.analyze`, at the device's power
    under load, if known (:func:`mlsys.models.energy.boards.work_power`), else its rated power. Two devices are
    connected by the link that both have on record, PCI Express before USB, as wide as the narrower end; without one, by
    PCI Express 4.0 with 16 lanes. Assumed: the memory of an operator is its weights; it passes on half of its other
    bytes; operators run one after the other; a link takes no energy.

    Parameters
    ----------
    network
        A network for `mlsys analyze`, from the catalogue or captured.
    devices
        Names of the catalogue; devices without a known power are refused.
    precision, samples
        As for `mlsys analyze`.

    Raises
    ------
    ArgumentError
        If no device is named, one is named twice, or the power or memory size of one is not on record.
    UnknownNameError
        If a device or the precision is unknown.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> data = scenario_of(load("resnet50", precision="fp16"), ["A100", "T4"])
    >>> len(data["stages"]) > 50, data["links"][0]["bandwidth_gb_s"]
    (True, 15.75)
    """
    from mlsys.hardware import Hardware
    from mlsys.models.analysis import analyze

    if not devices or len(set(devices)) < len(devices):
        raise ArgumentError(
            f"scenario_of(): `devices` must be names of the catalogue without duplicates, got {list(devices)}. "
            "Write e.g. devices=['A100', 'T4']"
        )
    twins = {name: Hardware[name] for name in devices}
    powers = {}
    for name, twin in twins.items():
        power = _power(twin)
        if power is None:
            raise ArgumentError(
                f"scenario_of(): `devices`: {name!r} has no power under load and no rated power on record, so its "
                "energy is unknown. Omit it"
            )
        if not view(twin).main.has("capacity"):
            raise ArgumentError(
                f"scenario_of(): `devices`: the memory size of {name!r} is not on record "
                f"({twin.level().note}). Copy its file into a folder named by MLSYS_DEVICES and add `capacity`"
            )
        powers[name] = power
    analyses = {
        name: analyze(twin, network, network, precision=precision, samples=samples) for name, twin in twins.items()
    }
    operators = next(iter(analyses.values())).operators
    often = Counter(operator.name for operator in operators)
    stages = []
    for index, operator in enumerate(operators):
        weights, data = float(operator.weights.m_as("MB")), float(operator.data.m_as("MB"))
        profiles = {}
        for name, analysis in analyses.items():
            time = float(analysis.operators[index].estimate.m_as("ms"))
            profiles[name] = {"latency_ms": time, "energy_mj": time * powers[name], "memory_mb": weights}
        unique = operator.name if often[operator.name] == 1 else f"{operator.name} #{index}"
        stages.append({"name": unique, "output_mb": max(0.0, data - weights) / 2, "profiles": profiles})
    links = [
        {
            "from": device,
            "to": other,
            **_joined(twins[device], twins[other]),
            "energy_mj_per_mb": 0,
        }
        for device in devices
        for other in devices
        if device != other
    ]
    return {
        "name": f"{network.name} on {', '.join(devices)}, {precision}",
        "devices": [
            {"name": name, "memory_mb": float(twin.memory_capacity.m_as("MB"))} for name, twin in twins.items()
        ],
        "links": links,
        "stages": stages,
        "constraints": {},
    }


def _power(twin: Device) -> float | None:
    """Return a device's power during inference, W; its rated power if nothing else is known."""
    from mlsys.models.energy.boards import work_power

    drawn = work_power(twin)
    if drawn is not None:
        return float(drawn.power.m_as("W"))
    return view(twin).tdp


def _joined(device: Device, other: Device) -> dict[str, float]:
    """Return latency and bandwidth between two devices, each direction: those of the narrower and slower end."""
    from mlsys.constants import LATENCY_PCIE_GEN3, PCIE_GEN4_BW

    name = next((name for name in ("PCIe", "USB") if name in device.links and name in other.links), None)
    ends = [view(twin).link(name) for twin in (device, other)] if name else []
    waits = [end.quantity("latency") for end in ends if end.has("latency")] or [LATENCY_PCIE_GEN3]
    rates = [end.quantity("bandwidth") for end in ends] or [PCIE_GEN4_BW]
    return {
        "latency_ms": max(float(wait.m_as("ms")) for wait in waits),
        "bandwidth_gb_s": min(float(rate.m_as("GB/s")) for rate in rates),
    }


def with_measured(scenario: str | Path, measured: str | Path) -> Scenario:
    """Return a scenario with measured profiles in place of those of its file.

    Parameters
    ----------
    scenario
        Path of the scenario.
    measured
        Path of a CSV file with the columns stage, device, latency_ms, energy_mj and memory_mb.

    Raises
    ------
    ScenarioFileError
        If either file is invalid; errors of the measurements are reported with their line.
    """
    data = copy.deepcopy(dict(Scenario.load(scenario).data))
    stages = {stage["name"]: stage for stage in data["stages"]}
    path = Path(measured)
    try:
        table = csv_records(path)
    except UnreadableError as error:
        raise ScenarioFileError(str(error)) from None
    heads = [head.strip() for head in table[0][1]] if table else []
    missing = [name for name in _NEEDED if name not in heads]
    if missing:
        raise ScenarioFileError(f"{path}:1: columns missing: {', '.join(missing)}. Required: {', '.join(_NEEDED)}")
    faults: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for line, row in table[1:]:
        if len(row) != len(heads):
            faults.append(f"{path}:{line}: expected {len(heads)} cells, got {len(row)}")
            continue
        cells = dict(zip(heads, (cell.strip() for cell in row), strict=True))
        key = (cells["stage"], cells["device"])
        if cells["stage"] not in stages:
            faults.append(f"{path}:{line}: stage: the scenario has no stage {cells['stage']!r}")
            continue
        if key in seen:
            faults.append(f"{path}:{line}: duplicate profile of {key[0]!r} on {key[1]!r}, first on line {seen[key]}")
        seen.setdefault(key, line)
        costs = {}
        for name in _NEEDED[2:]:
            try:
                costs[name] = parsed_number(cells[name])
            except ValueError as error:
                faults.append(f"{path}:{line}: {name}: must be a number, got {short(cells[name])} ({error})")
        stages[cells["stage"]]["profiles"][cells["device"]] = costs
    if faults:
        raise ScenarioFileError("\n".join(faults))
    try:
        return Scenario(data)
    except ScenarioFileError as error:
        raise ScenarioFileError("\n".join(f"{path}: {text}" for text in str(error).splitlines())) from None
