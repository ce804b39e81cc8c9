"""A number remembers where it came from, whatever is done to it."""

import contextvars
import dataclasses
import operator
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mlsys import Hardware, formulas, provenance
from mlsys.provenance import (
    Fact,
    active_whatifs,
    extremes,
    perturbed,
    recording,
    remembered,
    traced,
    unrecorded,
    used_facts,
)
from mlsys.testing import assert_depends_on, assert_quantity_close
from mlsys.units import Q_, Quantity

PEAK, BANDWIDTH = "A100_80GB/peaks/fp16/matrix/dense", "A100_80GB/memory/HBM/bandwidth"


def peak() -> Quantity:
    return Hardware.Cloud.A100.peak("fp16")


def bandwidth() -> Quantity:
    return Hardware.Cloud.A100.memory_bw


def made(name: str, value: float, unit: str) -> Quantity:
    """Return a quantity that is a fact of its own."""
    quantity = Q_(value, unit)
    quantity._origin = Fact(name, meaning="made up", source="this test", date="2026")
    return quantity


# --- no number without a birth certificate -------------------------------------------


@pytest.mark.parametrize("missing", ["name", "meaning", "source", "date"])
@pytest.mark.parametrize("blank", ["", "   ", None, 7])
def test_a_fact_without_its_papers_is_refused(missing: str, blank: object) -> None:
    papers = {"name": "PEAK", "meaning": "dense peak", "source": "datasheet", "date": "2020"} | {missing: blank}
    with pytest.raises(ValueError, match=f"`{missing}` must"):
        Fact(**papers)  # type: ignore[arg-type]


@pytest.mark.parametrize("spread", [-1, float("nan"), float("inf")])
def test_uncertainty_is_finite_and_not_negative(spread: float) -> None:
    with pytest.raises(ValueError, match="`uncertainty` must be a finite number"):
        Fact("PEAK", "dense peak", "datasheet", "2020", uncertainty=spread)


def test_confidence_is_one_of_the_known_words() -> None:
    with pytest.raises(ValueError, match="verified, secondary, unverified, derived, defined"):
        Fact("PEAK", "dense peak", "datasheet", "2020", confidence="sure")


def test_a_fact_shows_its_pedigree() -> None:
    shown = repr(bandwidth())
    for part in (BANDWIDTH, "2039 GB/s", "meaning", "source", "uncertainty", "confidence"):
        assert part in shown
    exact = Fact("c", "speed of light", "SI brochure", "2019", uncertainty=0, confidence="defined")
    assert "exact" in exact.describe(Q_(299_792_458, "m/s"))


# --- facts flow ------------------------------------------------------------------------

KEEPS_ONE: dict[str, Callable[[Quantity], object]] = {
    "the same": lambda q: q,
    "other unit": lambda q: q.to("byte/s"),
    "base unit": lambda q: q.to_base_units(),
    "root unit": lambda q: q.to_root_units(),
    "compact": lambda q: q.to_compact(),
    "reduced": lambda q: q.to_reduced_units(),
    "times number": lambda q: 2 * q,
    "number times": lambda q: q * 2,
    "times numpy number": lambda q: np.float64(2) * q,
    "times array": lambda q: np.arange(3.0) * q,
    "array over": lambda q: np.arange(1.0, 3.0) / q,
    "one over": lambda q: 1 / q,
    "over literal": lambda q: q / Q_(3, "GB"),
    "literal over": lambda q: Q_(3, "GB") / q,
    "plus literal": lambda q: q + Q_(1, "GB/s"),
    "literal minus": lambda q: Q_(1, "GB/s") - q,
    "power": lambda q: q**2,
    "negative": lambda q: -q,
    "absolute": abs,
    "rounded": lambda q: round(q, -1),
    "whole times": lambda q: q // Q_(7, "GB/s"),
    "remainder": lambda q: q % Q_(7, "GB/s"),
    "sum of a list": lambda q: sum([q, q], Q_(0, "GB/s")),
    "larger of two": lambda q: max(q, Q_(1, "GB/s")),
    "numpy larger of two": lambda q: np.maximum(q, Q_(1, "GB/s")),
    "numpy sum": lambda q: np.sum(np.ones(3) * q),
    "array method": lambda q: (np.ones(3) * q).max(),
    "element": lambda q: (np.ones(3) * q)[1],
    "slice": lambda q: (np.ones(3) * q)[1:],
    "loop": lambda q: list(np.ones(3) * q)[2],
    "stack": lambda q: np.concatenate([np.ones(2) * q, Q_(np.ones(2), "GB/s")]),
    "in place plus": lambda q: operator.iadd(Q_(1, "GB/s"), q),
    "in place minus": lambda q: operator.isub(Q_(1, "GB/s"), q),
    "in place times": lambda q: operator.imul(Q_(1, "s"), q),
    "in place over": lambda q: operator.itruediv(Q_(1, "GB"), q),
    "pickled": lambda q: pickle.loads(pickle.dumps(2 * q)),
}


