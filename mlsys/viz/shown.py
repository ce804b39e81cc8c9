"""Provenance of figures: a digest of what is drawn, and the facts that it depends on."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsys.provenance import recording
from mlsys.provenance.shown import announce
from mlsys.viz.style import apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

Drawing: TypeAlias = "Callable[Concatenate[Axes, P], T]"

_ZERO = 1e-12
"""Fraction of the largest x, or y, of a mark below which another one counts as zero."""

_drawing: ContextVar[bool] = ContextVar("drawing", default=False)


def drawn(function: Callable[P, T]) -> Callable[P, T]:
    """Announce to an open page what ``function`` draws and the facts that it reads.

    Examples
    --------
    >>> from mlsys.provenance.shown import hear
    >>> from mlsys import Hardware, viz
    >>> stop = hear(lambda shown: print(shown.kind, shown.name, len(shown.digest()), *shown.facts[:1]))
    >>> figure, ax, _, plt = viz.setup_plot()
    >>> _ = viz.bandwidth_by_bytes_in_flight(ax, [Hardware.Cloud.A100])
    picture bandwidth_by_bytes_in_flight 12 A100_80GB/memory/HBM/bandwidth
    >>> stop()
    >>> plt.close(figure)
    """

    @functools.wraps(function)
    def draw(*args: P.args, **named: P.kwargs) -> T:
        if _drawing.get():  # part of a figure
            return function(*args, **named)
        token = _drawing.set(True)
        try:
            with recording() as seen:
                result = function(*args, **named)
        finally:
            _drawing.reset(token)
        for figure in {id(figure): figure for figure in _figures((result, args))}.values():
            announce("picture", function.__name__, functools.partial(figure_digest, figure), seen)
        return result

    return draw


def chart(function: Drawing[P, T]) -> Drawing[P, T]:
    """Apply the book's style to the Axes before ``function`` draws; otherwise as :func:`drawn`."""

    @drawn
    @functools.wraps(function)
    def draw(ax: Axes, /, *args: P.args, **named: P.kwargs) -> T:
        return function(apply_style(ax), *args, **named)

    return draw


def _figures(value: Any) -> Iterator[Figure]:
    """Yield the figures that a value is, belongs to, or contains."""
    if isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _figures(part)
    elif hasattr(value, "get_figure") and hasattr(value, "axes"):
        whole = value.get_figure(root=True) or value
        if hasattr(whole, "savefig"):
            yield whole


def figure_digest(figure: Figure) -> str:
    """Return a digest of the rounded coordinates of a figure's marks, and of its texts."""
    digest = hashlib.sha256()

    def note(values: Any) -> None:
        plain: NDArray[np.float64] = np.ma.filled(np.ma.asarray(values, float), np.nan)
        if plain.ndim == 2 and plain.shape[1] == 2 and len(plain):  # points: x and y have units of their own
            # Rounding residues differ between math libraries: relative to the largest value they are zero.
            largest = np.max(np.abs(plain), axis=0, where=np.isfinite(plain), initial=0.0)
            plain = np.where(np.abs(plain) <= _ZERO * largest, 0.0, plain)
        rounded = [f"{value:.6g}" for value in plain.ravel().tolist()]
        digest.update(" ".join(rounded).encode())

    for ax in figure.axes:
        for line in ax.lines:
            note(line.get_xydata())
        for marks in ax.collections:
            note(marks.get_offsets())
            for path in marks.get_paths():
                note(path.vertices)
        for patch in ax.patches:
            ends = getattr(patch, "_posA_posB", None)  # the path of an arrow depends on the figure size
            note(patch.get_path().vertices if ends is None else ends)
            note(patch.get_patch_transform().get_matrix())
        for image in ax.images:
            note(image.get_array())
        digest.update(repr([text.get_text() for text in ax.texts]).encode())
    return digest.hexdigest()[:12]
