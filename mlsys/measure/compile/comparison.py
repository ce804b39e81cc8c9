"""Eager PyTorch and ``torch.compile`` compared on this machine: timed, checked, counted and predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError
from mlsys.measure.compile.call import (
    call_arguments,
    eager_call,
    first_call,
    largest_error,
    memory_errors,
    shapes_in_words,
)  # fmt: skip
from mlsys.measure.compile.kernels import count_launches
from mlsys.measure.compile.predict import predict
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.errors import CompileFailedError
from mlsys.measure.machine import compiler, this_machine, with_threads
from mlsys.measure.rates import MachineRates, machine_rates
from mlsys.measure.timing import measure
from mlsys.unit_checks import checked_count, checked_number, positive
from mlsys.units import Quantity

if TYPE_CHECKING:
    import torch

    from mlsys.workloads.operator import Network
    from mlsys.workloads.workload import Workload


def compile_bench(
    model: torch.nn.Module,
    inputs: object,
    *,
    name: str | None = None,
    batch: int = 1,
    freeze: bool = False,
    threads: int = 1,
    repeats: int = 30,
    warmup: int = 5,
    limit: Quantity | None = None,
    tolerance: float = 1e-3,
    rates: MachineRates | None = None,
    fuse: Callable[[Workload], Network] | None = None,
    tick: Callable[[], object] = lambda: None,
) -> CompileResult:
    """Time a model in eager PyTorch and compiled by Inductor, alternately, on this CPU.

    Parameters
    ----------
    model
        A module in evaluation mode.
    inputs
        A tensor, a tuple of arguments, or a dict of them by name.
    name, batch
        Name of the model, by default its class, and the number of samples in ``inputs``.
    freeze
        Whether to treat weights as constants, so that Inductor can fold normalisations and change weight layouts.
    threads
        Number of threads.
    repeats, warmup, limit
        Timed rounds, warm-up calls, and a time after which no further round starts.
    tolerance
        Largest accepted difference of the outputs, relative to the largest output.
    rates
        Result of :func:`machine_rates` for the same number of threads; measured first by default.
    fuse
        Function from operators to fused kernels, for the prediction; by default
        ``mlsys.measure.compile.predict.inductor_kernels``.
    tick
        Called after each step and round, for a progress bar.

    Returns
    -------
    CompileResult
        Raw samples of both, kernels before and after, and the prediction made from ``rates`` alone.

    Raises
    ------
    ArgumentError
        If ``model`` is in training mode or does not run on ``inputs``, or a number is out of its range.
    NoCompilerError
        If there is no C++ compiler.
    CompileFailedError
        If the model cannot be compiled.
    OutOfMemoryError
        If there is not enough memory.
    OutputsDifferError
        If the compiled model returns different results.
    """
    import torch

    threads = checked_count("compile_bench", "threads", threads)
    tolerance = float(checked_number("compile_bench", "tolerance", tolerance, positive(), {}))
    batch = checked_count("compile_bench", "batch", batch)
    args, kwargs = call_arguments(model, inputs)
    label = name or type(model).__name__
    compiler()
    machine = this_machine()
    rates = rates or machine_rates(threads, tick=tick)
    if rates.threads != threads:
        raise ArgumentError(
            f"compile_bench(): `rates` were measured with {rates.threads} threads, `threads` is {threads}. "
            f"Write rates=machine_rates({threads})"
        )
    with with_threads(threads), torch.no_grad(), memory_errors(label):
        eager_output, operators = eager_call(model, args, kwargs, label)
        tick()
        with _compiled(model, freeze) as compiled:
            output, sources, seconds = first_call(compiled, args, kwargs, label)
            tick()
            kernels = count_launches(sources)
            if not sum(kernels):
                raise CompileFailedError(
                    f"compile_bench(): no part of {label!r} was compiled; all of it fell back to eager PyTorch"
                )
            error = largest_error(eager_output, output, tolerance, label)
            graphs, breaks = _graphs()
            del output, eager_output
            eager, fast = measure(
                {"eager": lambda: model(*args, **kwargs), "compiled": lambda: compiled(*args, **kwargs)},
                repeats=repeats, warmup=warmup, limit=limit, tick=tick,
            )  # fmt: skip
    return CompileResult(
        model=label,
        inputs=shapes_in_words(args, kwargs),
        batch=batch,
        frozen=freeze,
        machine=machine,
        rates=rates,
        eager=eager,
        compiled=fast,
        compile_seconds=seconds,
        error=error,
        tolerance=tolerance,
        operators=operators,
        generated=kernels.generated,
        library=kernels.library,
        graphs=graphs,
        graph_breaks=breaks,
        predicted=predict(model, inputs, rates, label, frozen=freeze, fuse=fuse),
    )


@contextmanager
def _compiled(model: Any, freeze: bool) -> Iterator[Any]:
    """Compile with empty caches, and clean up afterwards."""
    import torch
    from torch._inductor import config
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    try:
        with fresh_cache(), config.patch(freezing=freeze):
            yield torch.compile(model, backend="inductor")
    finally:
        torch.compiler.reset()


def _graphs() -> tuple[int, int]:
    """Return the number of graphs of the last compilation, and of its graph breaks."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"]), int(sum(counters["graph_break"].values()))
