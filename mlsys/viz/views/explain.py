"""A measured network as a picture: where its time went, layer by layer, and what speeding one cause up would do."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from mlsys.errors import UnknownNameError
from mlsys.explain import CAUSES, Attribution, Log, attribute, stored_logs
from mlsys.explain.whatif import amdahl
from mlsys.viz.explain import LOOKS
from mlsys.viz.style import COLORS, apply_style
from mlsys.viz.views.view import Scene, View, new_figure, number, percent, times

__all__ = ["FACTORS", "ExplainScene", "explain_view", "measured", "measurements"]

FACTORS = (1.0, 2.0, 4.0, 10.0, 100.0)
"""How many times as fast a cause may become."""
_MODEL = "ds-cnn"
_REST = "outside layers"
_ROWS = ("measured", "after")


@lru_cache(maxsize=1)
def measurements() -> dict[str, Log]:
    """Return the shipped logs of DS-CNN by number format and runtime, the slowest on a processor first.

    Examples
    --------
    >>> list(measurements())[0]
    'eager, FP32'
    """
    logs = [log for log in stored_logs().values() if log.model == _MODEL]
    order = sorted(logs, key=lambda log: (log.backend == "serial", log.format, -log.median))
    return {_label(log): log for log in order}


def _label(log: Log) -> str:
    return f"{'simulated board' if log.backend == 'serial' else log.backend}, {log.format.upper()}"


@lru_cache(maxsize=32)
def measured(name: str) -> Attribution:
    """Return where the time of one of :func:`measurements` went.

    Raises
    ------
    UnknownNameError
        If there is no such measurement.
    """
    if name not in measurements():
        raise UnknownNameError(f"explain_view(): `name` must be one of {', '.join(measurements())}, got {name!r}")
    return attribute(measurements()[name])


def _parts(found: Attribution) -> dict[str, dict[str, float]]:
    """Return shares of the whole by layer and cause; what the runtime does besides stands with what no layer took."""
    works = {work.name for work in next(iter(measurements().values())).works if work.macs or work.kind == "pool"}
    rows = {name: dict.fromkeys(CAUSES, 0.0) for name in (*_names(), _REST)}
    for layer in found.layers:
        row = rows[layer.name if layer.name in works else _REST]
        for cause in CAUSES:
            row[cause] += layer.parts[cause] / found.total
    rows[_REST]["launch"] += found.entry / found.total
    rows[_REST]["residual"] += found.between / found.total
    return rows


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    log = next(iter(measurements().values()))
    return tuple(work.name for work in log.works if work.macs or work.kind == "pool")


class ExplainScene(Scene):
    """The figure of :func:`explain_view`, made once and moved often."""

    blank = "Two empty charts: the layers of a network over time, and the whole before and after a change."

    def __init__(self) -> None:
        names = (*_names(), _REST)
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 5.6)
            left = self._panel((0.16, 0.33, 0.80, 0.60), names, "Layer after layer, as a share of the whole")
            self._bars = {name: self._stack(left, row) for row, name in enumerate(names)}
            right = self._panel((0.16, 0.09, 0.80, 0.15), _ROWS, "The whole, before and after")
            self._wholes = {name: self._stack(right, row) for row, name in enumerate(_ROWS)}
            style: dict[str, Any] = {"va": "center", "fontsize": 9, "color": COLORS["primary"]}
            self._texts = {name: right.text(0, row, "", **style) for row, name in enumerate(_ROWS)}
            self._limit = right.axvline(0, color=COLORS["RedLine"], linestyle="--", linewidth=1.2, visible=False)
            handles: list[Any] = [Patch(label=words, **self._dress(cause)) for cause, (_, _, words) in LOOKS.items()]
            handles.append(Line2D([], [], color=COLORS["RedLine"], linestyle="--", linewidth=1.2, label="without it"))
            self.figure.legend(
                handles=handles, loc="lower center", bbox_to_anchor=(0.53, -0.005), ncols=5, fontsize=8.5, frameon=False
            )
        bars = [bar for stack in (*self._bars.values(), *self._wholes.values()) for bar in stack.values()]
        self.moving = (*bars, *self._texts.values(), self._limit)

    def _panel(self, place: tuple[float, float, float, float], names: tuple[str, ...], title: str) -> Axes:
        ax: Axes = self.figure.add_axes(place)
        ax.set(xlim=(0, 1.28 if len(names) == 2 else 1.02), ylim=(len(names) - 0.4, -0.6))
        ax.set_title(title, loc="left", fontsize=10.5, weight="bold", color=COLORS["primary"])
        ax.set_yticks(range(len(names)), names, fontsize=9, color=COLORS["primary"])
        ax.set_xticks([])
        apply_style(ax)
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        return ax

    @staticmethod
    def _dress(cause: str) -> dict[str, Any]:
        color, hatch, _ = LOOKS[cause]
        return {"facecolor": COLORS[color], "edgecolor": "white", "hatch": hatch, "linewidth": 0.5}

    def _stack(self, ax: Axes, row: int) -> dict[str, Rectangle]:
        bars = {cause: Rectangle((0, row - 0.36), 0, 0.72, zorder=3, **self._dress(cause)) for cause in CAUSES}
        for bar in bars.values():
            ax.add_patch(bar)
        return bars

    def update(self, *, name: str, cause: str = "memory", factor: float = 1.0) -> View:
        """Show one measurement, and one cause made faster; see :func:`explain_view`."""
        if cause not in CAUSES:
            raise UnknownNameError(f"explain_view(): `cause` must be one of {', '.join(CAUSES)}, got {cause!r}")
        found = measured(name)
        log = measurements()[name]
        left = 0.0
        for row, parts in _parts(found).items():
            for each, size in parts.items():
                self._place(self._bars[row][each], left, size)
                left += size
        share = {each: value / 100 for each, value in found.shares.items()}
        speedup, limit = amdahl(share[cause], factor), amdahl(share[cause], float("inf"))
        for row in _ROWS:
            left = 0.0
            for each in CAUSES:
                size = share[each] / (factor if row == "after" and each == cause else 1)
                self._place(self._wholes[row][each], left, size)
                left += size
            self._texts[row].set_x(left + 0.015)
        self._texts["measured"].set_text(_time(found.total))
        self._texts["after"].set_text(f"{_time(found.total / speedup)}, {times(speedup)}")
        self._limit.set_xdata([1 / limit] * 2)
        self._limit.set_visible(True)
        summary = _summary(name, found, cause, factor, speedup, limit)
        return View(
            figure=self.figure,
            summary=summary,
            alt=f"Waterfall of the layers of DS-CNN, and the whole before and after a change. {summary}",
            values={"attribution": found, "speedup": speedup, "limit": limit, "log": log},
        )

    @staticmethod
    def _place(bar: Rectangle, left: float, width: float) -> None:
        bar.set_x(left)
        bar.set_width(width)


def _time(milliseconds: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> _time(12.34), _time(0.0436)
    ('12.3 ms', '43.6 µs')
    """
    return f"{number(milliseconds)} ms" if milliseconds >= 1 else f"{number(1e3 * milliseconds)} µs"


