"""Networks, layers and kernels of microcontrollers, at the clock that a row states."""

import itertools
import re

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Device
from mlsys.models.estimate import MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format, kernels_of
from mlsys_evidence.questions.network_lookup import built
from mlsys_evidence.questions.threads import at_clock
from mlsys_evidence.typed_rows import TypedRow


def tiny(row: TypedRow) -> Case:
    """Return the case of one inference on a microcontroller, at the clock that the row states."""
    fmt, twin = row.format, row.machine
    engine = _engine(row, twin, fmt)
    shape = {"image": row.number("image")} if "image" in row.numbers else {}
    work = kernels_of(built(row.network, batch=1, **shape), fmt)
    seconds, inverse = seconds_each(row.row)
    setting = f"{_without_kernels(row, twin, fmt, work) or _library(row, twin, fmt)} on {twin.kind}"
    return Case(row.row, "mcu inference", setting, twin.id, engine, work, seconds, inverse)


# Cores on which interpreters of TensorFlow Lite's files have kernels of their own, for integers alone: Arm's and
# Espressif's (ARM-software/CMSIS-NN, README, "Supported Framework": int8 and int16 on Cortex-M, float only as a late
# experiment for Helium; espressif/esp-nn): elsewhere, and in floating point, they run their reference kernels.
WITH_KERNELS = r"Cortex-M|Xtensa|PIE"


def _without_kernels(row: TypedRow, twin: Device, fmt: Format, work: Work) -> str:
    """Return what an interpreter runs where it has no kernels of its own; else an empty string.

    Its reference loops index every number anew in a convolution, and run through plain rows in a dense layer.
    """
    own = fmt.computes != "fp32" and re.search(WITH_KERNELS, twin.architecture)
    if own or not row.has("interpreter"):
        return ""
    dense = bool((work["kind"] == MATMUL).any() and (work["m"] <= 1).all())
    return "fully connected interpreter" if dense else "reference kernels"


def tiny_layers(row: TypedRow) -> Case:
    """Return the case of a few fully connected layers on a microcontroller."""
    fmt, twin = row.format, row.machine
    engine = _engine(row, twin, fmt)
    widths = [int(width) for width in row.widths.split()]
    kernels = [
        Kernel(MATMUL, flops=2.0 * a * b, moved=(a + b + a * b) * fmt.value, weights=a * b * fmt.weight, m=1, n=b, k=a)
        for a, b in itertools.pairwise(widths)
    ]
    seconds, inverse = seconds_each(row.row)
    setting = f"fully connected interpreter on {twin.kind}"
    return Case(row.row, "mcu inference", setting, twin.id, engine, Work.of(kernels), seconds, inverse)


# Cores whose instructions multiply pairs of 16 bits, TM_ARCH_ARM_SIMD of TinyMaix; its authors list the fastest way of
# each core, and time it like CMSIS-NN (sipeed/TinyMaix, benchmark.md: 132 and 136 ms on a Cortex-M7).
PAIRED = r"Cortex-M(4F?|7|33)\b"


def _library(row: TypedRow, twin: Device, fmt: Format) -> str:
    paired = row.has("TinyMaix") and re.search(PAIRED, twin.architecture) and fmt.computes != "fp32"
    software = "microcontroller runtime" if paired and row.software == "plain kernels" else row.software
    # Kernels such as CMSIS-NN's and ESP-NN's are of integers alone: floats run in what C compiles to.
    return "plain kernels" if (software, fmt.computes) == ("microcontroller runtime", "fp32") else software


def _engine(row: TypedRow, twin: Device, fmt: Format) -> Snapshot:
    """Return the part of a microcontroller that a row's program uses: Espressif's kernels, too, run on one core."""
    engine = _at_clock(row, engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit))
    engine = engine.on_one_core()
    if not engine.controller or "kernels" not in _library(row, twin, fmt):
        return engine
    # No compiler makes pairs or vectors of plain C: one multiply-accumulate in a cycle at most.
    return engine.changed(matmul=lambda: min(engine.matmul, 2 * engine.clock)).designed()


def _at_clock(row: TypedRow, engine: Snapshot) -> Snapshot:
    return at_clock(engine, row.get("clock"), memory=True) if "clock" in row.numbers else engine


def tiny_kernel(row: TypedRow) -> Case:
    """Return the case of one convolution of Espressif's test benches, by ticks of the processor or by time."""
    high, wide, first = (row.number(name) for name in ("height", "width", "filters"))
    kernel = [row.number(name) for name in ("filter_height", "filter_width", "channels")]
    pad, stride = row.number("pad_h"), row.number("stride_h")
    fmt, twin = row.format, row.machine
    engine = _engine(row, twin, fmt)
    depthwise = row.has("depthwise")
    rows, columns, channels = kernel
    pixels = ((high + 2 * pad - rows) // stride + 1) * ((wide + 2 * pad - columns) // stride + 1)
    filters = channels if depthwise else first
    depth = rows * columns * (1 if depthwise else channels)
    moved = (high * wide * channels + pixels * filters + filters * depth) * fmt.value
    shape = {} if depthwise else {"m": pixels, "n": filters, "k": depth}
    kind = VECTOR if depthwise else MATMUL
    work = Work.of([Kernel(kind, flops=2.0 * pixels * filters * depth, moved=moved, **shape)])
    seconds = row.row.value / engine.clock if row.row.unit == "CPU ticks" else seconds_each(row.row)[0]
    return Case(
        row.row, "mcu inference", f"{_library(row, twin, fmt)} on {twin.kind}", twin.id, engine, work, seconds, False
    )
