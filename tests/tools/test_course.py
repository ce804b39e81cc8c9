"""The course file describes the book that stands: every chapter and lab, in its order, and plans that can be taught."""

import re

import pytest
import yaml

from course import COURSE as COURSE_FILE
from course import chapter_rows, lab_minutes, lab_rows, plan_lines, read_course, times_of
from pages import ROOT

COURSE = read_course()
CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]


def listed(numbered: bool, folder: str) -> list[str]:
    parts = [part for part in CONTENTS if bool(part.get("numbered")) == numbered]
    files = [each["file"].split("/") for part in parts for each in part["chapters"]]
    return [name for place, *_, name in files if place == folder]


def test_it_lists_every_chapter_and_lab_in_the_order_of_the_book() -> None:
    assert list(COURSE["chapters"]) == listed(True, "book"), "add or move the chapter in book/course.yaml"
    assert list(COURSE["labs"]) == listed(False, "labs"), "add or move the lab in book/course.yaml"


def test_no_chapter_or_lab_stands_twice_where_the_last_would_win() -> None:
    keys = re.findall(r"^  ([\w-]+):$", COURSE_FILE.read_text("utf-8"), re.MULTILINE)
    assert len(keys) == len(set(keys))


def test_what_a_chapter_needs_comes_before_it_and_each_has_outcomes_that_can_be_examined() -> None:
    order = list(COURSE["chapters"])
    vague = ("understand", "know", "learn", "appreciate", "be able")
    for name, result in COURSE["chapters"].items():
        assert all(order.index(each) < order.index(name) for each in result["needs"]), name
    for name, result in {**COURSE["chapters"], **COURSE["labs"]}.items():
        assert 1 <= len(result["outcomes"]) <= 4, name
        assert not any(outcome.lower().startswith(vague) for outcome in result["outcomes"]), name
        assert "after" not in result or result["after"] in order


def test_plans_teach_chapters_that_stand_with_what_they_need_before() -> None:
    assert set(COURSE["plans"]) == {"lecture", "week", "term"}
    for plan in COURSE["plans"].values():
        taught: list[str] = []
        for session in plan["sessions"]:
            taught += session["teach"]
            assert "lab" not in session or COURSE["labs"][session["lab"]]["after"] in taught, session
        assert len(taught) == len(set(taught)) and set(taught) <= set(COURSE["chapters"])
    term = [name for session in COURSE["plans"]["term"]["sessions"] for name in session["teach"]]
    for at, name in enumerate(term):
        assert set(COURSE["chapters"][name]["needs"]) <= set(term[:at]), name


def test_times_follow_the_text_and_count_no_solution() -> None:
    rates = {"words_per_minute": 10, "minutes_per_figure": 5, "minutes_per_exercise": {1: 5, 2: 10, 3: 20}}
    taught = "---\nkernel: x\n---\n" + "word " * 200 + "\n```{code-cell} x\n---\nmystnb:\n  figure:\n---\nf()\n```\n"
    sheet = (
        "\n## Your turn\n\n```{exercise} ★★★ Far?\n```\n\n```{solution-start} a\n```\n"
        + "long " * 500
        + "\n```{solution-end}\n```\n"
    )
    assert times_of(taught, rates).reading == 25
    assert times_of(taught + sheet, rates) == type(times_of(taught, rates))(25, 20)


@pytest.mark.parametrize("name", COURSE["labs"])
def test_the_time_of_a_lab_is_computed_and_stands_at_its_top(name: str) -> None:
    minutes = COURSE["labs"][name]["minutes"]
    assert minutes == lab_minutes(name, COURSE), "book/course.yaml: the lab has changed"
    page = (ROOT / "labs" / f"{name}.md").read_text(encoding="utf-8")
    assert f"\n\n*About {minutes} minutes, once you have read [" in page.partition("\n# ")[2].partition(":::")[0]


def test_every_row_is_rendered() -> None:
    assert len(list(chapter_rows(COURSE))) == len(COURSE["chapters"])
    assert len(list(lab_rows(COURSE))) == len(COURSE["labs"])
    for name, plan in COURSE["plans"].items():
        lines = list(plan_lines(COURSE, name))
        assert sum(line.startswith("#. ") for line in lines) == len(plan["sessions"])
        assert all(f"</book/{each}>" in "\n".join(lines) for session in plan["sessions"] for each in session["teach"])
