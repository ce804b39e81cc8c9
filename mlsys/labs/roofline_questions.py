"""The questions of the lab on the roofline, each with its answer computed by the model."""

import functools

from mlsys import Hardware
from mlsys.formulas import utilisation_ceiling
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.viz.views import layer
from mlsys.viz.views.view import number, percent, times
from mlsys.workloads import zoo

PRECISION = "fp16"
"""Number format of the layer that the lab asks about."""
WIDTHS = tuple(sorted({2**power for power in range(8, 14)} | {1536, 3072, 5120, 6144}))
"""Widths of a layer that the lab's slider reaches."""


def width_of(draw: Draw) -> int:
    """Return the width of the dense layer that the lab asks about."""
    return draw.pick("width", (1536, 3072, 5120, 6144))


def roofline_questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab's last stage, then those of its page."""
    factories = (_bound_of_batch, _layer_norm_share, _next_chip, _decoding, _ridge, _convolutions, _cpu, _left)
    return tuple(make(draw) for make in factories)


@functools.cache
def compute_bound_convolutions() -> tuple[list[int], int]:
    """Return how many convolutions of ResNet-50 at batch 32 are compute-bound on A100 and H100, and of how many."""
    convolutions = [
        operator for operator in zoo.network("resnet50", batch=32, precision="fp16") if operator.kind == "conv2d"
    ]
    counts = [
        sum(roofline(chip, operator).bound_by == "compute" for operator in convolutions)
        for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100)
    ]
    return counts, len(convolutions)


def _bound_of_batch(draw: Draw) -> Question:
    chip, batch = Hardware.Cloud.A100, draw.pick("batch", (48, 72, 96))
    widest = layer("dense", batch, WIDTHS[-1], PRECISION).intensity
    ridge = chip.ridge_point(PRECISION)
    return ChoiceQuestion(
        "batch",
        f"Set batch {batch}, {PRECISION.upper()} and the A100, and make the layer as wide as you can. "
        "Does it become compute-bound?",
        f"Each weight takes 2 bytes to read and does 2 FLOP for each row, so a batch of {batch} stays below {batch} "
        f"FLOP per byte however wide the layer is: {number(widest)} at width {WIDTHS[-1]:,}. "
        f"The ridge is {number(ridge)}.",
        setting={"batch": batch, "width": WIDTHS[-1], "precision": PRECISION, "device": "A100", "kind": "dense"},
        choices=(
            Choice("Yes, once it is wide enough", "Move the width to its end: where does the point stop? Then "
                                                  "count what "
                   "one weight does for the bytes it takes.", bool(widest > ridge)),
            Choice("No, at no width", right=bool(batch < ridge.m_as("FLOP/byte"))),
        ),
    )  # fmt: skip


def _layer_norm_share(draw: Draw) -> Question:
    device = draw.pick("layernorm", ("V100", "H100", "H200", "MI300X"))
    chip, width = Hardware.Cloud[device], width_of(draw)
    result = roofline(chip, layer("layernorm", 4096, width, PRECISION))
    share = 100 * result.figures["utilisation"].m_as("")
    intensity, ridge = (number(result.figures[name]) for name in ("intensity", "ridge"))
    return NumberQuestion(
        "layernorm",
        f"Choose layer normalisation on the {device} in {PRECISION.upper()}, without launch overhead. "
        "What percentage of the peak can it reach?",
        f"{intensity} FLOP per byte over a ridge of {ridge} is {number(share)}% of the peak, "
        "at any batch and width: no batch size helps.",
        setting={"kind": "layernorm", "batch": 4096, "precision": PRECISION, "device": device, "overhead": 0},
        answer=share,
        unit="%",
        tolerance=0.05,
        most=100,
        hint="Choose the layer and read the number beside the point; or divide its intensity by the ridge.",
        slips=((share / 100, "Percent are asked for, not a share of one."),
               (result.figures["intensity"].m_as("FLOP/byte"), "That is the intensity; divide it by the ridge.")),
    )  # fmt: skip


