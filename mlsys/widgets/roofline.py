"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsys import Hardware
from mlsys.hardware import Device
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.viz.views import KINDS, RooflineScene, layer
from mlsys.viz.views.roofline import device_name
from mlsys.viz.views.view import number
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, offered, slider, switch
from mlsys.widgets.questions import Choice, ChoiceQuestion, Question
from mlsys.widgets.roofline_questions import PRECISION, WIDTH, WIDTHS, compute_bound_convolutions, roofline_questions
from mlsys.widgets.wrapup import Finding, WrapUp

_DEVICES = ("V100", "T4", "A100", "H100", "H200", "B200", "MI300X", "TPUv1", "TPUv4", "TPUv5p")
_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
_BATCHES: tuple[int, ...] = tuple(2**power for power in range(13))
_OVERHEADS = (0, 1, 2, 5, 10, 20, 50)
_NONE = "none"


def _machines() -> dict[str, Device]:
    """Return the devices of the lab by list label."""
    machines = {name: Hardware.Cloud[name] for name in _DEVICES}
    machines |= {f"CPU: {device_name(device)}": device for device in Hardware.CPU}
    return machines


class RooflineLab(Lab):
    """Predict, explore and check the attainable performance of a layer on a device.

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
    scene = RooflineScene

    def __init__(self) -> None:
        self.machines = _machines()
        batch = _first_compute_bound()
        self.scenario = {"kind": "dense", "batch": batch, "width": WIDTH, "precision": PRECISION, "device": "A100"}
        super().__init__()

    def _build(self) -> None:
        super()._build()
        self.controls["precision"] = replace(self.controls["precision"], known=_PRECISIONS)
        self._offer_formats()

    def _prediction(self) -> Question:
        chip, right = Hardware.Cloud.A100, _first_compute_bound()
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
                "width", "Workload", "Width (features or channels)", [(f"{w:,}", w) for w in WIDTHS], WIDTH,
                "Features in and out of the layer, or channels of the convolution",
            ),
            choice(
                "precision", "Mapping", "Number format", [(p.upper(), p) for p in _PRECISIONS], PRECISION,
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

    def _arguments(self) -> dict[str, Any]:
        values, machines = super()._arguments(), {_NONE: None, **self.machines}
        values["launch_overhead"] = Q_(values.pop("overhead"), "us")
        return {**values, "device": machines[values["device"]], "other": machines[values["other"]]}

    def _changed(self, change: Any) -> None:
        if change["owner"] is self.controls["device"].widget:
            self._offer_formats()
        super()._changed(change)

    def _offer_formats(self) -> None:
        """Offer the formats of the selected device; replace a missing one by the nearest available."""
        device, widget = self.machines[self.value("device")], self.controls["precision"].widget
        had, now = offered(widget), widget.value
        has = [name for name in _PRECISIONS if name in device.precisions]
        if has == had:
            return
        quiet, self._quiet = self._quiet, True
        try:
            widget.options = [(name.upper(), name) for name in has]
            widget.value = now if now in has else _nearest(now, has)
        finally:
            self._quiet = quiet

    def _set(self, values: Mapping[str, Any]) -> None:
        # The device first: it determines the available formats.
        if "device" in values:
            quiet, self._quiet = self._quiet, True
            self.controls["device"].widget.value = values["device"]
            self._quiet = quiet
        lacking = "precision" in values and values["precision"] not in offered(self.controls["precision"].widget)
        super()._set({name: value for name, value in values.items() if not (lacking and name == "precision")})

    def _questions(self) -> tuple[Question, ...]:
        return roofline_questions()

    def _wrap_up(self) -> WrapUp:
        chip, old, new = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.B200
        batch = _first_compute_bound()
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


def _first_compute_bound() -> int:
    """Return the smallest listed batch at which the dense layer is compute-bound on an A100."""
    chip = Hardware.Cloud.A100
    for batch in _BATCHES:
        if roofline(chip, layer("dense", batch, WIDTH, PRECISION)).bound_by == "compute":
            return batch
    raise ValueError("no batch of the list makes the layer compute-bound: give the lab larger ones")


def _nearest(lost: str, offered: list[str]) -> str:
    """Return the offered format whose size is nearest to that of a format the machine lacks, the wider of two."""
    bits = {name: int("".join(filter(str.isdigit, name))) for name in {lost, *offered}} | {"tf32": 32}
    floating = [name for name in offered if name.startswith("int") == lost.startswith("int")] or offered
    return min(floating, key=lambda name: (abs(bits[name] - bits[lost]), -bits[name], name))