@pytest.mark.parametrize("how", KEEPS_ONE)
def test_a_fact_survives(how: str) -> None:
    assert_depends_on(KEEPS_ONE[how](bandwidth()), BANDWIDTH)


@pytest.mark.parametrize("how", KEEPS_ONE)
def test_nothing_is_invented_for_literals(how: str) -> None:
    assert_depends_on(KEEPS_ONE[how](Q_(2039, "GB/s")))


@pytest.mark.parametrize(
    ("operation", "unit", "other"),
    [
        (operator.mul, "byte", "s"),
        (operator.truediv, "byte", "s"),
        (operator.add, "byte", "GB"),
        (operator.sub, "byte", "GB"),
        (operator.mod, "byte", "GB"),
        (operator.floordiv, "byte", "GB"),
        (operator.iadd, "byte", "GB"),
    ],
)
def test_two_operands_give_two_facts_in_their_order(operation: Callable, unit: str, other: str) -> None:
    result = operation(made("first", 5, unit), made("second", 3, other))
    assert [fact.name for fact in result.facts] == ["first", "second"]


def test_arrays_broadcast_provenance() -> None:
    column, row = made("rows", 2, "byte") * np.ones((3, 1)), np.ones((1, 4)) * made("columns", 3, "byte")
    table = column + row
    assert table.shape == (3, 4)
    assert_depends_on(table, "rows", "columns")
    assert_depends_on(np.max(table[1]), "rows", "columns")


FORMULAS = {
    "ridge_point": lambda: formulas.ridge_point(peak(), bandwidth()),
    "attainable_performance": lambda: formulas.attainable_performance(Q_(3, "FLOP/byte"), peak(), bandwidth()),
    "roofline_time": lambda: formulas.roofline_time(Q_(1, "GFLOP"), Q_(1, "GB"), peak(), bandwidth()),
    "by keyword": lambda: formulas.ridge_point(bandwidth=bandwidth(), peak=peak()),
    "of arrays": lambda: formulas.ridge_point(peak() * np.ones(2), bandwidth())[0],
    "sequential_time": lambda: formulas.sequential_time(Q_(1, "GB"), bandwidth(), Q_(1, "GFLOP"), peak(), 0.5),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_hand_on_the_facts_of_their_arguments(name: str) -> None:
    assert_depends_on(FORMULAS[name](), PEAK, BANDWIDTH)


def test_the_sum_is_told_one_level_deep() -> None:
    assert (peak() / bandwidth()).origin.expression() == "312 TFLOP/s ÷ 2039 GB/s"
    assert formulas.ridge_point(peak(), bandwidth()).origin.expression() == (
        "ridge_point(peak=312 TFLOP/s, bandwidth=2039 GB/s)"
    )
    assert (np.ones(3) * bandwidth()).origin.expression() == "[3 values] × 2039 GB/s"
    assert (3 / bandwidth()).origin.expression() == "3 ÷ 2039 GB/s", "in the order in which it was written"
    assert (Q_(1, "GB/s") - bandwidth()).origin.expression() == "1 GB/s − 2039 GB/s"
    assert bandwidth().origin.expression() == f"the fact {BANDWIDTH}"


def test_each_fact_is_named_once_and_sources_too() -> None:
    doubled = bandwidth() + bandwidth()
    assert [fact.name for fact in doubled.facts] == [BANDWIDTH]
    assert doubled.source == bandwidth().origin.source
    assert [fact.name for fact in used_facts(doubled, peak(), 3, "text")] == [BANDWIDTH, PEAK]


def test_a_running_sum_may_be_long() -> None:
    total = Q_(0, "GB/s")
    for _ in range(5000):
        total += bandwidth()
    assert_depends_on(total, BANDWIDTH)


# --- reading -----------------------------------------------------------------------------


def test_recording_notes_what_is_read_and_only_inside() -> None:
    peak()
    with recording() as outer:
        bandwidth()
        with recording() as inner:
            peak()
        repr(Hardware.Cloud.V100)
    _ = Hardware.Cloud.A100.tdp
    assert list(inner) == [PEAK]
    assert list(outer) == [BANDWIDTH, PEAK]
    assert_quantity_close(outer[PEAK], Q_(312, "TFLOP/s"))


def test_recording_ends_when_the_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), recording() as seen:
        1 / 0  # noqa: B018
    peak()
    assert seen == {}


