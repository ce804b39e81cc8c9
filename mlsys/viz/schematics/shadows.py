"""Schematic of the multiply-accumulates of a product as points, and of the elements that they use as shadows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.viz.schematics.shapes import note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[int, int, int]
_LEFT, _RIGHT = np.deg2rad(20), np.deg2rad(34)
"""Slopes of the axes of m and of n: unequal, so that no point hides another."""
_WALLS = {"A": ("Blue", (0, 1), 2), "B": ("Orange", (1, 2), 0), "C": ("Green", (0, 2), 1)}


@drawn
def product_shadows(ax: Axes, points: Sequence[Point], size: int = 5) -> Axes:
    """Draw multiply-accumulates as points, and the elements of the three matrices that they use as their shadows.

    Parameters
    ----------
    ax
        Axes to draw into.
    points
        Indices (m, k, n) of multiply-accumulates C[m, n] += A[m, k] B[k, n], each from 0 to ``size - 1``.
    size
        Elements along each edge of the matrices drawn.

    Returns
    -------
    Axes
        Three walls, one for each matrix, with a filled cell for each element that a point uses.

    Raises
    ------
    ArgumentError
        If a point lies outside the matrices.
    """
    inside = [all(0 <= index < size for index in point) for point in points]
    if not all(inside):
        outside = points[inside.index(False)]
        raise ArgumentError(
            f"product_shadows(): `points` must have indices from 0 to {size - 1}, got {outside}. Write e.g. size=8"
        )
    for name, (color, kept, dropped) in _WALLS.items():
        shadow = {tuple(point[axis] for axis in kept) for point in points}
        for cell in np.ndindex(size, size):
            _cell(ax, name, kept, dropped, cell, color if cell in shadow else "")
        label = {"A": (size / 2, size + 0.6, 0), "B": (0, size + 0.6, size / 2), "C": (size + 0.7, 0, size + 0.7)}[name]
        text = f"{len(shadow)} of {name}"
        note(ax, *_flat(label), text, ha="center", color=COLORS[f"{color}Line"], fontweight="bold")
    for point in sorted(set(points), key=lambda each: each[0] + each[2] - each[1]):
        x, y = _flat([index + 0.5 for index in point])
        ax.plot(x, y, marker="o", markersize=6.5, color=COLORS["primary"], markeredgecolor="white", gid="point")
    ax.set(xlim=(-size - 0.3, size + 0.1), ylim=(-size - 0.4, 1.15 * size + 0.8), aspect="equal")
    ax.set_axis_off()
    return ax


def _flat(place: Sequence[float]) -> tuple[float, float]:
    """Project a place (m, k, n) in space: m to the left, n to the right, k up."""
    m, k, n = place
    return float(n * np.cos(_RIGHT) - m * np.cos(_LEFT)), float(1.15 * k - n * np.sin(_RIGHT) - m * np.sin(_LEFT))


def _cell(ax: Axes, name: str, kept: tuple[int, int], dropped: int, cell: tuple[int, ...], color: str) -> None:
    from matplotlib.patches import Polygon

    corners = []
    for first, second in ((0, 0), (1, 0), (1, 1), (0, 1)):
        place = [0.0, 0.0, 0.0]
        place[kept[0]], place[kept[1]], place[dropped] = cell[0] + first, cell[1] + second, 0.0
        corners.append(_flat(place))
    face, edge = (COLORS[f"{color}L"], COLORS[f"{color}Line"]) if color else ("white", COLORS["grid"])
    patch = Polygon(corners, facecolor=face, edgecolor=edge, linewidth=1.0 if color else 0.6, zorder=1 + bool(color))
    patch.set_gid(f"used {name}" if color else "rest")
    ax.add_patch(patch)
