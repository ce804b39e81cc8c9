"""What stands in the place of a lab where no kernel runs: the built book, a printed page, a preview."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from mlsys.viz.live import image_tag

if TYPE_CHECKING:
    from mlsys.widgets.lab import Lab
    from mlsys.widgets.questions import Question

__all__ = ["INVITATION", "lab_page", "lab_text", "question_page", "widget_view"]

INVITATION = "Open this lab in JupyterLab or Colab to move the sliders."
_TO_ANSWER = "Open this lab in JupyterLab or Colab to check your answer."


def widget_view(widget: Any) -> dict[str, Any]:
    """Return the entry of a mimebundle that shows a live widget, in ipywidgets 7 and 8."""
    return {
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": widget.model_id,
        }
    }


def lab_page(lab: Lab) -> str:
    """Return a lab as HTML, with its picture."""
    width, height = lab._size
    listed = "".join(f"<li>{_question(question)}</li>" for question in _asked(lab))
    return (
        f'<div class="mlsys-lab-static"><p><strong>{INVITATION}</strong></p>'
        f"<p><em>Predict.</em> {html.escape(lab.prediction.prompt)}</p>{_listed(lab.prediction)}"
        f'<figure style="margin:1em 0">{image_tag(lab.png, lab.view.alt, width, height)}'
        f"<figcaption>{html.escape(lab.view.summary)}</figcaption></figure>"
        f"<p><em>Check.</em></p><ol>{listed}</ol></div>"
    )


def lab_text(lab: Lab) -> str:
    """Return a lab as Markdown, for print: there its picture stands above."""
    lines = [lab.view.summary, f"**{INVITATION}**", f"*Predict.* {lab.prediction.prompt}", *_bullets(lab.prediction)]
    lines.append("*Check.*")
    for place, question in enumerate(_asked(lab), start=1):
        lines += [f"{place}. {question.prompt}", *_bullets(question, indent="   ")]
    return "\n\n".join(lines)


def question_page(question: Question) -> tuple[str, str]:
    """Return a question as HTML and as Markdown."""
    markup = f'<div class="mlsys-lab-static">{_question(question)}<p><strong>{_TO_ANSWER}</strong></p></div>'
    return markup, "\n\n".join([question.prompt, *_bullets(question), f"**{_TO_ANSWER}**"])


def _asked(lab: Lab) -> list[Question]:
    return [question for question in lab.questions.values() if question.in_app]


def _question(question: Question) -> str:
    return f"<p>{html.escape(question.prompt)}</p>{_listed(question)}"


def _listed(question: Question) -> str:
    answers = "".join(f"<li>{html.escape(answer)}</li>" for answer in question.listed())
    return f"<ul>{answers}</ul>" if answers else ""


def _bullets(question: Question, indent: str = "") -> list[str]:
    return ["\n".join(f"{indent}- {answer}" for answer in question.listed())] if question.listed() else []
