"""The lab on tiling. Every number in a question or an answer is computed or simulated here."""

from typing import Any

from mlsys.labs import tiling
from mlsys.viz.lru import CAPACITIES, EDGES, LINES, SIZES
from mlsys.viz.views.tiling import TilingScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_TILES = tuple(sorted({*EDGES, *tiling.TILES}))


class TilingLab(Lab):
    """Predict, explore and check the best tile size.

    Examples
    --------
    >>> lab = TilingLab()
    >>> lab.predict("Past 16")
    >>> lab.view.values["cache"]
    36846
    """

    id = "lab-05-tiling"
    title = "Lab 5: How large should a tile be?"
    purpose = (
        "A product cut into tiles moves fewer words the larger the tiles are, until they no longer fit. "
        "Find out where that is: for a buffer that a program manages, and for a cache that manages itself."
    )
    frames = {  # noqa: RUF012 (read only)
        "tile": _TILES,
        "words": (256, 512, 768, 2048),
        "line_words": (1, 16),
    }
    scene = TilingScene
    predicts = ("size", "words", "line_words")

    def _guessed(self, given: Any) -> tuple[float, ...]:
        return (float(given.split()[-1]),)

    def _controls(self) -> tuple[Control, ...]:
        return (
            slider(
                "size", "Workload", "Edge of the matrices (words)", [(f"{n}", n) for n in SIZES], 48,
                "All three matrices are square",
            ),
            slider(
                "tile", "Mapping", "Tile edge (words)", [(f"{t}", t) for t in _TILES], 4,
                "All three tiles are square; a tile is cut to the matrix",
            ),
            choice("buffers", "Mapping", "Buffering", [("Single", 1), ("Double", 2)], 1,
                   "Double: the next tiles arrive while these are used"),
            slider(
                "words", "Hardware", "Buffer or cache (words)", [(f"{s:,}", s) for s in CAPACITIES], 256,
                "Room of the managed buffer and of the cache alike",
            ),
            slider(
                "line_words", "Hardware", "Line of the cache (words)", [(f"{b}", b) for b in LINES], 16,
                "Words that come and go together",
            ),
        )  # fmt: skip
