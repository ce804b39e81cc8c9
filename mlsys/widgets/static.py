"""Static substitutes for a lab without a kernel: in the built book, in print, in a preview."""

from __future__ import annotations

import base64
import html
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from mlsys.escaping import markdown_text
from mlsys.inputs import shipped_text
from mlsys.labs.claimed import KINDS, ClaimQuestion
from mlsys.labs.design import Design, Knob
from mlsys.labs.questions import NOTHING, SLIP, ChoiceQuestion, NumberQuestion, Question
from mlsys.viz.live import image_tag
from mlsys.widgets.design_box import outcome_note, paragraphs
from mlsys.widgets.frames import frames_of
from mlsys.widgets.parts import STYLE
from mlsys.widgets.wrapup import wrap_up_page

if TYPE_CHECKING:
    from mlsys.widgets.lab import Lab

INVITATION = "Run all cells to start this lab; nothing below gives an answer away."
TO_ANSWER = "Run all cells to check your answer."
_CLOSED = "The wrap-up opens here when all questions and claims are answered."
_HAND_IN = "Run the lab in Jupyter or Colab to hand it in: this page saves nothing."
_PRINTED = "The wrap-up opens in the lab."
_SCRIPT = f"<script>\n{shipped_text('mlsys.widgets', 'static_lab.js')}</script>"


def in_book() -> bool:
    """Return whether the book is being built, where labs work without a kernel (``MLSYS_BOOK=html``)."""
    return os.environ.get("MLSYS_BOOK") == "html"


def widget_view(widget: Any) -> dict[str, Any]:
    """Return the mimebundle entry of a live widget, for ipywidgets 7 and 8."""
    return {
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": widget.model_id,
        }
    }


def lab_page(lab: Lab) -> str:
    """Return a lab as HTML, with its empty figure and its questions; interactive in the book."""
    picture = image_tag(lab.png, lab.alt, *lab.size)
    items = "".join(f'<li class="mlsys-asked">{_question(question)}</li>' for question in _app_questions(lab))
    body = (
        f'<div class="mlsys-predicted"><p><em>Predict.</em> {html.escape(lab.prediction.text)}</p>'
        f"{_listed(lab.prediction)}</div>"
        f'<figure style="margin:1em 0"><div class="mlsys-stack">{picture}</div></figure>'
        f"<p><em>Check.</em></p><ol>{items}</ol>"
        f"{''.join(_task(design) for design in lab.designs.values())}"
    )
    if not in_book():
        return f'<div class="mlsys-lab-static"><p><strong>{INVITATION}</strong></p>{body}</div>'
    data = {
        "prediction": _marks(lab.prediction),
        "questions": [_marks(question) for question in _app_questions(lab)],
        "designs": [_scores(design) for design in lab.designs.values()],
        "frames": frames_of(type(lab)),
    }
    body += f"<p>{_HAND_IN}</p>{_packed(data)}"
    return f'{STYLE}<div class="mlsys-lab-static" data-mlsys-lab="{lab.id}">{body}</div>{_SCRIPT}'


def lab_text(lab: Lab) -> str:
    """Return a lab as Markdown, for print."""
    lines = [f"*Predict.* {markdown_text(lab.prediction.text)}", *_bullets(lab.prediction), "*Check.*"]
    for index, question in enumerate(_app_questions(lab), start=1):
        lines += [f"{index}. {markdown_text(question.text)}", *_bullets(question, indent="   ")]
    for design in lab.designs.values():
        knobs = "\n".join(f"- {markdown_text(_knob_text(knob))}" for knob in design.knobs)
        lines += ["*Design.*", *map(markdown_text, design.text.split("\n\n")), knobs]
    return "\n\n".join(lines)


