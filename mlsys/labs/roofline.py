"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from mlsys import Hardware
from mlsys.labs.design import Design
from mlsys.labs.draw import Draw
from mlsys.labs.questions import Choice, ChoiceQuestion, Question
from mlsys.labs.roofline_questions import PRECISION, WIDTH, compute_bound_convolutions, roofline_questions
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models import roofline
from mlsys.viz.views import layer
from mlsys.viz.views.view import number

BATCHES: tuple[int, ...] = tuple(2**power for power in range(13))


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    chip, right = Hardware.Cloud.A100, first_compute_bound()
    ridge = chip.ridge_point(PRECISION)
    before, at = (roofline(chip, layer("dense", batch, WIDTH, PRECISION)) for batch in (right // 2, right))
    told = [
        f"batch {batch} does {number(result.figures['intensity'])}"
        for batch, result in ((right // 2, before), (right, at))
    ]
    return ChoiceQuestion(
        "prediction",
        f"A dense layer of width {WIDTH:,} in {PRECISION.upper()} on an A100 uses less than one percent of the "
        "peak at batch 1. From which of these batch sizes on does it wait for the arithmetic, "
        "no longer for the memory?",
        f"The ridge of the A100 lies at {number(ridge)} FLOP per byte; {told[0]}, {told[1]}.",
        choices=tuple(Choice(str(batch), right=batch == right) for batch in (32, 64, 128, right, 4 * right)),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"kind": "dense", "batch": first_compute_bound(), "width": WIDTH, "precision": PRECISION, "device": "A100"}


def asked(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    return roofline_questions()


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design tasks of the lab."""
    return ()


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    chip, old, new = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.B200
    batch = first_compute_bound()
    before, after = (roofline(chip, layer("dense", b, WIDTH, PRECISION)) for b in (batch // 2, batch))
    counts, many = compute_bound_convolutions()
    return WrapUp(
        (
            Finding(
                f"At batch {batch // 2} the dense layer does {number(before.figures['intensity'])} FLOP per "
                f"byte and "
                f"waits for {before.bound_by}; at batch {batch} it does "
                f"{number(after.figures['intensity'])} and is "
                f"bound by {after.bound_by}. The ridge of the A100 lies at {number(chip.ridge_point(PRECISION))}.",
                "from mlsys import Hardware\nHardware.Cloud.A100.ridge_point('fp16')",
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


def first_compute_bound() -> int:
    """Return the smallest listed batch at which the dense layer is compute-bound on an A100."""
    chip = Hardware.Cloud.A100
    for batch in BATCHES:
        if roofline(chip, layer("dense", batch, WIDTH, PRECISION)).bound_by == "compute":
            return batch
    raise ValueError("no batch of the list makes the layer compute-bound: give the lab larger ones")
