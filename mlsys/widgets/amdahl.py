"""The lab on Amdahl's law. Every number in a question or an answer is computed here from the formulas."""

from typing import Any

from mlsys.viz.views import AmdahlScene
from mlsys.viz.views.view import percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, slider, switch

_SHARES = (*range(0, 800, 50), *range(800, 990, 5), *range(990, 1000))  # in thousandths: finer where it matters
_SPEEDUPS = (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45, 70, 85, 100, 150, 200, 300, 500, 700, 1000)


class AmdahlLab(Lab):
    """Predict, explore and check what an accelerator does for a whole program.

    Examples
    --------
    >>> lab = AmdahlLab()
    >>> lab.predict(50)
    >>> print(lab.view.values["bound_by"], f"{lab.view.values['speedup']:.1f}")
    host 13.6
    """

    id = "lab-01-amdahl"
    title = "Lab 1: What does an accelerator do for the whole program?"
    purpose = (
        "An accelerator speeds up one part of a program; the rest stays on the host. "
        "Find out how much faster the whole gets, what limits it, and when a faster accelerator stops paying."
    )
    scene = AmdahlScene
    frames = {  # noqa: RUF012 (read only)
        "share": (0.5, 0.8, 0.9, 0.91, 0.92, 0.94, 0.96, 0.985, 0.999),
        "speedup": (2, 5, 10, 20, 45, 70, 85, 200, 1000),
    }

    predicts = ("share", "speedup")

    def _controls(self) -> tuple[Control, ...]:
        return (
            slider(
                "share",
                "Workload",
                "Accelerated share of the time, p (%)",
                [(percent(share / 1000), share / 1000) for share in _SHARES],
                0.5,
                "Share of the original run time that moves to the accelerator; the rest stays on the host",
            ),
            slider(
                "speedup",
                "Hardware",
                "Speedup of that part, S (×)",
                [(times(speedup), speedup) for speedup in _SPEEDUPS],
                10,
                "How many times as fast the accelerator runs its part",
            ),
            switch("compare", "View", "Show other shares behind", False, "Lay the curves of four other shares behind"),
        )

    def _guessed(self, given: Any) -> tuple[float, ...]:
        return (float(given),)

    def _arguments(self) -> dict[str, Any]:
        share, speedup = self.value("share"), self.value("speedup")
        return {"parallel_fraction": share, "accelerator_speedup": speedup, "compare": self.value("compare")}
