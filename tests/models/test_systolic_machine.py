"""The machine that moves values: against numpy, against its compiled twin, and the closed forms against it."""

import itertools
from collections import OrderedDict

import numpy as np
import pytest

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models.systolic import (
    activity,
    conv2d_matrices,
    count_systolic,
    dram_accesses,
    simulate_array,
    simulate_fast,
)
from mlsys.models.systolic.machine import Run
from sampled import drawn

DATAFLOWS, OVERLAPS = ("ws", "os", "is"), ("none", "load", "full")
CASES = 10_000


def operands(rng: np.random.Generator, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(-9, 10, (m, k)), rng.integers(-9, 10, (k, n))


def buffers(rng: np.random.Generator, most: int) -> dict[str, int | None]:
    """Return buffers of all kinds: none, without limit, too small, large enough."""
    chosen = [None if rng.random() < 0.2 else int(rng.integers(1, most)) for _ in range(3)]
    return dict(zip(("ifmap_words", "filter_words", "ofmap_words"), chosen, strict=True))


def misses_of_lru(trace: np.ndarray, words: int | None) -> int:
    """Count, with a plain ordered dictionary, what half of a double buffer does not hold when it is read."""
    held: OrderedDict[int, None] = OrderedDict()
    room, misses = len(trace) + 1 if words is None else words // 2, 0
    for address in trace[np.argsort(trace[:, 0], kind="stable"), 1].tolist():
        misses += address not in held
        held[address] = held.pop(address, None)
        while len(held) > room:
            held.popitem(last=False)
    return misses


def assert_closed_forms(run: Run, case: tuple, moved: object, sizes: dict[str, int | None]) -> None:
    *shape, dataflow, overlap = case
    counts = count_systolic(*shape, dataflow, fold_overlap=overlap, **sizes)
    assert run.cycles == counts.cycles, case
    assert run.sram == counts.sram, case
    assert run.register_writes == counts.register_writes, case
    assert moved == counts.dram, (case, sizes)
    assert run.activity.sum() == counts.macs, case
    assert np.array_equal(run.activity, activity(counts.folds)), case


@pytest.mark.exhaustive
def test_ten_thousand_products_equal_their_closed_forms() -> None:
    """Cycles, every PE's activity, SRAM, DRAM and register accesses: all exact, fringes included."""
    kinds = list(itertools.product(DATAFLOWS, OVERLAPS))
    cases = drawn(range(CASES), 1500, "products on the machine")
    fringes = 0
    for number in cases:
        dataflow, overlap = kinds[number % len(kinds)]
        rng = np.random.default_rng(number)
        m, n, k, rows, columns = (int(size) for size in (*rng.integers(1, 41, 3), *rng.integers(1, 9, 2)))
        a, b = operands(rng, m, n, k)
        run = simulate_fast(a, b, rows, columns, dataflow, overlap, trace=True)
        assert np.array_equal(run.product, a @ b), (m, n, k, rows, columns, dataflow, overlap)
        sizes = buffers(rng, 2000)
        moved = dram_accesses(run, *sizes.values())
        assert_closed_forms(run, (m, n, k, rows, columns, dataflow, overlap), moved, sizes)
        fringes += (m % rows > 0) + (n % columns > 0)
    assert fringes > len(cases) / 2


def test_the_compiled_machine_is_the_readable_one() -> None:
    rng = np.random.default_rng(3)
    for dataflow, overlap in itertools.islice(itertools.cycle(itertools.product(DATAFLOWS, OVERLAPS)), 180):
        m, n, k, rows, columns = (int(size) for size in (*rng.integers(1, 10, 3), *rng.integers(1, 5, 2)))
        a, b = operands(rng, m, n, k)
        slow = simulate_array(a, b, rows, columns, dataflow, overlap)
        fast = simulate_fast(a, b, rows, columns, dataflow, overlap, trace=True)
        case = m, n, k, rows, columns, dataflow, overlap
        assert np.array_equal(slow.product, a @ b), case
        assert np.array_equal(slow.product, fast.product) and np.array_equal(slow.activity, fast.activity), case
        assert (slow.cycles, slow.sram, slow.register_writes) == (fast.cycles, fast.sram, fast.register_writes), case
        for name in ("ifmap", "filter", "ofmap"):  # the same requests; within a cycle the order is free
            ours, theirs = getattr(slow.trace, name), getattr(fast.trace, name)
            assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs)), (case, name)
        sizes = buffers(rng, 80)
        moved = dram_accesses(slow, *sizes.values())
        assert moved == dram_accesses(fast, *sizes.values()), (case, sizes)
        traces = (slow.trace.ifmap, slow.trace.filter, slow.trace.ofmap)
        ifmap, weights, written = (
            misses_of_lru(addresses, words) for addresses, words in zip(traces, sizes.values(), strict=True)
        )
        assert (moved.ifmap_reads, moved.filter_reads, moved.ofmap_writes) == (ifmap, weights, written), (case, sizes)
        assert_closed_forms(slow, case, moved, sizes)


