"""Copies beside computation: the closed form is what engines take event by event, and bounds hold."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Q_, formulas
from mlsys.errors import ArgumentError
from mlsys.models.overlap import overlapped_steps, simulate_steps

times = st.floats(0, 1e3, allow_nan=False)


@given(times, times, st.integers(1, 60), st.integers(2, 5))
def test_two_buffers_or_more_take_the_closed_form(copy: float, compute: float, steps: int, buffers: int) -> None:
    line = simulate_steps(copy, compute, steps, buffers)
    closed = formulas.double_buffered_time.bare(copy, compute, steps)
    assert max(each.end for each in line) == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(times, times, st.integers(1, 60))
def test_one_buffer_is_the_sum_and_overlap_never_takes_longer(copy: float, compute: float, steps: int) -> None:
    alone = max(each.end for each in simulate_steps(copy, compute, steps, 1))
    assert alone == pytest.approx(steps * (copy + compute), rel=1e-9, abs=1e-12)
    both = formulas.double_buffered_time.bare(copy, compute, steps)
    assert alone / 2 <= both * (1 + 1e-9) and both <= alone * (1 + 1e-9) + 1e-12


@given(times, times, st.integers(1, 30), st.integers(1, 4))
def test_an_engine_does_one_thing_at_a_time(copy: float, compute: float, steps: int, buffers: int) -> None:
    line = simulate_steps(copy, compute, steps, buffers)
    for engine in ("copy", "compute"):
        own = [each for each in line if each.engine == engine]
        assert all(first.end <= second.start + 1e-9 for first, second in itertools.pairwise(own))
        assert len(own) == steps


@given(times, times, st.floats(0, 1))
def test_partial_overlap_lies_between_none_and_all(copy: float, compute: float, overlap: float) -> None:
    part = formulas.partial_overlap_time.bare(copy, compute, overlap)
    assert max(copy, compute) - 1e-9 <= part <= copy + compute + 1e-9


def test_a_batch_of_images_over_pcie_4() -> None:
    """256 RGB images of 224 x 224 bytes are 38.5 MB: 1.5 ms at the 26 GB/s that PCIe 4 attains."""
    images = Q_(256 * 3 * 224 * 224, "byte")
    assert images.m_as("MB") == pytest.approx(38.5, abs=0.05)
    result = overlapped_steps("DGX_A100", images, Q_(1, "ms"), steps=10, attained=26 / 31.5)
    assert result.figures["copy"].m_as("ms") == pytest.approx(1.48, abs=0.01)
    assert result.bound_by == "copy" and result.step_time == result.figures["copy"]
    assert sum(part.m_as("s") for part in result.parts.values()) == pytest.approx(result.time.m_as("s"))
    assert "A100_80GB/links/PCIe/per_direction" in {fact.name for fact in result.facts}


def test_pageable_memory_and_one_buffer_hide_nothing() -> None:
    pinned = overlapped_steps("DGX_H100", Q_(1, "GB"), Q_(20, "ms"), steps=5)
    pageable = overlapped_steps("DGX_H100", Q_(1, "GB"), Q_(20, "ms"), steps=5, memory="pageable")
    single = overlapped_steps("DGX_H100", Q_(1, "GB"), Q_(20, "ms"), steps=5, buffers=1)
    assert pinned.time < single.time < pageable.time
    assert pageable.time == pageable.sequential_time and single.time == single.sequential_time
    half = overlapped_steps("DGX_H100", Q_(1, "GB"), Q_(20, "ms"), steps=5, copies_at_once=2)
    assert half.figures["copy"].m_as("s") == pytest.approx(2 * pinned.figures["copy"].m_as("s"))


def test_nothing_is_copied_where_memory_is_shared() -> None:
    result = overlapped_steps("Jetson_AGX_Orin_alone", Q_(1, "GB"), Q_(20, "ms"), steps=5)
    assert result.time.m_as("ms") == pytest.approx(100)
    pageable = overlapped_steps("Jetson_AGX_Orin_alone", Q_(1, "GB"), Q_(20, "ms"), steps=5, memory="pageable")
    assert pageable.time == result.time and pageable.assumptions == result.assumptions
    with pytest.raises(ArgumentError, match="share the memory"):
        overlapped_steps("Jetson_AGX_Orin_alone", Q_(1, "GB"), Q_(0, "s"))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="both zero"):
        overlapped_steps("A100", Q_(0, "byte"), Q_(0, "s"))
    with pytest.raises(ArgumentError, match="goes with memory"):
        overlapped_steps("A100", Q_(1, "GB"), Q_(1, "s"), staging_bandwidth=Q_(1, "GB/s"))
