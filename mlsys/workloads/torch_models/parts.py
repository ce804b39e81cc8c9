"""Layers that several networks share."""

import torch
from torch import nn


def conv_norm(
    into: int,
    out: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    act: type[nn.Module] | None = nn.ReLU,
    bias: bool = False,
) -> nn.Sequential:
    """Return a convolution, usually without bias, its batch normalisation and an activation."""
    layers: list[nn.Module] = [
        nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=bias),
        nn.BatchNorm2d(out),
    ]
    if act is not None:
        layers.append(act())
    return nn.Sequential(*layers)


class SqueezeExcite(nn.Module):
    """Squeeze and excitation (Hu et al. 2018): channels scaled by a function of their means."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.squeeze, self.excite = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` with its channels scaled."""
        weights: torch.Tensor = self.excite(nn.functional.silu(self.squeeze(self.pool(x))))
        return x * weights.sigmoid()


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Return (batch, tokens, width) as (batch, heads, tokens, head)."""
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)
