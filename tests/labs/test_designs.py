"""Design tasks: several good answers, a score against the best of all choices, and no score beyond the limits."""

import itertools
import math
import re

import pytest

from mlsys import labs
from mlsys.labs.design import GOOD, Built, Design, Knob

_SITUATION = r"(?<=1/)\d+|(?<![/\d])\d[\d,.]*(?= MB| times| mJ)"
CLASS = [f"s{number:04}" for number in range(1001, 1005)]
WITH_DESIGN = [lab for lab in labs.LABS if labs.designs(lab)]


@pytest.mark.parametrize("lab", WITH_DESIGN)
def test_there_are_several_good_designs_and_most_are_not(lab):
    for student in CLASS:
        for task in labs.designs(lab, student):
            scores = [task.score(choice).score for choice in task.choices()]
            good = sum(score >= GOOD for score in scores)
            assert max(scores) == 1 and 2 <= good < len(scores) / 3, (student, good, len(scores))
            assert len(scores) <= 1100  # a page on the web carries them all


@pytest.mark.parametrize("lab", WITH_DESIGN)
def test_a_choice_that_is_not_offered_scores_nothing(lab):
    for task in labs.designs(lab):
        choice = next(task.choices())
        for wrong in (None, [], {}, {**choice, "more": 1}, {**choice, next(iter(choice)): "none"}, {**choice, 3: 4}):
            assert not task.accepts(wrong) and task.score(wrong).score == 0


def test_the_best_use_of_the_months_is_that_of_amdahls_law():
    from mlsys.labs import amdahl

    for student in CLASS:
        [task] = labs.designs("01-amdahl", student)
        budget = int(task.text.split("Your team has ")[1].split()[0])
        spent = [
            ((1 - share) + share / speed, share, speed)
            for (share, months), (speed, more) in itertools.product(
                amdahl._PORTING.items(), amdahl._INTEGRATING.items()
            )
            if months + more <= budget
        ]
        least, share, speed = min(spent)
        assert task.best == pytest.approx(least)
        assert task.score({"share": share, "speedup": speed}).score == pytest.approx(1)


def test_tiles_are_scored_by_the_words_they_move():
    [task] = labs.designs("05-tiling", CLASS[0])
    m, n, k = (int(task.text.split(f"{letter} = ")[1].split()[0].rstrip(",")) for letter in "MNK")
    tm, tn, tk = 18, 23, 14
    fetched_a, fetched_b = m * k * math.ceil(n / tn), k * n * math.ceil(m / tm)  # the tile of C stays
    built = task.build(tm=tm, tn=tn, tk=tk, order="mnk")
    assert built.cost == fetched_a + fetched_b + m * n


def test_the_plan_of_a_design_is_priced_like_the_planner_prices_it():
    from mlsys.planner.placement import example, plan

    for student in CLASS:
        [task] = labs.designs("08-placement", student)
        divisor, memory, speed, energy = (
            float(number.replace(",", ""))
            for number in re.findall(r"(?<=1/)\d+|(?<![/\d])\d[\d,.]*(?= MB| times| mJ)", task.text)
        )
        data = {**example(), "constraints": {"energy_mj": energy}}
        for link in data["links"]:
            link["bandwidth_gb_s"] /= divisor
        for device in data["devices"]:
            device["memory_mb"] = memory if device["name"] == "npu" else device["memory_mb"]
        for profiles in (stage["profiles"] for stage in data["stages"] if "npu" in stage["profiles"]):
            profiles["npu"]["latency_ms"] /= speed
        assert task.best == pytest.approx(float(plan(data, "latency").best.latency))


def test_a_design_that_breaks_a_limit_scores_nothing():
    task = Design(
        "d", "?", (Knob("x", "X", (("1", 1), ("2", 2), ("4", 4))),), lambda x: Built(x, "So.", "" if x > 1 else "No.")
    )
    assert [task.score({"x": x}).score for x in (1, 2, 4)] == [0, 1, 0.5]
    assert task.score({"x": 1}).feedback == "So. No." and not task.score({"x": True}).meets
