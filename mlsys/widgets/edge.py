"""The lab on shrinking a network. Every number in a question or an answer comes from the stored run."""

from typing import Any

from mlsys.edge.schema import FORMATS
from mlsys.labs import shrink
from mlsys.viz.views.edge import BUDGETS, CLOCKS, CUTS, EdgeScene, chosen
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider


class ShrinkLab(Lab):
    """Predict, explore and check how to shrink a network: pruning, number formats and the clock.

    Examples
    --------
    >>> lab = ShrinkLab()
    >>> lab.predict(lab.prediction.listed()[0])
    >>> round(lab.view.values["memory"])
    37
    """

    id = "lab-09-shrink"
    title = "Lab 9: Shrink to fit"
    purpose = (
        "A network has to fit into a small memory without forgetting what it learned. "
        "Find out which ways of making it smaller save memory, which save time, which save energy, "
        "and which save nothing at all."
    )
    scene = EdgeScene
    predicts = ("cut", "precision")
    frames = {"cut": tuple(CUTS), "precision": FORMATS}  # noqa: RUF012

    def _controls(self) -> tuple[Control, ...]:
        sizes = [(f"{size} kB", size) for size in BUDGETS]
        return (
            slider(
                "cut", "Workload", "What is cut away", [(cut, cut) for cut in CUTS], shrink.WHOLE, "How it is pruned"
            ),
            choice("precision", "Mapping", "Number format", [(f, f) for f in FORMATS], "fp32", "How values are stored"),
            choice("clock", "Hardware", "Clock", [(c, c) for c in CLOCKS], "full", "Clock and voltage of the core"),
            slider("budget", "Hardware", "Memory", sizes, 100, "Memory that the network may have"),
        )

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the range of memory, in kilobytes, that an answer means."""
        return shrink.range_of(self.draw, given)

    def __init__(self, student: str = "") -> None:
        super().__init__(student)
        for clock in CLOCKS:  # computed in advance, so that the first step of a control is as fast as the next
            chosen(shrink.HOLES, "fp32", clock)
