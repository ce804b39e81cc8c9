"""Ranges for who never measured a setting: sources differ, and the range says by how much."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mlsys.models.calibrated.ranges import ALL_SOURCES, fitted_ranges, range_of
from mlsys.validation.cases import interpret
from mlsys.validation.intervals import Left, sources_apart
from mlsys.validation.report import validate
from mlsys.validation.rows import shipped_rows

SETTING, DEVICE = "compiled network on GPU", "A100_80GB"


@pytest.mark.parametrize("apart", [0.0, 0.3, 0.6])
def test_what_sources_differ_by_is_found_again(apart: float) -> None:
    """Rows are drawn with a scatter of their own and a habit of their source; the habit's reach is told."""
    draw = np.random.default_rng(5)
    cases = [interpret(row) for row in shipped_rows()[:400] if row.source == "baidu-research/DeepBench"][:1]
    left = []
    for setting in range(40):
        case = replace(cases[0], setting=f"setting {setting}")
        for _ in range(12):
            habit = draw.normal(0, apart)
            for own in draw.normal(0, 0.15, 20):
                left.append(Left(case, own / 0.25, own / 0.25, (own, own + habit)))
    assert sources_apart(left) == pytest.approx(1.28 * apart, abs=0.05)


def test_a_setting_of_one_source_says_nothing_of_sources() -> None:
    case = next(interpret(row) for row in shipped_rows() if row.source == "baidu-research/DeepBench")
    assert sources_apart([Left(case, 0.1, 0.1, (0.1, float("nan")))] * 40) == 0


def test_the_range_is_wider_for_who_never_measured_the_setting() -> None:
    entry = fitted_ranges()[SETTING]
    known = range_of(SETTING, DEVICE, "resnet50", source=entry["sources"][0])
    another = range_of(SETTING, DEVICE, "resnet50", source="a reader")
    for end in ("low", "high"):
        inner, outer = (abs(math.log(getattr(found, end))) for found in (known, another))
        assert outer == pytest.approx(math.hypot(inner, entry["apart"]))
    assert "sources differ" in another.why and "sources differ" not in known.why
    assert range_of(SETTING, DEVICE, "resnet50", source=ALL_SOURCES) == known
    assert range_of(SETTING, DEVICE, "resnet50") == another, "who asks is nobody whose habits are known"


def test_rows_of_another_source_are_answered_alike_with_a_wider_range() -> None:
    row = next(row for row in shipped_rows() if row.source == "huggingface/pytorch-image-models")
    for same in (row.source, f"github.com/{row.source}@0123abc", f"https://github.com/{row.source}"):
        assert replace(row, source=same).measured_by == row.measured_by
    own, other = validate([row, replace(row, source="example.org/mine")]).predictions
    assert own.value == other.value
    assert other.low < own.low < own.value < own.high < other.high
