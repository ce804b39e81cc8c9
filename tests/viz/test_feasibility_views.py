"""Figures of feasibility: lines and marks stand where the verdicts say."""

import pytest

from mlsys import Q_, Hardware, viz
from mlsys.errors import ArgumentError
from mlsys.models.feasibility import Feasibility, LanguageWorkload, feasible
from mlsys.workloads.zoo import language_model


def _verdict(batch: int) -> Feasibility:
    work = LanguageWorkload(language_model("llama-2-7b"), sequence=1024, batch=batch)
    return feasible("H100", work, "TPOT<20 ms, cost<1 USD", rent=Q_(2, "USD/hour"))


def test_memory_rises_with_the_sequence_and_what_does_not_fit_is_shaded(ax) -> None:
    needed = {"one": {0: Q_(14, "GB"), 1000: Q_(14.5, "GB")}, "two": {0: Q_(14, "GB"), 1000: Q_(15_000, "MB")}}
    viz.memory_by_sequence(ax, needed, Q_(16, "GB"))
    assert [list(line.get_ydata()) for line in ax.lines] == [[14, 14.5], [14, 15]]
    (shade,) = ax.patches
    assert shade.get_y() == 16 and shade.get_y() + shade.get_height() == ax.get_ylim()[1]
    assert ax.texts[0].get_text().endswith("more than 16 GB")


def test_times_of_a_step_are_those_of_the_checks_and_the_passing_batches_are_shaded(ax) -> None:
    verdicts = {batch: _verdict(batch) for batch in (1, 16, 64, 256)}
    viz.step_time_by_batch(ax, verdicts)
    floor, _, estimate, limit, memory = ax.lines
    for line, name in ((floor, "bandwidth"), (estimate, "latency")):
        expected = [1e3 * verdict.check(name).value for verdict in verdicts.values()]
        assert list(line.get_ydata()) == pytest.approx(expected)
    assert set(limit.get_ydata()) == {20.0}
    assert set(memory.get_xdata()) == {verdicts[1].check("memory").largest_batch}
    assert not _verdict(1) and _verdict(64) and not _verdict(256), "too dear, right, too much"
    passing = [batch for batch, verdict in verdicts.items() if verdict]
    (shade,) = ax.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (passing[0], passing[-1])
    with pytest.raises(ArgumentError, match="two batches"):
        viz.step_time_by_batch(ax, {1: verdicts[1]})


def test_a_capacity_is_that_of_the_device(ax) -> None:
    card = Hardware.Cloud.H100
    viz.memory_by_sequence(ax, {"one": {1: Q_(14, "GB"), 2: Q_(15, "GB")}}, card.memory_capacity)
    assert ax.patches[0].get_y() == card.memory_capacity.m_as("GB")
