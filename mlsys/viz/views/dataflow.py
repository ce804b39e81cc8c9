"""View of dataflows: the words of each operand moved by each dataflow."""

from dataclasses import dataclass
from typing import TypedDict, get_args

import matplotlib.style
from matplotlib.patches import Rectangle

from mlsys.choices import Stationary
from mlsys.mapping import DATAFLOWS, dataflow, gemm_space
from mlsys.models.dataflow import buffer_words, movements
from mlsys.planner.mapper import best_two_level
from mlsys.unit_checks import checked_choice, checked_count
from mlsys.viz.mapping import OPERANDS, DataflowBars
from mlsys.viz.style import COLORS, HALO
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import percent, times

FLOWS: tuple[Stationary, ...] = get_args(Stationary)


@dataclass(frozen=True)
class Words:
    """The words that one matrix product moves.

    Attributes
    ----------
    parts
        Dataflow to words of inputs, weights and partial sums.
    compulsory
        Words that must move once.
    best
        Minimum over all tiles and loop orders in the same buffer.
    """

    parts: dict[Stationary, tuple[int, int, int]]
    compulsory: int
    best: int

    def total(self, flow: Stationary) -> int:
        """Return the total words of a dataflow."""
        return sum(self.parts[flow])


def words_of(m: int, k: int, n: int, tile: int) -> Words:
    """Return the words that three dataflows move for an (m × k) by (k × n) product.

    Parameters
    ----------
    m, k, n
        Rows of the input, length of the sum, columns of the weights.
    tile
        Edge of the tile that stays. Its room, with a row and a column for what streams,
        is what the best mapping may use as well.

    Raises
    ------
    ArgumentError
        If a size is not a whole number of at least 1.

    Examples
    --------
    >>> words = words_of(32, 256, 512, 32)
    >>> {flow: words.total(flow) for flow in FLOWS}
    {'ws': 507904, 'os': 278528, 'is': 385024}
    """
    given = {"m": m, "k": k, "n": n, "tile": tile}
    m, k, n, tile = (checked_count("words_of", name, value) for name, value in given.items())
    space = gemm_space(m, n, k)
    parts: dict[Stationary, tuple[int, int, int]] = {}
    for flow in FLOWS:
        a, b, c = (item.words for item in movements(space, dataflow(flow, tile)))
        parts[flow] = (a, b, c)
    (room,) = buffer_words(gemm_space(tile, tile, tile), dataflow("os", tile))
    return Words(parts, space.compulsory, best_two_level(m, n, k, room).words)


class DataflowValues(TypedDict):
    """Values of :class:`DataflowScene`: counts, the selected dataflow, and the one that moves least."""

    words: Words
    flow: Stationary
    least: str


class DataflowScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty chart with room for one bar of words moved for each of three dataflows."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.2)
            ax = self.figure.add_axes((0.08, 0.13, 0.64, 0.77))
            self._flows = DataflowBars(ax, [DATAFLOWS[flow][0] for flow in FLOWS])
            ax.tick_params(labelsize=9.5, colors=COLORS["primary"])
            ax.set_title("Words moved", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
            ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=9.5, frameon=False)
            self._frame = Rectangle((0, 0), 0.72, 0, fill=False, edgecolor=COLORS["primary"], linewidth=2.2, zorder=4)
            ax.add_patch(self._frame)
            self._levels, self._names = [], []
            for color, dash in (("VioletLine", "--"), ("RedLine", ":")):
                (level,) = ax.plot([-0.6, 2.6], [0, 0], dash, color=COLORS[color], linewidth=1.6, zorder=5)
                name = self.figure.text(0.73, 0, "", color=COLORS[color], fontsize=9.5, va="center", bbox=HALO)
                self._levels.append(level)
                self._names.append(name)
            self.guess = Guess(ax, "x", place=0.995)
        self.moving = (*self.guess.artists, *self._flows.artists, self._frame, *self._levels, *self._names)

    def update(self, m: int, k: int, n: int, flow: Stationary = "os", tile: int = 32) -> View[DataflowValues]:
        """Return the view of three dataflows of one matrix product.

        Parameters
        ----------
        m, k, n, tile
            As in :func:`words_of`.
        flow
            ``"ws"``, ``"os"`` or ``"is"``: the selected dataflow, which is framed and summarised.

        Raises
        ------
        ArgumentError
            If a size is not a whole number of at least 1.
        UnknownNameError
            If there is no such dataflow.

        Examples
        --------
        >>> print(DataflowScene().update(1, 4096, 4096, "ws", 128).summary)
        Weight stationary, a product of 1 × 4,096 by 4,096 × 4,096 moves ... It is 1.02× what must move once.
        """
        checked_choice("DataflowScene", "flow", flow, FLOWS)
        words = words_of(m, k, n, tile)
        most = max(words.total(name) for name in FLOWS)
        self._flows.show([words.parts[name] for name in FLOWS], "{:,}".format)
        self._frame.set_x(FLOWS.index(flow) - 0.36)
        self._frame.set_height(100 * words.total(flow) / most)
        heights = [100 * words.best / most, 100 * words.compulsory / most]
        for level, height in zip(self._levels, heights, strict=True):
            level.set_ydata([height, height])
        apart = max(heights[0], heights[1] + 11)
        for label, height, what, count_ in zip(
            self._names, (apart, heights[1]), ("best of any tiles", "must move once"), (words.best, words.compulsory),
            strict=True,
        ):  # fmt: skip
            label.set_y(0.13 + 0.77 * height / 114)
            label.set_text(f"{what}\n{count_:,}")
        summary = _summary(m, k, n, flow, tile, words)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Stacked bars of the words of inputs, weights and partial sums that three dataflows move, "
            f"with lines at the best of any tiles and at what must move once. {summary}",
            values={"words": words, "flow": flow, "least": least(words)},
        )


def least(words: Words) -> Stationary:
    """Return the dataflow that moves least."""
    return min(FLOWS, key=words.total)


def _summary(m: int, k: int, n: int, flow: Stationary, tile: int, words: Words) -> str:
    mine, best = words.total(flow), least(words)
    part = max(range(3), key=lambda number: words.parts[flow][number])
    share = percent(words.parts[flow][part] / mine)
    opening = (
        f"{DATAFLOWS[flow][0].capitalize()}, a product of {m:,} × {k:,} by {k:,} × {n:,} moves {mine:,} words with "
        f"tiles of {tile} × {tile}; {share} of them are {OPERANDS[part][0]}."
    )
    if words.total(best) == mine:
        middle = "Neither of the others moves less."
    else:
        middle = f"{DATAFLOWS[best][0].capitalize()} moves least: {times(mine / words.total(best))} fewer."
    return f"{opening} {middle} It is {times(mine / words.compulsory)} what must move once."
