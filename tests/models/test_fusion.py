"""What fusion buys, and the traffic of attention, against a machine that counts."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from mlsys import Hardware
from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.formulas import attention_bytes, chain_bytes, flash_attention_bytes, standard_attention_bytes
from mlsys.mapping.fusion import fuse
from mlsys.models import roofline
from mlsys.models.fusion import fusion_gain
from mlsys.units import Q_
from mlsys.workloads import Workload, load, relu

A100 = Hardware.Cloud.A100
WORD = Q_(4, "byte")


class Counted:
    """An array in slow memory: every element that is taken from it or put into it is counted."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.words = array, 0

    def __getitem__(self, indices: slice) -> np.ndarray:
        self.words += self.array[indices].size
        return self.array[indices].copy()

    def __setitem__(self, indices: slice, values: np.ndarray) -> None:
        self.array[indices] = values
        self.words += self.array[indices].size


def flash(q: np.ndarray, k: np.ndarray, v: np.ndarray, room: int) -> tuple[np.ndarray, int]:
    """Run algorithm 1 of Dao et al. 2022; return the output and the words that crossed."""
    tokens, width = q.shape
    columns = math.ceil(room / (4 * width))
    rows = min(columns, width)
    slow = [Counted(array) for array in (q, k, v, np.empty((tokens, width)), np.empty(tokens), np.empty(tokens))]
    queries, keys, values, out, total, largest = slow
    out[:], total[:], largest[:] = 0, 0, -np.inf
    for j in range(0, tokens, columns):
        kj, vj = keys[j : j + columns], values[j : j + columns]
        for i in range(0, tokens, rows):
            here = slice(i, i + rows)
            qi, oi, li, mi = queries[here], out[here], total[here], largest[here]
            scores = qi @ kj.T
            new = np.maximum(mi, scores.max(1))
            weights = np.exp(scores - new[:, None])
            old = np.exp(mi - new) * li
            sums = old + weights.sum(1)
            out[here] = (old[:, None] * oi + weights @ vj) / sums[:, None]
            total[here], largest[here] = sums, new
    return out.array, sum(memory.words for memory in slow)


def apart(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, int]:
    """Run three kernels, each of which reads and writes whole arrays."""
    tokens = len(q)
    slow = [
        Counted(array) for array in (q, k, v, np.empty((tokens, tokens)), np.empty((tokens, tokens)), np.empty_like(q))
    ]
    queries, keys, values, scores, weights, out = slow
    scores[:] = queries[:] @ keys[:].T
    taken = np.exp(scores[:] - scores.array.max(1, keepdims=True))
    weights[:] = taken / taken.sum(1, keepdims=True)
    out[:] = weights[:] @ values[:]
    return out.array, sum(memory.words for memory in slow)


@pytest.mark.parametrize(
    ("tokens", "width", "room"), [(64, 8, 32), (64, 8, 256), (60, 8, 512), (37, 4, 100), (16, 16, 9999)]
)
def test_attention_moves_what_a_counting_machine_moves(tokens: int, width: int, room: int) -> None:
    """The formulas are the words of algorithms 0 and 1, ragged last blocks too; both compute attention."""
    q, k, v = np.random.default_rng(0).normal(size=(3, tokens, width))
    expected = nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), scale=1.0).numpy()
    in_blocks, words = flash(q, k, v, room)
    np.testing.assert_allclose(in_blocks, expected, rtol=1e-10)
    assert flash_attention_bytes(tokens, width, WORD, room * WORD) == words * WORD
    whole, words = apart(q, k, v)
    np.testing.assert_allclose(whole, expected, rtol=1e-10)
    assert standard_attention_bytes(tokens, width, WORD) == words * WORD
    assert standard_attention_bytes(tokens, width, WORD) == attention_bytes(1, 1, tokens, tokens, width, WORD)


def test_attention_in_blocks_is_quadratic_in_tokens_and_falls_with_room() -> None:
    """Theorem 2: N²d²/M, from below the three kernels' count where d² is well below M."""

    def moved(tokens: int, width: int, room: int) -> float:
        return flash_attention_bytes.bare(tokens, width, 2.0, float(room))

    assert moved(2**17, 64, 2**17) / moved(2**16, 64, 2**17) == pytest.approx(4, rel=0.02)
    assert moved(2**16, 64, 2**17) / moved(2**16, 64, 2**18) == pytest.approx(2, rel=0.03)
    assert moved(2**16, 128, 2**17) / moved(2**16, 64, 2**17) == pytest.approx(4, rel=0.03)
    assert moved(2**16, 64, 2**17) < standard_attention_bytes.bare(2**16, 64, 2.0)
    assert moved(2**12, 256, 2**11) > standard_attention_bytes.bare(2**12, 256, 2.0), (
        "too little room: worse than apart"
    )


def test_bad_input_is_refused() -> None:
    with pytest.raises(ArgumentUnitError, match="`tensor` must be a quantity in byte"):
        chain_bytes(3, 4096)
    with pytest.raises(ArgumentError, match="`kernels`"):
        chain_bytes(0, WORD)


def test_worked_numbers() -> None:
    """Three operators on 4 MiB: 24 MiB to 8; 12.3 µs to 4.1 on an A100. Four: 32 to 8. Two: 16 to 8."""
    tensor = Q_(4, "MiB")
    assert [chain_bytes(n, tensor) / chain_bytes(1, tensor) for n in (2, 3, 4)] == [2, 3, 4]
    times = [(chain_bytes(n, tensor) / A100.memory_bw).m_as("us") for n in (3, 1)]
    assert [round(time, 1) for time in times] == [12.3, 4.1]


def test_the_gain_is_that_of_two_rooflines() -> None:
    fused = fuse(load("mobilenet-v2", precision="fp16"))
    start = Q_(5, "us")
    gain = fusion_gain(A100, fused, launch_overhead=start)
    assert gain.unfused.time == roofline(A100, fused.unfused, launch_overhead=start).time
    assert gain.fused.time == roofline(A100, fused, launch_overhead=start).time
    assert gain.kernels == (151, 54)
    assert gain.fused.parts["launch"].m_as("us") == pytest.approx(5 * 54)
    assert gain.speedup == pytest.approx((gain.unfused.time / gain.fused.time).m_as(""))
    assert gain.saved == fused.unfused.data - fused.data
    first = gain.explain().splitlines()[0]
    assert "MobileNet v2 1.0 on NVIDIA A100 80 GB SXM4" in first and "in 151 kernels" in first and "in 54" in first


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_pair_gains_two_and_no_more(length: int) -> None:
    chain = nn.Sequential(*(nn.ReLU() for _ in range(length)))
    gain = fusion_gain(A100, fuse(Workload.from_torch(chain, torch.zeros(1024, 1024, device="meta"))))
    assert gain.speedup == pytest.approx(length)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="`workload` must be a fused network, got Operator"):
        fusion_gain(A100, relu(64))
