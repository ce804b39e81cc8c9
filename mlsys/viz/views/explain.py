"""View of a measured network: the breakdown of its time, and the effect of speeding up one cause."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from mlsys.measure import CAUSES, Attribution, Cause, Log, attribute, stored_logs
from mlsys.measure.recommend.whatif import amdahl
from mlsys.unit_checks import checked_choice
from mlsys.viz.explain import LOOKS
from mlsys.viz.style import COLORS, apply_style
from mlsys.viz.views.view import Guess, Scene, View, new_figure, number, percent, times

FACTORS = (1.0, 2.0, 3.0, 4.0, 7.0, 10.0, 14.0, 22.0, 100.0)
"""Speedup factors offered for a cause."""
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
    """Return the breakdown of the time of one of :func:`measurements`.

    Raises
    ------
    UnknownNameError
        If there is no such measurement.
    """
    return attribute(measurements()[checked_choice("ExplainScene", "name", name, measurements())])


def _parts(attribution: Attribution) -> dict[str, dict[Cause, float]]:
    """Return shares of the total by layer and cause; runtime overhead is counted with the time outside layers."""
    works = {work.name for work in next(iter(measurements().values())).works if work.macs or work.kind == "pool"}
    rows = {name: dict.fromkeys(CAUSES, 0.0) for name in (*_names(), _REST)}
    for layer in attribution.layers:
        row = rows[layer.name if layer.name in works else _REST]
        for cause in CAUSES:
            row[cause] += layer.parts[cause] / attribution.total
    rows[_REST]["launch"] += attribution.entry / attribution.total
    rows[_REST]["residual"] += attribution.between / attribution.total
    return rows


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    log = next(iter(measurements().values()))
    return tuple(work.name for work in log.works if work.macs or work.kind == "pool")


class ExplainScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "Two empty charts: the layers of a network over time, and the whole before and after a change."

    def __init__(self) -> None:
        names = (*_names(), _REST)
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 5.6)
            left = self._panel((0.16, 0.33, 0.80, 0.60), names, "Layer after layer, as a share of the whole")
            self._rows = {name: row for row, name in enumerate(names)}
            self._layers = self._stack(left)
            right = self._panel((0.16, 0.09, 0.80, 0.15), _ROWS, "The whole, before and after")
            self._wholes = self._stack(right)
            style: dict[str, Any] = {"va": "center", "fontsize": 9, "color": COLORS["primary"]}
            self._texts = {name: right.text(0, row, "", **style) for row, name in enumerate(_ROWS)}
            self._limit = right.axvline(0, color=COLORS["RedLine"], linestyle="--", linewidth=1.2, visible=False)
            self.guess = Guess(right, "x", place=-0.03, over=True)
            self.here = Guess(right, "x", place=-0.03, label="measured here", color=COLORS["BlueLine"])
            handles: list[Any] = [Patch(label=words, **self._dress(cause)) for cause, (_, _, words) in LOOKS.items()]
            handles.append(Line2D([], [], color=COLORS["RedLine"], linestyle="--", linewidth=1.2, label="without it"))
            self.figure.legend(
                handles=handles, loc="lower center", bbox_to_anchor=(0.53, -0.005), ncols=5, fontsize=8.5, frameon=False
            )
        self.moving = (*self._layers.values(), *self._wholes.values(), *self._texts.values(), self._limit,
                       *self.guess.artists, *self.here.artists)  # fmt: skip

    def _panel(self, rect: tuple[float, float, float, float], names: tuple[str, ...], title: str) -> Axes:
        ax: Axes = self.figure.add_axes(rect)
        ax.set(xlim=(0, 1.28 if len(names) == 2 else 1.02), ylim=(len(names) - 0.4, -0.6))
        ax.set_title(title, loc="left", fontsize=10.5, weight="bold", color=COLORS["primary"])
        ax.set_yticks(range(len(names)), names, fontsize=9, color=COLORS["primary"])
        ax.set_xticks([])
        apply_style(ax)
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        return ax

    @staticmethod
    def _dress(cause: Cause) -> dict[str, Any]:
        color, hatch, _ = LOOKS[cause]
        return {"facecolor": COLORS[color], "edgecolor": "white", "hatch": hatch, "linewidth": 0.5}

    def _stack(self, ax: Axes) -> dict[Cause, PathPatch]:
        """Return one shape per cause for all of its bars, since the cost of a hatch does not depend on its size."""
        shapes = {cause: PathPatch(_boxes([]), zorder=3, **self._dress(cause)) for cause in CAUSES}
        for shape in shapes.values():
            ax.add_patch(shape)
        return shapes

    def update(self, name: str, cause: Cause = "memory", factor: float = 1.0) -> View:
        """Return the view of one stored measurement, with one cause made faster.

        Parameters
        ----------
        name
            One of :func:`measurements`.
        cause
            ``compute``, ``memory``, ``launch`` or ``residual``.
        factor
            Speedup factor of that cause, at least one.

        Raises
        ------
        UnknownNameError
            If there is no such measurement or cause.

        Examples
        --------
        >>> print(ExplainScene().update("eager, FP32").summary)
        DS-CNN by eager, FP32 takes ... The longest layer is ...
        """
        checked_choice("ExplainScene", "cause", cause, CAUSES)
        shown_log = measured(name)
        log = measurements()[name]
        self._show(self._layers, {self._rows[row]: parts for row, parts in _parts(shown_log).items()}, follow=True)
        share = {each: value / 100 for each, value in shown_log.shares.items()}
        speedup, limit = amdahl(share[cause], factor), amdahl(share[cause], float("inf"))
        after = {each: size / (factor if each == cause else 1) for each, size in share.items()}
        self._show(self._wholes, {0: share, 1: after})
        for row, parts in zip(_ROWS, (share, after), strict=True):
            self._texts[row].set_x(sum(parts.values()) + 0.015)
        self._texts["measured"].set_text(_time(shown_log.total))
        self._texts["after"].set_text(f"{_time(shown_log.total / speedup)}, {times(speedup)}")
        self._limit.set_xdata([1 / limit] * 2)
        self._limit.set_visible(True)
        summary = _summary(name, shown_log, cause, factor, speedup, limit)
        return View(
            figure=self.figure,
            summary=summary,
            alt=f"Waterfall of the layers of DS-CNN, and the whole before and after a change. {summary}",
            values={"attribution": shown_log, "speedup": speedup, "limit": limit, "log": log},
        )

    @staticmethod
    def _show(shapes: dict[Cause, PathPatch], rows: dict[int, dict[Cause, float]], follow: bool = False) -> None:
        """Place the parts of each row end to end, from zero or, if ``follow``, from the end of the previous row."""
        boxes: dict[str, list[tuple[float, int, float]]] = {cause: [] for cause in shapes}
        left = 0.0
        for row, parts in rows.items():
            left = left if follow else 0.0
            for cause, size in parts.items():
                if size > 0:
                    boxes[cause].append((left, row, size))
                left += size
        for cause, shape in shapes.items():
            shape.set_path(_boxes(boxes[cause]))


def _boxes(places: Iterable[tuple[float, int, float]]) -> Path:
    """Return the bars at (left end, row, width) as one shape."""
    bars = [
        Path([(x, row - 0.36), (x + width, row - 0.36), (x + width, row + 0.36), (x, row + 0.36), (x, 0)], closed=True)
        for x, row, width in places
    ]
    return Path.make_compound_path(*bars)


def _time(milliseconds: float) -> str:
    """Return a time as text in a suitable unit.

    Examples
    --------
    >>> _time(12.34), _time(0.0436)
    ('12.3 ms', '43.6 µs')
    """
    return f"{number(milliseconds)} ms" if milliseconds >= 1 else f"{number(1e3 * milliseconds)} µs"


def _summary(name: str, attribution: Attribution, cause: Cause, factor: float, speedup: float, limit: float) -> str:
    listed = ", ".join(f"{LOOKS[each][2]} {percent(share / 100, 2)}" for each, share in attribution.shares.items())
    largest = max((layer for layer in attribution.layers), key=lambda layer: layer.time)
    lines = [f"DS-CNN by {name} takes {_time(attribution.total)}: {listed}."]
    lines.append(f"The longest layer is {largest.name}, {percent(largest.time / attribution.total, 2)} of it.")
    if factor > 1:
        lines.append(
            f"With {LOOKS[cause][2]} {times(factor)} as fast, the whole becomes {times(speedup)} as fast, and "
            f"{times(limit)} if that took no time."
        )
    return " ".join(lines)
