"""A map of chapters: which builds on which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["concept_map", "depths"]


def depths(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return how many chapters, at most, come before each one.

    Parameters
    ----------
    needs
        Chapters that each chapter builds on, directly.

    Raises
    ------
    ArgumentError
        If a chapter needs one that is not listed, or itself through others.

    Examples
    --------
    >>> depths({"amdahl": [], "roofline": ["amdahl"], "energy": ["amdahl", "roofline"]})
    {'amdahl': 0, 'roofline': 1, 'energy': 2}
    >>> depths({"a": ["b"], "b": ["a"]})
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: depths(): `needs` goes round in a circle through 'a'. Remove one of its needs
    """
    found: dict[str, int] = {}

    def depth(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise ArgumentError(f"depths(): `needs` goes round in a circle through {name!r}. Remove one of its needs")
        if name not in needs:
            raise ArgumentError(f"depths(): `needs` lists no {name!r}, which {above[-1]!r} needs. Add it")
        if name not in found:
            found[name] = max((depth(each, (*above, name)) + 1 for each in needs[name]), default=0)
        return found[name]

    for name in needs:
        depth(name, ())
    return {name: found[name] for name in needs}


def _rows(needs: Mapping[str, Sequence[str]], column: Mapping[str, int]) -> dict[str, float]:
    """Return the height of each chapter: near what it needs, and at least 1 from others of its column."""
    order = list(needs)
    rows: dict[str, float] = {}
    for depth in range(max(column.values()) + 1):
        here = [name for name in order if column[name] == depth]
        wish = {name: sum(rows[each] for each in needs[name]) / max(len(needs[name]), 1) for name in here}
        here.sort(key=lambda name: (wish[name], order.index(name)))
        groups: list[list[str]] = []  # neighbours that touch, each group about the mean of its wishes
        for name in here:
            groups.append([name])
            while len(groups) > 1 and _top(groups[-1], wish) < _top(groups[-2], wish) + len(groups[-2]):
                groups[-2:] = [groups[-2] + groups[-1]]
        for group in groups:
            rows |= {name: _top(group, wish) + index for index, name in enumerate(group)}
    return rows


def _top(group: Sequence[str], wish: Mapping[str, float]) -> float:
    return sum(wish[name] for name in group) / len(group) - (len(group) - 1) / 2


def concept_map(ax: Axes, needs: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> None:
    """Draw chapters from left to right, each to the right of what it builds on, joined by lines.

    Parameters
    ----------
    ax
        Axes to draw into, best 8 inches wide or more.
    needs
        Chapters that each chapter builds on, directly.
    titles
        Short title of each chapter.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    column = depths(needs)
    rows = _rows(needs, column)
    for name, needed in needs.items():
        for each in needed:
            start, end = (column[each], -rows[each]), (column[name], -rows[name])
            middle = (start[0] + end[0]) / 2
            curve = Path(
                [start, (middle, start[1]), (middle, end[1]), end], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
            )
            ax.add_patch(PathPatch(curve, facecolor="none", edgecolor=COLORS["axis"], linewidth=1.2, zorder=1))
    for name in needs:
        x, y = column[name], -rows[name]
        ax.annotate(
            titles[name], (x, y), ha="center", va="center", fontsize=9, color=COLORS["primary"], zorder=3,
            bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": COLORS["BlueLine"], "linewidth": 1.2},
        )  # fmt: skip
    ax.set_xlim(-0.6, max(column.values()) + 0.7)
    ax.set_ylim(-max(rows.values()) - 0.6, -min(rows.values()) + 0.6)
    ax.axis("off")
