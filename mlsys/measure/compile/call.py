"""One call of an eager or a compiled model: its arguments, its errors, its output and the generated sources."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlsys.errors import ArgumentError, first_line
from mlsys.measure.compile.kernels import dispatched
from mlsys.measure.errors import CompileFailedError, OutOfMemoryError, OutputsDifferError

_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def _is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY)


def call_arguments(model: Any, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and named arguments of a call; raise if model or inputs cannot be measured."""
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
def memory_errors(label: str) -> Iterator[None]:
    """Convert torch's various out-of-memory errors to one."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        raise OutOfMemoryError(
            f"compile_bench(): {label!r} does not fit into memory. Choose a smaller batch, sequence or image"
        ) from error


def eager_call(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], label: str) -> tuple[Any, int]:
    """Return the output of an eager call, and the number of operators dispatched for it."""
    try:
        output = model(*args, **kwargs)
    except (MemoryError, RuntimeError, TypeError, ValueError, IndexError) as error:
        if _is_memory(error):
            raise
        raise ArgumentError(
            f"compile_bench(): {label!r} does not run on these inputs: {_reason(error)}. Check their shapes"
        ) from error
    return output, dispatched(lambda: model(*args, **kwargs))


def first_call(
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
        if _is_memory(error):
            raise
        raise CompileFailedError(f"compile_bench(): {label!r} cannot be compiled: {_reason(error)}") from error
    return output, sources, time.perf_counter() - start


def largest_error(wanted: Any, got: Any, tolerance: float, label: str) -> float:
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
            f"{worst:.2g} of the largest output, allowed {tolerance:.2g} ({_reason(error)}). "
            "No speed-up is reported for different results"
        ) from error
    return worst


def shapes_in_words(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the inputs in words, such as ``"1×3×224×224 float32"``."""
    import torch

    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    return ", ".join(
        f"{'×'.join(map(str, value.shape)) or 'one number'} {str(value.dtype).removeprefix('torch.')}"
        for value in tensors
    )


def _reason(error: Exception) -> str:
    return first_line(error).rstrip(".")
