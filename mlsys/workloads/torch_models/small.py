"""Small networks and single layers: those of the exercises, recurrent networks, a U-Net."""

import torch
from torch import nn

from mlsys.workloads.torch_models.parts import conv_norm


def mlp() -> nn.Module:
    """Return a perceptron of 128, 256 and 64 units."""
    return nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))


def lenet5() -> nn.Module:
    """Return LeNet-5 in its usual modern form (LeCun et al. 1998, figure 2) for 32 × 32 images."""
    layers: list[nn.Module] = [nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh()]
    layers += [nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(84, 10))


def small_cnn() -> nn.Module:
    """Return two 3 × 3 convolutions with pooling and a classifier, for 28 × 28 grey images."""
    layers: list[nn.Module] = []
    for into, out in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1568, 10))


class Recurrent(nn.Module):
    """A language model of two recurrent layers."""

    def __init__(self, cell: str = "LSTM", words: int = 10000, width: int = 650, layers: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.cells = getattr(nn, cell)(width, width, layers, batch_first=True)
        self.classifier = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of every word after every one of (batch, tokens)."""
        return self.classifier(self.cells(self.tokens(tokens))[0])  # type: ignore[no-any-return]


class UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015) with padded convolutions, batch normalisation, and 64 to 1024 channels."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.down = nn.ModuleList(self._pair(into, out) for into, out in zip((3, *widths), widths, strict=False))
        self.pool = nn.MaxPool2d(2)
        steps = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.lift = nn.ModuleList(nn.ConvTranspose2d(into, out, 2, 2) for into, out in steps)
        self.up = nn.ModuleList(self._pair(into, out) for into, out in steps)
        self.last = nn.Conv2d(64, classes, 1)

    @staticmethod
    def _pair(into: int, out: int) -> nn.Module:
        return nn.Sequential(conv_norm(into, out, 3), conv_norm(out, out, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a score for each class and pixel."""
        kept: list[torch.Tensor] = []
        for index, pair in enumerate(self.down):
            x = pair(self.pool(x) if index else x)
            kept.append(x)
        for lift, pair, left in zip(self.lift, self.up, kept[-2::-1], strict=True):
            x = pair(torch.cat([left, lift(x)], 1))
        return self.last(x)  # type: ignore[no-any-return]