def question_page(question: Question) -> tuple[str, str]:
    """Return a question as HTML and as Markdown."""
    body = f'<div class="mlsys-asked">{_question(question)}</div>'
    if in_book():
        markup = (
            f'<div class="mlsys-lab-static" data-mlsys-question="{question.id}">'
            f"{body}{_packed(_marks(question))}</div>{_SCRIPT}"
        )
    else:
        markup = f'<div class="mlsys-lab-static">{body}<p><strong>{TO_ANSWER}</strong></p></div>'
    return markup, "\n\n".join([markdown_text(question.text), *_bullets(question)])


def hand_in_pages() -> tuple[str, str]:
    """Return what stands in the place of the button without a kernel, as HTML and as Markdown."""
    return f'<div class="mlsys-lab-static"><p>{_HAND_IN}</p></div>', _HAND_IN


def wrap_up_pages(lab: Lab) -> tuple[str, str]:
    """Return a closed wrap-up as HTML and as Markdown."""
    closed = f"<p>{_CLOSED}</p>"
    if in_book():
        packed = _packed({"page": wrap_up_page(lab._wrap_up())})
        return f'<div class="mlsys-lab-static" data-mlsys-wrap="{lab.id}">{closed}{packed}</div>', _PRINTED
    return f'<div class="mlsys-lab-static">{closed}</div>', _PRINTED


def _packed(data: Any) -> str:
    """Return encoded data for the page's script, so that the page source does not reveal the answers."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
    return f'<script type="application/x-mlsys">{packed}</script>'


def _task(design: Design) -> str:
    """Return a design task as HTML."""
    knobs = "".join(f"<li>{html.escape(_knob_text(knob))}</li>" for knob in design.knobs)
    return f'<div class="mlsys-designed"><p><em>Design.</em></p>{paragraphs(design.text)}<ul>{knobs}</ul></div>'


def _knob_text(knob: Knob) -> str:
    return f"{knob.label}: {'; '.join(label for label, _ in knob.options)}"


def _scores(design: Design) -> dict[str, Any]:
    """Return the data that the script needs to score a design: what each choice comes to, last knob fastest."""
    knobs = [{"label": knob.label, "options": [label for label, _ in knob.options]} for knob in design.knobs]
    return {"knobs": knobs, "outcomes": [outcome_note(design, choice) for choice in design.choices()]}


def _marks(question: Question) -> dict[str, Any]:
    """Return the data that the script needs to check a question."""
    marks: dict[str, Any] = {
        "name": question.id,
        "solution": question.solution,
        "right": question.right_answer(),
    }
    if isinstance(question, ChoiceQuestion):
        marks["choices"] = [[choice.text, choice.hint, choice.right] for choice in question.choices]
    if isinstance(question, ClaimQuestion):
        marks |= {
            "kinds": [NOTHING, *KINDS],
            "slip_made": question.slip or NOTHING,
            "answer": question.answer,
            "unit": question.unit,
            "tolerance": question.tolerance,
            "least": 0.0,
            "most": None,
            "where": "of at least 0",
            "hint": question.hint,
        }
    if isinstance(question, NumberQuestion):
        marks |= {
            "answer": question.answer,
            "unit": question.unit,
            "gap": "" if question.unit in ("%", "×") else " ",
            "tolerance": question.tolerance,
            "least": question.least,
            "most": None if question.most == float("inf") else question.most,
            "where": question.where(),
            "hint": question.hint,
            "slips": [list(slip) for slip in question.slips],
            "slip": SLIP,
        }
    return marks


def _app_questions(lab: Lab) -> list[Question]:
    return [question for question in lab.questions.values() if question.in_app]


def _question(question: Question) -> str:
    return f"<p>{html.escape(question.text)}</p>{_listed(question)}"


def _listed(question: Question) -> str:
    answers = "".join(f"<li>{html.escape(answer)}</li>" for answer in question.listed())
    return f"<ul>{answers}</ul>" if answers else ""


def _bullets(question: Question, indent: str = "") -> list[str]:
    return (
        ["\n".join(f"{indent}- {markdown_text(answer)}" for answer in question.listed())] if question.listed() else []
    )
