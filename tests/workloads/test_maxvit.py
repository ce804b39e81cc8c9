"""MaxViT has the parameters and the work that are published of it."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.workloads import zoo


def test_maxvit_is_as_large_as_its_table_says() -> None:
    """119.47 million parameters and 24.04 billion multiply-adds: huggingface/pytorch-image-models,
    results/benchmark-infer-amp-nhwc-pt240-cu124-rtx3090.csv@aa4b5850, maxvit_base_tf_224."""
    network = zoo.network("maxvit_base_tf_224")
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(119.47, abs=0.005)
    assert network.macs.m_as("GMAC") == pytest.approx(24.04, rel=0.01)


def test_each_block_attends_twice_among_as_many_places() -> None:
    network = zoo.network("maxvit_base")
    attention = [operator for operator in network.operators if operator.kind == "attention"]
    assert len(attention) == 2 * (2 + 6 + 14 + 2)
    assert {operator.shape["keys"] for operator in attention} == {49}


def test_windows_must_tile_every_stage() -> None:
    with pytest.raises(ArgumentError, match="multiple of 224 for a MaxViT"):
        zoo.network("maxvit_base", image=256)
