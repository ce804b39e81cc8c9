"""Networks that label every pixel have the parameters and the work that are published of them."""

from functools import partial

import pytest

from mlsys.workloads import zoo
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.semantic_segmentation import pspnet, unet_of_gpipe

# Millions of parameters of the U-Net (B, C): kakaobrain/torchgpipe, docs/benchmarks.rst@a1b4ee255, memory benchmark.
UNETS = {(6, 72): 362.2, (11, 128): 2210, (24, 128): 4990, (24, 160): 7800, (48, 160): 15820}


def parameters(draw: partial[None], side: int) -> tuple[float, float]:
    """Return parameters and FLOP of a network on one square picture."""
    net = CnnBuilder(1, (3, side, side), "fp16", fused=True)
    draw(net)
    return (
        sum(operator.parameters for operator in net.operators),
        sum(float(operator.operations.magnitude) for operator in net.operators),
    )


@pytest.mark.parametrize("shape", UNETS)
def test_the_u_net_of_gpipe_has_as_many_parameters_as_its_table_says(shape: tuple[int, int]) -> None:
    convs, width = shape
    count, _ = parameters(partial(unet_of_gpipe, convs=convs, width=width), 192)
    assert count / 1e6 == pytest.approx(UNETS[shape], rel=0.002)


def test_pspnet_is_as_large_as_openvino_says() -> None:
    """openvinotoolkit/open_model_zoo, pspnet-pytorch: 46.5827 million parameters, 357.1719 GFLOP at 512 × 512.

    There normalisations are folded, which have two parameters a channel here and leave one bias.
    """
    count, flops = parameters(partial(pspnet, depth=50, classes=21), 512)
    assert count / 1e6 == pytest.approx(46.5827, rel=0.001)
    assert flops / 1e9 == pytest.approx(357.1719, rel=0.002)


def test_a_longer_stride_is_less_work_with_the_same_parameters() -> None:
    """Behind a stride of 32 the last stage sees a sixteenth of the places that it sees behind one of 8."""
    eighth, small = (parameters(partial(pspnet, depth=50, stride=stride), 512) for stride in (8, 32))
    assert eighth[0] == small[0]
    assert 1 / 16 < small[1] / eighth[1] < 1 / 4


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("PSPNet (ResNet-50, stride 8)", "pspnet_resnet50_stride8"), ("U-Net (5, 64)", "unet_5_64"),
     ("PSPNet (ResNet-50, stride 32)", "pspnet_resnet50_stride32"), ("U-Net", "unet")],
)  # fmt: skip
def test_names_of_the_measurements_are_known(spelling: str, name: str) -> None:
    entry = zoo.resolve(spelling)
    assert entry is not None
    assert entry.name == name
