"""Variants at all clocks: time, energy, memory, budgets, and Pareto-optimality."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsys.edge.budgets import memory_violations
from mlsys.edge.clock import Clock, ClockLaw
from mlsys.edge.config import Config
from mlsys.edge.evaluate import VariantMeasurement
from mlsys.edge.pareto import unbeaten_rows
from mlsys.measure.timing import LatencyStatistics, latency_statistics
from mlsys.units import Q_

_HEAD = (
    *("pruning_method", "pruning_level", "precision", "clock_scale", "voltage", "accuracy"),
    *("latency_ms", "latency_mean_ms", "latency_std_ms", "latency_p95_ms", "latency_p99_ms", "samples"),
    *("memory_time_ms", "throughput_sps", "memory_mb", "weights_mb", "activations_mb", "reserve_mb"),
    *("sparse_weights_mb", "macs", "parameters", "nonzero_parameters"),
    *("energy_mj", "static_energy_mj", "dynamic_energy_mj", "static_power_w", "dynamic_power_w"),
)
_TAIL = ("active_budget_mb", "accepted", "reason", "pareto")


@dataclass(frozen=True)
class EdgePoint:
    """One variant at one clock.

    Attributes
    ----------
    measured, clock
        The variant and the clock.
    statistics
        Statistics of the times at this clock; of a single time if modelled.
    law
        Model of time and energy at any clock; None if the variant failed.
    memory
        Planned activations, weights, statistics and the reserve, byte.
    violations
        Violation of each budget.
    reasons
        Reasons for rejection; empty if accepted.
    pareto
        Whether the point is Pareto-optimal in accuracy, time, energy and memory among accepted points.
    """

    measured: VariantMeasurement
    clock: Clock
    statistics: LatencyStatistics | None
    law: ClockLaw | None
    memory: float
    violations: dict[str, bool]
    reasons: tuple[str, ...]
    pareto: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it meets every budget."""
        return not self.reasons

    @cached_property
    def energies(self) -> tuple[float, float]:
        """Static and dynamic energy of one inference, mJ; zeros if the variant failed."""
        if self.law is None:
            return 0.0, 0.0
        _, static, dynamic = self.law.plain(self.clock)
        return 1e3 * static, 1e3 * dynamic

    @property
    def objectives(self) -> tuple[float, float, float, float]:
        """Accuracy, ms, mJ and byte."""
        assert self.statistics is not None
        return float(self.measured.accuracy or 0.0), self.statistics.p50, sum(self.energies), self.memory

    def record(self, config: Config) -> dict[str, Any]:
        """Return the row of the table, with the keys of :func:`point_columns`."""
        measured, times, law, clock = self.measured, self.statistics, self.law, self.clock
        row: dict[str, Any] = dict.fromkeys(point_columns(config)) | self.violations
        row |= {
            "pruning_method": measured.method,
            "pruning_level": measured.level,
            "precision": measured.precision,
            "clock_scale": clock.scale,
            "voltage": clock.voltage,
            "active_budget_mb": config.active_budget.m_as("MB"),
            "accepted": self.accepted,
            "reason": "; ".join(self.reasons),
            "pareto": self.pareto,
        }
        if times is None or law is None:
            return row
        memory = law.memory.m_as("ms")
        row |= {
            "accuracy": measured.accuracy,
            "latency_ms": times.p50,
            "latency_mean_ms": times.mean,
            "latency_std_ms": times.std,
            "latency_p95_ms": times.p95,
            "latency_p99_ms": times.p99,
            "samples": len(measured.samples_ms),
            "memory_time_ms": memory,
            "throughput_sps": 1e3 * config.batch / times.p50,
            "memory_mb": self.memory / 1e6,
            "weights_mb": (measured.weight_bytes + measured.buffer_bytes) / 1e6,
            "activations_mb": measured.activation_bytes / 1e6,
            "reserve_mb": config.reserve.m_as("MB"),
            "sparse_weights_mb": (measured.sparse_bytes + measured.buffer_bytes) / 1e6,
            "macs": measured.macs,
            "parameters": measured.parameters,
            "nonzero_parameters": measured.nonzero,
            "energy_mj": sum(self.energies),
            "static_energy_mj": self.energies[0],
            "dynamic_energy_mj": self.energies[1],
            "static_power_w": law.static.m_as("W"),
            "dynamic_power_w": config.dynamic_power(measured.precision).m_as("W"),
        }
        return row


