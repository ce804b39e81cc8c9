"""The button that writes the file to hand in, and offers it for download."""

import base64
import html
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import ipywidgets

from mlsys.files import write_text
from mlsys.labs.handin import HandIn
from mlsys.widgets.parts import button, live_note, style_sheet


def file_name(work: HandIn) -> str:
    """Return the name of the file: the lab and the student, in letters that every system takes.

    Examples
    --------
    >>> file_name(HandIn("01-amdahl", "Ada Lovelace / 7", "", "", ""))
    'lab-01-amdahl-ada-lovelace-7.handin.json'
    """
    student = re.sub(r"[^a-z0-9]+", "-", work.student.lower()).strip("-")[:40]
    return f"lab-{work.lab}{'-' if student else ''}{student}.handin.json"


def on_colab() -> bool:
    """Return whether the kernel runs on Colab."""
    return "google.colab" in sys.modules


class HandInBox:
    """One button that writes the file to hand in, tells where it is, and links to it.

    Parameters
    ----------
    work
        Called when the button is pressed; returns what is handed in.
    missing
        Called before; returns what is not answered yet, in words, or an empty text.
    writes
        Called before; returns whether a file is written beside the notebook.
    """

    def __init__(self, work: Callable[[], HandIn], missing: Callable[[], str], writes: Callable[[], bool]) -> None:
        self._work, self._missing, self._writes = work, missing, writes
        self.button = button("Hand in", "primary")
        self.button.on_click(lambda _: self.hand_in())
        self.message = ipywidgets.HTML("")
        self.link = ipywidgets.HTML("")
        words = ipywidgets.HTML(
            "<p>One file holds your answers with their times, your design with its reason, and what you measured. "
            "Press the button, then send the file to your instructor.</p>"
        )
        self.view = ipywidgets.VBox([style_sheet(), words, self.button, self.message, self.link])
        self.view.add_class("mlsys-lab")
        self.view.add_class("mlsys-hand-in")

    def hand_in(self) -> Path | None:
        """Write the file, and return its path where one is written."""
        work, path = self._work(), None
        name, text = file_name(work), work.text()
        reported = [f"{name} is ready."]
        if self._writes():
            try:
                path = write_text(Path(name).absolute(), text)
                reported = [f"Handed in as {path}."]
            except OSError as error:
                reported = [f"{name} could not be written here ({error.strerror or error}); download it below."]
        if path is not None and on_colab():
            reported.append(_downloaded(path))
        missing = self._missing()
        if missing:
            reported.append(f"Not answered yet: {missing}. You can go on and hand in again.")
        if not work.student:
            reported.append("It carries no name: your answers are to the printed numbers.")
        self.message.value = live_note("wrong" if missing or not work.student else "right", " ".join(reported))
        data = base64.b64encode(text.encode("utf-8")).decode("ascii")
        self.link.value = (
            f'<p><a download="{html.escape(name)}" href="data:application/json;base64,{data}">'
            f"Download {html.escape(name)}</a></p>"
        )
        return path


def _downloaded(path: Path) -> str:
    """Ask Colab to download a file, and return what became of it."""
    try:
        import_module("google.colab.files").download(str(path))
    except Exception as error:  # whatever Colab raises, the link below still works
        return f"The browser did not take it ({error}); use the link below."
    return "Your browser downloads it."