def _summary(name: str, found: Attribution, cause: str, factor: float, speedup: float, limit: float) -> str:
    told = ", ".join(f"{LOOKS[each][2]} {percent(share / 100, 2)}" for each, share in found.shares.items())
    largest = max((layer for layer in found.layers), key=lambda layer: layer.time)
    lines = [f"DS-CNN by {name} takes {_time(found.total)}: {told}."]
    lines.append(f"The longest layer is {largest.name}, {percent(largest.time / found.total, 2)} of it.")
    if factor > 1:
        lines.append(
            f"With {LOOKS[cause][2]} {times(factor)} as fast, the whole becomes {times(speedup)} as fast; without it, "
            f"{times(limit)}."
        )
    return " ".join(lines)


def explain_view(name: str, cause: str = "memory", factor: float = 1.0) -> View:
    """Return the picture of one stored measurement, and of one cause made faster.

    Parameters
    ----------
    name
        One of :func:`measurements`.
    cause
        ``compute``, ``memory``, ``launch`` or ``residual``.
    factor
        How many times as fast that cause becomes, one or more.

    Raises
    ------
    UnknownNameError
        If there is no such measurement or cause.

    Examples
    --------
    >>> print(explain_view("eager, FP32").summary)
    DS-CNN by eager, FP32 takes ... The longest layer is ...
    """
    return ExplainScene().update(name=name, cause=cause, factor=factor)
