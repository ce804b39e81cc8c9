"""Evaluates points side by side, with the numbers that ``analyze`` gives for each of them."""

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.collector import no_collection
from mlsys.errors import ArgumentError
from mlsys.hardware import Hardware
from mlsys.models.analysis.changes import TimingModel
from mlsys.models.calibrated import Snapshot
from mlsys.models.calibrated.eager import of_network
from mlsys.models.calibrated.library import parameters_of
from mlsys.models.calibrated.likeness import Shape
from mlsys.models.calibrated.model import KernelTimes, kernel_times
from mlsys.models.calibrated.own import shape_if_calibrated
from mlsys.models.calibrated.parameters import Parameters
from mlsys.models.calibrated.ranges import range_of
from mlsys.models.calibrated.resident import resident
from mlsys.models.calibrated.stack import Stack
from mlsys.models.calibrated.teams import as_used
from mlsys.models.calibrated.work import Work
from mlsys.sweep.networks import CaseWork, work_of
from mlsys.sweep.points import Point, SweepCase, TimedDevice, code_digest
from mlsys.sweep.spec import Variant
from mlsys.sweep.table import SweepRow

Array = NDArray[np.float64]
# Kernels times devices that are timed at once: their columns stay in a processor's cache.
ROWS = 4096
_CAUSES = ("compute", "memory", "launch")


@no_collection()
def evaluate_points(points: Sequence[Point], code: str | None = None) -> dict[str, list[Any]]:
    """Return the rows of the points, as columns.

    Parameters
    ----------
    points
        In order; neighbours of one case share their network.
    code
        The version of the evaluation that the points were enumerated with; by default any.

    Raises
    ------
    ArgumentError
        If the code here is another version, as on a machine where the package is older.
    """
    if code is not None and code != code_digest():
        raise ArgumentError(
            "evaluate_points(): this machine has another version of mlsys than the one that asks. "
            "Install the same on both"
        )
    rows: list[SweepRow] = []
    held: list[tuple[CaseWork, list[Point]]] = []
    size = 0
    batches: dict[Variant, set[int]] = {}
    for point in points:
        batches.setdefault(point.case.variant, set()).add(point.case.batch)
    for case, own in itertools.groupby(points, key=lambda point: point.case):
        here = list(own)
        network, reason = _made(case, batches[case.variant])
        if network is None:
            rows += _timed(held)
            rows += [_without(point, reason) for point in here]
            held, size = [], 0
            continue
        held.append((network, here))
        size += network.work.columns.shape[1] * len(here)
        if size >= ROWS:
            rows += _timed(held)
            held, size = [], 0
    rows += _timed(held)
    return {name: list(values) for name, values in zip(SweepRow._fields, zip(*rows, strict=True), strict=True)}


def _made(case: SweepCase, batches: Iterable[int]) -> tuple[CaseWork | None, str]:
    try:
        return work_of(case, batches), ""
    except Exception as error:  # a network is anybody's code: whatever it raises is the reason of its rows
        text = str(error).strip().splitlines()
        plain = isinstance(error, (ValueError, LookupError, OSError))
        return None, (text[0] if text and plain else f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": "))


def _timed(held: Sequence[tuple[CaseWork, list[Point]]]) -> list[SweepRow]:
    """Return the rows of several cases, in order."""
    able = [(network, point, point.target.timing) for network, own in held for point in own if point.target.timing]
    answers = iter(_answers(able)) if able else iter(())
    return [
        next(answers) if point.target.timing else _without(point, point.target.reason, network.source)
        for network, own in held
        for point in own
    ]


