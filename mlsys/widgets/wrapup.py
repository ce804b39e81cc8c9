"""The wrap-up of a lab: closed until its questions are answered."""

import html
from collections.abc import Callable

import ipywidgets

from mlsys.labs.wrapup import WrapUp
from mlsys.widgets.parts import button, style_sheet


def wrap_up_page(wrap: WrapUp) -> str:
    """Return a wrap-up as HTML."""
    parts = []
    for finding in wrap.findings:
        parts.append(f"<p>{html.escape(finding.text)}</p>")
        if finding.code:
            parts.append(
                "<details><summary>Compute it yourself</summary>"
                f'<pre class="mlsys-code">{html.escape(finding.code.strip())}</pre></details>'
            )
    lessons = "".join(f"<li>{html.escape(lesson)}</li>" for lesson in wrap.lessons)
    return f"{''.join(parts)}<p>What to take along:</p><ul>{lessons}</ul>"


class WrapUpBox:
    """The wrap-up below the lab, which opens automatically, or by a button once the prediction is locked.

    Parameters
    ----------
    wrap
        Called when it opens.
    """

    def __init__(self, wrap: Callable[[], WrapUp]) -> None:
        self._wrap = wrap
        self.open = False
        self.words = ipywidgets.HTML("")
        self.button = button("Open it now")
        self.button.on_click(lambda _: self.show())
        self.view = ipywidgets.VBox([style_sheet(), self.words, self.button])
        self.view.add_class("mlsys-lab")
        self.view.add_class("mlsys-wrap-up")

    def show(self) -> None:
        """Open it."""
        if not self.open:
            self.open = True
            self.words.value = f'<div role="status" aria-live="polite">{wrap_up_page(self._wrap())}</div>'
            self.button.layout.display = "none"

    def close(self, locked: bool, left: int) -> None:
        """Close it, and show what is missing."""
        self.open = False
        questions = "question" if left == 1 else "questions"
        wanted = f"when {left} more {questions} under Check {'is' if left == 1 else 'are'} answered"
        if not locked:
            wanted = "when your prediction is locked and the questions under Check are answered"
        self.words.value = f"<p>The wrap-up opens here {wanted}.</p>"
        self.button.layout.display = None
        self.button.disabled = not locked
