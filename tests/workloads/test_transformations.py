"""Modules that use torch.func: every sample under ``vmap`` counts, as in torch's own counter."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jacfwd, jvp, vmap
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from mlsys.workloads.torch_import import from_torch


class Around(nn.Module):
    """Calls a function with a layer and the inputs."""

    def __init__(self, layer: nn.Module, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        return self.function(self.layer, *given)


def _gradients(layer: nn.Module, x: torch.Tensor) -> object:
    def loss(weights: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return functional_call(layer, weights, (sample,)).sum()

    return vmap(grad(loss), (None, 0))(dict(layer.named_parameters()), x)


def _attention(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return vmap(lambda q: functional.scaled_dot_product_attention(q, q, q))(x)


CASES = {
    "inputs": (nn.Identity(), lambda _, a, b: vmap(torch.matmul)(a, b), ((3, 4, 8), (3, 8, 5))),
    "a layer": (nn.Linear(8, 4), lambda layer, x: vmap(layer)(x), ((3, 8),)),
    "a weight": (nn.Linear(8, 4), lambda layer, x: vmap(lambda v: layer.weight @ v)(x), ((3, 8),)),
    "an ensemble": (nn.Linear(8, 4), lambda layer, x: vmap(lambda row: x @ row)(layer.weight), ((3, 8),)),
    "images": (nn.Conv2d(3, 4, 3), lambda layer, x: vmap(layer)(x), ((5, 2, 3, 8, 8),)),
    "attention": (nn.Identity(), _attention, ((5, 2, 8, 16),)),
    "one in another": (nn.Linear(8, 4), lambda layer, x: vmap(vmap(layer))(x), ((3, 5, 8),)),
    "a gradient": (
        nn.Linear(8, 4),
        lambda layer, x: grad(lambda v: (layer.weight @ v.T).sum())(x),
        ((3, 8),),
    ),
    "gradients of samples": (nn.Linear(8, 4), _gradients, ((3, 8),)),
    "a derivative": (nn.Linear(8, 4), lambda layer, x: jvp(layer, (x,), (x,)), ((3, 8),)),
    "a Jacobian": (nn.Linear(8, 4), lambda layer, x: jacfwd(layer)(x), ((8,),)),
}


@pytest.mark.parametrize("name", CASES)
def test_every_sample_under_a_transformation_counts(name: str) -> None:
    layer, function, shapes = CASES[name]
    module, given = Around(layer, function).eval(), tuple(torch.zeros(shape) for shape in shapes)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*given)
    if name == "attention":  # on the CPU torch counts none: 2 products of 8 × 8 × 16 in each of 10 heads
        assert from_torch(module, given).product_flops.magnitude == 2 * 2 * 8 * 8 * 16 * 10
    else:
        assert from_torch(module, given).product_flops.magnitude == counter.get_total_flops() > 0
