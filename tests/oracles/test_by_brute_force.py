"""Our formulas against loops that do the work and keep count, and against a stopwatch on a simulated machine."""

import heapq
import itertools

import numpy as np
import pytest
import torch

from mlsys import formulas
from mlsys.units import Q_

RNG = np.random.default_rng(7)


class Counted:
    """A tensor that notes which of its elements are touched."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.touched: set[tuple[int, ...]] = set()

    def __getitem__(self, indices: tuple[int, ...]) -> float:
        self.touched.add(indices)
        return self.values[indices]

    def add(self, indices: tuple[int, ...], value: float) -> None:
        self.touched.add(indices)
        self.values[indices] += value


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (2, 3, 4), (5, 1, 7), (4, 4, 4)])
def test_products_by_loops(m: int, n: int, k: int) -> None:
    a, b, c = (Counted(RNG.normal(size=shape)) for shape in ((m, k), (k, n), (m, n)))
    c.values[:] = 0
    multiplications = 0
    for i, j, r in itertools.product(range(m), range(n), range(k)):
        c.add((i, j), a[i, r] * b[r, j])
        multiplications += 1
    np.testing.assert_allclose(c.values, a.values @ b.values)  # it was a matrix product
    touched = sum(len(tensor.touched) for tensor in (a, b, c))
    assert formulas.gemm_macs(m, n, k).m_as("MAC") == multiplications
    assert formulas.gemm_bytes(m, n, k, Q_(2, "byte")).m_as("byte") == 2 * touched
    assert formulas.gemm_intensity(m, n, k, Q_(2, "byte")).magnitude == pytest.approx(multiplications / touched)


@pytest.mark.parametrize(
    ("batch", "into", "out", "size", "kernel", "stride", "padding", "groups"),
    [
        (1, 1, 1, 4, 3, 1, 0, 1),
        (2, 3, 4, 5, 3, 1, 1, 1),
        (1, 4, 4, 6, 3, 1, 1, 4),
        (1, 4, 8, 5, 2, 1, 0, 2),
        (1, 2, 3, 7, 3, 2, 0, 1),
        (2, 6, 3, 4, 1, 1, 0, 3),
        (1, 2, 2, 6, 5, 1, 2, 1),
    ],
)
def test_convolutions_by_loops(
    batch: int, into: int, out: int, size: int, kernel: int, stride: int, padding: int, groups: int
) -> None:
    side = int(formulas.conv_output_size(size, kernel, stride, padding).magnitude)
    padded = Counted(
        np.pad(RNG.normal(size=(batch, into, size, size)), [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    )
    filters = Counted(RNG.normal(size=(out, into // groups, kernel, kernel)))
    result = Counted(np.zeros((batch, out, side, side)))
    multiplications = 0
    spans = (batch, out, side, side, into // groups, kernel, kernel)
    for image, o, y, x, i, dy, dx in itertools.product(*map(range, spans)):
        channel = o // (out // groups) * (into // groups) + i
        here = image, channel, y * stride + dy, x * stride + dx
        result.add((image, o, y, x), padded[here] * filters[o, i, dy, dx])
        multiplications += 1
    inside = {
        (a, b, y, x) for a, b, y, x in padded.touched if padding <= y < size + padding and padding <= x < size + padding
    }
    image = padded.values[:, :, padding : size + padding, padding : size + padding]
    theirs = torch.nn.functional.conv2d(
        torch.tensor(image), torch.tensor(filters.values), stride=stride, padding=padding, groups=groups
    )
    np.testing.assert_allclose(result.values, theirs.numpy(), atol=1e-12)  # it was a convolution
    shape = {"batch": batch, "in_channels": into, "out_channels": out, "out_height": side, "out_width": side}
    shape |= {"kernel_height": kernel, "kernel_width": kernel, "groups": groups}
    assert formulas.conv2d_macs(**shape).m_as("MAC") == multiplications
    data = formulas.conv2d_bytes(**shape, in_height=size, in_width=size, element_size=Q_(4, "byte"))
    assert data.m_as("byte") == 4 * (len(inside) + len(filters.touched) + len(result.touched))


def test_attention_by_loops() -> None:
    b, h, q, k, d = 2, 3, 4, 5, 6
    queries, keys, values = (Counted(RNG.normal(size=(b, h, rows, d))) for rows in (q, k, k))
    scores, mixed = Counted(np.zeros((b, h, q, k))), Counted(np.zeros((b, h, q, d)))
    multiplications = 0
    for at, head, i, j, c in itertools.product(range(b), range(h), range(q), range(k), range(d)):
        scores.add((at, head, i, j), queries[at, head, i, c] * keys[at, head, j, c] / np.sqrt(d))
        multiplications += 1
    weights = Counted(np.exp(scores.values) / np.exp(scores.values).sum(-1, keepdims=True))
    for at, head, i, j, c in itertools.product(range(b), range(h), range(q), range(k), range(d)):
        mixed.add((at, head, i, c), weights[at, head, i, j] * values[at, head, j, c])
        multiplications += 1
    tensors = [torch.tensor(tensor.values) for tensor in (queries, keys, values)]
    theirs = torch.nn.functional.scaled_dot_product_attention(*tensors)
    np.testing.assert_allclose(mixed.values, theirs.numpy(), atol=1e-12)  # it was attention
    assert formulas.attention_macs(b, h, q, k, d).m_as("MAC") == multiplications
    outside = sum(len(tensor.touched) for tensor in (queries, keys, values, mixed))
    fused = formulas.attention_bytes(b, h, q, k, d, Q_(2, "byte"), score_passes=0)
    assert fused.m_as("byte") == 2 * outside
    # Three kernels: scores written; read and written as weights by the softmax; read again.
    apart = formulas.attention_bytes(b, h, q, k, d, Q_(2, "byte"))
    assert apart.m_as("byte") == 2 * (outside + 2 * len(scores.touched) + 2 * len(weights.touched))


def test_the_key_value_cache_by_appending() -> None:
    layers, kv_heads, head_dim, tokens, batch = 3, 2, 4, 5, 2
    cache: list[np.ndarray] = []
    for _token, _sequence, _layer, _head in itertools.product(*map(range, (tokens, batch, layers, kv_heads))):
        cache += [np.zeros(head_dim, np.float16), np.zeros(head_dim, np.float16)]  # a key and a value
    held = sum(vector.nbytes for vector in cache)
    assert formulas.kv_cache_bytes(layers, kv_heads, head_dim, tokens, Q_(2, "byte"), batch).m_as("byte") == held


# --- stopwatches ---------------------------------------------------------------------------


@pytest.mark.parametrize(("moved", "speedup"), [(0, 10), (250, 4), (800, 10), (950, 100), (999, 7), (1000, 3)])
def test_amdahl_with_a_stopwatch(moved: int, speedup: float) -> None:
    """A program of 1,000 steps of random length, done one after the other, some on the accelerator."""
    lengths = RNG.uniform(0.1, 2.0, 1000)
    on_device = np.zeros(1000, bool)
    on_device[RNG.permutation(1000)[:moved]] = True
    clock = 0.0
    for length, fast in zip(lengths, on_device, strict=True):
        clock += length / speedup if fast else length
    share = lengths[on_device].sum() / lengths.sum()
    host = lengths[~on_device].sum()
    assert formulas.amdahl_speedup(share, speedup).magnitude == pytest.approx(lengths.sum() / clock, rel=1e-12)
    assert formulas.serial_share(share, speedup).magnitude == pytest.approx(host / clock, abs=1e-12)


@pytest.mark.parametrize("processors", [1, 2, 16, 64])
def test_both_laws_on_a_simulated_multiprocessor(processors: int) -> None:
    """A serial step, then tasks given to whichever processor is free first: a queue of events, no formula."""
    serial, task = 3.0, 0.25
    for tasks, law in ((64 * 9, "fixed work"), (9 * processors, "work that grows")):
        free = [serial] * processors
        for _ in range(tasks):
            heapq.heappush(free, heapq.heappop(free) + task)
        parallel_run, serial_run = max(free), serial + tasks * task
        if law == "fixed work":
            speedup = formulas.amdahl_speedup(tasks * task / serial_run, processors)
        else:
            speedup = formulas.gustafson_speedup(1 - serial / parallel_run, processors)
        assert speedup.magnitude == pytest.approx(serial_run / parallel_run, rel=1e-12), law


@pytest.mark.parametrize(("moving", "computing"), [(1.0, 1.0), (3.0, 1.0), (1.0, 5.0), (0.01, 2.0)])
def test_overlap_on_a_simulated_double_buffer(moving: float, computing: float) -> None:
    """Chunks arrive one by one; each is computed when it is there and the unit is free."""

    def stopwatch(chunks: int) -> float:
        arrived = done = 0.0
        for _ in range(chunks):
            arrived += moving / chunks
            done = max(done, arrived) + computing / chunks
        return done

    task = Q_(moving, "GB"), Q_(1, "GB/s"), Q_(computing, "GFLOP"), Q_(1, "GFLOP/s")
    apart, together = formulas.sequential_time(*task).m_as("s"), formulas.overlapped_time(*task).m_as("s")
    assert stopwatch(1) == pytest.approx(apart, rel=1e-12), "one chunk overlaps with nothing"
    assert stopwatch(100_000) == pytest.approx(together, rel=1e-4), "many chunks overlap wholly"
    assert together <= stopwatch(4) <= apart


def test_the_batch_that_reaches_the_ridge_by_trying_all() -> None:
    """For a square layer in FP16 the intensity is B·n/(2B + n): equal to the ridge r at B = r·n/(n − 2r)."""
    ridge, width = 153.0, 2048
    tried = next(b for b in range(1, 10_000) if formulas.gemm_intensity.bare(b, width, width, 2) >= ridge)
    assert tried == int(np.ceil(ridge * width / (width - 2 * ridge)))
