"""Batched evaluation of points, with the same numbers as ``analyze`` for each of them."""

from collections.abc import Iterable, Sequence
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
from mlsys.models.estimate.range_keys import work_of_network
from mlsys.models.estimate.ranges import RangeWithoutTime, ends_of_ranges, range_without_time
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
ROWS = 16384
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
    rows: list[tuple[Any, ...]] = [()] * len(points)
    timer = _Timer()
    held: list[tuple[int, CaseWork]] = []
    size = 0
    for own in cases.values():
        case = points[own[0]].case
        able = [place for place in own if points[place].target.timing]
        network, reason = _made(case, batches[case.variant]) if able else (None, "")
        heads = {source: _of_case(case, source) for source in (case.variant.source, source_of(case))}
        for place in own:
            if reason:
                rows[place] = _without(points[place], heads[case.variant.source], reason)
            elif not points[place].target.timing:
                rows[place] = _without(points[place], heads[source_of(case)], points[place].target.reason)
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


class _Timer:
    """Batched timing of points, with caches for shared parts."""

    def __init__(self) -> None:
        self._parameters: dict[tuple[Any, ...], Array] = {}
        self._reach: dict[tuple[Any, ...], RangeWithoutTime] = {}
        self._engines: dict[tuple[int, int], Snapshot] = {}
        self._calibrated = calibrated_device()[0]

    def fill(self, rows: list[tuple[Any, ...]], points: Sequence[Point], held: Sequence[tuple[int, CaseWork]]) -> None:
        """Insert the rows of some points at their indices."""
        if held:
            able = [(network, points[place]) for place, network in held]
            for (place, _), row in zip(held, self._answers(able), strict=True):
                rows[place] = row

    def _answers(self, able: Sequence[tuple[CaseWork, Point]]) -> list[tuple[Any, ...]]:
        """Return the rows of some points; the kernels of all of them are timed at once."""
        timings = [_timing(point.target) for _, point in able]
        engines = [self._engine(point.target, point.case.batch) for _, point in able]
        stack = CaseBatch.of([(engine, work, True) for engine, work in zip(engines, _works(able), strict=True)])
        kernels, case = stack.kernels, stack.case
        peaks, bandwidths = np.array([(timing.peak, timing.bandwidth) for timing in timings]).T
        computing, moving = kernels["flops"] / peaks[case], kernels["moved"] / bandwidths[case]
        known = [self._of(point.target, network) for network, point in able]
        times = kernel_times(stack, np.array([parameters for parameters, _ in known]))
        times = times.at_least(kernels["flops"], kernels["moved"], peaks[case], bandwidths[case])
        seconds, least = times.seconds, np.maximum(computing, moving)
        bound, estimate = stack.total(least), stack.total(seconds)
        low, high = ends_of_ranges([reach for _, reach in known], np.maximum(estimate, bound), bound)
        flops = stack.total(kernels["flops"])
        batch = np.array([point.case.batch for _, point in able])
        columns = (
            bound,
            np.array(_CAUSES, dtype=object)[_largest(stack, least, np.where(computing >= moving, 0, 1))],
            estimate,
            np.maximum(low * estimate, bound),
            np.maximum(high * estimate, bound),
            np.array(_CAUSES, dtype=object)[_largest(stack, seconds, _held(times))],
            batch / estimate,
            flops,
            stack.total(kernels["moved"]),
            stack.total(kernels["weights"]),
            np.array([network.operators for network, _ in able]),
            flops / estimate / peaks,
        )
        answers = zip(*(column.tolist() for column in columns), strict=True)
        return [_row(point, network, answer) for (network, point), answer in zip(able, answers, strict=True)]

    def _engine(self, target: TimedDevice, batch: int) -> Snapshot:
        """Return the engine that ``analyze`` uses: on a CPU, threads share the batch."""
        key = id(target), batch
        if key not in self._engines:
            self._engines[key] = as_used(_timing(target).engine, target.setting or "", batch)
        return self._engines[key]

    def _of(self, target: TimedDevice, network: CaseWork) -> tuple[Array, RangeWithoutTime]:
        """Return the parameters of the target, and the basis of the range, for the network as ``analyze`` has them."""
        own = target.device == self._calibrated
        further = (target.precision, shape_of_products(network.work)) if own else None
        key = target.setting, target.device, network.name, network.convolutions, further
        if key not in self._parameters:
            assert target.setting is not None
            setting = of_network(target.setting, network.convolutions)
            precision, shape = further or ("", None)
            parameters, _ = parameters_of(setting, target.device, network.name, precision=precision, shape=shape)
            self._parameters[key] = parameters.vectorised()
        kind = target.setting, target.device, network.name, network.convolutions, target.network_kind
        if kind not in self._reach:
            setting = of_network(target.setting or "", network.convolutions)
            work = work_of_network(target.network_kind, setting)
            self._reach[kind] = range_without_time(setting, target.device, network.name, work=work)
        return self._parameters[key], self._reach[kind]


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


# Columns of a row, in the order of SweepRow: the point, the answer by arrays, and the answer that each device adds.
_ANSWERED = 12


def _of_case(case: SweepCase, source: str) -> tuple[Any, ...]:
    """Return the columns from ``model`` to ``batch``."""
    variant = case.variant
    sizes = (variant.sequence, variant.image, variant.phase)
    return (variant.model, source, *sizes, "on" if variant.fused else "off", case.precision, case.batch)


def _of_target(target: TimedDevice) -> tuple[Any, ...]:
    """Return the columns from ``device`` to ``calibration``."""
    return target.device, target.device_class, target.kind, target.setting, target.calibration


def _without(point: Point, case: tuple[Any, ...], reason: str) -> tuple[Any, ...]:
    """Return the row of a point without an answer."""
    target = point.target
    unanswered = (None,) * (_ANSWERED + 1)
    return (point.id, *case, *_of_target(target), *unanswered, target.capacity, None, None, target.price, reason)


def _row(point: Point, network: CaseWork, answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row of a point; ``answer`` has the columns from ``bound_seconds`` to ``utilisation``."""
    target, needed = point.target, network.needed
    memory = needed, target.capacity, None if target.capacity is None else needed <= target.capacity
    energy = None if target.power is None else target.power * answer[2]
    case = _of_case(point.case, network.source)
    return (point.id, *case, *_of_target(target), *answer, *memory, energy, target.price, None)
