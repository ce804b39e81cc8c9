"""The lab on systolic arrays. Every number in a question or an answer is computed here by the model."""

from typing import Any

from mlsys.labs import systolic
from mlsys.models.systolic import DATAFLOWS
from mlsys.viz.views.systolic import SystolicScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_SIDES = tuple(sorted({8, 16, 32, 64, 128, 256} | {scale * side for side in systolic.SIDES for scale in (1, 2)}))
_FRINGES = {side + more for side in systolic.SIDES for more in (0, 1)}
_ROWS = {1, 4, 16, 40, 48, 64, 80, 128, 200, 256, 360, 440, 512, 600, 1024}
_SIZES = tuple(sorted(_ROWS | _FRINGES | {*systolic.WIDTHS}))
_OVERLAPS = {"none": "nothing", "load": "loading and draining", "full": "everything"}


class SystolicLab(Lab):
    """Predict, explore and check the utilisation of a systolic array.

    Examples
    --------
    >>> lab = SystolicLab()
    >>> lab.predict("About half")
    >>> print(f"{lab.view.values['counts'].utilisation:.2%}")
    0.70%
    """

    id = "lab-04-systolic"
    title = "Lab 4: How much of a systolic array works?"
    purpose = (
        "A systolic array multiplies in thousands of places at once, if the product that it is given fills it. "
        "Find out which size of a product fills which side of the array, what a fringe costs, "
        "and which operand it saves you from reading again."
    )

    frames = {  # noqa: RUF012
        "m": (1, 16, 64, 128, 256, 512, 1024),
        "n": (72, 73, 128, 576, 1152, 1728),
        "side": (32, 72, 144),
    }
    scene = SystolicScene
    predicts = ("m", "n", "k", "side", "dataflow", "overlap")

    def _controls(self) -> tuple[Control, ...]:
        sizes = [(f"{size:,}", size) for size in _SIZES]
        sides = [(f"{side}", side) for side in _SIDES]
        staying = [(text.capitalize(), key) for key, text in DATAFLOWS.items()]
        return (
            slider("m", "Workload", "M: rows of the left operand (the batch)", sizes, 512, "Rows of the product"),
            slider("n", "Workload", "N: columns of the right operand", sizes, 512, "Columns of the product"),
            slider("k", "Workload", "K: length of the reduction", sizes, 512, "Products added into each output"),
            choice(
                "dataflow", "Mapping", "What stays", staying, "ws", "Which operand is held while the others move",
            ),
            choice(
                "overlap", "Mapping", "Hidden behind other work", [(name, key) for key, name in _OVERLAPS.items()],
                "load", "How far one fold may overlap the next",
            ),
            slider("side", "Hardware", "Rows and columns of the array", sides, 128, "PEs"),
            choice("along", "View", "Draw utilisation over", ["M", "N", "K"], "N", "Which size the picture runs along"),
        )  # fmt: skip

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the range of utilisation, in percent, that an answer means."""
        return systolic.RANGES[given]

    def _arguments(self) -> dict[str, Any]:
        values = super()._arguments()
        values["fold_overlap"] = values.pop("overlap")
        return values
