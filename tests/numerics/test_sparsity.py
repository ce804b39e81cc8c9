"""N:M sparsity: against enumeration, and the published shares of storage."""

import itertools

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.numerics import compress, pattern_count, prune, stored_fraction


def test_what_is_compressed_comes_back() -> None:
    rng = np.random.default_rng(5)
    for n, m in ((1, 2), (2, 4), (4, 8), (1, 4)):
        weights = prune(rng.normal(size=(6, 32)), n, m)
        blocks = compress(weights, n, m)
        np.testing.assert_array_equal(blocks.decompress(), weights)
        assert ((weights.reshape(-1, m) != 0).sum(axis=1) <= n).all()


def test_pruning_keeps_the_choice_with_the_least_error() -> None:
    block = np.random.default_rng(6).normal(size=4)
    best = min(
        itertools.combinations(range(4), 2),
        key=lambda kept: sum(value**2 for at, value in enumerate(block) if at not in kept),
    )
    assert tuple(np.flatnonzero(prune([block])[0]).tolist()) == best


def test_two_of_four_has_six_patterns_and_four_bits_of_positions() -> None:
    """NVIDIA PTX ISA, "Sparse matrix storage": two 2-bit indices for four 16-bit elements."""
    kept = {
        tuple(compress([row]).positions.ravel().tolist())
        for row in itertools.product((0, 1), repeat=4)
        if sum(row) == 2
    }
    assert len(kept) == pattern_count(2, 4) == 6
    assert stored_fraction("fp16") == (2 * 16 + 4) / 64 == 0.5625
    assert stored_fraction("int8") == stored_fraction("fp8") == (2 * 8 + 4) / 32 == 0.625


def test_bad_input_is_named() -> None:
    with pytest.raises(ArgumentError, match="a block with 3"):
        compress([[1, 2, 3, 0]])
    with pytest.raises(ArgumentError, match=r"shape \(1, 6\)"):
        prune(np.ones((1, 6)))
    with pytest.raises(ArgumentError, match="n = 5 of m = 4"):
        pattern_count(5, 4)