def _next_chip(draw: Draw) -> Question:
    batch, width = draw.pick("next-chip", (24, 48, 72)), width_of(draw)
    old, new, work = Hardware.Cloud.A100, Hardware.Cloud.H100, layer("dense", batch, width, PRECISION)
    gain = (roofline(old, work).time / roofline(new, work).time).to("")
    compute = (new.peak(PRECISION) / old.peak(PRECISION)).to("")
    memory = (new.memory_bw / old.memory_bw).to("")
    return ChoiceQuestion(
        "next-chip",
        f"The dense layer at batch {batch} and width {width:,} moves from an A100 to an H100. "
        "How much faster can it get?",
        f"At {number(work.intensity)} FLOP per byte the layer is left of both ridges: it gains what the memory gains, "
        f"{number(new.memory_bw)} over {number(old.memory_bw)} GB/s, which is {times(memory)}.",
        setting={"kind": "dense", "batch": batch, "width": width, "device": "A100", "other": "H100"},
        choices=(
            Choice(f"{times(compute)}, as the peak rates", "Compare it with the H100 in the picture: does the "
                                                           "point lie "
                   "under the flat part of a roof?", bool(gain == compute)),
            Choice(f"{times(memory)}, as the memory bandwidths", right=abs((gain - memory).m_as("")) < 1e-9),
            Choice("Not at all: it is memory-bound", "Memory-bound says what it waits for, and the newer machine has "
                   "other memory as well."),
        ),
    )  # fmt: skip


def _decoding(draw: Draw) -> Question:
    chip = Hardware.Cloud.A100
    batch, width = draw.pick("decoding", (24, 48, 96)), width_of(draw)
    single, many = (roofline(chip, layer("decode", rows, width, PRECISION)) for rows in (1, batch))
    more = batch * (single.time / many.time).m_as("")
    return ChoiceQuestion(
        "decoding",
        f"Choose a decoding step of width {width:,} at batch 1. Which change yields most tokens per second?",
        f"A step takes {number(single.time.to('us'))} µs at batch 1 and {number(many.time.to('us'))} µs at batch "
        f"{batch}: "
        f"the weights are read once either way, which makes {times(more)} the tokens. "
        "A higher peak changes neither.",
        setting={"kind": "decode", "batch": batch, "width": width, "precision": PRECISION, "device": "A100"},
        choices=(
            Choice("Twice the peak rate", "Left of the ridge the flat roof is far above the point. What would "
                                          "raising it "
                   "do?", single.bound_by == "compute" and more < 2),
            Choice("Twice the memory bandwidth", "That helps, by the factor it says. Now set the batch and compare the "
                   "time of a step.", single.bound_by == "memory" and more < 2),
            Choice(f"A batch of {batch}", right=more > 2),
        ),
    )  # fmt: skip


def _ridge(draw: Draw) -> Question:
    """Return the question about a ridge point computed from the wrong kind of peak."""
    chip, before = Hardware.Cloud.B200, Hardware.Cloud.H100
    right, wrong = chip.ridge_point(PRECISION), chip.ridge_point(PRECISION, sparsity="2:4")
    return ChoiceQuestion(
        "ridge",
        "A figure of dense FP16 ridges shows them rising with each generation, ending with "
        f"{number(wrong)} FLOP per byte for the B200. What is wrong?",
        f"Dense FP16 over bandwidth is {number(chip.peak(PRECISION))} TFLOP/s over {number(chip.memory_bw)} GB/s, or "
        f"{number(right)}; {number(wrong)} needs twice that rate, which is 2:4-sparse FP16 or dense FP8. "
        f"Like for like the H100 has {number(before.ridge_point(PRECISION))}, so the ridge did not rise.",
        in_app=False,
        choices=(
            Choice("The memory bandwidth is too low", "The bandwidth is that of the data sheet. Which other "
                                                      "number makes "
                   "a ridge?"),
            Choice("The peak is of another kind than the rest of the series", right=True),
            Choice("Nothing: ridges rise with each generation", "Set the B200 and the H100 in the lab, both in FP16, "
                   "and read their ridges."),
        ),
    )  # fmt: skip


