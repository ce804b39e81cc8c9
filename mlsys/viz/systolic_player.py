"""Animation of a systolic array, cycle by cycle: in a notebook, in print, as GIF or HTML."""

from __future__ import annotations

import base64
import hashlib
import html
import io
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from mlsys.choices import FoldOverlap, Stationary
from mlsys.files import write_text
from mlsys.inputs import shipped_text
from mlsys.models.systolic import DATAFLOWS, Frame, simulate_array
from mlsys.provenance.shown import announce, unheard
from mlsys.viz.style import COLORS, SAVED_DPI, WIDEST_FIGURE, wants_vectors
from mlsys.viz.systolic import array_frame, plain_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

_SCREEN_PE, _PAPER_PE = 1.15, 1.05
"""Inches of a processing element; letters have one size in both."""
_TITLE = 0.4
"""Inches of the line above a frame."""


class SystolicAnimation:
    """Animation of a small matrix product on an array: step through, play, export.

    Parameters
    ----------
    left, right
        Operands, (m × k) and (k × n); small, since every value is drawn.
    rows, columns
        Rows and columns of processing elements.
    dataflow, fold_overlap
        As in :func:`mlsys.models.systolic.simulate_array`.

    Attributes
    ----------
    run
        Result of the simulation, which the frames show.
    alt
        Alternative text of the animation.

    Examples
    --------
    >>> animation = SystolicAnimation([[2, 4], [1, 3]], [[1, 3], [5, 7]], 2, 2, "os")
    >>> len(animation), animation.sentences[1]
    (6, 'Cycle 2: 3 of 4 PEs multiply; 4 and 1 enter.')
    """

    def __init__(
        self, left: npt.ArrayLike, right: npt.ArrayLike, rows: int, columns: int,
        dataflow: Stationary = "ws", fold_overlap: FoldOverlap = "none",
    ) -> None:  # fmt: skip
        self.run = simulate_array(left, right, rows, columns, dataflow, fold_overlap, record=True)
        self.dataflow = dataflow
        self.shape = rows, columns
        self.sentences = tuple(_sentence(frame) for frame in self.run.frames)
        busiest = max(int(frame.busy.sum()) for frame in self.run.frames)
        share = self.run.activity.sum() / (self.run.cycles * rows * columns)
        self.alt = (
            f"Animation of a {rows} by {columns} array, {DATAFLOWS[dataflow]}, over {self.run.cycles} cycles: "
            f"operands enter in a slanted line, at most {busiest} of {rows * columns} PEs multiply at once, "
            f"and {share:.0%} of all chances to multiply are used."
        )
        self._pictures: list[Image] | None = None
        announce("picture", type(self).__name__, lambda: hashlib.sha256(repr(self.sentences).encode()).hexdigest()[:12])

    def __len__(self) -> int:
        return len(self.run.frames)

    def pictures(self) -> list[Image]:
        """Return all frames as images; drawn once."""
        if self._pictures is None:
            import matplotlib.style

            with matplotlib.style.context("default"), unheard():  # whatever the notebook has set
                self._pictures = self._drawn()
        return self._pictures

    def _drawn(self) -> list[Image]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from PIL import Image

        width, height = self._frame_size(_SCREEN_PE)
        figure = Figure(figsize=(width, height), dpi=130)
        ax = figure.add_axes((0.02, 0.0, 0.96, 1 - _TITLE / height))
        canvas: Any = FigureCanvasAgg(figure)
        pictures = []
        for frame in self.run.frames:
            array_frame(ax, self.run, frame, self.dataflow)
            canvas.draw()
            size = canvas.get_width_height()
            picture = Image.frombuffer("RGBA", size, canvas.buffer_rgba(), "raw", "RGBA", 0, 1).convert("RGB")
            pictures.append(picture.quantize(64))  # flat colours: a small palette suffices and keeps files small
        return pictures

    def png(self, cycle: int) -> bytes:
        """Return the frame of one cycle, counted from 0, as PNG."""
        file = io.BytesIO()
        self.pictures()[cycle].save(file, format="PNG", optimize=True)
        return file.getvalue()

    def strip(self, frames: int = 4) -> Figure:
        """Return the animation for paper: frames from the first to the last cycle, as many to a row as stay legible.

        Parameters
        ----------
        frames
            How many at most; they lie evenly between the first cycle and the last.

        Examples
        --------
        >>> animation = SystolicAnimation([[2, 4], [1, 3]], [[1, 3], [5, 7]], 2, 2, "os")
        >>> len(animation.strip().axes)
        4
        """
        import matplotlib.style
        from matplotlib.figure import Figure

        count = min(frames, len(self))
        width, height = self._frame_size(_PAPER_PE)
        across = min(count, max(1, int(WIDEST_FIGURE // width)))
        down = -(-count // across)
        with matplotlib.style.context("default"), unheard():
            figure = Figure(figsize=(across * width, down * height))
            for at in range(count):
                frame = self.run.frames[round(at * (len(self) - 1) / max(1, count - 1))]
                left, bottom = at % across / across, 1 - (at // across + 1) / down
                ax = figure.add_axes((left, bottom, 0.98 / across, (1 - _TITLE / height) / down))
                array_frame(ax, self.run, frame, self.dataflow)
        return figure

    def _frame_size(self, side: float) -> tuple[float, float]:
        """Return width and height of a frame in inches, from the side of a PE."""
        rows, columns = self.shape
        return max(side * (columns + 0.95), 3.4), side * (rows + 1.05) + _TITLE

    def save_html(self, path: str | Path) -> Path:
        """Write a self-contained HTML page; return the path."""
        page = (
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>Systolic array, {DATAFLOWS[self.dataflow]}</title>\n<body>\n{self.html()}\n</body>\n</html>\n"
        )
        return write_text(path, page)

    def html(self, start: int | None = None) -> str:
        """Return the animation as HTML with step and play buttons, and a slider for the arrow keys.

        It starts paused at cycle ``start``, by default the busiest one.
        """
        busy = [int(frame.busy.sum()) for frame in self.run.frames]
        shown = busy.index(max(busy)) if start is None else start
        frames = []
        for at, sentence in enumerate(self.sentences):
            data = base64.b64encode(self.png(at)).decode("ascii")
            hidden = "" if at == shown else " hidden"
            frames.append(f'<img alt="{html.escape(sentence)}" src="data:image/png;base64,{data}"{hidden}>')
        width = self.pictures()[0].size[0] // 1.3
        sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        # Frames are drawn by Python; the script of the page only selects the visible one.
        player = Template(shipped_text("mlsys.viz", "systolic_player.html"))
        return player.substitute(
            label=html.escape(self.alt), frames="".join(frames), last=len(self) - 1, shown=shown,
            sentence=html.escape(self.sentences[shown]), sentences=sentences, width=f"{width:.0f}",
            line=COLORS["BlueLine"], ink=COLORS["primary"],
        ).rstrip()  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Show the player where HTML is shown, and a strip of its frames where it is not, as on paper."""
        shown = {"text/html": self.html(), "image/png": self._strip_as("png"), "text/plain": self.alt}
        return shown | ({"application/pdf": self._strip_as("pdf")} if wants_vectors() else {})

    def _strip_as(self, kind: str) -> str:
        import matplotlib

        stream = io.BytesIO()
        undated = {"CreationDate": None} if kind == "pdf" else None
        with matplotlib.rc_context({"pdf.fonttype": 42}):  # letters stay letters
            self.strip().savefig(stream, format=kind, dpi=SAVED_DPI, metadata=undated)
        return base64.b64encode(stream.getvalue()).decode("ascii")


def _sentence(frame: Frame) -> str:
    rows, columns = frame.moving.shape
    parts = [f"{int(frame.busy.sum())} of {rows * columns} PEs multiply"]
    if frame.phase == "load" and not frame.entering:
        parts = ["the next row of words is pushed in"]
    for what, words in (("enter", frame.entering), ("leave", frame.leaving)):
        if words:
            values = [plain_number(value) for _, value in words]
            listed = values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
            parts.append(f"{listed} {what}{'s' if len(values) == 1 else ''}")
    return f"Cycle {frame.cycle + 1}: {'; '.join(parts)}."
