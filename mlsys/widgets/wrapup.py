"""The wrap-up of a lab: closed until its questions are answered."""

import html
from collections.abc import Callable

import ipywidgets

from mlsys.labs.wrapup import WrapUp
from mlsys.widgets.parts import style_sheet


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
    return f"{''.join(parts)}<p>Lessons:</p><ul>{lessons}</ul>"


class WrapUpBox:
    """The wrap-up below the lab, which opens when all questions and claims are answered.

    Parameters
    ----------
    wrap
        Called when it opens.
    """

    def __init__(self, wrap: Callable[[], WrapUp]) -> None:
        self._wrap = wrap
        self.open = False
        self.words = ipywidgets.HTML("")
        self.view = ipywidgets.VBox([style_sheet(), self.words])
        self.view.add_class("mlsys-lab")
        self.view.add_class("mlsys-wrap-up")

    def show(self) -> None:
        """Open it."""
        if not self.open:
            self.open = True
            self.words.value = f'<div role="status" aria-live="polite">{wrap_up_page(self._wrap())}</div>'

    def close(self, locked: bool, questions: int, claims: int) -> None:
        """Close it, and show how many questions and claims are missing."""
        self.open = False
        left = [
            f"{count} more {name}{'' if count == 1 else 's'}"
            for count, name in ((questions, "question"), (claims, "claim"))
            if count
        ]
        wanted = f"when {' and '.join(left)} {'is' if questions + claims == 1 else 'are'} answered"
        if not locked:
            wanted = "when your prediction is locked and all questions and claims are answered"
        self.words.value = f"<p>The wrap-up opens here {wanted}.</p>"