def _convolutions(draw: Draw) -> Question:
    """Return the question about convolutions claimed to be compute-bound above some intensity."""
    counts, many = compute_bound_convolutions()
    threshold = draw.pick("convolutions", (45, 55, 70))
    ridges = [number(chip.ridge_point(PRECISION)) for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100)]
    return ChoiceQuestion(
        "convolutions",
        f"“The convolutions of ResNet do more than {threshold} FLOP per byte, so they are compute-bound” "
        "on an A100 and an H100. What is wrong?",
        f"{threshold} FLOP per byte is left of both ridges, {ridges[0]} and {ridges[1]}. Layer by layer at batch 32, "
        f"{counts[0]} of {many} convolutions are compute-bound on the A100 and {counts[1]} on the H100.",
        in_app=False,
        choices=(
            Choice("Convolutions do less than that", "Most do more. But more than what must it be?"),
            Choice("The threshold is not the machine's ridge", right=True),
            Choice(NOTHING, f"Where do {threshold} FLOP per byte lie in the picture of either machine?"),
        ),
    )


def _cpu(draw: Draw) -> Question:
    """Return the question about low intensity claimed to reach most of a CPU's peak."""
    cases = draw.pick("cpu", (((2.5, 24), (5.5, 11)), ((3.5, 25), (6.5, 19)), ((1.5, 22), (5.5, 18))))
    shares = [utilisation_ceiling(Q_(i, "FLOP/byte"), Q_(ridge, "FLOP/byte")) for i, ridge in cases]
    claimed = (0.8, 0.9)
    return ChoiceQuestion(
        "cpu",
        f"“A processor with a ridge of {cases[1][1]} to {cases[0][1]} FLOP per byte reaches "
        f"{percent(claimed[0])} to {percent(claimed[1])} of its peak on work of {cases[0][0]} to {cases[1][0]} "
        "FLOP per byte.” What is wrong?",
        f"Left of the ridge the ceiling is intensity over ridge: {cases[0][0]}/{cases[0][1]} = "
        f"{percent(shares[0])} at worst, {cases[1][0]}/{cases[1][1]} = {percent(shares[1])} at best.",
        in_app=False,
        choices=(
            Choice("The claimed share lies above the roof", right=bool(max(shares) < claimed[0])),
            Choice("Processors have no ridge", "Every machine with a peak and a bandwidth has one; choose one "
                                               "in the lab."),
            Choice("Nothing: low intensity suits processors", "Which share of the peak does the roof allow at an "
                   "intensity left of the ridge?"),
        ),
    )  # fmt: skip


def _left(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    chip, batch, width = Hardware.Cloud.A100, draw.pick("left", (24, 36, 48)), width_of(draw)
    half, wide = (roofline(chip, layer("dense", batch, width, precision)) for precision in (PRECISION, "tf32"))
    ratio = (wide.time / half.time).to("")
    peaks = (chip.peak(PRECISION) / chip.peak("tf32")).to("")
    return ChoiceQuestion(
        "left",
        f"“A dense layer at batch {batch} runs about twice as fast on an A100 in FP16 as in TF32, and it would even "
        "if both formats had the same peak rate.” What is wrong?",
        f"At batch {batch} the layer is left of either ridge and waits for its bytes, of which FP16 has half: "
        f"{times(ratio)} "
        f"as fast. That the peak rate of FP16 is {times(peaks)} as high plays no part.",
        in_app=False,
        choices=(
            Choice("The gain comes from the peak rate", "Look where the point lies: is it the flat part of the "
                                                        "roof that "
                   "holds it down?", half.bound_by == "compute"),
            Choice("A memory-bound layer gains nothing from a narrower "
                   "format", "A narrower format changes how many bytes "
                   "a layer moves. What does it wait for?", bool(ratio < 1.2)),
            Choice(NOTHING, right=half.bound_by == wide.bound_by == "memory" and bool(1.9 < ratio < 2.1)),
        ),
    )  # fmt: skip
