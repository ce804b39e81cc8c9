"""The lab on placement. Every number in a question or an answer is planned here."""

from typing import Any

from mlsys.labs import placement
from mlsys.viz.views.placement import MEMORY, PlacementScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_SPEEDS = {"1/32": 1 / 32, "1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0, "2": 2.0, "4": 4.0}


class PlacementLab(Lab):
    """Predict, explore and check which device should run which stage of a pipeline.

    Examples
    --------
    >>> lab = PlacementLab()
    >>> lab.predict(lab.prediction.right_answer())
    >>> lab.view.values["switches"]
    2
    """

    id = "lab-08-placement"
    title = "Lab 8: Which chip for which stage?"
    purpose = (
        "A vision pipeline of seven stages may run on a CPU, a GPU and an NPU that share one board. Each stage is "
        "faster on one of them, and every change of device moves data over a link. Find out when a change pays."
    )
    frames = {  # noqa: RUF012
        "link": (placement.SLOW, 1 / 16, 1 / 2, 1.0),
        "memory": (512, 1024, placement.SMALL, 2560, MEMORY),
        "npu": (0.25, 1.0, 5.0),
        "goal": ("latency", "efficiency"),
    }
    scene = PlacementScene
    predicts = ("link", "memory", "npu", "goal")

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the range of times, in milliseconds, that an answer means."""
        return placement.ranges(self.draw)[self.prediction.listed().index(given)]

    def _controls(self) -> tuple[Control, ...]:
        speeds = [(f"× {speed:g}", speed) for speed in (0.25, 0.5, 1.0, 2.0, *placement.SPEEDS)]
        sizes = [(f"{size:,} MB", size) for size in placement.MEMORIES]
        return (
            choice(
                "goal", "Mapping", "What is wanted", [("Least time", "latency"), ("Least energy", "efficiency")],
                "latency", "What the plan is the best for",
            ),
            slider(
                "link", "Hardware", "Bandwidth of the links", [(f"× {name}", s) for name, s in _SPEEDS.items()], 1.0,
                "Every link between two devices, as a multiple of the example's",
            ),
            slider(
                "memory", "Hardware", "Memory of the NPU", sizes, MEMORY,
                "What the stages that run there may take together",
            ),
            slider(
                "npu", "Hardware", "Speed of the NPU", speeds, 1.0,
                "As a multiple of the example's",
            ),
        )  # fmt: skip
