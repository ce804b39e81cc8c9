"""Networks, layers and kernels of microcontrollers, at the clock that a row states."""

import itertools
import re
from dataclasses import replace

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for
from mlsys.calibration.rows import Row
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Device
from mlsys.models.estimate import MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format, kernels_of
from mlsys_evidence.ingest.network_lookup import built
from mlsys_evidence.ingest.networks import inference
from mlsys_evidence.ingest.reading import number_format, twin_of
from mlsys_evidence.ingest.software import TENSORFLOW_LITE
from mlsys_evidence.ingest.threads import clocked


def tiny(row: Row) -> Case:
    """Return the case of one inference on a microcontroller, at the clock that the row states."""
    fmt = (
        replace(number_format(row.precision), computes="int8")
        if "int8" in row.precision
        else number_format(row.precision)
    )
    if "float" in row.workload:
        fmt = Format("fp32", 4, 4, True)
    twin, _ = twin_of(row.device)
    if twin.kind == "SoC" and re.search(TENSORFLOW_LITE, row.software.lower()):
        return inference(replace(row, workload="network inference on CPU", seq_or_shape=_picture(row.seq_or_shape)))
    engine = _engine(row, twin, fmt)
    shape: dict[str, int] = {}
    side = re.search(r"(\d+)x\1", row.seq_or_shape)
    if side and "MobileNet" in row.model and "VWW" not in row.model:
        shape["image"] = int(side.group(1))
    work = kernels_of(built(row.model, batch=1, **shape), fmt)
    seconds, inverse = seconds_each(row)
    setting = f"{_without_kernels(row, twin, fmt, work) or _library(row, twin, fmt)} on {twin.kind}"
    return Case(row, "mcu inference", setting, twin.id, engine, work, seconds, inverse)


def _picture(shape: str) -> str:
    """Return height and width of a picture whose row counts its channels, too, as rows of networks write them."""
    return re.sub(r"^(\d+x\d+)x\d$", r"\1 image", shape)


# Interpreters of TensorFlow Lite's files, which have kernels of their own for integers alone, on Arm's cores and on
# Espressif's (ARM-software/CMSIS-NN, README, "Supported Framework": int8 and int16 on Cortex-M, float only as an
# experiment of late for Helium; espressif/esp-nn): elsewhere, and in floating point, they run their reference kernels.
INTERPRETERS = r"TFLite Micro|TFLM|tflite-micro|TensorFlow Lite (for )?Micro|Edge Impulse|\bEON\b"
WITH_KERNELS = r"Cortex-M|Xtensa|PIE"


def _without_kernels(row: Row, twin: Device, fmt: Format, work: Work) -> str:
    """Return what an interpreter runs where it has no kernels of its own; else an empty string.

    Its reference loops index every number anew in a convolution, and run through plain rows in a dense layer.
    """
    own = fmt.computes != "fp32" and re.search(WITH_KERNELS, twin.architecture)
    if own or not re.search(INTERPRETERS, row.software):
        return ""
    dense = bool((work["kind"] == MATMUL).any() and (work["m"] <= 1).all())
    return "fully connected interpreter" if dense else "reference kernels"


def tiny_layers(row: Row) -> Case:
    """Return the case of a few fully connected layers on a microcontroller."""
    stated = re.search(r"(\d+) inputs, (\d+) outputs", row.seq_or_shape)
    hidden = re.search(r"FC (?:(\d+) x (\d+)|(\d+(?:\+\d+)+|\d+))", row.model)
    if not stated or not hidden:
        raise Inexpressible("widths of the layers not stated")
    layers = (
        [int(hidden.group(2))] * int(hidden.group(1))
        if hidden.group(1)
        else [int(width) for width in hidden.group(3).split("+")]
    )
    fmt = number_format(row.precision)
    twin, _ = twin_of(row.device)
    engine = _engine(row, twin, fmt)
    widths = [int(stated.group(1)), *layers, int(stated.group(2))]
    kernels = [
        Kernel(MATMUL, flops=2.0 * a * b, moved=(a + b + a * b) * fmt.value, weights=a * b * fmt.weight, m=1, n=b, k=a)
        for a, b in itertools.pairwise(widths)
    ]
    seconds, inverse = seconds_each(row)
    setting = f"fully connected interpreter on {twin.kind}"
    return Case(row, "mcu inference", setting, twin.id, engine, Work.of(kernels), seconds, inverse)


