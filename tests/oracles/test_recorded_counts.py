"""Whole networks, summed from our formulas, against recorded counts (``data/README.md`` says whose)."""

import csv
import json
from pathlib import Path

import pytest

from mlsys.formulas import attention_macs, conv2d_macs, conv_output_size, gemm_macs
from mlsys.units import Q_, Quantity
from mlsys.workloads import zoo

with (Path(__file__).parent / "data" / "flops.csv").open(newline="") as file:
    RECORDED = {row["model"]: row for row in csv.DictReader(file)}


def transformer(layers: int, width: int, heads: int, tokens: int) -> Quantity:
    """Return the products of ``layers`` standard blocks: four projections, attention, a fourfold feed-forward."""
    projections = 4 * gemm_macs(tokens, width, width)
    feed_forward = gemm_macs(tokens, 4 * width, width) + gemm_macs(tokens, width, 4 * width)
    return layers * (projections + feed_forward + attention_macs(1, heads, tokens, tokens, width // heads))


def bert_base() -> Quantity:
    """Devlin et al. 2019: 12 layers of 768, 12 heads; the pooler looks at the first token alone."""
    return transformer(12, 768, 12, 128) + gemm_macs(1, 768, 768)


def gpt2() -> Quantity:
    """Radford et al. 2019, the smallest: 12 layers of 768; every token is compared with 50,257 words."""
    return transformer(12, 768, 12, 1024) + gemm_macs(1024, 50257, 768)


def mobilenet_v2() -> Quantity:
    """Sandler et al. 2018, table 2: (expansion, channels, repeats, stride) of inverted residuals."""
    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    total, size, channels = Q_(0, "MAC"), 224, 3

    def conv(out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        nonlocal total, size, channels
        size = int(conv_output_size(size, kernel, stride, kernel // 2).magnitude)
        total += conv2d_macs(1, channels, out, size, size, kernel, kernel, groups)
        channels = out

    conv(32, 3, stride=2)
    for expansion, out, repeats, first_stride in table:
        for repeat in range(repeats):
            if expansion > 1:
                conv(expansion * channels, 1)
            conv(channels, 3, first_stride if repeat == 0 else 1, groups=channels)
            conv(out, 1)
    conv(1280, 1)
    return total + gemm_macs(1, 1000, 1280)


NETWORKS = {
    "resnet50": lambda: zoo.network("resnet50").flops,
    "mobilenet_v2": mobilenet_v2,
    "bert_base": bert_base,
    "gpt2": gpt2,
}


def test_every_recorded_network_is_tried() -> None:
    assert set(RECORDED) == set(NETWORKS)


@pytest.mark.parametrize("name", NETWORKS)
def test_our_sum_is_the_recorded_count(name: str) -> None:
    row = RECORDED[name]
    ours = NETWORKS[name]()
    assert row["unit"].startswith("FLOP (2/MAC)")
    assert ours.m_as("MAC") == int(row["reference_macs"])
    assert ours.m_as("FLOP") == int(row["reported"])
    assert json.loads(row["input"])