def point_columns(config: Config) -> tuple[str, ...]:
    """Return the columns of the table of points."""
    from mlsys.edge.budgets import violation_name

    return (*_HEAD, *map(violation_name, config.budgets), *_TAIL)


def points_of(config: Config, measured: Iterable[VariantMeasurement]) -> tuple[EdgePoint, ...]:
    """Return every variant at every clock, with the Pareto front of accepted points marked.

    Parameters
    ----------
    config
        Configuration with clocks, power and budgets.
    measured
        Results of the variants.

    Returns
    -------
    tuple of EdgePoint
        Variants in the order given, clocks innermost.
    """
    points = [point for measurement in measured for point in _at_each_clock(config, measurement)]
    return _with_front(points)


def under_limits_of(config: Config, points: Iterable[EdgePoint]) -> tuple[EdgePoint, ...]:
    """Return points of one clock under the budgets and limits of another configuration; times and energies stay.

    Parameters
    ----------
    config
        Configuration that differs in budgets and limits alone.
    points
        Points that did not fail.
    """
    again = []
    for point in points:
        accuracy_time_energy = point.objectives
        reasons = _reasons(config, point.measured, point.memory, accuracy_time_energy[1], accuracy_time_energy[2])
        violations = memory_violations(Q_(point.memory, "byte"), config.budgets)
        again.append(replace(point, violations=violations, reasons=reasons, pareto=False))
    return _with_front(again)


def _at_each_clock(config: Config, measured: VariantMeasurement) -> list[EdgePoint]:
    if measured.failed:
        return [
            EdgePoint(measured, clock, None, None, 0.0, {}, (f"failed: {measured.failed}",)) for clock in config.clocks
        ]
    static, dynamic = config.static_power, config.dynamic_power(measured.precision)
    if measured.core_ms is not None and measured.memory_ms is not None:
        core = Q_(measured.core_ms, "ms")
        law = ClockLaw(core, Q_(measured.memory_ms, "ms"), static, (core * dynamic).to("mJ"))
    else:
        typical = Q_(latency_statistics(measured.samples_ms).p50, "ms")
        law = ClockLaw.of(typical, Q_(measured.moved_bytes, "byte"), config.bandwidth, static, dynamic)
    held = measured.activation_bytes + measured.weight_bytes + measured.buffer_bytes
    memory = Q_(held + round(config.reserve.m_as("byte")), "byte")
    violations = memory_violations(memory, config.budgets)
    fixed = law.memory.m_as("ms")
    points = []
    for clock in config.clocks:
        raw = measured.samples_ms and _at_slower_clock(measured.samples_ms, fixed, clock.scale)
        times = latency_statistics(raw or [1e3 * law.plain(clock)[0]])
        needed = float(memory.m_as("byte"))
        energy = 1e3 * sum(law.plain(clock)[1:])
        reasons = _reasons(config, measured, needed, times.p50, energy)
        points.append(EdgePoint(measured, clock, times, law, needed, violations, reasons))
    return points


def _at_slower_clock(samples: Sequence[float], memory: float, scale: float) -> list[float]:
    """Return each raw time at a slower clock; the memory part is unchanged."""
    return [(time - min(time, memory)) / scale + min(time, memory) for time in samples]


def _reasons(
    config: Config, measured: VariantMeasurement, memory: float, latency: float, energy: float
) -> tuple[str, ...]:
    """Return the limits that are exceeded; using one exactly is allowed."""
    reasons = []
    if memory > config.active_bytes:
        reasons.append(f"memory {memory / 1e6:.6g} MB is above {config.active_bytes / 1e6:g} MB")
    for key, value, unit in (("latency_ms", latency, "ms"), ("energy_mj", energy, "mJ")):
        limit = config.limit(key)
        if limit is not None and value > limit:
            reasons.append(f"{key.partition('_')[0]} {value:.6g} {unit} is above {limit:g} {unit}")
    least = config.limit("accuracy")
    if least is not None and (measured.accuracy or 0.0) < least:
        reasons.append(f"accuracy {measured.accuracy:.4f} is below {least:g}")
    return tuple(reasons)


def _with_front(points: list[EdgePoint]) -> tuple[EdgePoint, ...]:
    places = [index for index, point in enumerate(points) if point.accepted]
    if places:
        front = unbeaten_rows([points[index].objectives for index in places], (True, False, False, False))
        for index, beaten_by_none in zip(places, front, strict=True):
            points[index] = replace(points[index], pareto=bool(beaten_by_none))
    return tuple(points)
