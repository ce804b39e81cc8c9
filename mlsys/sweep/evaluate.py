"""Batched evaluation of points, with the same numbers as ``analyze`` for each of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError
from mlsys.gc_pause import gc_paused
from mlsys.hardware import Hardware
from mlsys.models.analysis.changes import TimingModel
from mlsys.models.estimate import Snapshot
from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.eager import of_network
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.likeness import shape_of_products
from mlsys.models.estimate.model import KernelTimes, kernel_times
from mlsys.models.estimate.ranges import RangeWithoutTime, range_without_time, work_of_network
from mlsys.models.estimate.thread_scaling import as_used
from mlsys.models.estimate.user_calibration import calibrated_device
from mlsys.models.estimate.weight_residency import resident
from mlsys.models.estimate.work import Work
from mlsys.sweep.networks import CaseWork, source_of, work_of
from mlsys.sweep.points import Point, SweepCase, TimedDevice, code_digest
from mlsys.sweep.spec import Variant
from mlsys.sweep.table import SweepRow

Array = NDArray[np.float64]
# Kernels times devices per batch, limited so that the columns stay in the CPU's cache.
ROWS = 4096
_CAUSES = ("compute", "memory", "launch")


@gc_paused()
def evaluate_points(points: Sequence[Point], code: str | None = None) -> dict[str, list[Any]]:
    """Return the rows of the points, as columns.

    Parameters
    ----------
    points
        Points in order; neighbouring points of one case share their network.
    code
        Version of the evaluation code with which the points were enumerated; by default any.

    Raises
    ------
    ArgumentError
        If this machine has another version of the code, such as an older package.
    """
    if code is not None and code != code_digest():
        raise ArgumentError(
            "evaluate_points(): this machine has another version of mlsys than the caller. "
            "Install the same version on both"
        )
    batches: dict[Variant, set[int]] = {}
    cases: dict[int, list[int]] = {}
    for place, point in enumerate(points):
        batches.setdefault(point.case.variant, set()).add(point.case.batch)
        cases.setdefault(id(point.case), []).append(place)  # points of one case share the object
    rows: list[SweepRow | None] = [None] * len(points)
    timer = _Timer()
    held: list[tuple[int, CaseWork]] = []
    size = 0
    for own in cases.values():
        case = points[own[0]].case
        able = [place for place in own if points[place].target.timing]
        network, reason = _made(case, batches[case.variant]) if able else (None, "")
        for place in own:
            if reason:
                rows[place] = _without(points[place], reason)
            elif not points[place].target.timing:
                rows[place] = _without(points[place], points[place].target.reason, source_of(case))
        if network is not None:
            held += [(place, network) for place in able]
            size += network.work.columns.shape[1] * len(able)
        if size >= ROWS:
            timer.fill(rows, points, held)
            held, size = [], 0
    timer.fill(rows, points, held)
    return {name: list(values) for name, values in zip(SweepRow._fields, zip(*rows, strict=True), strict=True)}


def _made(case: SweepCase, batches: Iterable[int]) -> tuple[CaseWork | None, str]:
    try:
        return work_of(case, batches), ""
    except Exception as error:  # user code may raise anything, which becomes the reason in its rows
        text = str(error).strip().splitlines()
        plain = isinstance(error, (ValueError, LookupError, OSError))
        return None, (text[0] if text and plain else f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": "))


@dataclass(frozen=True)
class _Known:
    """Known effects for a device and a network, at any batch."""

    parameters: Array
    reach: RangeWithoutTime


class _Timer:
    """Batched timing of points, with caches for shared parts."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Known] = {}
        self._engines: dict[tuple[int, int], Snapshot] = {}
        self._calibrated = calibrated_device()[0]

    def fill(self, rows: list[SweepRow | None], points: Sequence[Point], held: Sequence[tuple[int, CaseWork]]) -> None:
        """Insert the rows of some points at their indices."""
        if held:
            able = [(network, points[place]) for place, network in held]
            for (place, _), row in zip(held, self._answers(able), strict=True):
                rows[place] = row

    def _answers(self, able: Sequence[tuple[CaseWork, Point]]) -> list[SweepRow]:
        known = [self._of(point.target, network) for network, point in able]
        timings = [_timing(point.target) for _, point in able]
        engines = [self._engine(point.target, point.case.batch) for _, point in able]
        stack = CaseBatch.of([(engine, work, True) for engine, work in zip(engines, _works(able), strict=True)])
        kernels, case = stack.kernels, stack.case
        peaks, bandwidths = (np.array([getattr(timing, name) for timing in timings]) for name in ("peak", "bandwidth"))
        computing, moving = kernels["flops"] / peaks[case], kernels["moved"] / bandwidths[case]
        times = kernel_times(stack, np.array([each.parameters for each in known]))
        times = times.at_least(kernels["flops"], kernels["moved"], peaks[case], bandwidths[case])
        seconds = times.seconds
        least = np.maximum(computing, moving)
        bound_by = _largest(stack, least, np.where(computing >= moving, 0, 1)).tolist()
        limited_by = _largest(stack, seconds, _held(times)).tolist()
        bound, estimate = stack.total(least).tolist(), stack.total(seconds).tolist()
        flops, moved, weights = (stack.total(kernels[name]).tolist() for name in ("flops", "moved", "weights"))
        rows = []
        for index, (network, point) in enumerate(able):
            target, time, least_time = point.target, estimate[index], bound[index]
            reach = known[index].reach.at(max(time, least_time), least_time)
            rows.append(
                _row(
                    point,
                    network.source,
                    bound_seconds=least_time,
                    bound_by=_CAUSES[bound_by[index]],
                    estimate_seconds=time,
                    low_seconds=max(reach.low * time, least_time),
                    high_seconds=max(reach.high * time, least_time),
                    limited_by=_CAUSES[limited_by[index]],
                    samples_per_second=point.case.batch / time,
                    flops=flops[index],
                    bytes=moved[index],
                    weight_bytes=weights[index],
                    operators=network.operators,
                    utilisation=flops[index] / time / timings[index].peak,
                    needed_bytes=network.needed,
                    fits=None if target.capacity is None else network.needed <= target.capacity,
                    design_energy_joules=None if target.power is None else target.power * time,
                )
            )
        return rows

    def _engine(self, target: TimedDevice, batch: int) -> Snapshot:
        """Return the engine that ``analyze`` uses: on a CPU, threads share the batch."""
        key = id(target), batch
        if key not in self._engines:
            self._engines[key] = as_used(_timing(target).engine, target.setting or "", batch)
        return self._engines[key]

    def _of(self, target: TimedDevice, network: CaseWork) -> _Known:
        """Return the parameters of the target and the effects for the network, as used by ``analyze``."""
        shape = shape_of_products(network.work) if target.device == self._calibrated else None
        key = id(target), network.name, network.convolutions, shape
        if key not in self._known:
            assert target.setting is not None
            setting = of_network(target.setting, network.convolutions)
            parameters, _ = parameters_of(setting, target.device, network.name, precision=target.precision, shape=shape)
            work = work_of_network(target.network_kind, setting)
            reach = range_without_time(setting, target.device, network.name, work=work)
            self._known[key] = _Known(parameters.vectorised(), reach)
        return self._known[key]


def _timing(target: TimedDevice) -> TimingModel:
    assert target.timing is not None
    return target.timing


def _works(able: Sequence[tuple[CaseWork, Point]]) -> list[Work]:
    """Return the kernels of each point; for a chip without external memory, only what its host sends."""
    return [
        resident(network.work, Hardware[point.target.device], point.case.batch)
        if point.target.kind == "NPU"
        else network.work
        for network, point in able
    ]


def _held(times: KernelTimes) -> NDArray[np.int64]:
    """Return the cause that limits each kernel, as an index into ``_CAUSES``."""
    launch = times.launch > np.maximum(times.working, times.moving)
    cause: NDArray[np.int64] = np.where(launch, 2, np.where(times.working >= times.moving, 0, 1))
    return cause


def _largest(stack: CaseBatch, seconds: Array, cause: NDArray[np.int64]) -> NDArray[np.int64]:
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
        *("bound_seconds", "bound_by", "estimate_seconds", "low_seconds", "high_seconds", "limited_by"),
        *("samples_per_second", "flops", "bytes", "weight_bytes", "operators", "utilisation", "needed_bytes", "fits"),
        *("design_energy_joules", "error"),
    )
)
