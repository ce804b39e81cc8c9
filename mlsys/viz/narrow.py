"""A second layout of a figure for phones: narrow, with stacked panels and text as large as on the page."""

from __future__ import annotations

import base64
import re
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase, SubplotSpec
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

PHONE_FIGURE = 4.4
"""Inches of a figure's layout on a phone: in a column of 358 CSS pixels, letters of 9 points are 10 pixels high."""
_LETTERS = 9.0
"""Points of the notes among the marks of a narrow layout."""
_GAP = 4.0
"""Pixels between two labels of an axis."""
_WORD = 3
"""Letters in the unit of a number, such as GiB; a label of more is a word."""
_STACKED = 0.85
"""Height of a panel below the others, relative to its height beside them."""
_CARRIED = re.compile(r'<metadata id="mlsys-narrow">([^<]*)</metadata>\n?')


def redraw_narrow(figure: Figure | None, draw: Callable[[Axes], Any]) -> None:
    """Set the drawing of a figure's narrow layout; without one its panels are stacked and its axes narrowed.

    Parameters
    ----------
    figure
        The figure; None, as of Axes without one, does nothing.
    draw
        Draws the narrow layout into Axes of its own.
    """
    if figure is not None:
        figure._mlsys_redraw = draw  # type: ignore[attr-defined]


def set_narrow_size(figure: Figure, size: tuple[float, float] | None) -> None:
    """Set the size of a figure's narrow layout in inches; None derives it from the figure's own size."""
    figure._mlsys_narrow_size = size  # type: ignore[attr-defined]


def wants_narrow(figure: Figure) -> bool:
    """Whether letters of a figure get too small on a phone, so that it needs a layout of its own there."""
    return bool(figure.get_figwidth() > PHONE_FIGURE)


@contextmanager
def narrowed(figure: Figure) -> Iterator[Figure]:
    """Give a figure its narrow layout while the context is open; yield that figure or its redrawing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure(figsize=(8, 3), layout="constrained")
    >>> left, right = figure.subplots(1, 2)
    >>> with narrowed(figure) as narrow:
    ...     narrow.get_size_inches().round(2).tolist(), right.get_subplotspec().get_geometry()[:2]
    ([4.4, 5.1], (2, 1))
    >>> figure.get_size_inches().tolist(), right.get_subplotspec().get_geometry()[:2]
    ([8.0, 3.0], (1, 2))
    """
    chosen = getattr(figure, "_mlsys_narrow_size", None)
    draw = getattr(figure, "_mlsys_redraw", None)
    width, height = figure.get_size_inches()
    if draw is not None:
        from matplotlib.figure import Figure as Fresh

        fresh = Fresh(figsize=chosen or (PHONE_FIGURE, height), layout="constrained")
        draw(fresh.add_subplot())
        _fit(fresh, [])
        yield fresh
        return
    undo: list[Callable[[], Any]] = []
    columns = _stack_panels(figure, undo)
    figure.set_size_inches(chosen or (PHONE_FIGURE, height * (columns * _STACKED if columns > 1 else 1)))
    try:
        _fit(figure, undo)
        yield figure
    finally:
        for step in reversed(undo):
            step()
        figure.set_size_inches(width, height)


def _fit(figure: Figure, undo: list[Callable[[], Any]]) -> None:
    """Make words fit the narrow layout: smaller notes, legends above, long labels in lines, fewer numbers on axes."""
    for ax in figure.axes:
        for text in ax.texts:
            if float(text.get_fontsize()) > _LETTERS:
                _change(text, "fontsize", _LETTERS, undo)
    figure.draw_without_rendering()
    for ax in figure.axes:
        for title in _titles(ax):
            box, room = title.get_window_extent(), figure.bbox.x1
            if title.get_text() and box.x1 > room > box.x0:
                letters = int(len(title.get_text()) * (room - box.x0) / box.width)
                _change(title, "text", textwrap.fill(title.get_text(), max(12, letters)), undo)
        _lift_legend(ax, undo)
        _turn_repeated(ax, undo)
        _wrap_framed_text(ax, undo)
        if ax.axison and ax.xaxis.get_visible():
            _wrap_label(ax, undo)
            _part_ticks(ax, undo)


def _change(artist: Artist, name: str, value: Any, undo: list[Callable[[], Any]]) -> None:
    before = getattr(artist, f"get_{name}")()
    undo.append(lambda: artist.set(**{name: before}))
    artist.set(**{name: value})


def _lift_legend(ax: Axes, undo: list[Callable[[], Any]]) -> None:
    """Move the legend of an Axes from among its marks to above them, and above its title."""
    old = ax.get_legend()
    if old is None:
        return
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    undo.append(lambda: setattr(ax, "legend_", old))
    lines = max(title.get_text().count("\n") + 1 if title.get_text() else 0 for title in _titles(ax))
    above = ScaledTranslation(0, (3 + 17 * lines) / 72, ax.figure.dpi_scale_trans)
    place = blended_transform_factory(ax.figure.transSubfigure, ax.transAxes + above)
    handles = [handle for handle in old.legend_handles if handle is not None]
    for columns in range(min(3, len(handles)), 0, -1):
        new = ax.legend(
            handles, [text.get_text() for text in old.get_texts()], fontsize=_LETTERS, ncols=columns,
            title=old.get_title().get_text() or None, title_fontsize=_LETTERS, alignment="left", columnspacing=1.2,
            loc="lower left", bbox_to_anchor=(0.01, 1), bbox_transform=place, borderaxespad=0.2,
        )  # fmt: skip
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
        if new.get_window_extent().width < 0.98 * ax.figure.bbox.width:
            return


