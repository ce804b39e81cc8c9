"""What makes a figure mislead, or be read with a lens: rules for every figure that a test draws."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from mlsys.viz.style import WIDEST_FIGURE
from printing import TEXT_WIDTH

SMALLEST_BAR = 1e-3
"""Share of a linear axis below which a bar cannot be seen."""
LEAST_PRINTED = 6.5
"""Points of the smallest letters that are printed."""


def faults(ax: Axes) -> Iterator[str]:
    """Yield the faults of one pair of axes."""
    for which in "xy":
        yield from _stacked_on_decades(ax, which)
        yield from _bars_too_small(ax, which)
        yield from _numbers_missing(ax, which)
    yield from _marks_off_the_roof(ax)


def _bars(ax: Axes, which: str) -> dict[tuple[float, float], list[tuple[float, float]]]:
    """Return start and end of the bars along one axis, by their position on the other."""
    bars: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for container in ax.containers:
        lying = getattr(container, "orientation", "") == "horizontal"
        if lying is not (which == "x"):
            continue
        for bar in container:
            if isinstance(bar, Rectangle) and bar.get_visible():
                (x, y), width, height = bar.get_xy(), bar.get_width(), bar.get_height()
                place, ends = ((y, height), (x, x + width)) if lying else ((x, width), (y, y + height))
                bars.setdefault((round(place[0], 6), round(place[1], 6)), []).append(ends)
    return bars


def _stacked_on_decades(ax: Axes, which: str) -> Iterator[str]:
    """Yield a fault for stacked bars on a log axis, where a part's length shows a ratio, not an amount."""
    if getattr(ax, f"get_{which}scale")() != "log":
        return
    for parts in _bars(ax, which).values():
        if any(np.isclose(end, start) for (_, end), (start, _) in pairwise(sorted(parts)) if end > 0):
            yield f"bars are stacked on the logarithmic {which} axis"
            return


def _bars_too_small(ax: Axes, which: str) -> Iterator[str]:
    if getattr(ax, f"get_{which}scale")() != "linear":
        return
    low, high = getattr(ax, f"get_{which}lim")()
    lengths = [abs(end - start) for parts in _bars(ax, which).values() for start, end in parts]
    lost = [length for length in lengths if 0 < length < SMALLEST_BAR * abs(high - low)]
    if lost:
        yield f"a bar of {min(lost):.3g} is invisible on a linear {which} axis up to {high:.3g}"


def _numbers_missing(ax: Axes, which: str) -> Iterator[str]:
    axis = getattr(ax, f"{which}axis")
    if axis.get_visible() and axis.label.get_text() and axis.label.get_visible():
        written = [label.get_text() for label in axis.get_ticklabels(which="both")]
        if not any(written):
            yield f"the {which} axis is labelled {axis.label.get_text()!r} and has no ticks"


def _marks_off_the_roof(ax: Axes) -> Iterator[str]:
    """Yield a fault for each mark that is not on a roof although the axis is labelled "attainable"."""
    if not ax.get_ylabel().startswith("attainable"):
        return
    drawn_lines: list[tuple[bool, Any]] = [
        (line.get_linestyle() == "None", np.asarray(line.get_xydata(), float)) for line in ax.get_lines()
    ]
    roofs = [points for bare, points in drawn_lines if not bare and len(points) > 2]
    marks: list[Any] = [point for bare, points in drawn_lines if bare for point in points]
    marks += [point for drawn in ax.collections for point in np.asarray(drawn.get_offsets())]
    for x, y in marks:
        allowed = [float(np.exp(np.interp(np.log(x), *np.log(roof).T))) for roof in roofs]
        if not any(abs(y / height - 1) < 0.02 for height in allowed):
            roof = " or ".join(f"{height:.4g}" for height in allowed)
            yield f"a mark at {x:.4g} is at {y:.4g}, where {roof} is attainable"


def figure_faults(figure: Any) -> list[str]:
    """Return what misleads on the axes of one figure, and what cannot be read of it in print."""
    return [fault for ax in figure.axes for fault in faults(ax)] + list(small_letters(figure))


def small_letters(figure: Any) -> Iterator[str]:
    """Yield the words that are too small in print, where any drawing may stand in the widest figure of a page."""
    shrunk = min(1.0, TEXT_WIDTH / max(figure.get_figwidth(), WIDEST_FIGURE))
    for text in figure.findobj(Text):
        size = text.get_fontsize() * shrunk
        if text.get_visible() and text.get_text().strip() and size < LEAST_PRINTED:
            yield f"{text.get_text()!r} is printed in {size:.1f} points"
