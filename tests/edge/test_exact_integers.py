"""INT8 variants compute exact sums with all kernels that PyTorch has here, also beyond the calibrated range."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mlsys.edge.variants import in_format  # noqa: E402

ENGINES = [name for name in torch.backends.quantized.supported_engines if name != "none"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def same_engine_afterwards() -> Any:
    before = torch.backends.quantized.engine
    yield
    torch.backends.quantized.engine = before


def dense(weight: np.ndarray) -> Any:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    return _filled(layer, weight)


def conv(weight: np.ndarray) -> Any:
    layer = torch.nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], bias=False)
    return _filled(layer, weight)


def _filled(layer: Any, weight: np.ndarray) -> Any:
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight.astype(np.float32)))
    return torch.nn.Sequential(layer)


def signs(*shape: int) -> np.ndarray:
    """Return weights of ±1: one channel of each sign, one alternating, and drawn ones."""
    drawn = np.random.default_rng(5).choice([-1.0, 1.0], shape)
    drawn[0], drawn[1] = 1, -1
    drawn[2] = (1 - 2 * (np.arange(drawn[2].size) % 2)).reshape(drawn[2].shape)
    return drawn


def grid_of(narrow: Any) -> tuple[float, int]:
    """Return scale and zero of the input of a quantised network."""
    return float(narrow.get_buffer("0_input_scale_0")), int(narrow.get_buffer("0_input_zero_point_0"))


def exact_bytes(narrow: Any, given: Any) -> np.ndarray:
    """Return the bytes of the one quantised layer, its sums computed in whole numbers."""
    layer, (scale, zero) = narrow.get_submodule("0"), grid_of(narrow)
    values = np.clip(np.rint(given.numpy() / np.float32(scale)) + zero, 0, 255).astype(int) - zero
    weight = layer.weight()
    whole = weight.int_repr().numpy().astype(int)
    if whole.ndim == 4:
        size = whole.shape[-1]
        windows = np.lib.stride_tricks.sliding_window_view(values, (size, size), axis=(2, 3))
        sums = np.einsum("nchwij,ocij->nohw", windows, whole)
        scales = weight.q_per_channel_scales().numpy().reshape(1, -1, 1, 1)
    else:
        sums, scales = values @ whole.T, weight.q_per_channel_scales().numpy()
    return np.clip(np.rint(sums * (scales * scale / layer.scale)) + layer.zero_point, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("most", [1.0, 40.0])
@pytest.mark.parametrize(("made", "shape", "given"), [(dense, (8, 64), (1, 64)), (conv, (8, 8, 3, 3), (1, 8, 5, 5))])
def test_static_int8_is_exact_in_the_worst_case(
    engine: str, most: float, made: Any, shape: tuple[int, ...], given: tuple[int, ...]
) -> None:
    """Inputs at the end of the calibrated range, and forty times beyond it, where activations are 255 all the same."""
    module = made(signs(*shape))
    calibration = torch.cat([torch.zeros(given), torch.ones(given), torch.rand((6, *given[1:]))])
    narrow = in_format(module, SimpleNamespace(train_x=calibration), "int8-static", engine)
    inputs = torch.full(given, most)
    got = narrow.get_submodule("0")(torch.quantize_per_tensor(inputs, *grid_of(narrow), torch.quint8))
    apart = got.int_repr().numpy().astype(int) - exact_bytes(narrow, inputs).astype(int)
    assert np.abs(apart).max() <= 1  # PyTorch's kernels scale in 32-bit reals, and a tie may go either way
    assert int(narrow.get_submodule("0").weight().int_repr().int().abs().max()) <= 64


@pytest.mark.parametrize("engine", ENGINES)
def test_dynamic_int8_is_exact_in_the_worst_case(engine: str) -> None:
    """The largest activations by the largest weights: a saturated sum would be half of the right one."""
    weight = signs(8, 64)
    narrow = in_format(dense(weight), SimpleNamespace(train_x=None), "int8-dynamic", engine)
    for inputs in (torch.ones(1, 64), -torch.ones(1, 64), torch.cat([torch.ones(1, 64), torch.zeros(1, 64)])):
        wanted = inputs.numpy() @ weight.T
        assert np.abs(narrow(inputs).detach().numpy() - wanted).max() <= 0.02 * 64


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize("engine", ENGINES)
def test_dynamic_recurrent_layers_do_not_saturate(engine: str, kind: Any) -> None:
    """Weights of one size and inputs at their largest, scaled so that gates are far from flat."""
    module = kind(64, 4)
    with torch.no_grad():
        for name, value in module.named_parameters():
            value.fill_(0.01 if name.startswith("weight_ih") else 0.0)
    narrow = in_format(torch.nn.Sequential(module), SimpleNamespace(train_x=None), "int8-dynamic", engine)
    inputs = torch.ones(1, 1, 64)
    wanted, got = module(inputs)[0].detach().numpy(), narrow(inputs)[0].detach().numpy()
    assert np.abs(got / wanted - 1).max() < 0.02
