"""Ten measurements of this machine, as rows for ``mlsys calibrate``."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, get_args

from mlsys.choices import Processor, TimedFormat
from mlsys.measure.errors import MeasureError
from mlsys.measure.machine import clock_mhz
from mlsys.measure.timing import Timing, measure
from mlsys.unit_checks import checked_choice
from mlsys.units import ureg

COLUMNS = (
    "device", "device_class", "n_devices", "workload", "model", "precision", "batch", "seq_or_shape", "metric", "value",
    "unit", "software", "note", "network", "operator", "elements", "image", "tokens", "stack", "processor", "threads",
    "tf32", "spread", "busy", "clock_mhz",
)  # fmt: skip
# Networks and their batches, from launch-limited to compute-limited, and one language model.
_NETWORKS = {
    "cpu": (
        ("squeezenet-1.1", 1), ("mobilenet-v2", 1), ("resnet18", 1), ("alexnet", 1), ("resnet34", 1), ("resnet50", 1),
        ("resnet50", 4), ("densenet121", 1), ("vgg11", 1), ("bert-base", 1),
    ),
    "cuda": (
        ("squeezenet-1.1", 1), ("mobilenet-v2", 32), ("resnet18", 1), ("resnet50", 1), ("resnet50", 64),
        ("vgg11", 32), ("bert-base", 8),
    ),
}  # fmt: skip
# On a CPU only networks are measured; on a GPU the memory is also measured on its own.
_ELEMENTS = {"cpu": (), "cuda": (1 << 18, 1 << 24, 1 << 27)}
# Time limit of all measurements, and of one; the first measurement past the limit is the last.
LONGEST, EACH = 120.0, 6.0
# Number of rounds: other programs only add time, and come and go within minutes. On two cores of a shared EPYC,
# BERT-base took 185 ms in one round, steady within 2 %, and 157 ms in another: only the other round shows it. A GPU is
# not shared.
ROUNDS: dict[str, int] = {"cpu": 2, "cuda": 1}


def ten_measurements(
    device: str,
    device_class: str,
    on: Processor = "cpu",
    precision: TimedFormat = "fp32",
    tick: Callable[[], object] = lambda: None,
) -> list[dict[str, str]]:
    """Time networks in eager PyTorch; on a GPU also additions of arrays, to measure its memory.

    Each is warmed up, called often enough for a sample of some milliseconds, and timed in at least six samples; on a
    CPU, which is shared with other programs, twice, the second time after all others. The value is the median of the
    faster round; the interquartile range of the samples and the clock have their own columns, on a CPU also the share
    of CPU time that PyTorch's threads had. It takes less than three minutes: on a machine so slow or busy that ten
    would take longer, there are fewer.

    Parameters
    ----------
    device
        Name of the device that the rows are labelled with.
    device_class
        Its class, as in the rows: ``"CPU"``, ``"datacenter GPU"``, …
    on
        ``"cpu"``, or ``"cuda"`` for a GPU through PyTorch.
    precision
        ``"fp32"``, ``"fp16"`` or ``"bf16"``.
    tick
        Called after each measurement.

    Raises
    ------
    MeasureError
        If PyTorch is not installed, or finds no such device, or nothing fits its memory. What does not fit is skipped.
    UnknownNameError
        If ``on`` or ``precision`` has an unknown value.
    """
    try:
        import torch
    except ImportError as error:
        raise MeasureError("measure: PyTorch is not installed. Run: pip install torch") from error
    checked_choice("ten_measurements", "on", on, get_args(Processor))
    checked_choice("ten_measurements", "precision", precision, get_args(TimedFormat))
    if on == "cuda" and not torch.cuda.is_available():
        raise MeasureError("measure: PyTorch finds no GPU. Write --on cpu, or install its CUDA or ROCm build")
    kinds: dict[TimedFormat, Any] = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    fixed: dict[str, Any] = {"device": on, "dtype": kinds[precision]}
    size = 4 if precision == "fp32" else 2
    waits: Callable[[], object] = torch.cuda.synchronize if on == "cuda" else lambda: None
    start_time = time.perf_counter()
    quickest: dict[tuple[str, str, str], tuple[float, dict[str, str]]] = {}
    with torch.inference_mode():
        for cells, placed, moved in chain.from_iterable(_runs(on, precision, fixed, size) for _ in range(ROUNDS[on])):
            what = (cells["model"], cells["batch"], cells["seq_or_shape"])
            try:
                timed, calls, held = _timed(placed, on, waits)
            except torch.cuda.OutOfMemoryError:  # smaller ones may still fit
                continue
            seconds = float(timed.median.m_as("s")) / calls
            value = moved / seconds / 1e9 if moved else seconds * 1e3
            note = f"median of {len(timed.samples)} samples after {timed.warmup * calls} warm-up calls"
            measured = {"spread": f"{timed.spread:.3g}", "clock_mhz": _clock(on)}
            if on == "cuda":
                note += f"; {torch.cuda.get_device_name()}"
                measured["tf32"] = "convolutions" if precision == "fp32" and _in_tf32(torch) else "none"
            else:
                measured |= {"busy": f"{held:.3g}", "threads": str(torch.get_num_threads())}
            always = {"device": device, "device_class": device_class, "n_devices": "1", "precision": precision}
            software = {"software": f"PyTorch {torch.__version__} eager", "note": note, "value": f"{value:.5g}"}
            if what not in quickest or seconds < quickest[what][0]:
                quickest[what] = seconds, always | cells | software | measured
            tick()
            if time.perf_counter() - start_time > LONGEST:
                break
    measurements = [row for _, row in quickest.values()]
    if not measurements:
        raise MeasureError("measure: none of the measurements fits into the memory of the GPU. Free it, or use another")
    return measurements


def _timed(
    placed: Callable[[], Callable[[], object]], on: Processor, waits: Callable[[], object]
) -> tuple[Timing, int, float]:
    """Return the samples of a call, the calls in each sample, and the CPU share of its threads.

    No memory of it is left on the device on return.
    """
    import torch

    if on == "cuda":
        torch.cuda.empty_cache()
    run = placed()
    calls = _calls_of_a_sample(run, waits) if on == "cuda" else 1
    started, used = time.perf_counter(), time.process_time()
    timed = measure(
        {"run": _finished(run, calls, waits)},
        repeats=30,
        warmup=3,
        shortest=ureg.Quantity(5, "ms"),
        limit=ureg.Quantity(EACH, "s"),
        clock=time.perf_counter,
    )[0]
    held = (time.process_time() - used) / (time.perf_counter() - started) / torch.get_num_threads()
    return timed, calls, held


def count_measurements(on: Processor) -> int:
    """Return the number of measurements of :func:`ten_measurements`, if time allows."""
    return len(_NETWORKS[on]) + len(_ELEMENTS[on])


def _runs(
    on: Processor, precision: TimedFormat, fixed: dict[str, Any], size: int
) -> Iterator[tuple[dict[str, str], Callable[[], Callable[[], object]], float]]:
    """Yield the columns of each measurement, a function that sets it up on the device, and the bytes that it moves.

    The function returns the call to be timed; the bytes of networks are not given.
    """
    from mlsys.measure.networks.modules import ready_model

    for name, batch in _NETWORKS[on]:
        module, inputs, _ = ready_model(name, batch=batch)
        language = not inputs.is_floating_point()
        words = "BERT inference" if language else "CNN inference"
        shape = f"seq {inputs.shape[1]}" if language else f"{inputs.shape[2]}x{inputs.shape[3]} image"
        cells = {
            "workload": f"{words} on CPU" if on == "cpu" else words, "model": name, "batch": str(batch),
            "seq_or_shape": shape, "metric": "latency", "unit": "ms", "network": name,
            "stack": "eager", "processor": on,
            **({"tokens": str(inputs.shape[1])} if language else {"image": str(inputs.shape[2])}),
        }  # fmt: skip
        yield cells, partial(_network, module, inputs, fixed), 0.0
    for count in _ELEMENTS[on]:
        cells = {
            "workload": "STREAM Add (PyTorch eager torch.add)", "model": "", "batch": "1",
            "seq_or_shape": f"{count * size / 1e6:.6g} MB per array (2 loads + 1 store)",
            "metric": "memory bandwidth", "unit": "GB/s", "operator": "add", "elements": str(count),
            "processor": on,
        }  # fmt: skip
        yield cells, partial(_addition, count, fixed), 3.0 * count * size


def _network(module: Any, inputs: Any, fixed: dict[str, Any]) -> Callable[[], object]:
    there = inputs.to(**fixed) if inputs.is_floating_point() else inputs.to(fixed["device"])
    return partial(module.to(**fixed), there)


def _addition(count: int, fixed: dict[str, Any]) -> Callable[[], object]:
    import torch

    x, y = torch.randn(count, **fixed), torch.randn(count, **fixed)
    return partial(torch.add, x, y, out=torch.empty_like(x))


# Maximum number of GPU calls between two synchronisations, and the target duration of a batch of calls: the GPU works
# while the next call is queued.
_CALLS, _TOGETHER = 20, 0.2


def _calls_of_a_sample(run: Callable[[], object], waits: Callable[[], object]) -> int:
    run()  # the first call loads kernels and chooses algorithms
    waits()
    started = time.perf_counter()
    run()
    waits()
    return max(1, min(_CALLS, round(_TOGETHER / max(time.perf_counter() - started, 1e-6))))


def _finished(run: Callable[[], object], calls: int, waits: Callable[[], object]) -> Callable[[], object]:
    def many() -> None:
        for _ in range(calls):
            run()
        waits()

    return many


def _in_tf32(torch: Any) -> bool:
    """Return whether PyTorch's convolutions may use TF32 for FP32, as by default from Ampere on."""
    able = torch.cuda.get_device_capability()[0] >= 8 and torch.version.hip is None
    return bool(able and torch.backends.cudnn.allow_tf32)


def gpu_name() -> str:
    """Return the name of PyTorch's GPU; empty if there is none."""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


def _clock_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that PyTorch raises where a driver reports no clock; they have no common base class."""
    errors: list[type[Exception]] = [RuntimeError, ImportError, AttributeError]
    for library, error in (("pynvml", "NVMLError"), ("amdsmi", "AmdSmiException")):
        with suppress(ImportError):
            errors.append(getattr(import_module(library), error))
    return tuple(errors)


def _clock(on: str) -> str:
    """Return the current clock, MHz; empty if unknown."""
    if on == "cuda":
        import torch

        try:
            return str(torch.cuda.clock_rate())
        except _clock_errors():
            return ""
    return clock_mhz()
