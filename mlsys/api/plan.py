"""``mlsys.plan``: placement of a pipeline's stages, or of a network's kernels, on devices."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsys.api.arguments import NetworkRequest
from mlsys.choices import Goal, Strategy
from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import as_run
from mlsys.models.analysis.network_run import DEFAULT_PRECISION
from mlsys.planner.placement import PlanResult, Scenario
from mlsys.planner.placement import plan as placed
from mlsys.planner.placement.plan import SECONDS
from mlsys.planner.placement.profiles import scenario_of, with_measured
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import network_batch


def scenario(
    source: Scenario | Mapping[str, Any] | Network | str | Path,
    *,
    devices: Sequence[str] | None = None,
    batch: int | None = None,
    precision: str | None = None,
    profiles: str | Path | None = None,
) -> Scenario:
    """Return a scenario from a file or plain data, or from a network and devices of the catalogue.

    Parameters
    ----------
    source
        A scenario, its plain data or the path of its file; with ``devices``, a network or anything that
        :func:`mlsys.workloads.load` accepts.
    devices
        Names of devices in the catalogue. The stages are then the kernels of the network, with times estimated by
        :func:`mlsys.analyze`.
    batch, precision
        Batch and number format of that network; defaults: 1 and FP16.
    profiles
        CSV file of measured profiles, for a scenario in a file.

    Raises
    ------
    ArgumentError
        If an argument does not apply to the source.
    ScenarioFileError
        If the scenario is invalid.

    Examples
    --------
    >>> made = scenario("mobilenet-v2", devices=["A100", "T4"])
    >>> [device.name for device in made.devices], len(made.stages) > 40
    (['A100', 'T4'], True)
    """
    if devices is None:
        for name, value in (("batch", batch), ("precision", precision)):
            if value is not None:
                raise ArgumentError(
                    f"scenario(): `{name}` applies to a network, which needs `devices`, such as ['A100']"
                )
        if isinstance(source, Network):
            raise ArgumentError("scenario(): a network needs `devices`. Write e.g. devices=['A100', 'T4']")
        if profiles is not None:
            if not isinstance(source, (str, Path)):
                raise ArgumentError(
                    "scenario(): `profiles` applies to a scenario in a file. Give the path of that file"
                )
            return with_measured(Path(source), Path(profiles))
        if isinstance(source, Scenario):
            return source
        return Scenario(source) if isinstance(source, Mapping) else Scenario.load(source)
    if profiles is not None:
        raise ArgumentError(
            "scenario(): `profiles` applies to a scenario in a file; a network's times come from our models"
        )
    if isinstance(source, (Scenario, Mapping)):
        raise ArgumentError("scenario(): `devices` applies to a network; a scenario names its own devices")
    network = NetworkRequest(batch=batch, precision=precision).network(source, DEFAULT_PRECISION)
    samples = network_batch(network) or 1
    kernels = as_run(network, "kernels")
    return Scenario(scenario_of(kernels, list(devices), precision=network.precision, samples=samples))


def plan(
    scenario: Scenario | Mapping[str, Any] | Network | str | Path,
    goal: Goal = "latency",
    *,
    devices: Sequence[str] | None = None,
    batch: int | None = None,
    precision: str | None = None,
    profiles: str | Path | None = None,
    top: int = 1,
    weight: float = 0.5,
    switch_penalty: float = 0.0,
    strategy: Strategy = "auto",
    width: int = 64,
    max_exact_states: int = 1_000_000,
    seconds: float = SECONDS,
    progress: Callable[[float, float], object] = lambda best, bound: None,
) -> PlanResult:
    """Return the best placements of a pipeline or of a network on devices, as the command ``mlsys plan`` does.

    Parameters
    ----------
    scenario, devices, batch, precision, profiles
        As for :func:`mlsys.api.plan.scenario`: a file, or a network with ``devices``.
    goal, top, weight, switch_penalty, strategy, width, max_exact_states, seconds, progress
        As for :func:`mlsys.planner.placement.plan`.

    Returns
    -------
    PlanResult
        Its ``record()`` is printed by ``mlsys plan --format json``.

    Raises
    ------
    ArgumentError
        If an option is out of range or does not apply to the scenario, or ``strategy="exact"`` finds no proof.
    ScenarioFileError
        If the scenario is invalid.

    Examples
    --------
    >>> answer = plan("mobilenet-v2", devices=["A100", "T4"])
    >>> answer.optimal, answer.record()["goal"]
    (True, 'latency')
    """
    made = _scenario(scenario, devices=devices, batch=batch, precision=precision, profiles=profiles)
    return placed(
        made, goal, top=top, weight=weight, switch_penalty=switch_penalty, strategy=strategy, width=width,
        max_exact_states=max_exact_states, seconds=seconds, progress=progress,
    )  # fmt: skip


_scenario = scenario
