"""Arithmetic intensity of a layer, against a value worked out by hand."""

import numpy as np
import pytest

from mlsys.explain.nets import Layer


def test_intensity_counts_both_operations_and_all_bytes() -> None:
    """56×56×64 → 128 by 3×3 in FP32: 231.2 MFLOP over 1.35 MB are 171 FLOP/byte, not 288 and not 210.6."""
    layer = Layer(
        "conv", "conv", (56, 56, 64), (56, 56, 128), (3, 3), weight=np.zeros((128, 3, 3, 64)), bias=np.zeros(128)
    )
    work = layer.work(4)
    assert work.flops == 2 * 56 * 56 * 128 * 64 * 9
    assert work.intensity == pytest.approx(171.0, rel=1e-3)
