"""Ten measurements of this machine, as rows that ``mlsys calibrate`` takes."""

import time
from collections.abc import Callable
from typing import Any, get_args

from mlsys.bench.errors import MeasureError
from mlsys.bench.timing import measure
from mlsys.choices import Processor, TimedFormat
from mlsys.door import checked_choice
from mlsys.units import ureg

COLUMNS = (
    "device", "device_class", "n_devices", "workload", "model", "precision", "batch", "seq_or_shape", "metric", "value",
    "unit", "software", "note",
)  # fmt: skip
# Products from one that a launch holds to one that arithmetic holds, and one that reads its weights.
_PRODUCTS = {
    "cpu": ((64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (1, 4096, 4096)),
    "cuda": ((256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (1, 8192, 8192)),
}
_ELEMENTS = {"cpu": (1 << 16, 1 << 20, 1 << 24), "cuda": (1 << 18, 1 << 24, 1 << 27)}
_ROWS = {"cpu": (512, 1024), "cuda": (4096, 4096)}


def ten_measurements(
    device: str,
    device_class: str,
    on: Processor = "cpu",
    precision: TimedFormat = "fp32",
    tick: Callable[[], object] = lambda: None,
) -> list[dict[str, str]]:
    """Time five products, three additions, a softmax and a layer normalisation with PyTorch as it is.

    Each is warmed up, called often enough for a sample of some milliseconds, and timed in at least
    twelve samples in turn with the others of its kind; the median is the value, and the middle half
    of the samples and the clock stand in the note; on a CPU also how much of its threads' time PyTorch had.
    It takes less than three minutes.

    Parameters
    ----------
    device
        Name of the twin that the rows are about.
    device_class
        Its class, in the words of the rows: ``"CPU"``, ``"datacenter GPU"``, …
    on
        ``"cpu"``, or ``"cuda"`` for a GPU through PyTorch.
    precision
        ``"fp32"``, ``"fp16"`` or ``"bf16"``.
    tick
        Called after each measurement.

    Raises
    ------
    MeasureError
        If PyTorch is not there, or finds no such device.
    UnknownNameError
        If ``on`` or ``precision`` is none of those.
    """
    try:
        import torch
    except ImportError as error:
        raise MeasureError("measure: PyTorch is not installed. Run: pip install torch") from error
    checked_choice("ten_measurements", "on", on, get_args(Processor))
    checked_choice("ten_measurements", "precision", precision, get_args(TimedFormat))
    if on == "cuda" and not torch.cuda.is_available():
        raise MeasureError("measure: PyTorch finds no GPU here. Write --on cpu, or install its CUDA or ROCm build")
    kinds: dict[TimedFormat, Any] = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    fixed: dict[str, Any] = {"device": on, "dtype": kinds[precision]}
    size = 4 if precision == "fp32" else 2
    m, n = _ROWS[on]
    runs: list[tuple[str, str, str, Callable[[], object], float]] = []
    for a, b, c in _PRODUCTS[on]:
        x, w = torch.randn(a, c, **fixed), torch.randn(b, c, **fixed)
        runs.append(("GEMM", f"M={a},N={b},K={c}", "us", lambda x=x, w=w: torch.nn.functional.linear(x, w), 0.0))  # type: ignore[misc]
    for count in _ELEMENTS[on]:
        x, y = torch.randn(count, **fixed), torch.randn(count, **fixed)
        out = torch.empty_like(x)
        shape = f"{count * size / 1e6:.6g} MB per array (2 loads + 1 store)"
        name = "STREAM Add (PyTorch eager torch.add)"
        runs.append((name, shape, "GB/s", lambda x=x, y=y, out=out: torch.add(x, y, out=out), 3.0 * count * size))  # type: ignore[misc]
    x = torch.randn(m, n, **fixed)
    runs.append(("softmax", f"M={m},N={n} (reduce over N)", "us", lambda: torch.softmax(x, -1), 0.0))
    runs.append(
        ("layernorm", f"M={m},N={n} (reduce over N)", "us", lambda: torch.nn.functional.layer_norm(x, (n,)), 0.0)
    )
    waits: Callable[[], object] = torch.cuda.synchronize if on == "cuda" else lambda: None
    measurements = []
    with torch.inference_mode():
        for workload, shape, unit, run, moved in runs:
            waits()
            begun, used = time.perf_counter(), time.process_time()
            timed = measure(
                {workload: _finished(run, waits, on)},
                repeats=30,
                shortest=ureg.Quantity(5, "ms"),
                limit=ureg.Quantity(8, "s"),
                clock=time.perf_counter,
            )[0]
            seconds = float(timed.median.m_as("s")) / (_CALLS if on == "cuda" else 1)
            value = moved / seconds / 1e9 if moved else seconds * 1e6
            note = (
                f"median of {len(timed.samples)} samples after {timed.warmup} warm-up calls, "
                f"middle half within {timed.spread:.1%}; {_clock(on)}"
            )
            if on == "cpu":
                held = (time.process_time() - used) / (time.perf_counter() - begun) / torch.get_num_threads()
                note += f"; {held:.0%} of {torch.get_num_threads()} threads"
            cells = (
                device, device_class, "1", workload, "", precision, "1", shape,
                "memory bandwidth" if moved else "time", f"{value:.5g}", unit,
                f"PyTorch {torch.__version__} eager", note,
            )  # fmt: skip
            measurements.append(dict(zip(COLUMNS, cells, strict=True)))
            tick()
    return measurements


# Calls of a GPU between two waits: it works on while the next is handed over.
_CALLS = 20


def _finished(run: Callable[[], object], waits: Callable[[], object], on: str) -> Callable[[], object]:
    if on == "cpu":
        return run

    def many() -> None:
        for _ in range(_CALLS):
            run()
        waits()

    return many


def _clock(on: str) -> str:
    """Return the clock just now, in words."""
    if on == "cuda":
        import torch

        try:
            return f"clock {torch.cuda.clock_rate()} MHz"
        except (RuntimeError, ModuleNotFoundError, AttributeError):
            return "clock not told"
    from pathlib import Path

    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(errors="replace").splitlines() if facts.is_file() else []
    clocks = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return f"clock {max(clocks):.0f} MHz" if clocks else "clock not told"
