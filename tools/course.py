"""The course as a Sphinx extension: book/course.yaml as tables of outcomes and times, and as plans.

``.. course:: chapters``, ``.. course:: labs``, ``.. course:: prerequisites`` and ``.. course:: plan term`` render it.
Times of chapters are computed from their text, so that they follow when a page grows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from docutils.statemachine import StringList  # type: ignore[import-untyped]
from sphinx.util.docutils import SphinxDirective

from mlsys.inputs import yaml_of
from mlsys.labs import ClaimQuestion, Draw, Question, lab_content
from pages import ROOT

__all__ = ["COURSE", "Times", "lab_minutes", "read_course", "setup", "times_of"]

COURSE = ROOT / "book" / "course.yaml"
_SOLUTION = re.compile(
    r"^(`{3,})\{solution-start\}.*?^`{3,}\{solution-end\}\n`{3,}|^(`{3,})\{solution\}.*?^\2$", re.M | re.S
)
_FENCE = re.compile(r"^(`{3,})\{(?:code-cell|index|bibliography)\}.*?^\1$", re.M | re.S)
_EXERCISE = re.compile(r"^`{3,}\{exercise\}\s*(★+)", re.M)
_WORD = re.compile(r"\w+(?:[’'-]\w+)*")
_TO = 5


@dataclass(frozen=True)
class Times:
    """Minutes that a chapter takes: to read, and to do all its exercises."""

    reading: int
    exercises: int


def read_course(path: Path = COURSE) -> dict[str, Any]:
    """Return the content of the course file."""
    found: dict[str, Any] = yaml_of(path.read_text(encoding="utf-8"))
    return found


def times_of(text: str, rates: Mapping[str, Any]) -> Times:
    """Return the minutes of a chapter, rounded to five.

    Parameters
    ----------
    text
        Its source.
    rates
        Of the course file: words a minute, minutes for a figure, minutes for an exercise by stars.

    Examples
    --------
    >>> rates = {"words_per_minute": 100, "minutes_per_figure": 1, "minutes_per_exercise": {1: 5, 2: 10, 3: 20}}
    >>> times_of("word " * 1000 + chr(10) + "```{exercise} ★★ How far?" + chr(10) + "```", rates)
    Times(reading=10, exercises=10)
    """
    taught = _FENCE.sub("", _SOLUTION.sub("", text).partition("\n## Your turn")[0].partition("\n---\n")[2] or text)
    words = len(_WORD.findall(taught))
    figures = len(re.findall(r"^  figure:$|^```\{figure\}", text, re.M))
    stars = [len(each) for each in _EXERCISE.findall(text)]
    reading = words / rates["words_per_minute"] + figures * rates["minutes_per_figure"]
    return Times(_rounded(reading), _rounded(sum(rates["minutes_per_exercise"][count] for count in stars)))


def lab_minutes(name: str, course: Mapping[str, Any]) -> int:
    """Return the minutes of honest work that a lab takes, rounded to five, by the rates of the course file."""
    draw, content, rates = Draw(name), lab_content(name), course["rates"]["lab"]
    questions, wrap, designs = content.questions(draw), content.wrap_up(draw), content.designs(draw)
    page = _FENCE.sub("", (ROOT / "labs" / f"{name}.md").read_text(encoding="utf-8").partition("\n---\n")[2])
    texts = [page, *(design.text for design in designs), *(each.text for each in wrap.findings), *wrap.lessons]
    for question in (content.prediction(draw), *questions):
        hints = [choice.hint for choice in getattr(question, "choices", ())]
        texts += [question.text, *question.listed(), question.solution, getattr(question, "hint", ""), *hints]
    minutes = len(_WORD.findall(" ".join(texts))) / rates["words_per_minute"]
    minutes += rates["prediction"] + rates["exploration"] + rates["wrap_up"] + rates["design"] * len(designs)
    minutes += rates["measurement"] * bool(course["labs"][name].get("measures"))
    return _rounded(minutes + sum(rates[_kind(question)] for question in questions))


def _kind(question: Question) -> str:
    return "claim" if not question.in_app or isinstance(question, ClaimQuestion) else question.kind


def _rounded(minutes: float) -> int:
    return _TO * max(round(minutes / _TO), 1)


def _chapter_times(course: Mapping[str, Any], name: str) -> Times:
    return times_of((ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"), course["rates"])


def chapter_rows(course: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each chapter: page and what it needs, outcomes, minutes of reading and of exercises."""
    for name, result in course["chapters"].items():
        times = _chapter_times(course, name)
        needs = f" (after {_chapters(result['needs'])})" if result["needs"] else ""
        yield f"{_chapters([name])}{needs}", "; ".join(result["outcomes"]), f"{times.reading} + {times.exercises}"


def lab_rows(course: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each lab: page and its chapter, outcomes, minutes."""
    for name, result in course["labs"].items():
        yield (
            f":doc:`/labs/{name}` (after {_chapters([result['after']])})",
            "; ".join(result["outcomes"]),
            str(result["minutes"]),
        )


def plan_lines(course: Mapping[str, Any], plan: str) -> Iterator[str]:
    """Yield an entry of a list for each session of a plan: topic, minutes, chapters, lab, what to assign."""
    for session in course["plans"][plan]["sessions"]:
        lab = session.get("lab")
        reading = sum(_chapter_times(course, each).reading for each in session["teach"])
        at_home = reading + (course["labs"][lab]["minutes"] if lab else 0)
        yield f"#. **{session['title']}** ({session['minutes']} min in class, {at_home} min at home)."
        yield f"   Teach {_chapters(session['teach'])}."
        if lab:
            yield f"   Lab: :doc:`{topic(ROOT / 'labs' / f'{lab}.md')} </labs/{lab}>`."
        yield f"   *Assign:* {session['assign'].replace('`', '``')}"


def topic(path: Path) -> str:
    """Return the topic of a page: its title up to the colon, without the number of a lab.

    Examples
    --------
    >>> topic(ROOT / "labs" / "02-roofline.md")
    'The roofline'
    """
    title = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M)
    assert title is not None, path
    return re.sub(r"^Lab \d+\. ", "", title[1]).partition(":")[0]


def _chapters(names: Sequence[str]) -> str:
    return ", ".join(f":doc:`{topic(ROOT / 'book' / f'{name}.md')} </book/{name}>`" for name in names)


HEADS = {
    "chapters": ("Chapter", "After it you can", "Reading + exercises, min"),
    "labs": ("Lab", "After it you can", "Time, min"),
}
WIDTHS = {"chapters": (32, 53, 15), "labs": (38, 50, 12)}


class Course(SphinxDirective):
    """Render a part of the course file."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, or the list of prerequisites."""
        self.env.note_dependency(str(COURSE))
        course, kind = read_course(), self.arguments[0]
        if kind == "prerequisites":
            lines = [f"* {each}." for each in course["prerequisites"]]
        elif kind == "plan":
            plan = course["plans"][self.arguments[1]]
            lines = [f"For {plan['audience']}.", "", *plan_lines(course, self.arguments[1])]
        else:
            lines = _table(kind, list((chapter_rows if kind == "chapters" else lab_rows)(course)))
        held = nodes.Element()
        self.state.nested_parse(StringList(lines, source=str(COURSE)), self.content_offset, held)
        return list(held.children)


def _table(kind: str, rows: list[tuple[str, ...]]) -> list[str]:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, WIDTHS[kind]))}", ""]
    for row in [HEADS[kind], *rows]:
        lines += [f"   {'* -' if nth == 0 else '  -'} {cell}" for nth, cell in enumerate(row)]
    return lines


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("course", Course)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
