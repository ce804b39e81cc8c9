"""What must hold of systolic arrays, whatever the sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.models.systolic import count_systolic, energy_baselines, folds, stalled_cycles
from mlsys.models.systolic.scalesim import dram_writes

sizes = st.integers(1, 5000)
sides = st.integers(1, 256)
shapes = st.tuples(sizes, sizes, sizes, sides, sides)
dataflows = st.sampled_from(["ws", "os", "is"])
overlaps = st.sampled_from(["none", "load", "full"])
words = st.none() | st.integers(2, 10**7)
A_HAIR = 1 + 1e-9


@given(shapes, dataflows, overlaps)
def test_no_array_multiplies_more_than_it_has_places(shape: tuple, dataflow: str, overlap: str) -> None:
    counts = count_systolic(*shape, dataflow, fold_overlap=overlap)
    assert 0 < counts.utilisation <= counts.mapping_efficiency * A_HAIR <= A_HAIR
    if overlap == "full":
        assert counts.compute_utilisation is None
    else:  # a fold streams in some of the cycles, and never outside them
        assert counts.utilisation <= counts.compute_utilisation * A_HAIR
        assert counts.compute_utilisation <= counts.mapping_efficiency * A_HAIR
    assert counts.cycles * shape[3] * shape[4] >= counts.macs


@given(shapes, dataflows)
def test_overlap_helps_and_leaves_the_work_alone(shape: tuple, dataflow: str) -> None:
    none, load, full = (count_systolic(*shape, dataflow, fold_overlap=overlap) for overlap in ("none", "load", "full"))
    assert none.cycles >= load.cycles >= full.cycles
    assert none.sram == load.sram == full.sram and none.register_writes == full.register_writes


@given(shapes, dataflows, st.integers(0, 2), st.integers(1, 100))
def test_a_larger_product_is_never_faster(shape: tuple, dataflow: str, which: int, more: int) -> None:
    grown = list(shape)
    grown[which] += more
    before, after = count_systolic(*shape, dataflow), count_systolic(*grown, dataflow)
    assert after.cycles >= before.cycles and after.sram.total > before.sram.total


@given(shapes, overlaps)
def test_keeping_inputs_is_keeping_weights_of_the_product_turned_around(shape: tuple, overlap: str) -> None:
    """C = A·B is Cᵀ = Bᵀ·Aᵀ: M and N change places, and so do the operands."""
    m, n, k, rows, columns = shape
    inputs, weights = (
        count_systolic(*shape, "is", fold_overlap=overlap),
        count_systolic(n, m, k, rows, columns, fold_overlap=overlap),
    )
    assert inputs.cycles == weights.cycles and inputs.register_writes == weights.register_writes
    assert inputs.sram.ifmap_reads == weights.sram.filter_reads
    assert inputs.sram.filter_reads == weights.sram.ifmap_reads
    assert inputs.sram.ofmap_writes == weights.sram.ofmap_writes


@given(shapes, dataflows, words, words, words)
def test_memory_moves_what_it_must_and_no_more_than_the_array_asks(
    shape: tuple, dataflow: str, ifmap: int | None, filter_: int | None, ofmap: int | None
) -> None:
    m, n, k, *_ = shape
    counts = count_systolic(*shape, dataflow, ifmap_words=ifmap, filter_words=filter_, ofmap_words=ofmap)
    for moved, least, most in (
        (counts.dram.ifmap_reads, m * k, counts.sram.ifmap_reads),
        (counts.dram.filter_reads, k * n, counts.sram.filter_reads),
        (counts.dram.ofmap_writes, m * n, counts.sram.ofmap_writes),
        (counts.dram.ofmap_reads, 0, counts.sram.ofmap_reads),
    ):
        assert least <= moved <= most
    assert counts.dram.ofmap_writes - counts.dram.ofmap_reads == m * n, "each output stays written once"


@given(shapes, dataflows, st.integers(2, 10**6), st.integers(1, 10**6))
def test_a_larger_buffer_never_moves_more(shape: tuple, dataflow: str, size: int, more: int) -> None:
    small, large = (
        count_systolic(*shape, dataflow, ifmap_words=room, filter_words=room, ofmap_words=room).dram
        for room in (size, size + more)
    )
    assert large.total <= small.total


@given(shapes, dataflows, overlaps, st.floats(0, 1e9), st.floats(0, 1e9), st.integers(1, 16))
def test_time_is_never_below_computing_nor_below_moving(
    shape: tuple, dataflow: str, overlap: str, reads: float, writes: float, arrays: int
) -> None:
    cut = folds(*shape, dataflow)
    computing, whole = stalled_cycles(cut, reads, writes, overlap, arrays)
    assert whole * A_HAIR >= computing
    assert whole * A_HAIR >= reads + writes
    assert whole <= (computing + reads + writes) * A_HAIR, "and never worse than one after the other"
    assert computing * arrays * shape[3] * shape[4] * A_HAIR >= cut.macs


@given(shapes, dataflows, overlaps, st.floats(0, 1e6), st.floats(0, 1e6))
def test_stalls_are_those_of_two_buffers_one_after_the_other(
    shape: tuple, dataflow: str, overlap: str, reads: float, writes: float
) -> None:
    """A timeline of rounds: each waits for its delivery; memory first takes back, then delivers."""
    cut = folds(*shape, dataflow)
    if cut.count > 2000:
        return
    deliver, collect = reads / cut.count, writes / cut.count
    now = deliver
    for fold in range(cut.count):
        busy = cut.fold_cycles if fold == cut.count - 1 else cut.step(overlap)
        memory = (collect if fold else 0) + (deliver if fold < cut.count - 1 else 0)
        now += max(busy, memory)
    assert stalled_cycles(cut, reads, writes, overlap)[1] == pytest.approx(now + collect, rel=1e-9)


@given(st.integers(1, 512), st.integers(1, 512))
def test_energy_falls_with_the_side_and_the_baselines_keep_their_order(side: int, more: int) -> None:
    straw, accumulator, _, array = energy_baselines(side)
    assert straw.total > accumulator.total >= array.total > energy_baselines(side + more)[-1].total
    assert array.total > array.parts["arithmetic"]


@given(st.integers(1, 200_000), st.integers(1, 300), st.integers(2, 8))
def test_padding_of_scalesim_adds_and_never_loses(total: int, columns: int, kilobytes: int) -> None:
    moved = dram_writes(total, columns, 1024 * kilobytes)
    assert total <= moved < total + columns * (2 + 2 * total // (512 * kilobytes))
