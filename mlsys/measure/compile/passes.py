"""Gain of each compiler pass: one network timed with one more pass at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

from mlsys.measure.compile.call import call_arguments, first_call, largest_error, memory_errors, shapes_in_words
from mlsys.measure.compile.kernels import count_launches, dispatched
from mlsys.measure.compile.result import timing_from, timing_record
from mlsys.measure.machine import Machine, compiler, this_machine, with_threads
from mlsys.measure.timing import Ratio, Timing, measure, ratio_of_medians
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity

PASSES = ("eager", "normalisation folded", "channels last", "generated code", "weights frozen")
"""The passes in order; each step includes those before it."""


@dataclass(frozen=True)
class PassStep:
    """One step: its samples and the kernels it launches."""

    timing: Timing
    kernels: int

    @property
    def name(self) -> str:
        """Name of the last pass."""
        return self.timing.name


@dataclass(frozen=True)
class PassResult:
    """Times of a network with one more compiler pass at a time.

    Attributes
    ----------
    model, inputs, batch, threads, machine
        Network and inputs, number of threads, and machine.
    steps
        In the order of :data:`PASSES`; all were timed together, round by round.
    error
        Largest difference of any step's output from the eager one, relative to the largest output.
    """

    model: str
    inputs: str
    batch: int
    threads: int
    machine: Machine
    steps: tuple[PassStep, ...]
    error: float

    @cached_property
    def factors(self) -> tuple[Ratio, ...]:
        """Speed-up of each pass on top of those before it; their product is :attr:`total`."""
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return tuple(ratio_of_medians(before.timing, after.timing) for before, after in pairs)

    @cached_property
    def total(self) -> Ratio:
        """Speed-up of all passes together over eager."""
        return ratio_of_medians(self.steps[0].timing, self.steps[-1].timing)

    def explain(self) -> str:
        """Return the steps as a text table."""
        lines = [f"{self.model}, {self.inputs}, {self.threads} thread(s): {self.total} as fast with all passes."]
        lines.append(f"{'pass':<24}{'median':>11} {'kernels':>8}  factor")
        for step, factor in zip(self.steps, (None, *self.factors), strict=True):
            ms = f"{step.timing.median.m_as('ms'):.4g} ms"
            lines.append(f"{step.name:<24}{ms:>11} {step.kernels:>8}  {factor or '—'}")
        warned = [f"warning: {words}" for step in self.steps for words in step.timing.warnings]
        return "\n".join([*lines, self.machine.explain(), *warned])

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, including samples."""
        steps = [{"timing": timing_record(step.timing), "kernels": step.kernels} for step in self.steps]
        return {**asdict(self), "steps": steps}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PassResult:
        """Return the result stored by :meth:`record`."""
        steps = tuple(PassStep(timing_from(step["timing"]), step["kernels"]) for step in record["steps"])
        return cls(**{**record, "machine": Machine(**record["machine"]), "steps": steps})


def pass_bench(
    model: Any,
    inputs: Any,
    *,
    name: str | None = None,
    batch: int = 1,
    threads: int = 1,
    repeats: int = 30,
    warmup: int = 5,
    limit: Quantity | None = None,
    tolerance: float = 1e-3,
    tick: Callable[[], object] = lambda: None,
) -> PassResult:
    """Time a convolutional network with one more compiler pass at a time.

    Parameters
    ----------
    model
        A module in evaluation mode, with convolutions and batch normalisations that torch.fx can trace.
    inputs
        One tensor of images.
    name, batch, threads, repeats, warmup, limit, tolerance, tick
        As for :func:`mlsys.measure.compile_bench`.

    Returns
    -------
    PassResult
        The steps; their factors multiply to the total.

    Raises
    ------
    MeasureError
        As for :func:`mlsys.measure.compile_bench`.
    """
    import torch
    from torch._inductor import config
    from torch._inductor.utils import fresh_cache
    from torch.fx.experimental.optimization import fuse

    threads = checked_count("pass_bench", "threads", threads)
    args, kwargs = call_arguments(model, inputs)
    label = name or type(model).__name__
    compiler()
    machine = this_machine()
    runs: dict[str, Callable[[], Any]] = {}
    kernels: dict[str, int] = {}
    with ExitStack() as stack:
        stack.enter_context(with_threads(threads))
        stack.enter_context(torch.no_grad())
        stack.enter_context(memory_errors(label))
        torch.compiler.reset()
        stack.callback(torch.compiler.reset)
        stack.enter_context(fresh_cache())
        (images,) = args
        wanted = model(images)
        folded = fuse(model)
        turned, turned_images = _turned(copy.deepcopy(folded)), _turned(images)
        plain = {PASSES[0]: (model, images), PASSES[1]: (folded, images), PASSES[2]: (turned, turned_images)}
        error = 0.0
        for rung, (module, x) in plain.items():
            runs[rung] = partial(module, x)
            kernels[rung] = dispatched(runs[rung])
            error = max(error, largest_error(wanted, runs[rung](), tolerance, label))
            tick()
        for rung, freeze in ((PASSES[3], False), (PASSES[4], True)):
            module = torch.compile(copy.deepcopy(turned), backend="inductor", options={"freezing": freeze})
            with config.patch(freezing=freeze):
                output, sources, _ = first_call(module, (turned_images,), {}, label)
            runs[rung] = partial(module, turned_images)
            kernels[rung] = sum(count_launches(sources))
            error = max(error, largest_error(wanted, output, tolerance, label))
            tick()
        timings = measure(runs, repeats=repeats, warmup=warmup, limit=limit, tick=tick)
    steps = tuple(PassStep(timing, kernels[timing.name]) for timing in timings)
    return PassResult(label, shapes_in_words(args, kwargs), batch, threads, machine, steps, error)


def _turned(it: Any) -> Any:
    """Return images, or a network for them, in channels-last layout."""
    import torch

    return it.to(memory_format=torch.channels_last)
