"""A picture's digest changes with whatever is drawn, and not with the dust of floating point."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mlsys.viz.shown import figure_digest

DRAWN: dict[str, Callable[[Axes, float], object]] = {
    "line": lambda ax, size: ax.plot([0, 1], [1, size]),
    "points": lambda ax, size: ax.scatter([0, 1], [1, size]),
    "bar": lambda ax, size: ax.bar([0], [size]),
    "area": lambda ax, size: ax.fill_between([0, 1], [1, size]),
    "map": lambda ax, size: ax.imshow([[1, size]]),
    "word": lambda ax, size: ax.text(0, 0, f"{size:.3g}"),
}


def digest(kind: str, size: float) -> str:
    figure = Figure()
    DRAWN[kind](figure.add_subplot(), size)
    return figure_digest(figure)


@pytest.mark.parametrize("kind", DRAWN)
def test_the_digest_follows_what_is_drawn(kind: str) -> None:
    assert digest(kind, 2) == digest(kind, 2 * (1 + 1e-12))
    assert digest(kind, 2) != digest(kind, 2.02)
