"""A network that reads licence plates, whose pooling drops channels."""

from mlsys.workloads.zoo.picture import Picture

# Provinces, digits, letters, three more signs, and none: sirius-ai/LPRNet_Pytorch, data/load_data.py.
SIGNS = 68


def _block(net: Picture, name: str, out: int) -> None:
    quarter = out // 4
    net.conv(f"{name} in", quarter, 1, norm=False)
    net.conv(f"{name} tall", quarter, (3, 1), norm=False)
    net.conv(f"{name} wide", quarter, (1, 3), norm=False)
    net.conv(f"{name} out", out, 1, bias=True)


def _every(net: Picture, channels: int) -> None:
    """Pool 3 × 3, halve the width, and keep one channel of so many."""
    _, height, width = net.shape
    before, net.shape = net.elements, (net.channels // channels, height - 2, (width - 3) // 2 + 1)
    net._reduce("pool", before, net.elements * 8)


def lprnet(net: Picture) -> None:
    """Zherzdev & Gruzdev, arXiv:1806.10447, as sirius-ai/LPRNet_Pytorch has it (model/LPRNet.py@330c09c)."""
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
    # What was kept is pooled to this size, scaled by its mean square, and joined.
    net.shape = (sum(kept) + SIGNS, *net.shape[1:])
    net.ride_along("means", net.elements, 3)
    net.conv("classifier", SIGNS, 1, norm=False, act=None)
