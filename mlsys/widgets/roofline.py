"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from __future__ import annotations

from mlsys import Hardware
from mlsys.formulas import utilisation_ceiling
from mlsys.hardware import Device
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.viz.views import KINDS, RooflineScene, layer
from mlsys.viz.views.roofline import device_name
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider, switch
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.workloads import resnet50

__all__ = ["RooflineLab"]

_DEVICES = ("V100", "T4", "A100", "H100", "H200", "B200", "MI300X", "TPUv1", "TPUv4", "TPUv5p")
_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
_BATCHES: tuple[int, ...] = tuple(2**power for power in range(13))
_WIDTHS = tuple(2**power for power in range(8, 14))
_OVERHEADS = (0, 1, 2, 5, 10, 20, 50)
_WIDTH, _PRECISION = 2048, "fp16"
_NONE = "none"


def _machines() -> dict[str, Device]:
    """Return the devices of the lab by the names in its lists."""
    machines = {name: Hardware.Cloud[name] for name in _DEVICES}
    machines |= {f"CPU: {device_name(device)}": device for device in Hardware.CPU}
    return machines


class RooflineLab(Lab):
    """Predict, explore and check what a layer can attain on a machine.

    Examples
    --------
    >>> lab = RooflineLab()
    >>> lab.predict("32")
    >>> print(lab.view.values["result"].bound_by)
    compute
    """

    id = "lab-02-roofline"
    title = "Lab 2: What can a layer attain on a machine?"
    purpose = (
        "A machine computes at some rate and reads memory at another; a layer needs so much of each. "
        "Find out which of the two a layer waits for, what it takes to change that, "
        "and which number to ask a vendor for."
    )

    def __init__(self) -> None:
        self.machines = _machines()
        batch = _first_compute_bound()
        self.scenario = {"kind": "dense", "batch": batch, "width": _WIDTH, "precision": _PRECISION, "device": "A100"}
        super().__init__()

    def _prediction(self) -> Question:
        chip, right = Hardware.Cloud.A100, _first_compute_bound()
        ridge = chip.ridge_point(_PRECISION)
        choices = []
        for batch in (8, 32, 128, right):
            result = roofline(chip, layer("dense", batch, _WIDTH, _PRECISION))
            here = f"batch {batch} does {number(result.figures['intensity'])} FLOP per byte"
            use = percent(result.figures["utilisation"])
            opening = (
                f"You predicted {batch}, and so it is: "
                if batch == right
                else f"You predicted {batch}; it is {right}: "
            )
            because = f"the ridge of the A100 lies at {number(ridge)}, and {here}, which allows {use} of the peak."
            choices.append(Choice(str(batch), opening + because, batch == right))
        return ChoiceQuestion(
            "prediction",
            f"A dense layer of width {_WIDTH:,} in {_PRECISION.upper()} on an A100 uses less than one percent of the "
            "peak at batch 1. From which of these batch sizes on does it wait for the arithmetic, "
            "no longer for the memory?",
            choices=tuple(choices),
        )

    def _controls(self) -> tuple[Control, ...]:
        names = list(self.machines)
        kinds = [(name.capitalize(), kind) for kind, name in KINDS.items()]
        return (
            choice("kind", "Workload", "Layer", kinds, "dense", "What is computed"),
            slider(
                "batch", "Workload", "Batch (rows, images or sequences)", [(f"{b:,}", b) for b in _BATCHES], 1,
                "How many rows, images or sequences are computed together",
            ),
            slider(
                "width", "Workload", "Width (features or channels)", [(f"{w:,}", w) for w in _WIDTHS], _WIDTH,
                "Features in and out of the layer, or channels of the convolution",
            ),
            choice(
                "precision", "Mapping", "Number format", [(p.upper(), p) for p in _PRECISIONS], _PRECISION,
                "Format of the data and of the rate; not every machine has each",
            ),
            switch("overlap", "Mapping", "Move data while computing", True, "Off: data first, then units compute"),
            choice("device", "Hardware", "Machine", names, "A100", "The machine in front"),
            slider(
                "overhead", "Hardware", "Launch overhead (µs)", [(f"{t} µs", t) for t in _OVERHEADS], 0,
                "Time that starting the layer takes, whatever its size",
            ),
            choice("other", "View", "Compare with", [_NONE, *names], _NONE, "A second machine, dashed, behind"),
        )  # fmt: skip

    def _make_scene(self) -> RooflineScene:
        return RooflineScene()

    def _parameters(self, **values: object) -> dict[str, object]:
        device, other, overhead = (values.pop(name) for name in ("device", "other", "overhead"))
        return {
            **values,
            "device": self.machines[str(device)],
            "other": None if other == _NONE else self.machines[str(other)],
            "launch_overhead": Q_(overhead, "us"),
        }

    def _questions(self) -> tuple[Question, ...]:
        return (_bound_of_batch(), _layer_norm_share(), _next_chip(), _decoding(), _ridge(), _convolutions(), _cpu())


