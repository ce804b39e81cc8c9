"""The four networks of MLPerf Tiny (Banbury et al. 2021) and their parameters."""

from __future__ import annotations

from itertools import pairwise

from mlsys.workloads.zoo.mobile import mobilenet_v1
from mlsys.workloads.zoo.picture import Picture
from mlsys.workloads.zoo.tape import Tape

__all__ = ["autoencoder", "ds_cnn", "resnet8", "visual_wake_words"]


def autoencoder(tape: Tape, batch: int) -> None:
    """Anomaly detection: 640 inputs, dense layers of 128 around a waist of 8, normalised but for the last."""
    widths = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
    for place, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        last = place == len(widths) - 1
        tape.dense(f"dense {place}", batch, inputs, outputs, extra=0 if last else 2 * outputs)
        if not last:
            tape.ride_along(f"dense {place} norm", batch * outputs, 2)
            tape.activation(f"dense {place} relu", batch * outputs, "relu")


def ds_cnn(net: Picture) -> None:
    """Keyword spotting: 49 × 10 cepstral coefficients, four depthwise separable convolutions of 64 channels."""
    net.conv("conv1", 64, (10, 4), 2, "same", bias=True)
    for place in range(1, 5):
        net.conv(f"depthwise {place}", 64, 3, groups=64, bias=True)
        net.conv(f"pointwise {place}", 64, 1, bias=True)
    net.classify(12)


def resnet8(net: Picture) -> None:
    """Image classification: CIFAR-10, three stages of one basic block, 16 to 64 channels."""
    net.conv("conv1", 16, 3, bias=True)
    for stage, width in enumerate((16, 32, 64), start=1):
        start, stride = net.shape, 1 if stage == 1 else 2
        net.conv(f"stage {stage}a", width, 3, stride, "same", bias=True)
        net.conv(f"stage {stage}b", width, 3, bias=True, act=None)
        if stride > 1:
            net.shape = start
            net.conv(f"stage {stage} shortcut", width, 1, stride, "same", norm=False, act=None)
        net.shortcut(f"stage {stage}", "relu")
    net.classify(10)


def visual_wake_words(net: Picture) -> None:
    """Person or not: MobileNet v1 of a quarter of the width, biases kept beside the normalisation."""
    mobilenet_v1(net, 0.25, classes=2, act="relu", bias=True)
