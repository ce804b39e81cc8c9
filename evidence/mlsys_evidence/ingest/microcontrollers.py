"""Rows of networks, layers and kernels on microcontrollers, and of the energy of boards."""

import re
from dataclasses import replace

from mlsys.calibration.case import Inexpressible
from mlsys.hardware import Hardware
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.networks import inference
from mlsys_evidence.ingest.software import TENSORFLOW_LITE
from mlsys_evidence.questions.shapes import usual_name

# Interpreters of TensorFlow Lite's files, which have kernels of their own for integers alone, on Arm's cores and on
# Espressif's (ARM-software/CMSIS-NN, README, "Supported Framework": int8 and int16 on Cortex-M, float only as an
# experiment of late for Helium; espressif/esp-nn): elsewhere, and in floating point, they run their reference kernels.
_INTERPRETERS = r"TFLite Micro|TFLM|tflite-micro|TensorFlow Lite (for )?Micro|Edge Impulse|\bEON\b"
# Engines whose makers write loops for each core, beside interpreters that run anywhere; unnamed ones are of these.
_TUNED = r"HALE|Bosch|Plumerai|X-CUBE-AI|STM32Cube\.AI|TinyEngine|ESP-DL"
# Clocks that makers call by a name: 250 MHz and 96 MHz (AmbiqAI/neuralSPOT, docs, "Performance Modes").
_MODES = {r"Apollo510 \(LP mode\)": 96e6}


def network(draft: Draft) -> None:
    """Fill in one inference on a microcontroller."""
    row = draft.row
    draft.in_format()
    if "int8" in row.precision:
        draft.set(computes="int8")
    if "float" in row.workload:
        draft.in_format("fp32")
    draft.on()
    if Hardware[draft.columns["device"]].kind == "SoC" and re.search(TENSORFLOW_LITE, row.software.lower()):
        # Height and width of an image whose row counts its channels, too, as rows of networks write them.
        shape = re.sub(r"^(\d+x\d+)x\d$", r"\1 image", row.seq_or_shape)
        draft.row = replace(row, workload="network inference on CPU", seq_or_shape=shape)
        inference(draft)
        return
    side = re.search(r"(\d+)x\1", row.seq_or_shape)
    if side and "MobileNet" in row.model and "VWW" not in row.model:
        draft.numbers["image"] = int(side[1])
    _program(draft)
    draft.set(operation="microcontroller network", network=usual_name(row.model))


def layers(draft: Draft) -> None:
    """Fill in a few fully connected layers on a microcontroller."""
    row = draft.row
    stated = re.search(r"(\d+) inputs, (\d+) outputs", row.seq_or_shape)
    hidden = re.search(r"FC (?:(\d+) x (\d+)|(\d+(?:\+\d+)+|\d+))", row.model)
    if not stated or not hidden:
        raise Inexpressible("widths of the layers not stated")
    between = [hidden[2]] * int(hidden[1]) if hidden[1] else hidden[3].split("+")
    draft.in_format()
    draft.on()
    _program(draft)
    draft.set(operation="microcontroller layers", widths=" ".join((stated[1], *between, stated[2])))


def kernel(draft: Draft) -> None:
    """Fill in one convolution of Espressif's test benches, by ticks of the CPU or by time."""
    row = draft.row
    stated = re.search(r"in (\d+)x(\d+) filter (\d+)x(\d+)x(\d+)x(\d+) pad (\d+) stride (\d+)", row.seq_or_shape)
    if not stated:
        raise Inexpressible("shape of the kernel not stated")
    names = ("height", "width", "filters", "filter_height", "filter_width", "channels", "pad_h", "stride_h")
    draft.numbers |= dict(zip(names, map(int, stated.groups()), strict=True))
    draft.in_format()
    draft.on()
    _program(draft)
    draft.mark("depthwise", "depthwise", row.model)
    draft.set(operation="microcontroller kernel")


def _program(draft: Draft) -> None:
    """Fill in the kind of runtime, and the clock."""
    row = draft.row
    words = f"{row.software} {row.workload}"
    draft.mark("interpreter", _INTERPRETERS, row.software)
    draft.mark("TinyMaix", "TinyMaix", words)
    # TinyEngine's authors measured TensorFlow Lite Micro with its own kernels, and with CMSIS-NN's beside them.
    own = "tinyengine" in row.source and "TFLite Micro" in row.software
    if own or "TFLite Micro reference" in words:
        software = "reference kernels"
    elif re.search("reference|ANSI C|TinyMaix", words, re.IGNORECASE):
        software = "plain kernels"
    else:
        software = "tuned microcontroller runtime" if re.search(_TUNED, row.software) else "microcontroller runtime"
    draft.set(software=software)
    clock = next((clock for words, clock in _MODES.items() if re.search(words, row.device)), 0.0)
    if not clock:
        # A board may run faster than its maker allows: the note says it, or else the name of the device.
        in_note = re.search(r"@ (\d+(?:\.\d+)?) ?MHz|^(\d+) MHz|at (\d+) MHz", row.note)
        stated = in_note or re.search(r"\(.*\b(\d+) MHz\)", row.device)
        clock = float(next(filter(None, stated.groups()))) * 1e6 if stated else 0.0
    if clock:
        draft.numbers["clock"] = clock


def energy(draft: Draft) -> None:
    """Fill in the energy of one inference, as that of the inference."""
    row = draft.row
    if row.unit not in ("J", "mJ", "uJ"):
        raise Inexpressible(f"{row.metric} in {row.unit} is not an energy")
    draft.features.add("energy")
    by_rate = draft.take("run_rate", r"in energy-mode run throughput ([\d.]+) inf/s", row.note)
    in_milliwatts = re.search(r"\bpower ([\d.]+) mW", row.note)
    if not by_rate and in_milliwatts:
        draft.numbers["stated_power"] = float(in_milliwatts[1]) * 1e-3
    if not by_rate:
        draft.take("stated_power", r"mean wall power of the whole board ([\d.]+) W", row.note)
    draft.on()
    draft.set(board=draft.columns["device"])
    draft.row = replace(row, metric="latency", unit="ms", value=1.0)
    if "MLPerf Tiny" in row.workload:
        network(draft)
    else:
        inference(draft)
    if draft.columns["network"] != usual_name(row.model):
        draft.set(label=usual_name(row.model))
