"""The networks of MLPerf Tiny (Banbury et al. 2021; mlcommons/tiny) in plain torch.

Keras leaves a bias beside each normalisation, and so do these. Where it pads one side more than the other,
the larger padding stands on both: shapes, work and parameters are the same.
"""

from itertools import pairwise

import torch
from torch import nn

from mlsys.workloads.torch_models.parts import conv_norm


def autoencoder() -> nn.Module:
    """Return the detector of anomalies: 640 inputs, dense layers of 128 around a waist of 8."""
    widths = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
    layers: list[nn.Module] = []
    for into, out in pairwise(widths):
        layers += [nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers[:-2])


def ds_cnn() -> nn.Module:
    """Return the keyword spotter: 49 × 10 cepstral coefficients, four separable convolutions of 64 channels."""
    first = (nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU())
    pairs = (
        part for _ in range(4) for part in (conv_norm(64, 64, 3, 1, 64, bias=True), conv_norm(64, 64, 1, bias=True))
    )
    return nn.Sequential(*first, *pairs, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(64, 12))


class _Stage(nn.Module):
    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(into, out, 3, stride, bias=True), conv_norm(out, out, 3, act=None, bias=True)
        )
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(into, out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def resnet8(width: int = 16) -> nn.Module:
    """Return the classifier of 32 × 32 images: three stages of one block, the first ``width`` channels wide."""
    first = (conv_norm(3, width, 3, bias=True), _Stage(width, width, 1))
    rest = (_Stage(width, 2 * width, 2), _Stage(2 * width, 4 * width, 2))
    return nn.Sequential(*first, *rest, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(4 * width, 10))


def resnet8_wide() -> tuple[nn.Module, torch.Tensor]:
    """Return the larger classifier published with the reference (pretrainedResnet_large), with an example input."""
    return resnet8(40), torch.zeros(1, 3, 32, 32)


def streaming_wake_word() -> tuple[nn.Module, torch.Tensor]:
    """Return the streaming wake word network of version 1.3 with an example input: separable convolutions over time.

    It reads 30 steps of 40 features; the kernels are 3, 5, 10 and 15 steps long and nothing is padded.
    """
    layers: list[nn.Module] = []
    for into, out, steps in ((40, 128, 3), (128, 128, 5), (128, 128, 10), (128, 32, 15)):
        layers += [nn.Conv2d(into, into, (steps, 1), groups=into), nn.BatchNorm2d(into), nn.ReLU()]
        layers += [nn.Conv2d(into, out, 1), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, 3)), torch.zeros(1, 40, 30, 1)
