"""Ranges for who never measured a setting: sources differ, and the range says by how much."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mlsys.models.calibrated import Stack, calibrated_times
from mlsys.models.calibrated.library import fitted
from mlsys.models.calibrated.ranges import ALL_SOURCES, STRANGERS, fitted_ranges, range_of
from mlsys.validation.cases import Case, interpret
from mlsys.validation.examination import first_answers, missed
from mlsys.validation.intervals import Left, intervals, sources_apart
from mlsys.validation.report import validate
from mlsys.validation.rows import shipped_rows
from mlsys.validation.standins import stand_ins

SETTING, DEVICE = "compiled network on GPU", "A100_80GB"


def _measured(case: Case, unit: str, habits: float, settings: int, sources: int) -> list[Left]:
    """Return rows of settings on a kind of machine; without their source, others' habits have moved the estimate."""
    draw = np.random.default_rng(5)
    left = []
    for setting in range(settings):
        own = draw.normal(0, habits, sources)
        for source in range(sources):
            row = replace(case.row, source=f"somebody/{source}")
            one = replace(case, row=row, setting=f"setting {setting} on {unit}")
            without = own[source] - own[np.arange(sources) != source].sum() / max(sources - 1, 1)
            left += [
                Left(one, rest / 0.25, rest / 0.25, (rest, rest + without), sources)
                for rest in draw.normal(0, 0.15, 20)
            ]
    return left


@pytest.fixture(scope="module")
def case() -> Case:
    return next(interpret(row) for row in shipped_rows() if row.source == "baidu-research/DeepBench")


@pytest.mark.parametrize("habits", [0.0, 0.15, 0.3])
@pytest.mark.parametrize("sources", [2, 5])
def test_what_sources_differ_by_is_found_again(case: Case, habits: float, sources: int) -> None:
    """Rows scatter, and their source has a habit; the reach of habits is told, however many sources there are."""
    left = _measured(case, "GPU", habits, 240 // sources, sources)
    assert sources_apart(left)["GPU", case.kind] == pytest.approx(1.28 * habits, abs=0.05)


def test_each_kind_of_machine_has_habits_of_its_own_drawn_towards_all(case: Case) -> None:
    many = [*_measured(case, "GPU", 0.1, 40, 2), *_measured(case, "CPU", 0.4, 40, 2)]
    few = [*many, *_measured(case, "MCU", 0.0, 1, 2)]
    apart = sources_apart(few)
    gpu, cpu, mcu = (apart[unit, case.kind] for unit in ("GPU", "CPU", "MCU"))
    assert gpu < 0.2 < 0.4 < cpu
    assert gpu < mcu < cpu, "two opinions leave much to what is known of all"
    assert sources_apart(many)["GPU", case.kind] == pytest.approx(gpu, rel=0.05)


def test_a_kind_of_work_that_one_source_measured_has_the_habits_of_its_machine(case: Case) -> None:
    told = [*_measured(case, "GPU", 0.1, 40, 2), *_measured(case, "CPU", 0.4, 40, 2)]
    lone = replace(case, kind="attention", setting="lone on CPU")
    apart = sources_apart([*told, Left(lone, 0.1, 0.1, (0.1, float("nan")))])
    assert apart["CPU", "attention"] == pytest.approx(apart["CPU", case.kind], rel=0.05)


def test_a_setting_of_one_source_says_nothing_of_sources(case: Case) -> None:
    assert set(sources_apart([Left(case, 0.1, 0.1, (0.1, float("nan")))] * 40).values()) == {0.0}


def test_few_sources_leave_more_open_than_many(case: Case) -> None:
    """The estimate follows the habits of the only source, and is that far from the middle of all."""
    ones, fives = _measured(case, "GPU", 0.3, 30, 5), _measured(case, "GPU", 0.3, 1, 1)
    alone = [replace(each, plain=(each.plain[0], float("nan"))) for each in fives]
    renamed = [replace(each, case=replace(each.case, setting="lone on GPU")) for each in alone]
    found = intervals([*ones, *renamed], {})
    lone, five = (float(str(found[name]["apart"])) for name in ("lone on GPU", "setting 0 on GPU"))
    assert lone / five == pytest.approx(math.sqrt(2 / 1.2))


def test_the_range_is_wider_for_who_never_measured_the_setting_above_all_upwards() -> None:
    entry = fitted_ranges()[SETTING]
    known = range_of(SETTING, DEVICE, "resnet50", source=entry["sources"][0])
    another = range_of(SETTING, DEVICE, "resnet50", source="a reader")
    down, up = STRANGERS
    for inner, outer, times in ((known.low, another.low, down), (known.high, another.high, up)):
        inner, outer = abs(math.log(inner)), abs(math.log(outer))
        assert outer == pytest.approx(max(inner, times * math.hypot(inner, entry["apart"])))
    assert "sources differ" in another.why and "sources differ" not in known.why
    assert range_of(SETTING, DEVICE, "resnet50", source=ALL_SOURCES) == known
    assert range_of(SETTING, DEVICE, "resnet50") == another, "who asks is nobody whose habits are known"


def test_who_was_examined_blindly_says_how_far_strangers_reach() -> None:
    """Told by the second examination, tested on the third, each answered with the laws and ranges of its hour."""
    assert missed(2) == pytest.approx(STRANGERS, abs=0.005)
    assert missed(3) == pytest.approx(STRANGERS, rel=0.1)
    answers = first_answers(3)
    first, wider = [], []
    for each in answers:
        low, high = math.log(each.value / each.low), math.log(each.high / each.value)
        down, up = (high, low) if "/s" in each.row.unit else (low, high)
        off = -math.log(each.ratio)
        first.append(-down <= off <= up)
        wider.append(-STRANGERS[0] * down <= off <= STRANGERS[1] * up)
    assert np.mean(first) < 0.72, "sources left out flatter"
    assert 0.75 < np.mean(wider) < 0.85


def test_rows_of_another_source_are_answered_alike_with_a_wider_range() -> None:
    row = next(row for row in shipped_rows() if row.source == "huggingface/pytorch-image-models")
    for same in (row.source, f"github.com/{row.source}@0123abc", f"https://github.com/{row.source}"):
        assert replace(row, source=same).measured_by == row.measured_by
    own, other = validate([row, replace(row, source="example.org/mine")]).predictions
    assert own.value == other.value
    assert other.low <= own.low < own.value < own.high <= other.high
    assert other.high / other.low > own.high / own.low


def test_what_a_stand_in_is_off_by_is_told_for_each_kind_of_work(case: Case) -> None:
    """Two settings whose rows take twice and half of what the other says; of a third kind, eight times."""
    own = fitted()[case.setting]
    stack = Stack.of([(case.engine, case.work, case.stays)])
    told = max(float(calibrated_times(stack, own.vectorised()[None])[0]), case.at_least)
    twice, half = (replace(case, seconds=told * times, kind="gemm") for times in (2.0, 0.5))
    many = {f"library {version} gemm on CPU": [twice, half] * 3 for version in range(8)}
    assert stand_ins(many, dict.fromkeys(many, own)) == {"gemm": pytest.approx(math.log(2))}
    slow = replace(twice, seconds=8 * told, kind="attention")
    far = {f"library {version} attention on CPU": [slow] for version in (1, 2)}
    both = stand_ins(many | far, dict.fromkeys(many | far, own))
    assert both["gemm"] < 1.3 * math.log(2) < math.log(4) < both["attention"] < math.log(8)
