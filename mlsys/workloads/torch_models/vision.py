"""Image classifiers in plain torch, with the layers and parameters of their papers and released models."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from mlsys.workloads.torch_models.parts import SqueezeExcite, conv_norm
from mlsys.workloads.zoo.cnn_builder import divisible

# Convolutions of 3 × 3 in the five stages, Simonyan & Zisserman 2015, table 1: columns A, B, D, E.
_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg(depth: int) -> nn.Module:
    """Return VGG (Simonyan & Zisserman 2015, table 1) for 224 × 224 images."""
    layers: list[nn.Module] = []
    into = 3
    for count, out in zip(_VGG[depth], (64, 128, 256, 512, 512), strict=True):
        for _ in range(count):
            layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU()]
            into = out
        layers.append(nn.MaxPool2d(2, 2))
    layers += [nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))


def alexnet() -> nn.Module:
    """Return AlexNet in the single-tower variant (Krizhevsky, arXiv:1404.5997)."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    layers += [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    for into, out in ((192, 384), (384, 256), (256, 256)):
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(9216, 4096), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))


class _Fire(nn.Module):
    def __init__(self, into: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(into, squeezed, 1)
        self.narrow, self.wide = nn.Conv2d(squeezed, expanded, 1), nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze(x).relu()
        return torch.cat([self.narrow(x).relu(), self.wide(x).relu()], 1)


def squeezenet(version: str = "1.0") -> nn.Module:
    """Return SqueezeNet (Iandola et al., arXiv:1602.07360, table 1), or 1.1, which pools earlier."""
    early = version == "1.0"
    into = 96 if early else 64
    first = nn.Conv2d(3, into, 7 if early else 3, 2)
    layers: list[nn.Module] = [first, nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
    for index, squeezed in enumerate((16, 16, 32, 32, 48, 48, 64, 64), start=2):
        layers.append(_Fire(into, squeezed, 4 * squeezed))
        into = 8 * squeezed
        if index in ((4, 8) if early else (3, 5)):
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
    return nn.Sequential(*layers, nn.Conv2d(into, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class _DenseLayer(nn.Module):
    def __init__(self, into: int, growth: int) -> None:
        super().__init__()
        layers = (nn.BatchNorm2d(into), nn.ReLU(), nn.Conv2d(into, 4 * growth, 1, bias=False))
        last = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        self.body = nn.Sequential(*layers, nn.BatchNorm2d(4 * growth), nn.ReLU(), last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.body(x)], 1)


# Growth, and layers in each block: Huang et al. 2017, table 1.
_DENSE = {
    121: (32, (6, 12, 24, 16)),
    161: (48, (6, 12, 36, 24)),
    169: (32, (6, 12, 32, 32)),
    201: (32, (6, 12, 48, 32)),
}


def densenet(depth: int = 121) -> nn.Module:
    """Return DenseNet in the BC form (Huang et al., CVPR 2017, table 1)."""
    growth, blocks = _DENSE[depth]
    into = 2 * growth
    layers: list[nn.Module] = [conv_norm(3, into, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for stage, count in enumerate(blocks):
        for _ in range(count):
            layers.append(_DenseLayer(into, growth))
            into += growth
        if stage < 3:
            layers += [nn.BatchNorm2d(into), nn.ReLU(), nn.Conv2d(into, into // 2, 1, bias=False), nn.AvgPool2d(2, 2)]
            into //= 2
    layers += [nn.BatchNorm2d(into), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000)]
    return nn.Sequential(*layers)


class _Inverted(nn.Module):
    """Sandler et al. 2018, section 3: expand, depthwise convolution, optional squeeze and excitation, project."""

    def __init__(
        self, into: int, out: int, kernel: int, stride: int, factor: int, act: type[nn.Module], excite: bool
    ) -> None:
        super().__init__()
        width = into * factor
        layers: list[nn.Module] = [conv_norm(into, width, 1, act=act)] if factor > 1 else []
        layers.append(conv_norm(width, width, kernel, stride, width, act))
        if excite:
            layers.append(SqueezeExcite(width, max(1, into // 4)))
        self.body = nn.Sequential(*layers, conv_norm(width, out, 1, act=None))
        self.adds = stride == 1 and into == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)  # type: ignore[no-any-return]


def _inverted_stack(
    stem: int, plan: Sequence[Sequence[int]], last: int, act: type[nn.Module], excite: bool
) -> nn.Module:
    layers: list[nn.Module] = [conv_norm(3, stem, 3, 2, act=act)]
    into = stem
    for factor, out, repeats, first_stride, kernel in plan:
        for repeat in range(repeats):
            layers.append(_Inverted(into, out, kernel, 1 if repeat else first_stride, factor, act, excite))
            into = out
    layers += [conv_norm(into, last, 1, act=act), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, 1000)]
    return nn.Sequential(*layers)


def efficientnet(width: float = 1.0, depth: float = 1.0, lite: bool = False) -> nn.Module:
    """Return EfficientNet-B0 (Tan & Le, ICML 2019, table 1), or one scaled in width and depth.

    Lite leaves out squeeze and excitation and clips instead of swish; its first and last stage stay as they are.
    """
    plan = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )
    scaled = tuple(
        (factor, divisible(out * width), repeats if lite and stage in (0, 6) else math.ceil(repeats * depth), *rest)
        for stage, (factor, out, repeats, *rest) in enumerate(plan)
    )
    last = 1280 if lite else 4 * scaled[-1][1]
    return _inverted_stack(divisible(32 * width), scaled, last, nn.ReLU6 if lite else nn.SiLU, excite=not lite)
