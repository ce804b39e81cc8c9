"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from functools import cache, partial

from mlsys import Hardware
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import Choice, ChoiceQuestion, Question
from mlsys.labs.roofline_questions import PRECISION, compute_bound_convolutions, roofline_questions, width_of
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models import roofline
from mlsys.viz.views import layer
from mlsys.viz.views.view import number, percent

_ROOM = 60  # MB
_MACHINES = ("V100", "A100", "H100", "MI300X")
_BYTES = {"fp16": 2, "tf32": 4}
_WIDE = (2560, 3584, 4608, 5632, 7168)
_TRIED = (80, 96, 112, 136, 144, 160, 176, 192, 224, 280, 320, 360, 400, 450, 520, 600)
_FROM = (48, 96, 192, 384, 768, 1536)
BATCHES: tuple[int, ...] = tuple(sorted({2**power for power in range(13)} | {24, 36, 72, *_FROM}))
"""Batches that the lab's slider reaches."""


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    device, width, right = _device(draw), width_of(draw), first_compute_bound(draw)
    chip = Hardware.Cloud[device]
    ridge = chip.ridge_point(PRECISION)
    before, at = (roofline(chip, layer("dense", batch, width, PRECISION)) for batch in (right // 2, right))
    clauses = [
        f"batch {batch} does {number(result.figures['intensity'])}"
        for batch, result in ((right // 2, before), (right, at))
    ]
    return ChoiceQuestion(
        "prediction",
        f"A dense layer of width {width:,} in {PRECISION.upper()} on the {device} uses less than one percent of the "
        "peak at batch 1. From which of these batch sizes on does it wait for the arithmetic, "
        "no longer for the memory?",
        f"The ridge of the {device} lies at {number(ridge)} FLOP per byte; {clauses[0]}, {clauses[1]}.",
        choices=tuple(Choice(str(batch), right=batch == right) for batch in _FROM),
    )


def _device(draw: Draw) -> str:
    """Return the machine of the prediction."""
    return draw.pick("device", ("V100", "A100", "H100"))


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {
        "kind": "dense",
        "batch": first_compute_bound(draw),
        "width": width_of(draw),
        "precision": PRECISION,
        "device": _device(draw),
    }


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    return roofline_questions(draw)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: the smallest batch that uses a machine well."""
    share, rate = draw.pick("share", (0.85, 0.88, 0.92)), draw.pick("rate", (90, 170, 230))
    return (
        Design(
            "batch",
            f"A dense layer may be as wide as you like, as long as its weights take no more than {_ROOM} MB. "
            f"It has to reach {percent(share)} of the peak that its machine has in its number format, and "
            f"{rate} TFLOP/s at least. Users wait for a batch to fill: find the smallest batch.",
            (
                Knob("device", "Machine", tuple((name, name) for name in _MACHINES)),
                Knob("precision", "Number format", tuple((name.upper(), name) for name in _BYTES)),
                Knob("width", "Width", tuple((f"{width:,}", width) for width in _WIDE)),
                Knob("batch", "Batch", tuple((f"{batch:,}", batch) for batch in _TRIED)),
            ),
            partial(_built, share, rate),
        ),
    )


@cache
def _built(share: float, rate: float, device: str, precision: str, width: int, batch: int) -> Built:
    chip, work = Hardware.Cloud[device], layer("dense", batch, width, precision)
    if precision not in chip.precisions:
        return Built(float(batch), f"The {device} has no {precision.upper()}.", "Choose a format that it has.")
    result, weights = roofline(chip, work), width**2 * _BYTES[precision] / 1e6
    used, reached = result.figures["utilisation"].m_as(""), (work.flops / result.time).m_as("TFLOP/s")
    summary = f"Batch {batch:,} reaches {percent(used)} of the peak, {number(reached)} TFLOP/s."
    faults = (
        (weights > _ROOM, f"The weights take {number(weights)} MB, more than {_ROOM} MB."),
        (used < share, f"{percent(share)} of the peak are wanted."),
        (reached < rate, f"{rate} TFLOP/s are wanted."),
    )
    return Built(float(batch), summary, next((text for broken, text in faults if broken), ""))


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    device, batch, width = _device(draw), first_compute_bound(draw), width_of(draw)
    chip, old, new = Hardware.Cloud[device], Hardware.Cloud.H100, Hardware.Cloud.B200
    before, after = (roofline(chip, layer("dense", b, width, PRECISION)) for b in (batch // 2, batch))
    counts, many = compute_bound_convolutions()
    return WrapUp(
        (
            Finding(
                f"At batch {batch // 2} the dense layer does {number(before.figures['intensity'])} FLOP per "
                f"byte and "
                f"waits for {before.bound_by}; at batch {batch} it does "
                f"{number(after.figures['intensity'])} and is "
                f"bound by {after.bound_by}. The ridge of the {device} lies at {number(chip.ridge_point(PRECISION))}.",
                f"from mlsys import Hardware\nHardware.Cloud.{device}.ridge_point('fp16')",
            ),
            Finding(
                f"Dense over bandwidth, the ridge went from {number(old.ridge_point(PRECISION))} for the H100 to "
                f"{number(new.ridge_point(PRECISION))} for the B200; only a sparse peak, "
                f"{number(new.ridge_point(PRECISION, sparsity='2:4'))}, makes the series rise.",
                "from mlsys import Hardware\nHardware.Cloud.B200.ridge_point('fp16')",
            ),
            Finding(
                "Whether a layer is compute-bound is a statement about the layer and the machine: of the "
                f"{many} convolutions of ResNet-50, {counts[0]} are compute-bound on the A100 and "
                f"{counts[1]} on the "
                "faster H100.",
            ),
        ),
        (
            "Compare an intensity with the ridge of that machine in that number format, both dense, bytes "
            "counted in "
            "the same format.",
            "A reduction such as layer normalisation stays on the slope at any batch; fusing it is the only "
            "cure, and "
            "a later chapter shows how.",
            "To the left of the ridge a new machine is worth its bandwidth, to the right its peak.",
        ),
    )


def first_compute_bound(draw: Draw) -> int:
    """Return the smallest batch of the prediction at which the dense layer is compute-bound."""
    chip = Hardware.Cloud[_device(draw)]
    for batch in _FROM:
        if roofline(chip, layer("dense", batch, width_of(draw), PRECISION)).bound_by == "compute":
            return batch
    raise ValueError("no batch of the list makes the layer compute-bound: give the lab larger ones")
