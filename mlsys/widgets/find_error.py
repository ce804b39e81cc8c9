"""The lab "find the error": a workbench of facts, claims to judge one after the other, and checks to choose."""

from typing import Any

import ipywidgets

from mlsys import Hardware
from mlsys.labs import find_error
from mlsys.labs.slip_claims import CLOUD
from mlsys.viz.views.slips import READINGS, SlipsScene
from mlsys.viz.views.view import percent
from mlsys.widgets import parts
from mlsys.widgets.calculator import Calculator
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_MACHINES = ("V100", "A100", "H100", "H200", "B200", "MI300X", "L4")
_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
_SHARES = tuple(sorted({0.25, 0.3, 0.36, 0.41, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, *find_error.KEPT}))
assert set(CLOUD) <= set(_MACHINES)


class FindErrorLab(Lab):
    """Predict what four slips do to a plan, then judge twelve claims, and choose checks.

    Examples
    --------
    >>> lab = FindErrorLab()
    >>> lab.predict(4)
    >>> lab.view.values["readings"][0].name
    'as planned'
    """

    id = "lab-13-find-the-error"
    title = "Lab 13: Find the error"
    purpose = (
        "Twelve claims as talks and reports make them: most are wrong, each by one common slip, and some are right. "
        "Find out which, name the slip, and give the right value, with the facts and formulas of the workbench. Then "
        "choose the checks that would keep such slips out of a report."
    )
    scene = SlipsScene
    frames = {  # noqa: RUF012 (read only)
        "what": tuple(READINGS),
        "device": _MACHINES,
        "precision": ("tf32", "bf16", "int8"),
    }
    predicts = ("device", "what", "kept")

    def _controls(self) -> tuple[Control, ...]:
        kinds = [(title, name) for name, (title, _, _) in READINGS.items()]
        return (
            choice("precision", "Mapping", "Number format", [(name.upper(), name) for name in _PRECISIONS], "bf16",
                   "Format that comes first, of a peak or a ridge point"),
            slider("kept", "Mapping", "Kept up of the peak (%)", [(percent(share), share) for share in _SHARES], 0.5,
                   "Share of the dense peak that the plan keeps up"),
            choice("device", "Hardware", "Machine", _MACHINES, "A100", "The machine that is looked up"),
            choice("what", "View", "What to look up", kinds, "peak", "One kind of fact, read in several ways"),
        )  # fmt: skip

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "device": Hardware.Cloud[self.value("device")]}

    def _guessed(self, given: Any) -> tuple[float, ...]:
        return (float(given),)

    def _below_picture(self) -> tuple[Any, ...]:
        self.calculator = Calculator()
        return (self.calculator.view,)

    def _checks(self) -> tuple[Any, ...]:
        """Return one claim at a time, with a list of all and their state."""
        names = list(self.boxes)
        self.page = ipywidgets.Dropdown(
            options=[(str(nth), name) for nth, name in enumerate(names, start=1)], description="Claim",
            style={"description_width": "initial"}, layout={"width": "16em"},
        )  # fmt: skip
        self.page.add_class("mlsys-control")
        self.back_button, self.next_button = parts.button("Previous claim"), parts.button("Next claim")
        self.back_button.on_click(lambda _: self._turn(-1))
        self.next_button.on_click(lambda _: self._turn(1))
        self.count = ipywidgets.HTML("")
        self._claim = ipywidgets.VBox([])
        self.page.observe(lambda _: self._show_claim(), names="value")
        row = ipywidgets.HBox([self.page, self.back_button, self.next_button], layout={"flex_flow": "row wrap"})
        self._show_claim()
        return (row, self.count, self._claim)

    def _turn(self, by: int) -> None:
        names = [name for _, name in self.page.options]
        self.page.value = names[(names.index(self.page.value) + by) % len(names)]

    def _show_claim(self) -> None:
        if self.page.value in self.boxes:  # not while the list is exchanged
            self._claim.children = [self.boxes[self.page.value].view]

    def _tell_wrap_up(self) -> None:
        super()._tell_wrap_up()
        found = sum(box.right for box in self.boxes.values())
        shown = self.page.value if self.page.value in self.boxes else next(iter(self.boxes))
        marks = {name: "found" if box.right else "tried" if box.tries else "open" for name, box in self.boxes.items()}
        options = [(f"{nth}: {marks[name]}", name) for nth, name in enumerate(self.boxes, start=1)]
        if list(self.page.options) != options:
            self.page.options = options
            self.page.value = shown
        self._show_claim()
        self.count.value = f"<p>{found} of {len(self.boxes)} claims judged completely.</p>"
