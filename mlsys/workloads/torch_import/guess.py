"""Example inputs for a module that came without any, and the same inputs at another size or precision."""

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from mlsys.errors import ArgumentError


def guessed_inputs(
    module: nn.Module,
    shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    sequence: int = 128,
    image: int = 224,
    precision: str = "fp32",
) -> torch.Tensor:
    """Return an input that fits the first layer with weights: images, tokens or features.

    Raises
    ------
    ArgumentError
        If that layer does not say what it takes.
    """
    from mlsys.workloads.torch_models import torch_dtype

    first = next((part for part in module.modules() if next(part.parameters(recurse=False), None) is not None), None)
    if isinstance(first, nn.Embedding):
        return torch.zeros(shape or (batch, sequence), dtype=torch.long, device="meta")
    if shape is None:
        shape = _shape(first, batch, sequence, image)
    return torch.zeros(shape, dtype=torch_dtype(precision), device="meta")


def _shape(first: nn.Module | None, batch: int, sequence: int, image: int) -> tuple[int, ...]:
    if isinstance(first, nn.Conv2d):
        return (batch, first.in_channels, image, image)
    if isinstance(first, nn.Conv1d):
        return (batch, first.in_channels, sequence)
    if isinstance(first, nn.Linear):
        return (batch, first.in_features)
    raise ArgumentError(
        f"the inputs cannot be guessed from a first layer {type(first).__name__}: give --shape 1,3,224,224, "
        "or let the factory return (module, example_inputs)"
    )


def adjusted(
    module: nn.Module,
    inputs: object,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    precision: str | None = None,
    device: str = "meta",
) -> tuple[nn.Module, Any]:
    """Return module and inputs with axis 0 as the batch, axis 1 of whole numbers as the sequence, in a precision."""
    from mlsys.workloads.torch_models import torch_dtype

    dtype = torch_dtype(precision) if precision else None

    def adjust(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        size = list(value.shape)
        if batch is not None and size:
            size[0] = batch
        if sequence is not None and len(size) == 2 and not value.is_floating_point():
            size[1] = sequence
        if image is not None and len(size) == 4:
            size[2:] = [image, image]
        return torch.zeros(size, dtype=dtype if dtype and value.is_floating_point() else value.dtype, device=device)

    return module.to(device=device, dtype=dtype), pytree.tree_map(adjust, inputs)
