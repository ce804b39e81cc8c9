"""The lab on dataflows. Every number in a question or an answer is counted here by the model."""

from typing import Any

from mlsys.labs import dataflow
from mlsys.viz.views.dataflow import FLOWS, DataflowScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_SIZES = tuple(sorted({2**power for power in range(13)} | {24, 36, 48, 72, 96, 192, 384, 768, 1536, 3072}))
_TILES = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)


class DataflowLab(Lab):
    """Predict, explore and check the traffic with stationary inputs, weights or partial sums.

    Examples
    --------
    >>> lab = DataflowLab()
    >>> lab.predict("Weight stationary")
    >>> lab.view.values["least"]
    'os'
    """

    id = "lab-06-dataflow"
    title = "Lab 6: Which operand should stay?"
    purpose = (
        "While loops run, an array can keep one of three operands where it is: inputs, weights or partial sums. "
        "The others stream past. Find out which one should stay, for which shapes it matters, "
        "and for which it does not."
    )
    frames = {  # noqa: RUF012
        "m": (1, 24, 48, 192, 1024),
        "k": (24, 48, 384, 768),
        "n": (768, 1536),
        "flow": FLOWS,
    }
    scene = DataflowScene
    predicts = ("m", "k", "n", "tile")

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the ends of the place of the predicted dataflow's bar."""
        bar = [dataflow.flow_name(flow) for flow in FLOWS].index(given)
        return bar - 0.45, bar + 0.45

    def _controls(self) -> tuple[Control, ...]:
        sizes = [(f"{size:,}", size) for size in _SIZES]
        flows = [(dataflow.flow_name(flow), flow) for flow in FLOWS]
        return (
            slider("m", "Workload", "Rows of the input, M", sizes, 32, "Batch, tokens or output pixels"),
            slider("k", "Workload", "Length of the sum, K", sizes, 256, "Inputs that one output adds up"),
            slider("n", "Workload", "Columns of the weights, N", sizes, 512, "Outputs for each row"),
            choice("flow", "Mapping", "What stays", flows, "ws", "The operand that is kept"),
            slider(
                "tile", "Hardware", "Edge of the tile that stays", [(str(t), t) for t in _TILES], 32,
                "Rows and columns of the array",
            ),
        )  # fmt: skip
