"""Guides, verdicts and predictions: against all that could have been answered, and against what was measured."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from mlsys.errors import LogFileError
from mlsys.measure import Cold, attribute, stored_logs
from mlsys.measure.doubts import Limits, doubts
from mlsys.measure.hypotheses import fused_traffic, judge, judge_number, standard_claims
from mlsys.measure.networks.chains import net_of
from mlsys.measure.recommend.guide import INFEASIBLE, Requirement, feasible, guide
from mlsys.measure.recommend.platforms import Platform, normalised, published, read_platforms, winners
from mlsys.measure.recommend.portability import PortabilityPoint, leave_one_out, predict_on, published_points
from mlsys.measure.recommend.whatif import advice, what_ifs

from .conftest import make_log

pytest.importorskip("sklearn")
ROWS = [
    Platform("cpu", 52.0, 150.0, 1000.0, 92.0, 50.0), Platform("m7", 145.0, 18.0, 512.0, 90.5, 5.0),
    Platform("dsp", 98.0, 35.0, 1024.0, 90.5, 8.0), Platform("npu", 45.0, 12.0, 256.0, 89.0, 15.0),
]  # fmt: skip


# --- the guide --------------------------------------------------------------------------


def test_fifty_milliseconds_never_lead_to_a_row_of_fifty_two() -> None:
    without = ROWS[:3]
    assert guide(without, Requirement(latency_ms=50)).answer == INFEASIBLE
    assert guide(without, Requirement(latency_ms=51.999999)).answer == INFEASIBLE
    assert guide(without, Requirement(latency_ms=52)).answer == "cpu"
    assert guide(ROWS, Requirement(latency_ms=50)).answer == "npu"
    assert guide(ROWS, Requirement(latency_ms=50, accuracy=90)).answer == INFEASIBLE


def test_the_guide_is_right_on_any_rows_and_limits() -> None:
    """A search over all rows, written out, says the same; the answer always meets the requirement."""
    draw = np.random.default_rng(64)
    names = ("latency_ms", "energy_mj", "memory_kb", "accuracy", "cost_usd")
    for _ in range(120):
        rows = []
        for index in range(int(draw.integers(1, 6))):
            values = [None if draw.random() < 0.15 else float(draw.integers(1, 9)) for _ in names]
            rows.append(Platform(f"p{index}", *values))
        limited = draw.choice(names, int(draw.integers(1, 4)), replace=False)
        wanted = Requirement(
            **{str(name): float(draw.integers(1, 9)) + float(draw.choice([0, 0.5])) for name in limited}
        )
        advice = guide(rows, wanted)
        meets = [
            row for row in rows
            if all(
                getattr(row, name) is not None
                and (getattr(row, name) >= limit if name == "accuracy" else getattr(row, name) <= limit)
                for name, limit in wanted.requested.items()
            )
        ]  # fmt: skip
        assert meets == feasible(rows, wanted)
        assert advice.answer == advice.tree_answer
        assert (advice.answer == INFEASIBLE) == (not meets)
        if meets:
            assert advice.answer in {row.platform for row in meets}
            assert not advice.why[advice.answer]


def test_the_best_is_the_least_cost_times_energy() -> None:
    result = guide(ROWS, Requirement(latency_ms=1000))
    assert result.by == "cost_usd × energy_mj"
    assert result.answer == min(ROWS, key=lambda row: row.cost_usd * row.energy_mj).platform == "m7"
    assert "if latency_ms allows" in result.tree and "→ m7" in result.tree


@pytest.mark.parametrize(
    ("rows", "wanted", "words"),
    [
        ([], {"latency_ms": 1}, "`rows` is empty"),
        ([ROWS[0], ROWS[0]], {"latency_ms": 1}, "duplicate 'cpu'"),
        (ROWS, {}, "sets no limit"),
        (ROWS, {"latency_ms": 0}, "must be above 0"),
        (ROWS, {"energy_mj": float("nan")}, "must be above 0"),
        (ROWS, {"accuracy": 101}, "at most 100"),
    ],
)
def test_wrong_questions(rows, wanted, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        guide(rows, Requirement(**wanted))


def test_all_faults_of_a_requirement_in_one_pass() -> None:
    with pytest.raises(ValueError) as result:
        Requirement(latency_ms=-1, energy_mj=0, cost_usd=float("inf"))
    assert len(str(result.value).splitlines()) == 3


# --- platforms --------------------------------------------------------------------------


def test_published_boards_as_mlperf_tiny_has_them() -> None:
    """tiny_results_v1.2, ST: 88.590 inf/s and 1375.599 µJ on the H7A3, 23.175 inf/s and 1820.454 µJ on the L4R5."""
    rows = {row.platform.split()[0]: row for row in published()}
    assert rows["STM32H7A3"].latency_ms == pytest.approx(1000 / 88.590)
    assert rows["STM32H7A3"].energy_mj == pytest.approx(1.375599)
    assert rows["STM32L4R5"].power_mw == pytest.approx(1820.454 * 23.175 / 1000)
    assert rows["STM32U575"].energy_mj == pytest.approx(1.138534)
    assert all("mlcommons/tiny_results" in row.source for row in rows.values())


def test_normalised_is_one_for_the_best_in_either_direction() -> None:
    shares = normalised(ROWS)
    for name, best in winners(ROWS).items():
        assert shares[best][name] == 1
        assert all(0 < shares[row.platform][name] <= 1 for row in ROWS)
    assert winners(ROWS) == {
        "latency_ms": "npu", "energy_mj": "npu", "memory_kb": "npu", "accuracy": "cpu", "cost_usd": "m7",
    }  # fmt: skip


def test_rows_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("platform,latency_ms,energy_mj,memory_kb,accuracy,cost_usd\na,1,,3,90,\nb,2,1,,,\n")
    platforms = read_platforms(path)
    assert platforms[0].energy_mj is None and platforms[1].latency_ms == 2
    path.write_text(
        "platform,latency_ms,energy_mj,memory_kb,accuracy,cost_usd\na,-1,x,3,190,\na,nan,1,,,0\n,1,1,1,1,1\nb,1,1\n"
    )
    with pytest.raises(LogFileError) as result:
        read_platforms(path)
    lines = str(result.value).splitlines()
    places = [line.partition(", ")[2].partition(":")[0] for line in lines]
    assert places == ["line 2"] * 3 + ["line 3"] * 3 + ["line 4", "line 5"]
    path.write_text("platform,latency\na,1\n")
    with pytest.raises(LogFileError, match="the column latency_ms is missing"):
        read_platforms(path)


# --- verdicts ---------------------------------------------------------------------------


def runs(middle: float, spread: float, seed: int, shifts=(0.0, 0.0, 0.0)):
    draw = np.random.default_rng(seed)
    return make_log([list(draw.normal(middle * (1 + shift), spread, 120).clip(0.01)) for shift in shifts])


def test_clear_cases() -> None:
    slow, fast = runs(10, 0.3, 1), runs(3, 0.1, 2)
    assert judge("−60 %", slow, fast, 0.6).verdict == "pass"
    assert judge("−75 %", slow, fast, 0.75).verdict == "fail"
    verdict = judge("−60 %", slow, fast, 0.6)
    assert verdict.low < 0.7 < verdict.high and verdict.low == pytest.approx(0.7, abs=0.02)


def test_an_interval_covers_what_is_true_as_often_as_it_says() -> None:
    covered = sum(
        verdict.low <= 0.3 <= verdict.high
        for seed in range(20)
        for verdict in [judge("−30 %", runs(10, 1, 2 * seed), runs(7, 0.7, 2 * seed + 1), 0.3)]
    )
    assert covered >= 16  # of 20 at 95 %; fewer has a chance below one in three hundred


def test_runs_that_disagree_leave_it_undecided() -> None:
    slow, fast = runs(10, 0.1, 3), runs(9, 0.1, 4, shifts=(0.0, 0.0, 0.09))
    verdict = judge("−5 %", slow, fast, 0.05)
    assert verdict.low > 0.05 > min(verdict.runs)
    assert verdict.verdict == "undecided"


def test_traffic_of_fused_layers_by_hand() -> None:
    """tiny-cnn in INT8: outputs of conv 8×4×8, dw 8×4×8, pw 8×4×16; only dw and pw are a pair."""
    apart, inside, pairs = fused_traffic(net_of("tiny-cnn"), 1)
    assert apart - inside == 2 * (256 + 256 + 512)
    assert inside - pairs == 2 * 256
    assert judge_number("x", apart, inside, 0.3).reduction == pytest.approx(1 - inside / apart)
    with pytest.raises(ValueError, match="`before` must be > 0"):
        judge_number("x", 0, 1, 0.3)
    with pytest.raises(ValueError, match="`wanted` must be 0 to 1"):
        judge_number("x", 1, 1, 1.3)


def test_standard_claims_need_their_pairs() -> None:
    assert standard_claims([make_log()]) == []


# --- doubts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (make_log([[1.0 + 0.004 * index for index in range(100)]] * 3), "the latency rises by 33% over run 0"),
        (make_log([[1.0] * 97 + [3.0] * 3] * 3), "the slowest of a hundred take 3.0 times the median"),
        (make_log([[1.0] * 100, [1.0] * 100, [1.3] * 100]), "the medians of the runs lie 30% apart"),
        (make_log([[0.1] * 100] * 3), "the first inference of run 0 took 20 times the median"),
        (make_log([[1.0] * 100]), "1 run(s): the spread between runs needs at least three"),
        (make_log([[1.0] * 90 + [1.2] * 10] * 3), "p95 lies 20% above the median"),
        (make_log(environment={"throttled_during": 3}), "the CPU throttled 3 times"),
        (make_log(environment={"debug": ["Python is a debug build"]}), "debug build: Python is a debug build"),
        (make_log(environment={"load": 7.0, "cores": 2}), "the machine was busy at the start: load 7.0 on 2 cores"),
        (make_log(energy={"source": "x", "reason": "", "rate_hz": 3.6}), "power was sampled 4 times per second"),
        (make_log(malformed=("line 3: x",)), "1 lines of the device could not be read"),
    ],
)
def test_every_doubt_is_raised(log, words: str) -> None:
    assert any(words in text for text in doubts(log)), doubts(log)


def test_a_run_of_very_many_inferences_is_looked_at_for_a_rise() -> None:
    """A line through each pair of them would take 80 GB."""
    draw = np.random.default_rng(1)
    rising = draw.normal(1, 0.01, 100_000) + np.linspace(0, 0.2, 100_000)
    assert any("the latency rises by 18% over run 0" in text for text in doubts(make_log([list(rising)])))


def test_a_clean_log_raises_none() -> None:
    draw = np.random.default_rng(5)
    assert doubts(make_log([list(draw.normal(1, 0.01, 200)) for _ in range(3)])) == ()


def test_at_its_limit_nothing_is_doubted_yet() -> None:
    """The median is 1 ms, a first inference takes 10 ms, p99 is 2 ms, and so on: each limit is met, none passed."""
    runs = [[1.0, 1.05] * 49 + [1.0, 2.0]] * 2 + [[1.05] * 100]
    at_limit = make_log(
        runs, colds=(Cold(0, 5.0, 10.0),), energy={"source": "x", "reason": "", "rate_hz": 1000},
        environment={"throttled_during": 0, "load": 2.5, "cores": 2},
    )  # fmt: skip
    assert doubts(at_limit, Limits(first=10 / at_limit.median, tail=at_limit.percentile(99) / at_limit.median)) == ()
    assert len(doubts(at_limit, Limits(first=9.0, tail=0.9, spread=0.01, tight=-0.01, rate=1001.0))) == 5


def test_advice_leaves_out_what_gains_less_than_five_percent() -> None:
    left_out = 0
    for log in stored_logs().values():
        attribution = attribute(log)
        gains = [gain for gain in what_ifs(attribution, log) if gain.applies]
        worth = sorted((gain for gain in gains if gain.speedup > 1.05), key=lambda gain: -gain.speedup)
        assert [line.split(":")[0] for line in advice(attribution, log)] == [gain.change for gain in worth[:3]]
        left_out += len(gains) - len(worth)
    assert left_out >= 5


# --- portability ------------------------------------------------------------------------


def test_a_law_that_holds_is_found_and_beyond_it_nothing_is_said() -> None:
    points = [
        PortabilityPoint(f"p{index}", "M7", "net", peak, 6.0 / peak) for index, peak in enumerate((1.0, 2.0, 4.0))
    ]
    assert predict_on(points, "net", peak=3.0, core="M7").time_ms == pytest.approx(2.0)
    assert "outside" in predict_on(points, "net", peak=8.0, core="M7").refused
    assert "outside" in predict_on(points, "net", peak=0.5, core="M7").refused
    assert "no measured platform has a M4" in predict_on(points, "net", peak=2.0, core="M4").refused
    assert "only 0 other" in predict_on(points, "other", peak=2.0, core="M7").refused
    by_platform = {left_out.platform: left_out for left_out in leave_one_out(points)}
    assert by_platform["p1"].error == pytest.approx(0) and by_platform["p0"].refused and by_platform["p2"].refused
    with pytest.raises(ValueError, match="`peak` must be above 0"):
        predict_on(points, "net", peak=0, core="M7")


def test_no_platform_is_predicted_from_itself() -> None:
    points = published_points()
    for name in {point.platform for point in points}:
        changed = [
            PortabilityPoint(p.platform, p.core, p.network, p.peak, p.time_ms * (100 if p.platform == name else 1))
            for p in points
        ]
        for before, after in zip(leave_one_out(points), leave_one_out(changed), strict=True):
            if before.platform == name:
                assert before.time_ms == after.time_ms and name not in before.learnt_from


def test_enough_is_predicted_and_enough_refused() -> None:
    left_out = leave_one_out(published_points())
    errors = [abs(point.error) for point in left_out if point.error is not None]
    assert len(errors) >= 12 and 0.05 < np.median(errors) < 0.8
    assert len({point.platform for point in left_out}) >= 5
    assert all(point.refused for point in left_out if "M0+" in point.platform)
    assert list(itertools.compress(left_out, [point.error is None and not point.refused for point in left_out])) == []
