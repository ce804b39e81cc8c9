"""Padding and compressed operands, by counting."""

import pytest

from mlsys.formulas import (
    aligned_elements,
    compressed_gemm_intensity,
    gemm_intensity,
    padded_efficiency,
    padded_size,
)
from mlsys.precision import element_size
from mlsys.units import Q_

HALF = Q_(2, "byte")


@pytest.mark.parametrize("tile", [1, 8, 128])
def test_padding_is_the_next_multiple(tile: int) -> None:
    for size in range(1, 300):
        fitting = next(whole for whole in range(size, size + tile) if whole % tile == 0)
        assert padded_size(size, tile).m == fitting
        assert padded_efficiency(size, tile).m == size / fitting


@pytest.mark.parametrize(("precision", "elements"), [("fp16", 8), ("int8", 16), ("tf32", 4), ("fp64", 2)])
def test_sixteen_bytes_are_so_many_elements(precision: str, elements: int) -> None:
    """NVIDIA, Matrix Multiplication Background User's Guide, table 1."""
    assert aligned_elements(element_size(precision), Q_(16, "byte")).m == elements


def test_a_product_with_2_4_weights_moves_fewer_bytes() -> None:
    dense = compressed_gemm_intensity(256, 4096, 4096, HALF, 1)
    assert dense.m == pytest.approx(gemm_intensity(256, 4096, 4096, HALF).m)
    weights, activations = 4096 * 4096 * 36 / 64 * 2, 2 * 256 * 4096 * 2
    sparse = compressed_gemm_intensity(256, 4096, 4096, HALF, 0.5625)
    assert sparse.m_as("FLOP/byte") == pytest.approx(2 * 256 * 4096**2 / (weights + activations))