# Cores whose instructions multiply pairs of 16 bits, TM_ARCH_ARM_SIMD of TinyMaix; its authors list the fastest way of
# each core, and time it like CMSIS-NN (sipeed/TinyMaix, benchmark.md: 132 and 136 ms on a Cortex-M7).
PAIRED = r"Cortex-M(4F?|7|33)\b"


def _library(row: Row, twin: Device, fmt: Format) -> str:
    # TinyEngine's authors measured TensorFlow Lite Micro with its own kernels, and with CMSIS-NN's beside them.
    words = f"{row.software} {row.workload}"
    own = "tinyengine" in row.source and "TFLite Micro" in row.software
    if own or "TFLite Micro reference" in words:
        return "reference kernels"
    paired = "TinyMaix" in words and re.search(PAIRED, twin.architecture) and fmt.computes != "fp32"
    if re.search("reference|ANSI C|TinyMaix", words, re.IGNORECASE) and not paired:
        return "plain kernels"
    # Engines whose makers write loops for each core, beside interpreters that run anywhere; unnamed ones are of these.
    tuned = re.search(r"HALE|Bosch|Plumerai|X-CUBE-AI|STM32Cube\.AI|TinyEngine|ESP-DL", row.software)
    if tuned:
        return "tuned microcontroller runtime"
    # The others' kernels are CMSIS-NN's, ESP-NN's and the like, of integers alone: floats run in what C compiles to.
    return "plain kernels" if fmt.computes == "fp32" else "microcontroller runtime"


def _engine(row: Row, twin: Device, fmt: Format) -> Snapshot:
    """Return the part of a microcontroller that a row's program uses: Espressif's kernels, too, run on one core."""
    engine = _at_clock(row, engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit))
    engine = engine.on_one_core()
    if not engine.controller or "kernels" not in _library(row, twin, fmt):
        return engine
    # No compiler makes pairs or vectors of plain C: one multiply-accumulate in a cycle at most.
    return engine.changed(matmul=lambda: min(engine.matmul, 2 * engine.clock)).designed()


# Clocks that makers call by a name: 250 MHz and 96 MHz (AmbiqAI/neuralSPOT, docs, "Performance Modes").
MODES = {r"Apollo510 \(LP mode\)": 96e6}


def _at_clock(row: Row, engine: Snapshot) -> Snapshot:
    named = next((clock for words, clock in MODES.items() if re.search(words, row.device)), 0.0)
    if named:
        return clocked(engine, named, memory=True)
    # A board may run faster than its maker allows: the note says it, or else the name of the device.
    in_note = re.search(r"@ (\d+(?:\.\d+)?) ?MHz|^(\d+) MHz|at (\d+) MHz", row.note)
    stated = in_note or re.search(r"\(.*\b(\d+) MHz\)", row.device)
    if not stated:
        return engine
    return clocked(engine, float(next(filter(None, stated.groups()))) * 1e6, memory=True)


def tiny_kernel(row: Row) -> Case:
    """Return the case of one convolution of Espressif's test benches, by ticks of the processor or by time."""
    stated = re.search(r"in (\d+)x(\d+) filter (\d+)x(\d+)x(\d+)x(\d+) pad (\d+) stride (\d+)", row.seq_or_shape)
    if not stated:
        raise Inexpressible("shape of the kernel not stated")
    high, wide, first, *kernel, pad, stride = (int(part) for part in stated.groups())
    fmt = number_format(row.precision)
    twin, _ = twin_of(row.device)
    engine = _engine(row, twin, fmt)
    depthwise = "depthwise" in row.model
    rows, columns, channels = kernel
    pixels = ((high + 2 * pad - rows) // stride + 1) * ((wide + 2 * pad - columns) // stride + 1)
    filters = channels if depthwise else first
    depth = rows * columns * (1 if depthwise else channels)
    moved = (high * wide * channels + pixels * filters + filters * depth) * fmt.value
    shape = {} if depthwise else {"m": pixels, "n": filters, "k": depth}
    kind = VECTOR if depthwise else MATMUL
    work = Work.of([Kernel(kind, flops=2.0 * pixels * filters * depth, moved=moved, **shape)])
    seconds = row.value / engine.clock if row.unit == "CPU ticks" else seconds_each(row)[0]
    return Case(
        row, "mcu inference", f"{_library(row, twin, fmt)} on {twin.kind}", twin.id, engine, work, seconds, False
    )