def _answers(able: Sequence[tuple[CaseWork, Point, TimingModel]]) -> list[SweepRow]:
    engines = [_engine(point, timing) for _, point, timing in able]
    stack = Stack.of([(engine, work, True) for engine, work in zip(engines, _works(able), strict=True)])
    kernels, case = stack.kernels, stack.case
    peaks, bandwidths = (np.array([getattr(timing, name) for *_, timing in able]) for name in ("peak", "bandwidth"))
    computing, moving = kernels["flops"] / peaks[case], kernels["moved"] / bandwidths[case]
    times = kernel_times(
        stack, np.array([_parameters(point.target, timing, network) for network, point, timing in able])
    )
    times = times.at_least(kernels["flops"], kernels["moved"], peaks[case], bandwidths[case])
    seconds = times.seconds
    least = np.maximum(computing, moving)
    bound_by = _largest(stack, least, np.where(computing >= moving, 0, 1))
    held_by = _largest(stack, seconds, _held(times))
    bound, estimate = stack.total(least).tolist(), stack.total(seconds).tolist()
    flops, moved, weights = (stack.total(kernels[name]).tolist() for name in ("flops", "moved", "weights"))
    rows = []
    for index, (network, point, timing) in enumerate(able):
        target, time, least_time = point.target, estimate[index], bound[index]
        setting = of_network(target.setting or "", network.convolutions)
        reach = range_of(setting, target.device, network.name, seconds=max(time, least_time), bound=least_time)
        rows.append(
            _row(
                point,
                network.source,
                bound_seconds=least_time,
                bound_by=_CAUSES[bound_by[index]],
                estimate_seconds=time,
                low_seconds=max(reach.low * time, least_time),
                high_seconds=max(reach.high * time, least_time),
                held_by=_CAUSES[held_by[index]],
                samples_per_second=point.case.batch / time,
                flops=flops[index],
                bytes=moved[index],
                weight_bytes=weights[index],
                operators=network.operators,
                utilisation=flops[index] / time / timing.peak,
                needed_bytes=network.needed,
                fits=None if target.capacity is None else network.needed <= target.capacity,
                design_energy_joules=None if target.power is None else target.power * time,
            )
        )
    return rows


def _works(able: Sequence[tuple[CaseWork, Point, TimingModel]]) -> list[Work]:
    """Return the kernels of each point; those of a chip without a memory of its own lack what stays on it."""
    made: dict[tuple[int, str], Work] = {}  # a stack takes kernels that are the same object together
    for network, point, _ in able:
        key = id(network), point.target.device
        if key not in made:
            made[key] = resident(network.work, Hardware[point.target.device], point.case.batch)
    return [made[id(network), point.target.device] for network, point, _ in able]


def _engine(point: Point, timing: TimingModel) -> Snapshot:
    """Return the engine that ``analyze`` uses: on a processor, threads share out the batch."""
    return as_used(timing.engine, point.target.setting or "", point.case.batch)


def _parameters(target: TimedDevice, timing: TimingModel, network: CaseWork) -> Array:
    """Return the parameters that ``analyze`` uses: the target's, and what is known of the network."""
    assert target.setting is not None
    shape = shape_if_calibrated(target.device, network.work)
    setting = of_network(target.setting, network.convolutions)
    return _of_network(setting, target.device, network.name, target.precision, shape, timing.parameters)


@functools.lru_cache(maxsize=4096)
def _of_network(
    setting: str, device: str, network: str, precision: str, shape: Shape | None, _own: Parameters
) -> Array:
    return parameters_of(setting, device, network, precision=precision, shape=shape)[0].vectorised()


def _held(times: KernelTimes) -> NDArray[np.int64]:
    """Return what holds each kernel, as a place in ``_CAUSES``."""
    launch = times.launch > np.maximum(times.working, times.moving)
    cause: NDArray[np.int64] = np.where(launch, 2, np.where(times.working >= times.moving, 0, 1))
    return cause


def _largest(stack: Stack, seconds: Array, cause: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each case, the cause with the most time."""
    shares = np.array([stack.total(np.where(cause == number, seconds, 0.0)) for number in range(len(_CAUSES))])
    largest: NDArray[np.int64] = shares.argmax(axis=0)
    return largest


def _without(point: Point, reason: str, source: str | None = None) -> SweepRow:
    return _row(point, source or point.case.variant.source, error=reason)


def _row(point: Point, source: str, **answers: Any) -> SweepRow:
    case, target = point.case, point.target
    variant = case.variant
    return SweepRow(
        id=point.id,
        model=variant.model,
        source=source,
        sequence=variant.sequence,
        image=variant.image,
        phase=variant.phase,
        fusion="on" if variant.fused else "off",
        precision=case.precision,
        batch=case.batch,
        device=target.device,
        device_class=target.device_class,
        kind=target.kind,
        setting=target.setting,
        calibration=target.calibration,
        capacity_bytes=target.capacity,
        price_usd=target.price,
        **{**_UNANSWERED, **answers},
    )


_UNANSWERED: dict[str, Any] = dict.fromkeys(
    (
        *("bound_seconds", "bound_by", "estimate_seconds", "low_seconds", "high_seconds", "held_by"),
        *("samples_per_second", "flops", "bytes", "weight_bytes", "operators", "utilisation", "needed_bytes", "fits"),
        *("design_energy_joules", "error"),
    )
)