def _first_compute_bound() -> int:
    """Return the smallest batch of the list at which the dense layer is compute-bound on an A100."""
    chip = Hardware.Cloud.A100
    for batch in _BATCHES:
        if roofline(chip, layer("dense", batch, _WIDTH, _PRECISION)).bound_by == "compute":
            return batch
    raise ValueError("no batch of the list makes the layer compute-bound: give the lab larger ones")


def _bound_of_batch() -> Question:
    chip, batch = Hardware.Cloud.A100, 128
    widest = layer("dense", batch, _WIDTHS[-1], _PRECISION).intensity
    ridge = chip.ridge_point(_PRECISION)
    sum_ = (
        f"Each weight takes 2 bytes to read and does 2 FLOP for each row, so a batch of {batch} stays below {batch} "
        f"FLOP per byte however wide the layer is: {number(widest)} at width {_WIDTHS[-1]:,}. "
        f"The ridge is {number(ridge)}."
    )
    return ChoiceQuestion(
        "batch",
        f"Set batch {batch}, {_PRECISION.upper()} and the A100, and make the layer as wide as you can. "
        "Does it become compute-bound?",
        choices=(
            Choice("Yes, once it is wide enough", sum_, bool(widest > ridge)),
            Choice("No, at no width", sum_, bool(batch < ridge.magnitude)),
        ),
    )


def _layer_norm_share() -> Question:
    chip = Hardware.Cloud.A100
    result = roofline(chip, layer("layernorm", 4096, _WIDTH, _PRECISION))
    share = 100 * result.figures["utilisation"].magnitude
    intensity, ridge = (number(result.figures[name]) for name in ("intensity", "ridge"))

    def explain(given: float, right: bool) -> str:
        sum_ = f"{intensity} FLOP per byte over a ridge of {ridge} is {number(share)}% of the peak"
        return (
            f"{sum_}, at any batch and width: no batch size helps." if right else f"{sum_}; you gave {number(given)}%."
        )

    return NumberQuestion(
        "layernorm",
        f"Choose layer normalisation on the A100 in {_PRECISION.upper()}, without launch overhead. "
        "What percentage of the peak can it reach?",
        answer=share,
        unit="%",
        tolerance=0.05,
        explain=explain,
    )


def _next_chip() -> Question:
    old, new, work = Hardware.Cloud.A100, Hardware.Cloud.H100, layer("dense", 32, _WIDTH, _PRECISION)
    gain = (roofline(old, work).time / roofline(new, work).time).to("")
    compute = (new.peak(_PRECISION) / old.peak(_PRECISION)).to("")
    memory = (new.memory_bw / old.memory_bw).to("")
    sum_ = (
        f"At {number(work.intensity)} FLOP per byte the layer is left of both ridges: it gains what the memory gains, "
        f"{number(new.memory_bw)} over {number(old.memory_bw)} GB/s, which is {times(memory)}."
    )
    return ChoiceQuestion(
        "next-chip",
        f"The dense layer at batch 32 and width {_WIDTH:,} moves from an A100 to an H100. How much faster can it get?",
        choices=(
            Choice(f"{times(compute)}, as the peak rates", sum_, bool(gain == compute)),
            Choice(f"{times(memory)}, as the memory bandwidths", sum_, abs(gain.magnitude - memory.magnitude) < 1e-9),
            Choice("Not at all: it is memory-bound", sum_),
        ),
    )


