"""Batch normalisation folded into the layer before it: the same numbers, and nothing left to compute."""

import copy
import pickle

import pytest
import torch
from torch import nn

from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import fold_batch_norm, fuse
from mlsys.workloads import Workload
from mlsys.workloads.torch_models import recipe

LAYERS = {
    "conv1d": (lambda: nn.Conv1d(6, 8, 3, bias=False), nn.BatchNorm1d, (2, 6, 9)),
    "conv2d": (lambda: nn.Conv2d(6, 8, 3, 2, 1), nn.BatchNorm2d, (2, 6, 9, 7)),
    "conv2d, groups": (lambda: nn.Conv2d(6, 8, 3, groups=2, bias=False), nn.BatchNorm2d, (2, 6, 9, 7)),
    "depthwise": (
        lambda: nn.Conv2d(8, 8, 3, groups=8, padding_mode="reflect", padding=1),
        nn.BatchNorm2d,
        (2, 8, 9, 7),
    ),
    "conv3d": (lambda: nn.Conv3d(6, 8, 2), nn.BatchNorm3d, (2, 6, 5, 4, 3)),
    "transposed 1d": (lambda: nn.ConvTranspose1d(6, 8, 3, 2), nn.BatchNorm1d, (2, 6, 9)),
    "transposed 2d": (lambda: nn.ConvTranspose2d(6, 8, 3, 2, 1, 1, bias=False), nn.BatchNorm2d, (2, 6, 5, 4)),
    "transposed, groups": (lambda: nn.ConvTranspose2d(6, 8, 3, 2, groups=2), nn.BatchNorm2d, (2, 6, 5, 4)),
    "transposed 3d, groups": (lambda: nn.ConvTranspose3d(6, 9, 2, groups=3), nn.BatchNorm3d, (2, 6, 3, 4, 3)),
    "linear": (lambda: nn.Linear(6, 8), nn.BatchNorm1d, (5, 6)),
    "no affine": (lambda: nn.Conv2d(6, 8, 3), lambda n: nn.BatchNorm2d(n, affine=False, eps=0.1), (2, 6, 9, 7)),
}


