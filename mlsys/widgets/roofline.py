"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsys import Hardware
from mlsys.formulas import utilisation_ceiling
from mlsys.hardware import Device
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.viz.views import KINDS, RooflineScene, layer
from mlsys.viz.views.roofline import device_name
from mlsys.viz.views.view import View, number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, offered, slider, switch
from mlsys.widgets.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.widgets.wrapup import Finding, WrapUp
from mlsys.workloads import zoo

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

    frames = {  # noqa: RUF012
        "batch": (1, 8, 32, 64, 128, 256, 1024, 4096),
        "device": ("V100", "A100", "H100", "B200", "CPU: EPYC 9654"),
        "kind": ("dense", "layernorm"),
    }

    def __init__(self) -> None:
        self.machines = _machines()
        batch = _first_compute_bound()
        self.scenario = {"kind": "dense", "batch": batch, "width": _WIDTH, "precision": _PRECISION, "device": "A100"}
        super().__init__()

    def _build(self) -> None:
        super()._build()
        self.controls["precision"] = replace(self.controls["precision"], known=_PRECISIONS)
        self._quiet = True
        self._offer_formats({"new": self.value("device")})
        self._quiet = False
        self.controls["device"].widget.observe(self._offer_formats, names="value")

    def _prediction(self) -> Question:
        chip, right = Hardware.Cloud.A100, _first_compute_bound()
        ridge = chip.ridge_point(_PRECISION)
        before, at = (roofline(chip, layer("dense", batch, _WIDTH, _PRECISION)) for batch in (right // 2, right))
        told = [
            f"batch {batch} does {number(result.figures['intensity'])}"
            for batch, result in ((right // 2, before), (right, at))
        ]
        return ChoiceQuestion(
            "prediction",
            f"A dense layer of width {_WIDTH:,} in {_PRECISION.upper()} on an A100 uses less than one percent of the "
            "peak at batch 1. From which of these batch sizes on does it wait for the arithmetic, "
            "no longer for the memory?",
            f"The ridge of the A100 lies at {number(ridge)} FLOP per byte; {told[0]}, {told[1]}.",
            choices=tuple(Choice(str(batch), right=batch == right) for batch in (32, 64, 128, right, 4 * right)),
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
                "Format of the data and of the rate; listed are those that the machine has",
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
        self._scene = RooflineScene()
        return self._scene

    def _draw(self) -> View:
        other = self.value("other")
        return self._scene.update(
            device=self.machines[self.value("device")],
            kind=self.value("kind"),
            batch=self.value("batch"),
            width=self.value("width"),
            precision=self.value("precision"),
            overlap=self.value("overlap"),
            launch_overhead=Q_(self.value("overhead"), "us"),
            other=None if other == _NONE else self.machines[other],
        )

    def _offer_formats(self, change: Any) -> None:
        """List the formats that the machine has; one that it lacks gives way to the nearest that it has."""
        device, widget = self.machines[change["new"]], self.controls["precision"].widget
        offered, now = [name for name in _PRECISIONS if name in device.precisions], widget.value
        quiet, self._quiet = self._quiet, True
        try:
            widget.options = [(name.upper(), name) for name in offered]
            widget.value = now if now in offered else _nearest(now, offered)
        finally:
            self._quiet = quiet
        if not quiet:
            self._redraw()

    def _set(self, values: Mapping[str, Any]) -> None:
        # The machine first: it says which formats there are.
        if "device" in values:
            quiet, self._quiet = self._quiet, True
            self.controls["device"].widget.value = values["device"]
            self._quiet = quiet
        lacking = "precision" in values and values["precision"] not in offered(self.controls["precision"].widget)
        super()._set({name: value for name, value in values.items() if not (lacking and name == "precision")})

    def _questions(self) -> tuple[Question, ...]:
        return (
            _bound_of_batch(), _layer_norm_share(), _next_chip(), _decoding(), _ridge(), _convolutions(), _cpu(),
            _left(),
        )  # fmt: skip

    def _wrap_up(self) -> WrapUp:
        chip, old, new = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.B200
        batch = _first_compute_bound()
        before, after = (roofline(chip, layer("dense", b, _WIDTH, _PRECISION)) for b in (batch // 2, batch))
        counts, many = _compute_bound_convolutions()
        return WrapUp(
            (
                Finding(
                    f"At batch {batch // 2} the dense layer does {number(before.figures['intensity'])} FLOP per "
                    f"byte and "
                    f"waits for {before.bound_by}; at batch {batch} it does "
                    f"{number(after.figures['intensity'])} and is "
                    f"bound by {after.bound_by}. The ridge of the A100 lies at {number(chip.ridge_point(_PRECISION))}.",
                    "from mlsys import Hardware\nHardware.Cloud.A100.ridge_point('fp16')",
                ),
                Finding(
                    f"Dense over bandwidth, the ridge went from {number(old.ridge_point(_PRECISION))} for the H100 to "
                    f"{number(new.ridge_point(_PRECISION))} for the B200; only a sparse peak, "
                    f"{number(new.ridge_point(_PRECISION, sparsity='2:4'))}, makes the series rise.",
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


def _first_compute_bound() -> int:
    """Return the smallest batch of the list at which the dense layer is compute-bound on an A100."""
    chip = Hardware.Cloud.A100
    for batch in _BATCHES:
        if roofline(chip, layer("dense", batch, _WIDTH, _PRECISION)).bound_by == "compute":
            return batch
    raise ValueError("no batch of the list makes the layer compute-bound: give the lab larger ones")


def _nearest(lost: str, offered: list[str]) -> str:
    """Return the offered format whose size is nearest to that of a format the machine lacks, the wider of two."""
    bits = {name: int("".join(filter(str.isdigit, name))) for name in {lost, *offered}} | {"tf32": 32}
    floating = [name for name in offered if name.startswith("int") == lost.startswith("int")] or offered
    return min(floating, key=lambda name: (abs(bits[name] - bits[lost]), -bits[name], name))


def _compute_bound_convolutions() -> tuple[list[int], int]:
    """Return how many convolutions of ResNet-50 at batch 32 are compute-bound on A100 and H100, and of how many."""
    convolutions = [operator for operator in zoo.network("resnet50", batch=32) if operator.kind == "conv2d"]
    counts = [
        sum(roofline(chip, operator).bound_by == "compute" for operator in convolutions)
        for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100)
    ]
    return counts, len(convolutions)


def _bound_of_batch() -> Question:
    chip, batch = Hardware.Cloud.A100, 128
    widest = layer("dense", batch, _WIDTHS[-1], _PRECISION).intensity
    ridge = chip.ridge_point(_PRECISION)
    return ChoiceQuestion(
        "batch",
        f"Set batch {batch}, {_PRECISION.upper()} and the A100, and make the layer as wide as you can. "
        "Does it become compute-bound?",
        f"Each weight takes 2 bytes to read and does 2 FLOP for each row, so a batch of {batch} stays below {batch} "
        f"FLOP per byte however wide the layer is: {number(widest)} at width {_WIDTHS[-1]:,}. "
        f"The ridge is {number(ridge)}.",
        setting={"batch": batch, "width": _WIDTHS[-1], "precision": _PRECISION, "device": "A100", "kind": "dense"},
        choices=(
            Choice("Yes, once it is wide enough", "Move the width to its end: where does the point stop? Then "
                                                  "count what "
                   "one weight does for the bytes it takes.", bool(widest > ridge)),
            Choice("No, at no width", right=bool(batch < ridge.magnitude)),
        ),
    )  # fmt: skip


def _layer_norm_share() -> Question:
    chip = Hardware.Cloud.A100
    result = roofline(chip, layer("layernorm", 4096, _WIDTH, _PRECISION))
    share = 100 * result.figures["utilisation"].magnitude
    intensity, ridge = (number(result.figures[name]) for name in ("intensity", "ridge"))
    return NumberQuestion(
        "layernorm",
        f"Choose layer normalisation on the A100 in {_PRECISION.upper()}, without launch overhead. "
        "What percentage of the peak can it reach?",
        f"{intensity} FLOP per byte over a ridge of {ridge} is {number(share)}% of the peak, "
        "at any batch and width: no batch size helps.",
        setting={"kind": "layernorm", "batch": 4096, "precision": _PRECISION, "device": "A100", "overhead": 0},
        answer=share,
        unit="%",
        tolerance=0.05,
        most=100,
        hint="Choose the layer and read the number beside the point; or divide its intensity by the ridge.",
        slips=((share / 100, "Percent are asked for, not a share of one."),
               (result.figures["intensity"].magnitude, "That is the intensity; divide it by the ridge.")),
    )  # fmt: skip


def _next_chip() -> Question:
    old, new, work = Hardware.Cloud.A100, Hardware.Cloud.H100, layer("dense", 32, _WIDTH, _PRECISION)
    gain = (roofline(old, work).time / roofline(new, work).time).to("")
    compute = (new.peak(_PRECISION) / old.peak(_PRECISION)).to("")
    memory = (new.memory_bw / old.memory_bw).to("")
    return ChoiceQuestion(
        "next-chip",
        f"The dense layer at batch 32 and width {_WIDTH:,} moves from an A100 to an H100. How much faster can it get?",
        f"At {number(work.intensity)} FLOP per byte the layer is left of both ridges: it gains what the memory gains, "
        f"{number(new.memory_bw)} over {number(old.memory_bw)} GB/s, which is {times(memory)}.",
        setting={"kind": "dense", "batch": 32, "width": _WIDTH, "device": "A100", "other": "H100"},
        choices=(
            Choice(f"{times(compute)}, as the peak rates", "Compare it with the H100 in the picture: does the "
                                                           "point lie "
                   "under the flat part of a roof?", bool(gain == compute)),
            Choice(f"{times(memory)}, as the memory bandwidths", right=abs(gain.magnitude - memory.magnitude) < 1e-9),
            Choice("Not at all: it is memory-bound", "Memory-bound says what it waits for, and the newer machine has "
                   "other memory as well."),
        ),
    )  # fmt: skip


def _decoding() -> Question:
    chip = Hardware.Cloud.A100
    one, many = (roofline(chip, layer("decode", batch, _WIDTH, _PRECISION)) for batch in (1, 64))
    more = 64 * (one.time / many.time).to("").magnitude
    return ChoiceQuestion(
        "decoding",
        "Choose a decoding step at batch 1. Which change yields most tokens per second?",
        f"A step takes {number(one.time.to('us'))} µs at batch 1 and {number(many.time.to('us'))} µs at batch 64: "
        f"the weights are read once either way, which makes {times(more)} the tokens. "
        "A higher peak changes neither.",
        setting={"kind": "decode", "batch": 64, "precision": _PRECISION, "device": "A100"},
        choices=(
            Choice("Twice the peak rate", "Left of the ridge the flat roof is far above the point. What would "
                                          "raising it "
                   "do?", one.bound_by == "compute" and more < 2),
            Choice("Twice the memory bandwidth", "That helps, by the factor it says. Now set the batch and compare the "
                   "time of a step.", one.bound_by == "memory" and more < 2),
            Choice("A batch of 64", right=more > 2),
        ),
    )  # fmt: skip


def _ridge() -> Question:
    """Ask about a ridge made of a peak of another kind."""
    chip, before = Hardware.Cloud.B200, Hardware.Cloud.H100
    right, wrong = chip.ridge_point(_PRECISION), chip.ridge_point(_PRECISION, sparsity="2:4")
    return ChoiceQuestion(
        "ridge",
        "A figure of dense FP16 ridges shows them rising with each generation, ending with "
        f"{number(wrong)} FLOP per byte for the B200. What is wrong?",
        f"Dense FP16 over bandwidth is {number(chip.peak(_PRECISION))} TFLOP/s over {number(chip.memory_bw)} GB/s, or "
        f"{number(right)}; {number(wrong)} needs twice that rate, which is 2:4-sparse FP16 or dense FP8. "
        f"Like for like the H100 has {number(before.ridge_point(_PRECISION))}, so the ridge did not rise.",
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


def _convolutions() -> Question:
    """Ask about convolutions that are called compute-bound above some intensity."""
    counts, many = _compute_bound_convolutions()
    threshold = 50
    ridges = [number(chip.ridge_point(_PRECISION)) for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100)]
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


def _cpu() -> Question:
    """Ask about low intensity that is said to reach most of a processor's peak."""
    cases = [(2, 20), (5, 10)]
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


def _left() -> Question:
    """Ask about a sentence that is right."""
    chip, half = Hardware.Cloud.A100, roofline(Hardware.Cloud.A100, layer("dense", 32, _WIDTH, _PRECISION))
    wide = roofline(chip, layer("dense", 32, _WIDTH, "tf32"))
    ratio = (wide.time / half.time).to("")
    peaks = (chip.peak(_PRECISION) / chip.peak("tf32")).to("")
    return ChoiceQuestion(
        "left",
        "“A dense layer at batch 32 runs about twice as fast on an A100 in FP16 as in TF32, and it would even if both "
        "formats had the same peak rate.” What is wrong?",
        f"At batch 32 the layer is left of either ridge and waits for its bytes, of which FP16 has half: "
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
