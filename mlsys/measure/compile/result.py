"""Result of comparing eager and compiled execution, and its file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from mlsys.formatting import significant
from mlsys.measure.compile.predict import PredictedTimes
from mlsys.measure.machine import Machine
from mlsys.measure.rates import MachineRates
from mlsys.measure.timing import Ratio, Timing, ratio_of_medians
from mlsys.units import Q_, Quantity

_DIGITS = 5  # significant digits of a stored sample: finer than any clock here


@dataclass(frozen=True)
class CompileResult:
    """Eager and compiled times of one model at one batch, on one machine.

    Attributes
    ----------
    model, inputs, batch
        Model, inputs and batch.
    frozen
        Whether the compiler treated the weights as constants.
    machine, rates
        The machine and its rates.
    eager, compiled
        Raw samples of both, taken alternately.
    compile_seconds
        Duration of the first call, which compiles, with empty caches.
    error, tolerance
        Largest difference of the outputs, relative to the largest output, and the tolerance.
    operators
        ATen operators dispatched by one eager call, without views.
    generated, library
        Kernels of one compiled call: generated loops, and library calls.
    graphs, graph_breaks
        Number of graphs, and of graph breaks.
    predicted
        Prediction from the machine's rates; None if the graph cannot be captured.
    """

    model: str
    inputs: str
    batch: int
    frozen: bool
    machine: Machine
    rates: MachineRates
    eager: Timing
    compiled: Timing
    compile_seconds: float
    error: float
    tolerance: float
    operators: int
    generated: int
    library: int
    graphs: int
    graph_breaks: int
    predicted: PredictedTimes | None

    @property
    def kernels(self) -> int:
        """Kernels that one compiled call launches."""
        return self.generated + self.library

    @cached_property
    def speedup(self) -> Ratio:
        """Median eager over median compiled time, with its 95 % interval."""
        return ratio_of_medians(self.eager, self.compiled)

    @property
    def compile_time(self) -> Quantity:
        """Duration of the first call, s."""
        return Q_(self.compile_seconds, "s")

    @property
    def break_even(self) -> float:
        """Calls after which compilation pays off; infinite without a speed-up."""
        gain = (self.eager.median - self.compiled.median).m_as("s")
        return self.compile_seconds / gain if gain > 0 else float("inf")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the numbers, in words."""
        texts = [*self.eager.warnings, *self.compiled.warnings]
        if self.machine.load > self.machine.usable + 0.5:
            texts.append(f"the machine was busy at the start: load {self.machine.load:.1f}")
        if self.graph_breaks:
            texts.append(f"{self.graph_breaks} graph breaks: the parts between them ran in eager mode")
        if self.predicted is None:
            texts.append("no prediction: the graph of the model cannot be captured")
        return tuple(texts)

    def explain(self) -> str:
        """Return the comparison as sentences and a small table."""
        how = "frozen weights" if self.frozen else "weights as inputs"
        lines = [
            f"{self.model}, {self.inputs}, {self.rates.threads} thread(s): compiled {self.speedup} as fast as eager.",
            f"{'':<12}{'median':>11} {'95 % interval':>24} {'p10':>11} {'p90':>11}  rounds",
        ]
        for timing in (self.eager, self.compiled):
            low, high = timing.interval()
            ends = f"{_ms(low)} to {_ms(high)}"
            edges = f"{_ms(timing.percentile(10)):>11} {_ms(timing.percentile(90)):>11}"
            lines.append(f"{timing.name:<12}{_ms(timing.median):>11} {ends:>24} {edges}  {len(timing.samples)}")
        lines.append(
            f"kernels: {self.operators} eager, {self.kernels} compiled ({self.generated} generated, {self.library} in "
            f"libraries), {self.graphs} graph(s), {self.graph_breaks} graph breaks, {how}"
        )
        paid = f"paid back after {self.break_even:,.0f} calls" if self.break_even < float("inf") else "never paid back"
        lines.append(f"compiled in {self.compile_seconds:.1f} s, {paid}; outputs differ by at most {self.error:.1g}")
        if self.predicted is not None:
            guess = self.predicted
            lines.append(
                f"predicted from the machine's rates alone: {guess.speedup:.2f}×, {_ms(Q_(guess.eager, 's'))} → "
                f"{_ms(Q_(guess.compiled, 's'))}, {guess.operators} → {guess.kernels} kernels, "
                f"mostly limited by {guess.limited_by}; {guess.cached:.0%} of the bytes fit into a cache"
            )
        warned = [f"warning: {words}" for words in self.warnings]
        return "\n".join([*lines, self.machine.explain(), self.rates.explain(), *warned])

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, including samples."""
        plain = asdict(self)
        return {**plain, "eager": timing_record(self.eager), "compiled": timing_record(self.compiled)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CompileResult:
        """Return the result stored by :meth:`record`.

        Raises
        ------
        ValueError
            If a field is missing or unknown.
        """
        known = {field.name for field in fields(cls)}
        if set(record) != known:
            odd = ", ".join(sorted(known ^ set(record)))
            raise ValueError(f"CompileResult.from_record(): missing or unknown fields: {odd}")
        rates: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in record["rates"].items()
        }
        return cls(
            **{
                **record,
                "machine": Machine(**record["machine"]),
                "rates": MachineRates(**rates),
                "eager": timing_from(record["eager"]),
                "compiled": timing_from(record["compiled"]),
                "predicted": record["predicted"] and PredictedTimes(**record["predicted"]),
            }
        )


def timing_record(timing: Timing) -> dict[str, Any]:
    """Return a timing as plain data, with samples of five significant digits."""
    samples = [significant(value, _DIGITS) for value in timing.samples]
    return {"name": timing.name, "samples": samples, "calls": timing.calls, "warmup": timing.warmup}


def timing_from(record: Mapping[str, Any]) -> Timing:
    """Return the timing stored by :func:`timing_record`."""
    return Timing(record["name"], tuple(record["samples"]), record["calls"], record["warmup"])


def _ms(value: Quantity) -> str:
    return f"{value.m_as('ms'):.4g} ms"
