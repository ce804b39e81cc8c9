"""The lab on the memory wall. Every number in a question or an answer is computed here."""

from typing import Any

from mlsys import Hardware
from mlsys.hardware import Device, view
from mlsys.viz.views.memory import MemoryScene, MemoryState
from mlsys.viz.views.roofline import device_name
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_WARPS: tuple[int, ...] = tuple(range(1, 65))
_STRIDES = (1, 2, 4, 6, 8, 16, 22, 24, 32)
_PRECISIONS = ("fp64", "fp32", "fp16", "int8")
_NONE = "none"


class MemoryLab(Lab):
    """Predict, explore and check what saturates memory bandwidth.

    Examples
    --------
    >>> lab = MemoryLab()
    >>> lab.predict(8)
    >>> lab.view.values["bound_by"]
    'latency'
    """

    id = "lab-03-memory-wall"
    title = "Lab 3: What keeps a memory busy?"
    purpose = (
        "A memory has a bandwidth and a latency, and a program gets the first only if it asks for enough "
        "while it waits for the second. Find out how much is enough, what a stride wastes, "
        "and what a newer machine changes."
    )
    scene = MemoryScene
    predicts = ("stride", "precision", "device")

    frames = {  # noqa: RUF012 (read only)
        "warps": (1, 2, 4, 8, 16, 32, 48, 58, 64),
        "stride": (1, 2, 4, 8, 32),
        "device": ("V100", "A100", "H100"),
    }

    def __init__(self, student: str = "") -> None:
        self.machines = _machines()
        super().__init__(student)

    def _controls(self) -> tuple[Control, ...]:
        names = list(self.machines)
        return (
            slider(
                "stride", "Workload", "Stride between lanes (elements)", [(f"{s}", s) for s in _STRIDES], 2,
                "How many elements apart neighbouring lanes of a warp read",
            ),
            choice("precision", "Workload", "Element", [(p.upper(), p) for p in _PRECISIONS], "fp32",
                   "Format of what each lane reads"),
            slider(
                "warps", "Mapping", "Loads in flight on each unit (warps)", [(f"{w}", w) for w in _WARPS], 1,
                "How many warps wait for one load each",
            ),
            choice("device", "Hardware", "Machine", names, "A100", "The machine in front"),
            choice("other", "View", "Compare with", [_NONE, *names], _NONE, "A second machine, dashed, behind"),
        )  # fmt: skip

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the kilobytes in flight with the predicted warps."""
        device = self.machines[str(self.scenario["device"])]
        one = MemoryState(device, 1, 1, str(self.scenario["precision"]))
        return (float(given) * float(one.in_flight.m_as("kB")),)

    def _arguments(self) -> dict[str, Any]:
        values, machines = super()._arguments(), {_NONE: None, **self.machines}
        return {**values, "device": machines[values["device"]], "other": machines[values["other"]]}


def _machines() -> dict[str, Device]:
    """Return the NVIDIA GPUs with recorded memory latency and number of units, by short name."""
    chosen = {
        device_name(device): device
        for device in Hardware.Cloud
        if device.vendor == "NVIDIA" and view(device).main.has("latency") and view(device).has("units")
    }
    return dict(sorted(chosen.items()))
