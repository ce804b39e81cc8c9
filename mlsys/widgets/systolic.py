"""The lab on systolic arrays. Every number in a question or an answer is computed here by the model."""

from typing import Any

from mlsys.labs import systolic
from mlsys.models.systolic import DATAFLOWS
from mlsys.viz.views.systolic import SystolicScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_SIZES = (1, 4, 16, 32, 64, 100, 128, 129, 192, 256, 300, 384, 512, 513, 768, 1024)
_SIDES = (8, 16, 32, 64, 128, 256)
_OVERLAPS = {"none": "nothing", "load": "loading and draining", "full": "everything"}


class SystolicLab(Lab):
    """Predict, explore and check the utilisation of a systolic array.

    Examples
    --------
    >>> lab = SystolicLab()
    >>> lab.predict("About half")
    >>> print(f"{lab.view.values['counts'].utilisation:.2%}")
    0.39%
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
        "n": (64, 128, 129, 256, 512, 1024),
        "side": (32, 128, 256),
    }
    scene = SystolicScene

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
            slider("side", "Hardware", "Rows and columns of the array", sides, systolic.SIDE, "PEs"),
            choice("along", "View", "Draw utilisation over", ["M", "N", "K"], "N", "Which size the picture runs along"),
        )  # fmt: skip

    def _arguments(self) -> dict[str, Any]:
        values = super()._arguments()
        values["fold_overlap"] = values.pop("overlap")
        return values
