"""Eager PyTorch and ``torch.compile`` compared on this machine: timed, checked, counted and predicted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError
from mlsys.measure.compile.kernels import count_launches, dispatched
from mlsys.measure.compile.predict import predict
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.errors import CompileFailedError, OutOfMemoryError, OutputsDifferError
from mlsys.measure.machine import compiler, this_machine
from mlsys.measure.rates import MachineRates, machine_rates, with_threads
from mlsys.measure.timing import measure
from mlsys.unit_checks import checked_count, checked_number, positive
from mlsys.units import Quantity

if TYPE_CHECKING:
    import torch

    from mlsys.workloads.operator import Network
    from mlsys.workloads.workload import Workload

_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


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
        :func:`mlsys.measure.compile.predict.inductor_kernels`.
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
    args, kwargs = _arguments(model, inputs)
    label = name or type(model).__name__
    compiler()
    machine = this_machine()
    rates = rates or machine_rates(threads, tick=tick)
    if rates.threads != threads:
        raise ArgumentError(
            f"compile_bench(): `rates` were measured with {rates.threads} threads, `threads` is {threads}. "
            f"Write rates=machine_rates({threads})"
        )
    with with_threads(threads), torch.no_grad(), _memory_errors(label):
        eager_output, operators = _eagerly(model, args, kwargs, label)
        tick()
        with _compiled(model, freeze) as compiled:
            output, sources, seconds = _first_call(compiled, args, kwargs, label)
            tick()
            kernels = count_launches(sources)
            if not sum(kernels):
                raise CompileFailedError(
                    f"compile_bench(): no part of {label!r} was compiled; all of it fell back to eager PyTorch"
                )
            error = _largest_error(eager_output, output, tolerance, label)
            graphs, breaks = _graphs()
            del output, eager_output
            eager, fast = measure(
                {"eager": lambda: model(*args, **kwargs), "compiled": lambda: compiled(*args, **kwargs)},
                repeats=repeats, warmup=warmup, limit=limit, tick=tick,
            )  # fmt: skip
    return CompileResult(
        model=label,
        inputs=_shapes(args, kwargs),
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


def _arguments(model: Any, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    import torch

    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(
            f"compile_bench(): `model` must be a torch.nn.Module, got {type(model).__name__}. "
            "Write e.g. model=torch.nn.Linear(64, 64).eval()"
        )
    if model.training:
        raise ArgumentError(
            "compile_bench(): `model` is in training mode, where dropout and normalisation behave differently. "
            "Write model.eval()"
        )
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)) and inputs:
        return tuple(inputs), {}
    raise ArgumentError(
        f"compile_bench(): `inputs` must be a tensor, a tuple of arguments or a dict of them, got {inputs!r}. "
        "Write e.g. inputs=torch.zeros(1, 3, 224, 224)"
    )


@contextmanager
def _memory_errors(label: str) -> Iterator[None]:
    """Convert torch's various out-of-memory errors to one."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in _OUT_OF_MEMORY):
            raise
        raise OutOfMemoryError(
            f"compile_bench(): {label!r} does not fit into memory. Choose a smaller batch, sequence or image"
        ) from error


def _eagerly(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], label: str) -> tuple[Any, int]:
    """Return the output of an eager call, and the number of operators dispatched for it."""
    try:
        output = model(*args, **kwargs)
    except (MemoryError, RuntimeError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
            raise
        raise ArgumentError(
            f"compile_bench(): {label!r} does not run on these inputs: {_first_line(error)}. Check their shapes"
        ) from error
    return output, dispatched(lambda: model(*args, **kwargs))


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


def _first_call(
    compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any], label: str
) -> tuple[Any, list[str], float]:
    """Return output, generated sources and duration of the first call, which compiles."""
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    counters.clear()
    start = time.perf_counter()
    try:
        output, sources = run_and_get_code(compiled, *args, **kwargs)
    except Exception as error:  # the compiler may raise anything; the eager model ran
        if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
            raise
        raise CompileFailedError(f"compile_bench(): {label!r} cannot be compiled: {_first_line(error)}") from error
    return output, sources, time.perf_counter() - start


def _graphs() -> tuple[int, int]:
    """Return the number of graphs of the last compilation, and of its graph breaks."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"]), int(sum(counters["graph_break"].values()))


def _largest_error(wanted: Any, got: Any, tolerance: float, label: str) -> float:
    """Return the largest difference of two outputs relative to the largest value; raise if it exceeds the tolerance."""
    import torch
    from torch.utils._pytree import tree_leaves

    pairs = [
        (expected.double(), actual.double())
        for expected, actual in zip(tree_leaves(wanted), tree_leaves(got), strict=False)
        if isinstance(expected, torch.Tensor)
        and isinstance(actual, torch.Tensor)
        and expected.shape == actual.shape
        and expected.numel()
    ]
    scale = max((float(expected.abs().max()) for expected, _ in pairs), default=0.0) or 1.0
    worst = max((float((expected - actual).abs().max()) for expected, actual in pairs), default=0.0) / scale
    try:
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance * scale)
    except (AssertionError, TypeError) as error:
        raise OutputsDifferError(
            f"compile_bench(): the compiled {label!r} differs from the eager one: largest difference "
            f"{worst:.2g} of the largest output, allowed {tolerance:.2g} ({_first_line(error)}). "
            "No speed-up is reported for different results"
        ) from error
    return worst


def _shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the inputs in words, such as ``"1×3×224×224 float32"``."""
    import torch

    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    return ", ".join(
        f"{'×'.join(map(str, value.shape)) or 'one number'} {str(value.dtype).removeprefix('torch.')}"
        for value in tensors
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
