"""A few of the corpus of bad inputs, drawn by the seed of the run, and the tools that judge them; `make torture` runs all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from torture_cases import Case, corpus
from torture_run import run

from sampled import drawn

FEW = 60


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return corpus()


def test_there_are_enough_of_every_kind(cases: list[Case]) -> None:
    groups = {case.group for case in cases}
    assert len(cases) >= 1500
    assert groups >= {"flops", "analyze", "compare", "memory", "tiles", "mapper", "systolic", "devices", "device", "check", "plan",
                      "sweep", "validate", "calibrate", "measure", "compile-bench", "claims ledger", "claims diff",
                      "claims sensitivity", "edge layers", "edge run", "explain run", "python"}  # fmt: skip


def test_a_few_bad_inputs_are_refused_in_one_line(cases: list[Case]) -> None:
    chosen = drawn(cases, FEW, "torture")
    good = Case(id="a right question", words=("flops", "lenet5"))
    crash = Case(id="a crash", call="1 / 0")
    found, peak = run([good, crash, *chosen])
    accepted, crashed = found.pop(0), found.pop(0)
    assert "wrongly accepted" in accepted.fault, "the judge lets everything pass"
    assert "ZeroDivisionError" in crashed.fault, "the judge lets everything pass"
    assert [f"{one.case.id!r}: {one.fault}" for one in found if one.fault] == []
    assert peak < 2_000_000_000
