"""The lab on the roofline. Every number in a question or an answer is computed here by the model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsys import Hardware
from mlsys.hardware import Device
from mlsys.labs.roofline import BATCHES
from mlsys.labs.roofline_questions import PRECISION, WIDTHS, width_of
from mlsys.units import Q_
from mlsys.viz.views import KINDS, RooflineScene, layer
from mlsys.viz.views.roofline import device_name
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, options_of, slider, switch

_DEVICES = ("V100", "T4", "A100", "H100", "H200", "B200", "MI300X", "TPUv1", "TPUv4", "TPUv5p")
_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
_OVERHEADS = (0, 1, 2, 5, 10, 20, 50)
_NONE = "none"


class RooflineLab(Lab):
    """Predict, explore and check the attainable performance of a layer on a device.

    Examples
    --------
    >>> lab = RooflineLab()
    >>> lab.predict("48")
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
        "batch": (1, 8, 48, 96, 192, 384, 768, 4096),
        "device": ("V100", "A100", "H100", "B200", "CPU: EPYC 9654"),
        "kind": ("dense", "layernorm"),
    }
    scene = RooflineScene
    predicts = ("kind", "width", "precision", "device")

    def __init__(self, student: str = "") -> None:
        self.machines = _machines()
        super().__init__(student)

    def _build(self) -> None:
        super()._build()
        self.controls["precision"] = replace(self.controls["precision"], known=_PRECISIONS)
        self._offer_formats()

    def _controls(self) -> tuple[Control, ...]:
        names = list(self.machines)
        kinds = [(name.capitalize(), kind) for kind, name in KINDS.items()]
        return (
            choice("kind", "Workload", "Layer", kinds, "dense", "What is computed"),
            slider(
                "batch", "Workload", "Batch (rows, images or sequences)", [(f"{b:,}", b) for b in BATCHES], 1,
                "How many rows, images or sequences are computed together",
            ),
            slider(
                "width", "Workload", "Width (features or channels)", [(f"{w:,}", w) for w in WIDTHS], 2048,
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

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the intensity of the layer at the predicted batch."""
        return (float(layer("dense", int(given), width_of(self.draw), PRECISION).intensity.m_as("FLOP/byte")),)

    def _changed(self, change: Any) -> None:
        if change["owner"] is self.controls["device"].widget:
            self._offer_formats()
        super()._changed(change)

    def _offer_formats(self) -> None:
        """Offer the formats of the selected device; replace a missing one by the nearest available."""
        device, widget = self.machines[self.value("device")], self.controls["precision"].widget
        had, now = options_of(widget), widget.value
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
        lacking = "precision" in values and values["precision"] not in options_of(self.controls["precision"].widget)
        super()._set({name: value for name, value in values.items() if not (lacking and name == "precision")})


def _machines() -> dict[str, Device]:
    """Return the devices of the lab by list label."""
    machines = {name: Hardware.Cloud[name] for name in _DEVICES}
    machines |= {f"CPU: {device_name(device)}": device for device in Hardware.CPU}
    return machines


def _nearest(lost: str, offered: list[str]) -> str:
    """Return the offered format whose size is nearest to that of a format the machine lacks, the wider of two."""
    bits = {name: int("".join(filter(str.isdigit, name))) for name in {lost, *offered}} | {"tf32": 32}
    floating = [name for name in offered if name.startswith("int") == lost.startswith("int")] or offered
    return min(floating, key=lambda name: (abs(bits[name] - bits[lost]), -bits[name], name))
