"""Copies from one layout to another, counted here by hand."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.rows import Row
from mlsys.models.estimate.layouts import BLOCKS, PLANES, layout_copies
from mlsys.models.estimate.library import fitted
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.work import Work
from mlsys.workloads import zoo
from mlsys_evidence.fit.fitting import Fit, predicted
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

HALF, SINGLE = Format("fp16", 2, 2), Format("fp32", 4, 4, True)


def moved(work: Work) -> float:
    return float((work["moved"] * work["count"]).sum())


def test_planes_are_turned_where_a_convolution_sees_more_than_one_pixel() -> None:
    """VGG-16 by hand: 13 convolutions of 3 × 3, each of which reads and writes its input and its output once more."""
    layers = ((3, 64, 224), (64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56), *2 * ((256, 256, 56),))
    layers += ((256, 512, 28), *2 * ((512, 512, 28),), *3 * ((512, 512, 14),))
    values = sum((inputs + outputs) * side**2 for inputs, outputs, side in layers)
    work = layout_copies(PLANES, zoo.network("vgg16", precision="fp16", fused=False), HALF).work
    assert work.launches == 2 * len(layers) == 26
    assert moved(work) == pytest.approx(2 * 2 * values)


def timm(model: str, software: str, device: str) -> Row:
    """Return a row of timm's tables."""
    return next(
        row for row in shipped_rows()
        if row.model == model and device in row.device and software in row.software and "timm" not in row.device
        and row.source == "huggingface/pytorch-image-models"
    )  # fmt: skip


@pytest.mark.parametrize(("model", "low", "high"), [("resnet101", 1.1, 1.5), ("vit_base_patch16_224", 1.0, 1.02)])
def test_networks_in_planes_take_longer_on_matrix_units(model: str, low: float, high: float) -> None:
    """Steps on an RTX 3090, planes over pixels: ResNet-50 1.47, ResNet-152 1.36, a vision transformer 1.00."""
    row = timm(model, "NCHW", "RTX 3090")
    software = (row.software.replace("NCHW", how) for how in ("NHWC", "NCHW"))
    cases = [interpret(replace(row, software=each)) for each in software]
    ratio = float(np.divide(*predicted(cases, Fit(fitted()[cases[0].setting]))[::-1]))
    assert low <= ratio <= high
    single = [interpret(replace(case.row, precision="fp32", device="NVIDIA V100")) for case in cases]
    assert single[0].work.launches == single[1].work.launches  # vector units take either


def test_weights_are_copied_where_a_library_is_handed_one_layer_at_a_time() -> None:
    """VGG-11 of timm has two of its three fully connected layers as convolutions, the first of 7 × 7 (He at al.)."""
    network = zoo.network("VGG-11", precision="fp16", fused=False)
    filters = 9 * (3 * 64 + 64 * 128 + 128 * 256 + 256 * 256 + 256 * 512 + 512 * 512 + 2 * 512 * 512)
    assert moved(layout_copies(BLOCKS, network, SINGLE).work) == pytest.approx(2 * 4 * filters, rel=0.01)  # biases too
    row = timm("vgg11", "torch.compile", "10940X")
    frozen = interpret(replace(row, software="OpenVINO"))
    copied = moved(interpret(row).work) - moved(frozen.work)
    connected = 7 * 7 * 512 * 4096 + 4096 * 4096
    assert copied == pytest.approx(2 * 4 * (filters + connected), rel=0.05)