def test_the_textbook_example_cycle_by_cycle() -> None:
    """A product of two 2 × 2 matrices where outputs stay: 2·1, then 2·3 one place to the right as 4 enters."""
    run = simulate_array([[2, 4], [1, 3]], [[1, 3], [5, 7]], 2, 2, "os", record=True)
    first, second = run.frames[:2]
    assert first.entering == ((0, 2.0),) and first.sums[0, 0] == 2
    assert second.sums[0, 1] == 6 and (0, 4.0) in second.entering and second.sums[0, 0] == 2 + 4 * 5
    assert run.product.tolist() == [[22, 34], [16, 24]]
    assert run.cycles == len(run.frames) == 2 + 2 * 2 + 2 - 2


def test_the_last_multiplication_of_an_output_stationary_fold_is_at_m_plus_n_plus_k_minus_two() -> None:
    """The customary count leaves out the drain: M + N + K - 2 cycles for a product as large as the array."""
    a, b = operands(np.random.default_rng(0), 4, 5, 7)
    run = simulate_array(a, b, 4, 5, "os", record=True)
    busy = [frame.cycle for frame in run.frames if frame.busy.any()]
    assert len(busy) == 4 + 5 + 7 - 2 and busy[-1] == len(busy) - 1
    assert run.cycles == len(busy) + 4, "and the rows are pushed out"


def test_weights_are_in_place_before_an_activation_needs_them() -> None:
    """Column j is loaded j cycles after column 0, just ahead of the operands that reach it."""
    a, b = operands(np.random.default_rng(1), 6, 3, 4)
    run = simulate_array(a, b, 4, 3, "ws", record=True)
    assert [frame.phase for frame in run.frames[:5]] == ["load"] * 4 + ["stream"], "one cycle a row to load"
    for frame in run.frames:
        assert np.array_equal(frame.second[frame.busy], b[frame.busy])
    assert np.array_equal(run.frames[-1].second, b), "and they stay"


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_folds_that_overlap_are_never_slower(dataflow: str) -> None:
    a, b = operands(np.random.default_rng(4), 9, 11, 10)
    cycles = [simulate_fast(a, b, 4, 3, dataflow, overlap).cycles for overlap in OVERLAPS]
    assert cycles[0] > cycles[1] > cycles[2]


@pytest.mark.parametrize(("groups", "stride", "padding"), [(1, 1, 0), (1, 2, 1), (2, 1, 1), (4, 2, 1)])
def test_convolutions_run_as_products(groups: int, stride: int, padding: int) -> None:
    """Against torch's own convolution; four groups of four channels is a depthwise one."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    image, filters = rng.integers(-5, 6, (4, 7, 6)), rng.integers(-5, 6, (8, 4 // groups, 3, 3))
    out = []
    for left, right in conv2d_matrices(image, filters, stride, padding, groups):
        run = simulate_fast(left, right, 4, 3, "os")
        assert np.array_equal(run.product, left @ right)
        out.append(run.product.T)
    wanted = torch.nn.functional.conv2d(
        torch.tensor(image[None], dtype=torch.float64),
        torch.tensor(filters, dtype=torch.float64),
        stride=stride,
        padding=padding,
        groups=groups,
    )
    assert np.array_equal(np.concatenate(out).reshape(wanted.shape[1:]), wanted[0].numpy())


@pytest.mark.parametrize("run", [simulate_array, simulate_fast])
def test_what_the_machine_refuses(run: object) -> None:
    good = np.ones((3, 3))
    with pytest.raises(
        ArgumentError, match=r"must be an \(m × k\) and a \(k × n\) matrix, got shapes \(3, 3\) and \(2, 3\)"
    ):
        run(good, np.ones((2, 3)), 2, 2)
    with pytest.raises(ArgumentError, match="`rows` must be a whole number >= 1, got 0"):
        run(good, good, 0, 2)
    with pytest.raises(UnknownNameError, match="`dataflow` must be one of ws .*got 'rs'"):
        run(good, good, 2, 2, "rs")
    with pytest.raises(UnknownNameError, match="`fold_overlap` must be one of none .*got 'all'"):
        run(good, good, 2, 2, "ws", "all")


def test_filters_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match="`filters` must fit `image` in 2 groups"):
        conv2d_matrices(np.ones((3, 5, 5)), np.ones((4, 3, 3, 3)), groups=2)
