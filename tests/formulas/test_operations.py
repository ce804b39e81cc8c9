"""Counts of operators that can be written out on paper; loops and torch are in ``tests/oracles``."""

import numpy as np
import pytest

from mlsys import formulas
from mlsys.errors import ArgumentError
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_

HALF = Q_(2, "byte")


def test_a_two_by_two_product_written_out() -> None:
    """Four outputs of three products each; 6 + 6 + 4 elements."""
    assert_quantity_close(formulas.gemm_macs(2, 2, 3), Q_(12, "MAC"))
    assert_quantity_close(formulas.gemm_bytes(2, 2, 3, HALF), Q_(32, "byte"))
    assert_quantity_close(formulas.gemm_intensity(2, 2, 3, HALF), Q_(24 / 32, "FLOP/byte"))


def test_counts_stay_whole_numbers() -> None:
    macs = formulas.gemm_macs(10**6 + 3, 10**6 + 33, 10**6 + 37)
    assert macs.magnitude == (10**6 + 3) * (10**6 + 33) * (10**6 + 37), "no rounding to 53 bits"
    assert isinstance(macs.magnitude, int)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        # V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning, arXiv:1603.07285:
        # figures 2.1 to 2.7 and 5.1.
        (dict(size=4, kernel=3), 2),
        (dict(size=5, kernel=4, padding=2), 6),
        (dict(size=5, kernel=3, padding=1), 5),
        (dict(size=5, kernel=3, padding=2), 7),
        (dict(size=5, kernel=3, stride=2), 2),
        (dict(size=5, kernel=3, stride=2, padding=1), 3),
        (dict(size=6, kernel=3, stride=2, padding=1), 3),
        (dict(size=7, kernel=3, dilation=2), 3),
    ],
)
def test_output_sizes_of_the_guide_to_convolution_arithmetic(arguments: dict[str, int], size: int) -> None:
    assert formulas.conv_output_size(**arguments).magnitude == size


def test_depthwise_is_one_filter_for_each_channel() -> None:
    shape = dict(batch=1, in_channels=8, out_channels=8, out_height=4, out_width=4, kernel_height=3, kernel_width=3)
    full, depthwise = formulas.conv2d_macs(**shape), formulas.conv2d_macs(**shape, groups=8)
    assert_quantity_close(full, 8 * depthwise)
    assert_quantity_close(depthwise, Q_(8 * 16 * 9, "MAC"))


def test_groups_must_divide_the_channels_in_every_element_of_a_sweep() -> None:
    with pytest.raises(ArgumentError, match="`groups` must divide"):
        formulas.conv2d_macs(1, np.array([8, 9]), 8, 4, 4, 3, 3, groups=8)
    with pytest.raises(ArgumentError, match="`groups` must divide"):
        formulas.conv2d_macs(1, 8, 12, 4, 4, 3, 3, groups=8)


def test_attention_written_out() -> None:
    """Two queries, three keys, width four: 2·3·4 MACs for the scores, the same for the mix of values."""
    assert_quantity_close(formulas.attention_macs(1, 1, 2, 3, 4), Q_(48, "MAC"))
    fused = formulas.attention_bytes(1, 1, 2, 3, 4, HALF, score_passes=0)
    assert_quantity_close(fused, Q_((8 + 12 + 12 + 8) * 2, "byte"))
    assert_quantity_close(formulas.attention_bytes(1, 1, 2, 3, 4, HALF) - fused, Q_(4 * 6 * 2, "byte"))


def test_element_wise_operators() -> None:
    assert_quantity_close(formulas.elementwise_flops(1000, Q_(3, "FLOP")), Q_(3, "kFLOP"))
    assert_quantity_close(formulas.elementwise_flops(1000, Q_(1, "MAC")), Q_(2, "kFLOP"))
    assert_quantity_close(formulas.elementwise_bytes(1000, 2, 1, HALF), Q_(6, "kB"))