def test_what_if_reaches_every_result_and_leaves_no_trace() -> None:
    before = formulas.ridge_point(peak(), bandwidth())
    with perturbed(BANDWIDTH, 1.01):
        assert_quantity_close(bandwidth(), 1.01 * Q_(2039, "GB/s"))
        assert_quantity_close(peak(), Q_(312, "TFLOP/s"))
        assert_quantity_close(Hardware.Cloud.A100.ridge_point("fp16"), before / 1.01)
        with perturbed(BANDWIDTH, 1.01):
            assert_quantity_close(bandwidth(), 1.01**2 * Q_(2039, "GB/s"))
        assert_depends_on(bandwidth(), BANDWIDTH)
    assert_quantity_close(bandwidth(), Q_(2039, "GB/s"))
    with pytest.raises(ZeroDivisionError), perturbed(BANDWIDTH, 2):
        1 / 0  # noqa: B018
    assert_quantity_close(bandwidth(), Q_(2039, "GB/s"))


def test_a_fact_handed_out_twice_is_changed_once() -> None:
    with perturbed(BANDWIDTH, 2):
        assert_quantity_close(provenance.read(bandwidth()), Q_(4078, "GB/s"))


def test_threads_do_not_hear_each_other() -> None:
    """Two threads record and perturb at once; before, one heard the other, or lost what it read itself."""
    together, answers = threading.Barrier(2, timeout=60), {}

    def worker(name: str, factor: float, ask: Callable[[], object]) -> None:
        with recording() as seen, perturbed(BANDWIDTH, factor):
            together.wait()
            ask()
            with unrecorded():
                together.wait()
                value = bandwidth().magnitude
                together.wait()
            answers[name] = list(seen), value, active_whatifs()

    threads = [
        threading.Thread(target=worker, args=("peak", 2, peak)),
        threading.Thread(target=worker, args=("bandwidth", 3, bandwidth)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {
        "peak": ([PEAK], 4078, ((BANDWIDTH, 2),)),
        "bandwidth": ([BANDWIDTH], 6117, ((BANDWIDTH, 3),)),
    }
    assert active_whatifs() == ()


def test_a_thread_in_a_copy_of_the_context_is_part_of_the_block() -> None:
    with recording() as seen, perturbed(BANDWIDTH, 2), ThreadPoolExecutor(1) as pool:
        value = pool.submit(contextvars.copy_context().run, bandwidth).result()
    assert value.magnitude == 4078 and list(seen) == [BANDWIDTH]


def test_a_page_hears_what_is_kept_alike_the_first_time_and_the_next() -> None:
    @provenance.remembered
    def bandwidth(name: str) -> float:
        return float(Hardware[name].memory_bw.magnitude)

    reported = []
    for _ in range(2):
        seen = provenance.Seen()
        stop = provenance.listen(seen)
        bandwidth("A100")
        stop()
        reported.append((list(seen), seen.direct))
    assert reported[0] == reported[1] == (["A100_80GB/memory/HBM/bandwidth"], {"A100_80GB/memory/HBM/bandwidth"})


def test_an_open_page_hears_every_thread_and_every_context() -> None:
    seen = provenance.Seen()
    stop = provenance.listen(seen)
    try:
        contextvars.Context().run(bandwidth)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(peak).result()
        with unrecorded():
            _ = Hardware.Cloud.A100.tdp
    finally:
        stop()
    assert list(seen) == [BANDWIDTH, PEAK]


def test_what_is_remembered_is_kept_for_each_what_if_and_tells_its_facts() -> None:
    runs: list[float] = []

    @remembered
    def twice(name: str, *, times: int = 2) -> float:
        runs.append(times)
        return float(times * Hardware[name].memory_bw.magnitude)

    for factor in (1, 2, 1, 2, 3):
        with perturbed(BANDWIDTH, factor), recording() as seen:
            assert twice("A100") == 4078 * factor
        assert list(seen) == [BANDWIDTH]
    with perturbed(PEAK, 2):  # a fact that it does not read
        assert twice("A100") == 4078
    assert len(runs) == 3, "once for each of the factors, of which 1 is none"


def _in_a_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def test_the_environment_switch_changes_a_fact_from_outside() -> None:
    code = """
from mlsys import Hardware
a100 = Hardware.Cloud.A100
print(a100.memory_bw.m_as("GB/s"), a100.peak("fp16").m_as("TFLOP/s"), Hardware.Cloud.V100.memory_bw.m_as("GB/s"))
"""
    switch = f"{BANDWIDTH}=2,A100_80GB/peaks/fp16/matrix/dense=0.5"
    reported = _in_a_new_process(code, MLSYS_PERTURB=switch)
    assert [float(x) for x in reported.stdout.split()] == [4078, 156, 900]
    untold = _in_a_new_process(code, MLSYS_PERTURB="")
    assert [float(x) for x in untold.stdout.split()] == [2039, 312, 900]


@pytest.mark.parametrize("switch", ["nonsense", "name=", "name=fast"])
def test_a_malformed_switch_says_how_to_write_it(switch: str) -> None:
    failed = _in_a_new_process("import mlsys.provenance", MLSYS_PERTURB=switch)
    assert failed.returncode
    assert "MLSYS_PERTURB must be like" in failed.stderr
    assert repr(switch) in failed.stderr


def test_names_of_facts_are_unique_over_all_devices() -> None:
    names = [quantity.origin.name for device in Hardware for quantity in device.recorded()]
    assert len(names) == len(set(names)) > 100


@dataclasses.dataclass(frozen=True)
class _Request:
    name: str


@dataclasses.dataclass(frozen=True)
class _Answered:
    request: _Request
    watts: float


_KEPT = _Request("power")


@traced
def _powered(name: str) -> tuple[_Answered, ...]:
    return (_Answered(_KEPT, float(Hardware[name].tdp.m_as("W"))),)


def test_what_two_answers_share_takes_no_fact_from_the_sum_of_either() -> None:
    """A question that is kept goes into many answers; which model was called first must not matter."""
    (first,), (second,) = (_powered(name) for name in ("A100", "T4"))
    for answer, fact in ((first, "A100_80GB/power/tdp"), (second, "T4/power/tdp")):
        assert [set.name for set in answer._origin.sets()] == [fact]  # type: ignore[attr-defined]


def test_an_extreme_names_what_would_win_under_a_what_if() -> None:
    def least() -> Quantity:
        return extremes([Hardware["T4"].memory_bw, bandwidth()])[0]

    before = least()
    assert [fact.name for fact in before.origin.compared()] == [BANDWIDTH]
    with perturbed(BANDWIDTH, 0.01):
        after = least()
    assert after.m_as("GB/s") < before.m_as("GB/s")
    assert [fact.name for fact in after.origin.sets()] == [BANDWIDTH]