def lived_in(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """Return a module whose statistics, gains and shifts are far from those it was born with."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_(0.5, 2.0)
            part.running_var.uniform_(0.05, 4.0)
            if part.affine:
                nn.init.normal_(part.weight, 0.3, 1.0)  # some below zero
                nn.init.normal_(part.bias, -0.5, 1.0)
    return module.to(dtype).eval().requires_grad_(False)


def norms(module: nn.Module) -> int:
    return sum(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules())


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_the_same_numbers(name: str, dtype: torch.dtype, tolerance: float) -> None:
    layer, norm, shape = LAYERS[name]
    made = layer()
    channels = made.out_features if isinstance(made, nn.Linear) else made.out_channels
    network = lived_in(nn.Sequential(made, norm(channels), nn.Tanh()), dtype)
    before = copy.deepcopy(network.state_dict())
    folded = fold_batch_norm(network)
    x = torch.randn(shape, dtype=dtype)
    torch.testing.assert_close(folded(x), network(x), rtol=tolerance, atol=tolerance)
    assert (norms(folded), norms(network)) == (0, 1)
    assert all(torch.equal(network.state_dict()[key], value) for key, value in before.items()), "the original changed"


def test_torchs_own_formula_agrees() -> None:
    network = lived_in(nn.Sequential(nn.Conv2d(6, 8, 3, groups=2), nn.BatchNorm2d(8)))
    theirs = nn.utils.fusion.fuse_conv_bn_eval(network[0], network[1])
    ours = fold_batch_norm(network)[0]
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(ours.bias, theirs.bias, rtol=1e-13, atol=1e-13)


def test_all_53_of_resnet50() -> None:
    network = lived_in(recipe("resnet50").make(), torch.float32)
    for part in network.modules():  # gains that keep fifty layers within range
        if isinstance(part, nn.BatchNorm2d):
            part.weight.uniform_(0.1, 0.5)
    folded = fold_batch_norm(network)
    x = torch.randn(1, 3, 64, 64)
    torch.testing.assert_close(folded(x), network(x), rtol=1e-4, atol=1e-5)
    assert (norms(network), norms(folded)) == (53, 0)


def test_the_work_of_normalisation_falls_to_zero() -> None:
    """Two FLOP an element before, one addition of a bias after; fused, the bytes are the same but for the vectors."""
    with torch.device("meta"):
        network = recipe("resnet50").make().eval()
        image = torch.zeros(1, 3, 224, 224)
    before, after = (Workload.from_torch(module, image) for module in (network, fold_batch_norm(network)))
    work = {row.kind: row.elementwise.magnitude for row in before.by_kind()}
    left = {row.kind: row.elementwise.magnitude for row in after.by_kind()}
    outputs = 11_113_984  # elements that the 53 convolutions make
    assert work["normalisation"] == 2 * outputs
    assert "normalisation" not in left
    assert left["conv2d"] - work["conv2d"] == outputs
    assert after.product_flops == before.product_flops
    assert (len(before), len(after)) == (174, 121)
    fused, folded = fuse(before), fuse(after)
    assert folded.kernels == fused.kernels == 56
    channels = 26_560
    assert (fused.data - folded.data).m_as("byte") == 4 * channels * (4 - 1)
    assert after.parameters.magnitude == before.parameters.magnitude - channels


class Shared(nn.Module):
    """Two readers of a convolution, one convolution used twice, one that runs before two normalisations."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(4, 4, 1) for _ in range(3))
        self.na, self.nb, self.nc = (nn.BatchNorm2d(4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        y = self.na(y) + y
        z = self.nb(self.b(self.b(y)))
        return self.nc(self.c(z))


def test_a_layer_with_another_reader_keeps_its_normalisation() -> None:
    network = lived_in(Shared())
    folded = fold_batch_norm(network)
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(folded(x), network(x), rtol=1e-12, atol=1e-12)
    kept = [name for name, part in folded.named_modules() if isinstance(part, nn.BatchNorm2d)]
    assert kept == ["na", "nb"]


def test_what_cannot_be_folded_stays() -> None:
    conv, norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
    networks = [
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.BatchNorm2d(4)),
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False)),
        nn.Sequential(conv, norm, conv, norm),
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 4, 1)), nn.BatchNorm2d(4)),
    ]
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    for network in networks:
        for part in network.modules():
            if isinstance(part, nn.BatchNorm2d) and part.running_mean is None:
                part.register_buffer("running_mean", None)
        network = network.double().eval().requires_grad_(False)
        folded = fold_batch_norm(network)
        assert norms(folded) == norms(network)
        torch.testing.assert_close(folded(x), network(x), rtol=1e-12, atol=1e-12)


def test_parts_are_folded_where_the_whole_cannot_be_followed() -> None:
    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x) if x.sum() > 0 else -self.body(x)

    network = lived_in(Looks())
    folded = fold_batch_norm(network)
    assert norms(folded) == 0
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(folded(x), network(x), rtol=1e-12, atol=1e-12)


def test_a_linear_layer_over_sequences_is_not_folded_silently() -> None:
    """Of (batch, length, features) the normalisation takes the length for its channels."""
    network = lived_in(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
    folded = pickle.loads(pickle.dumps(fold_batch_norm(network)))
    assert folded(torch.zeros(2, 8, dtype=torch.float64)).shape == (2, 8)
    with pytest.raises(ArgumentError, match="was given 3 axes: it would normalise along the second"):
        folded(torch.zeros(2, 8, 8, dtype=torch.float64))


def test_training_mode_is_refused() -> None:
    with pytest.raises(ArgumentError, match="in training mode: there, batch normalisation takes mean and variance"):
        fold_batch_norm(nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()))
    partly = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)).eval()
    partly[1].train()
    with pytest.raises(ArgumentError, match=r"in training mode \(1\)"):
        fold_batch_norm(partly)
    with pytest.raises(ArgumentError, match="`module` must be a torch.nn.Module, got 3"):
        fold_batch_norm(3)
