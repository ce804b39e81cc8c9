"""Boxes, arrows and notes shared by all schematics, legible on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

MUTED = COLORS["note"]
"""Colour of notes."""
_LETTERS = 11.0


def box(
    ax: Axes, corner: tuple[float, float], size: tuple[float, float], text: str = "", color: str = "Blue",
    *, filled: bool = True, hatch: str = "", role: str = "", letters: float = _LETTERS,
) -> Rectangle:  # fmt: skip
    """Draw a box with centred text and return it; ``role`` becomes its gid, by which tests find it."""
    from matplotlib.patches import Rectangle

    line = COLORS[f"{color}Line"] if filled else MUTED
    patch = Rectangle(corner, *size, facecolor=COLORS[f"{color}L"] if filled else "white", edgecolor=line,
                      linewidth=1.1 if filled else 0.7, hatch=hatch)  # fmt: skip
    patch.set_gid(role or None)
    ax.add_patch(patch)
    if text:
        x, y = corner[0] + size[0] / 2, corner[1] + size[1] / 2
        ax.text(x, y, text, ha="center", va="center", fontsize=letters, color=COLORS["primary"])
    return patch


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str = MUTED, *, role: str = "",
    width: float = 1.0, head: float = 8.0,
) -> None:  # fmt: skip
    """Draw an arrow."""
    from matplotlib.patches import FancyArrowPatch

    patch = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=head, color=color, linewidth=width,
                            shrinkA=0, shrinkB=0)  # fmt: skip
    patch.set_gid(role or None)
    ax.add_patch(patch)


def note(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a note beside the drawing."""
    ax.text(x, y, text, **{"fontsize": _LETTERS, "color": MUTED, "va": "center", **style})