def _decoding() -> Question:
    chip = Hardware.Cloud.A100
    one, many = (roofline(chip, layer("decode", batch, _WIDTH, _PRECISION)) for batch in (1, 64))
    more = 64 * (one.time / many.time).to("").magnitude
    sum_ = (
        f"A step takes {number(one.time.to('us'))} µs at batch 1 and {number(many.time.to('us'))} µs at batch 64: "
        f"the weights are read once either way, which makes {times(more)} the tokens. "
        "A higher peak changes neither."
    )
    return ChoiceQuestion(
        "decoding",
        "Choose a decoding step at batch 1. Which change yields most tokens per second?",
        choices=(
            Choice("Twice the peak rate", sum_, one.bound_by == "compute" and more < 2),
            Choice(
                "Twice the memory bandwidth", f"That gives {times(2)}. {sum_}", one.bound_by == "memory" and more < 2
            ),
            Choice("A batch of 64", sum_, more > 2),
        ),
    )


def _ridge() -> Question:
    """S4-254: a ridge of 562 FLOP/byte for the B200, from a peak of another kind."""
    chip, before = Hardware.Cloud.B200, Hardware.Cloud.H100
    right, wrong = chip.ridge_point(_PRECISION), chip.ridge_point(_PRECISION, sparsity="2:4")
    sum_ = (
        f"Dense FP16 over bandwidth is {number(chip.peak(_PRECISION))} TFLOP/s over {number(chip.memory_bw)} GB/s, or "
        f"{number(right)}; {number(wrong)} needs twice that rate, which is 2:4-sparse FP16 or dense FP8. "
        f"Like for like the H100 has {number(before.ridge_point(_PRECISION))}, so the ridge did not rise."
    )
    return ChoiceQuestion(
        "ridge",
        "A figure of dense FP16 ridges shows them rising with each generation, ending with "
        f"{number(wrong)} FLOP per byte for the B200. What is wrong?",
        in_app=False,
        choices=(
            Choice("The memory bandwidth is too low", f"The bandwidth is right. {sum_}"),
            Choice("The peak is of another kind than the rest of the series", sum_, True),
            Choice("Nothing: ridges rise with each generation", sum_),
        ),
    )


def _convolutions() -> Question:
    """S4-033: convolutions above 50 FLOP/byte called compute-bound."""
    network, threshold = resnet50(batch=32), 50
    convolutions = [operator for operator in network if operator.kind == "conv2d"]
    counts, ridges = [], []
    for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100):
        counts.append(sum(roofline(chip, operator).bound_by == "compute" for operator in convolutions))
        ridges.append(number(chip.ridge_point(_PRECISION)))
    sum_ = (
        f"{threshold} FLOP per byte is left of both ridges, {ridges[0]} and {ridges[1]}. Layer by layer at batch 32, "
        f"{counts[0]} of {len(convolutions)} convolutions are compute-bound on the A100 and {counts[1]} on the H100."
    )
    return ChoiceQuestion(
        "convolutions",
        f"“The convolutions of ResNet do more than {threshold} FLOP per byte, so they are compute-bound” "
        "on an A100 and an H100. What is wrong?",
        in_app=False,
        choices=(
            Choice("Convolutions do less than that", f"Most do more. {sum_}"),
            Choice("The threshold is not the machine's ridge", sum_, True),
            Choice("Nothing", sum_),
        ),
    )


def _cpu() -> Question:
    """S4-506: low intensity said to reach most of a CPU's peak."""
    cases = [(2, 20), (5, 10)]
    shares = [utilisation_ceiling(Q_(i, "FLOP/byte"), Q_(ridge, "FLOP/byte")) for i, ridge in cases]
    sum_ = (
        f"Left of the ridge the ceiling is intensity over ridge: {cases[0][0]}/{cases[0][1]} = "
        f"{percent(shares[0])} at worst, {cases[1][0]}/{cases[1][1]} = {percent(shares[1])} at best."
    )
    claimed = (0.8, 0.9)
    return ChoiceQuestion(
        "cpu",
        f"“A processor with a ridge of {cases[1][1]} to {cases[0][1]} FLOP per byte reaches "
        f"{percent(claimed[0])} to {percent(claimed[1])} of its peak on work of {cases[0][0]} to {cases[1][0]} "
        "FLOP per byte.” What is wrong?",
        in_app=False,
        choices=(
            Choice("The claimed share lies above the roof", sum_, bool(max(shares) < claimed[0])),
            Choice("Processors have no ridge", f"Every machine with a peak and a bandwidth has one. {sum_}"),
            Choice("Nothing: low intensity suits processors", sum_),
        ),
    )
