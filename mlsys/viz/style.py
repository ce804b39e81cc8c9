"""The common style of all figures: colours that colour-blind readers can distinguish, unobtrusive axes."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.files import Drafts, together
from mlsys.frozen import FrozenDict
from mlsys.viz.narrow import set_narrow_size, svg_with_narrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# Darkened from the Okabe-Ito set so that thin lines reach 4.5:1 on white; the *L
# shades are fills. Lines also differ by marker and label: never by colour alone.
# The dark mode of the book inverts their lightness (book/static/custom.css).
COLORS = FrozenDict(
    {
        "primary": "#1f2933",
        "note": "#52606d",
        "axis": "#7b8794",
        "grid": "#d5dbe1",
        "BlueLine": "#00649e",
        "BlueL": "#cfe5f3",
        "GreenLine": "#00755a",
        "GreenL": "#cdeae1",
        "OrangeLine": "#a85a00",
        "OrangeL": "#fbe3c4",
        "RedLine": "#b3261e",
        "RedL": "#f8d7d4",
        "VioletLine": "#7b4fa3",
        "VioletL": "#e6daf0",
    }
)
CYCLE = tuple(COLORS[name] for name in ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine"))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")  # filled ones: they keep a white edge
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)))
HALO: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.2}
"""Background of a label, which keeps lines off its letters."""

WIDEST_FIGURE = 8.4
"""Inches of the widest figure of a page. Print shrinks it to the text, and labels of 9 points, the smallest, to 6.7."""
SAVED_DPI = 160
"""Pixels per inch of a saved figure that is not drawn in vectors."""

_SETTINGS = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": COLORS["primary"],
    "axes.edgecolor": COLORS["axis"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": COLORS["grid"],
    "grid.linewidth": 0.6,
    "text.color": COLORS["primary"],
    "xtick.color": COLORS["primary"],
    "ytick.color": COLORS["primary"],
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "figure.dpi": 110,
    "savefig.dpi": SAVED_DPI,
    "svg.hashsalt": "mlsys",
    "pdf.fonttype": 42,  # letters stay letters
}


def apply_style(ax: Axes) -> Axes:
    """Apply the book's style to an Axes and return it."""
    ax.set_axisbelow(True)
    ax.grid(True, color=COLORS["grid"], linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(COLORS["axis"])
    return ax


def decades(ax: Axes, which: str, low: int, high: int, sign: str = "") -> None:
    """Make one axis logarithmic over whole decades, with ticks at decades only."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    (ax.set_xlim if which == "x" else ax.set_ylim)(10.0**low, 10.0**high)
    axis.set_major_locator(FixedLocator([10.0**power for power in range(low, high + 1)]))
    axis.set_minor_locator(NullLocator())  # minor ticks cost more than all else in the axes
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}{sign}"))
    axis.set_tick_params(labelsize=9, colors=COLORS["primary"])
    apply_style(ax)


def draw_cells(ax: Axes, values: NDArray[Any], **options: Any) -> QuadMesh:
    """Draw a matrix as cells with their centres at integers, in vectors: no bitmap that a printed page blurs.

    Parameters
    ----------
    ax
        Axes to draw into.
    values
        Colour of each cell, by row and column; NaN for an empty cell.
    **options
        Options of :meth:`matplotlib.axes.Axes.pcolormesh`, such as ``cmap`` and ``norm``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> cells = draw_cells(Figure().subplots(), np.eye(2))
    >>> cells.get_array().shape
    (2, 2)
    """
    rows, columns = (np.arange(size + 1) - 0.5 for size in values.shape)
    cells = ax.pcolormesh(columns, rows, values, edgecolor="face", linewidth=0.2, **options)  # no seams between cells
    ax.grid(False)
    return cells


def vector_colorbar(cells: ScalarMappable, ax: Axes, **options: Any) -> Colorbar:
    """Add a colour bar drawn in vectors; Matplotlib draws one of many colours as a bitmap.

    Parameters
    ----------
    cells, ax
        Artist whose colours it explains, and the Axes beside it.
    **options
        Options of :meth:`matplotlib.figure.Figure.colorbar`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> vector_colorbar(draw_cells(ax, np.eye(2)), ax).solids.get_rasterized()
    False
    """
    bar = ax.figure.colorbar(cells, ax=ax, **options)
    if bar.solids is not None:
        bar.solids.set(rasterized=False, edgecolor="face", linewidth=0.2)
    return bar


def setup_plot(
    figsize: tuple[float, float] = (7.0, 4.2), *, phone: tuple[float, float] | None = None
) -> tuple[Figure, Axes, FrozenDict[str, str], ModuleType]:
    """Return ``fig, ax, COLORS, plt`` in the book's style.

    Parameters
    ----------
    figsize
        Width and height in inches.
    phone
        Width and height of its layout on a phone (:mod:`mlsys.viz.narrow`); by default as high and 4.4 inches wide,
        with panels below each other.

    Examples
    --------
    >>> fig, ax, colors, plt = setup_plot(figsize=(6, 4))
    >>> colors["BlueLine"]
    '#00649e'
    >>> plt.close(fig)
    """
    import matplotlib.pyplot as plt

    plt.rcParams.update(_SETTINGS)
    _keep_vectors()
    fig, ax = plt.subplots(figsize=figsize, layout="constrained")
    if phone is not None:
        set_narrow_size(fig, phone)
    return fig, ax, COLORS, plt


_FORMATS = {"vector": ("png", "svg", "pdf"), "svg": ("svg",)}
"""Formats in which a notebook keeps its figures, by ``MLSYS_FIGURES``; without it as PNG alone."""


def for_print() -> bool:
    """Whether each figure of a notebook is kept as PDF too (``MLSYS_FIGURES=vector``)."""
    return os.environ.get("MLSYS_FIGURES") == "vector"


def _keep_vectors() -> None:
    formats = _FORMATS.get(os.environ.get("MLSYS_FIGURES", ""))
    if formats is None:
        return
    from IPython import get_ipython

    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats(*formats)  # type: ignore[no-untyped-call]
        _carry_narrow(get_ipython().display_formatter.formatters["image/svg+xml"])


def _carry_narrow(formatter: Any) -> None:
    """Let the SVG of a figure carry its layout for phones."""
    from matplotlib.figure import Figure

    plain = formatter.type_printers[Figure]
    formatter.for_type(Figure, lambda figure: svg_with_narrow(figure, plain))


def save_figure(figure: Figure, path: Path, files: Drafts | None = None, *, folders: bool = False) -> Path:
    """Write a figure atomically and undated, in the format given by the file's suffix; return the path.

    Parameters
    ----------
    figure
        The figure.
    path
        File to write; its suffix gives the format.
    files
        Drafts of other files, which are put in place together with it.
    folders
        Whether to create missing folders.

    Raises
    ------
    UnwrittenError
        If it cannot be written.
    """
    if files is None:
        with together() as alone:
            return save_figure(figure, path, alone, folders=folders)
    kind = path.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    files.fill(path, lambda draft: figure.savefig(draft, format=kind, metadata=undated), folders=folders)
    return path
