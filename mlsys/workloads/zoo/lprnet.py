"""LPRNet: licence plate recognition, with pooling that drops channels."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder

# Provinces, digits, letters, three more characters, and the blank: sirius-ai/LPRNet_Pytorch, data/load_data.py.
SIGNS = 68


def _block(net: CnnBuilder, name: str, out: int) -> None:
    quarter = out // 4
    net.conv(f"{name} in", quarter, 1, norm=False)
    net.conv(f"{name} tall", quarter, (3, 1), norm=False)
    net.conv(f"{name} wide", quarter, (1, 3), norm=False)
    net.conv(f"{name} out", out, 1, bias=True)


def _every(net: CnnBuilder, channels: int) -> None:
    """Append 3 × 3 max pooling that halves the width and keeps one of every ``channels`` channels."""
    _, height, width = net.shape
    before, net.shape = net.elements, (net.channels // channels, height - 2, (width - 3) // 2 + 1)
    net._reduce("pool", before, net.elements * 8)


def lprnet(net: CnnBuilder) -> None:
    """Append LPRNet (Zherzdev & Gruzdev, arXiv:1806.10447; sirius-ai/LPRNet_Pytorch, model/LPRNet.py@330c09c)."""
    net.conv("conv1", 64, 3, padding=0, bias=True)
    kept = [net.channels]
    net.pool(3, 1)
    _block(net, "block 1", 128)
    kept.append(net.channels)
    _every(net, 2)
    _block(net, "block 2", 256)
    _block(net, "block 3", 256)
    kept.append(net.channels)
    _every(net, 4)
    net.conv("conv2", 256, (1, 4), padding=0, bias=True)
    net.conv("conv3", SIGNS, (13, 1), padding=0, bias=True)
    # The kept feature maps are pooled to this size, divided by their mean square, and concatenated.
    net.shape = (sum(kept) + SIGNS, *net.shape[1:])
    net.ride_along("means", net.elements, 3)
    net.conv("classifier", SIGNS, 1, norm=False, act=None)
