"""Each statement and topic that the book was written against leads to a page, or to a reason why not."""

import json
from dataclasses import replace

import pytest

import accounted as tool
import coverage

CLAIMS = tool.read_rows(tool.FOLDER / "claims.csv")
ITEMS = tool.read_rows(tool.FOLDER / "items.csv")
GOOD = next(row for row in CLAIMS if row.page == "book/roofline")


def test_everything_is_accounted_for(capsys):
    assert tool.main(["--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["claims"] == {"accounted": 833, "total": 833}
    assert set(record["items"]) == {"present", "left_out", "total"}
    assert record["items"]["present"] + record["items"]["left_out"] == record["items"]["total"] == 476


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"page": "", "targets": (), "reason": ""}, "give a page or a reason"),
        ({"reason": "left out all the same"}, "give a page or a reason"),
        ({"targets": ()}, "name a target on book/roofline"),
        ({"targets": ("no_such_claim",)}, "no target 'no_such_claim' on book/roofline"),
        ({"targets": ("#no-such-heading",)}, "no target '#no-such-heading' on book/roofline"),
        ({"targets": ("a100_ridge@book/nowhere",)}, "book/nowhere is not in _toc.yml"),
        ({"targets": ("check:no such words",)}, "no target 'check:no such words'"),
        ({"targets": ("device:A100_80GB",)}, "no target 'device:A100_80GB' on book/roofline"),
        ({"targets": ("test:tests/tools/test_coverage.py::test_nothing",)}, "no target 'test:"),
        ({"labels": {**GOOD.labels, "restatement": ""}}, "say in words what it is"),
        ({"labels": {**GOOD.labels, "verdict": "SO-SO"}}, "the verdict SO-SO is none of"),
        ({"id": "S4-999"}, "S4-999: is the id of no statement"),
    ],
)
def test_a_broken_row_is_named(changed, fault):
    broken = [replace(row, **changed) if row is GOOD else row for row in CLAIMS]
    found = tool.faults(broken, ITEMS)
    assert any(fault in str(each) for each in found)
    assert {each.id for each in found} <= {GOOD.id, "S4-999"}
    assert tool.counts(broken, ITEMS, found)["claims"]["accounted"] == 832


def test_items_are_as_many_in_each_section_as_planned():
    def record(items):
        return " ".join(map(str, tool.faults(CLAIMS, items)))

    assert "section 20 (Feasibility): must have 15 items" in record(ITEMS[:-1])
    assert "20-I3: is there twice" in record([*ITEMS[:-1], ITEMS[-2]])
    moved = replace(ITEMS[0], labels={**ITEMS[0].labels, "section": "99"})
    assert "section 99: is none of the plan" in record([moved, *ITEMS[1:]])


def test_the_package_of_the_same_name_can_be_imported_where_tools_come_first():
    assert coverage.version_info >= (5,)