def _titles(ax: Axes) -> list[Text]:
    """Return the titles of an Axes, at its left, centre and right."""
    return [getattr(ax, name) for name in ("_left_title", "title", "_right_title")]


def _turn_repeated(ax: Axes, undo: list[Callable[[], Any]]) -> None:
    """Turn upright the name of boxes in a row, such as of chips, where it is wider than they are."""
    from matplotlib.text import Annotation

    rows: dict[tuple[str, float], list[Text]] = {}
    for text in ax.texts:
        if isinstance(text, Annotation):  # its place is relative to the mark that it names
            continue
        rows.setdefault((text.get_text(), text.get_position()[1]), []).append(text)
    for row in rows.values():
        boxes = sorted((text.get_window_extent() for text in row), key=lambda box: box.x0)
        if any(later.x0 < box.x1 + 1 for box, later in pairwise(boxes)):
            for text in row:
                _change(text, "rotation", 90, undo)


def _wrap_framed_text(ax: Axes, undo: list[Callable[[], Any]]) -> None:
    """Break framed words between lines where their frame covers another one."""
    from matplotlib.colors import to_rgba

    framed = [text for text in ax.texts if (frame := text.get_bbox_patch()) and to_rgba(frame.get_edgecolor())[3] > 0]
    boxes = [text.get_bbox_patch().get_window_extent() for text in framed]  # type: ignore[union-attr]
    for number, text in enumerate(framed):
        if any(other != number and boxes[number].overlaps(box) for other, box in enumerate(boxes)):
            _change(text, "text", text.get_text().replace(" ", "\n"), undo)


def _wrap_label(ax: Axes, undo: list[Callable[[], Any]]) -> None:
    """Break the label of the x axis where it is wider than the figure."""
    label = ax.xaxis.label
    box, figure = label.get_window_extent(), ax.figure.bbox
    centre = (box.x0 + box.x1) / 2
    room = 1.9 * min(centre - figure.x0, figure.x1 - centre)
    if label.get_text() and box.width > room:
        letters = max(12, int(len(label.get_text()) * room / box.width))
        _change(label, "text", textwrap.fill(label.get_text(), letters), undo)


def _part_ticks(ax: Axes, undo: list[Callable[[], Any]]) -> None:
    """Part the tick labels of an x axis that overlap: write fewer numbers, turn words."""
    labels = [tick.label1 for tick in ax.xaxis.get_major_ticks() if tick.label1.get_visible()]
    labels = sorted(
        (label for label in labels if label.get_text().strip()), key=lambda label: label.get_window_extent().x0
    )
    boxes = [label.get_window_extent() for label in labels]
    if _apart(boxes):
        return
    if any(len(re.findall("[A-Za-z]", label.get_text())) > _WORD for label in labels):
        for label in labels:
            for name, value in {"rotation": 40, "rotation_mode": "anchor", "ha": "right", "va": "top"}.items():
                _change(label, name, value, undo)
    else:
        step = next(step for step in range(2, len(labels) + 1) if _apart(boxes[::step]))
        for index, label in enumerate(labels):
            if index % step:
                _change(label, "visible", False, undo)


def _apart(boxes: Sequence[Bbox]) -> bool:
    """Whether boxes in a row leave gaps between them."""
    return all(later.x0 > box.x1 + _GAP for box, later in pairwise(boxes))


def _stack_panels(figure: Figure, undo: list[Callable[[], Any]]) -> int:
    """Stack panels that are side by side; return the former number of columns."""
    most = 1
    grids: dict[int, tuple[GridSpecBase, list[Axes]]] = {}
    for ax in figure.axes:
        spec = ax.get_subplotspec()
        if spec is not None:
            grids.setdefault(id(spec.get_gridspec()), (spec.get_gridspec(), []))[1].append(ax)
    for grid, panels in grids.values():
        if grid.ncols == 1 or len(panels) == 1:
            continue
        most = max(most, grid.ncols)
        stacked = figure.add_gridspec(len(panels), 1)
        for row, ax in enumerate(panels):
            undo.append(partial(ax.set_subplotspec, cast("SubplotSpec", ax.get_subplotspec())))
            ax.set_subplotspec(stacked[row])
            if not ax.yaxis.get_tick_params().get("labelleft", True):  # shared with the panel that was beside it
                undo.append(partial(ax.tick_params, labelleft=False))
                ax.tick_params(labelleft=True)
    return most


def svg_with_narrow(figure: Figure, svg: Callable[[Figure], str]) -> str:
    """Return a figure as SVG, with its narrow layout, if it needs one, as metadata.

    Parameters
    ----------
    figure
        The figure.
    svg
        Writes a figure as SVG.
    """
    wide = svg(figure)
    if not wants_narrow(figure):
        return wide
    with narrowed(figure) as narrow:
        packed = base64.b64encode(zlib.compress(svg(narrow).encode(), 9)).decode()
    before, end, after = wide.rpartition("</svg>")
    return f'{before}<metadata id="mlsys-narrow">{packed}</metadata>\n{end}{after}'


def split_narrow(svg: str) -> tuple[str, str | None]:
    """Return an SVG without its narrow layout, and that layout, or None if it has none.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import io
    >>> def as_svg(figure):
    ...     file = io.StringIO()
    ...     figure.savefig(file, format="svg")
    ...     return file.getvalue()
    >>> figure = Figure(figsize=(8, 3))
    >>> wide, narrow = split_narrow(svg_with_narrow(figure, as_svg))
    >>> 'width="576pt"' in wide, 'width="316.8pt"' in narrow
    (True, True)
    """
    found = _CARRIED.search(svg)
    if found is None:
        return svg, None
    return svg[: found.start()] + svg[found.end() :], zlib.decompress(base64.b64decode(found[1])).decode()
