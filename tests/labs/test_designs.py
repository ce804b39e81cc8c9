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


def test_no_kernel_holds_less_than_rate_times_latency():
    from mlsys import Hardware

    for student in CLASS:
        [task] = labs.designs("03-memory-wall", student)
        rate = int(task.text.split("It needs ")[1].split()[0])
        for device in ("V100", "A100", "H100"):
            least = (Hardware.Cloud[device].level().latency.m_as("ns")) * rate / 1e3  # ns x GB/s is bytes
            held = [
                task.build(**choice).cost
                for choice in task.choices()
                if choice["device"] == device and task.score(choice).meets
            ]
            assert all(each >= least * (1 - 1e-9) for each in held), (student, device)


def test_a_day_costs_its_calls_and_its_compiling():
    from mlsys.measure import stored_compile_results

    stored = {(f"{r.model}, batch {r.batch}", r.frozen): r for r in stored_compile_results()}
    [task] = labs.designs("07-compiler", CLASS[0])
    cases = [knob.label for knob in task.knobs]
    calls = [int(task.text.split(f"{case}, ")[1].split()[0].replace(",", "")) for case in cases]
    updates = int(re.search(r"change (\d+) times", task.text)[1])
    a, b, c, d = (stored[case, frozen] for case, frozen in zip(cases, (True, True, False, False), strict=True))
    seconds = calls[0] * a.compiled.median.m_as("s") + updates * a.compile_seconds
    seconds += calls[1] * b.compiled.median.m_as("s") + b.compile_seconds
    seconds += calls[2] * c.compiled.median.m_as("s") + c.compile_seconds + calls[3] * d.eager.median.m_as("s")
    built = task.build(first="frozen", second="frozen", third="plain", fourth="eager")
    assert built.cost == pytest.approx(seconds)


def test_weeks_gain_what_amdahls_law_allows():
    from mlsys.viz.views.explain import measured

    [task] = labs.designs("10-explain", CLASS[0])
    run = measured("litert, FP32")
    one = task.build(run="litert, FP32", compute=2.0, memory=1.0, launch=1.0, residual=1.0)
    assert one.cost == pytest.approx(run.total * (1 - run.shares["compute"] / 200))
    assert task.build(run="litert, FP32", compute=4.0, memory=8.0, launch=5.0, residual=2.5).fault
