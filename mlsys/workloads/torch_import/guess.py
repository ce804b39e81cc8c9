"""Example inputs for a module without any, and conversion of inputs to another device or number format."""

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from mlsys.errors import ArgumentError
from mlsys.workloads.argument_checks import checked_shape


def guessed_inputs(
    module: nn.Module,
    shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    sequence: int | None = None,
    image: int | None = None,
    precision: str = "fp32",
    option: str = "--{}",
) -> torch.Tensor:
    """Return an input that fits the first layer with weights: images, tokens or features.

    Raises
    ------
    ArgumentError
        If that layer does not say what it takes, or takes no sequence or no images where one is given.
    """
    from mlsys.workloads.torch_models import torch_dtype

    first = next((part for part in module.modules() if next(part.parameters(recurse=False), None) is not None), None)
    if isinstance(first, nn.Embedding | nn.EmbeddingBag):
        _refuse(first, option, image=image)
        return torch.zeros(checked_shape(shape or (batch, sequence or _SEQUENCE)), dtype=torch.long, device="meta")
    if shape is None:
        shape = _shape(first, batch, sequence, image, option)
    return torch.zeros(checked_shape(shape), dtype=torch_dtype(precision), device="meta")


_SEQUENCE, _IMAGE = 128, 224


def _shape(
    first: nn.Module | None, batch: int, sequence: int | None, image: int | None, option: str
) -> tuple[int, ...]:
    if isinstance(first, nn.Conv2d):
        _refuse(first, option, sequence=sequence)
        return (batch, first.in_channels, image or _IMAGE, image or _IMAGE)
    if isinstance(first, nn.Conv1d):
        _refuse(first, option, image=image)
        return (batch, first.in_channels, sequence or _SEQUENCE)
    if isinstance(first, nn.Linear):
        _refuse(first, option, sequence=sequence, image=image)
        return (batch, first.in_features)
    what = "a module without weights" if first is None else f"a first layer {type(first).__name__}"
    raise ArgumentError(
        f"the inputs cannot be guessed from {what}: give {option.format('shape')}, such as 1,3,224,224, "
        "or let the factory return (module, example_inputs)"
    )


def _refuse(first: nn.Module, option: str, **sizes: int | None) -> None:
    for name, size in sizes.items():
        if size is not None:
            raise ArgumentError(
                f"{option.format(name)} does not go with a module whose first layer is {type(first).__name__}: leave "
                f"it out, give {option.format('shape')}, or let the factory return (module, example_inputs)"
            )


def as_placed(inputs: object, precision: str | None, device: str) -> Any:
    """Return inputs without data on a device; floating-point inputs in a number format, if one is given."""
    from mlsys.workloads.torch_models import torch_dtype

    dtype = torch_dtype(precision) if precision else None

    def position(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        form = dtype if dtype and value.is_floating_point() else value.dtype
        return (
            value
            if (value.dtype, value.device.type) == (form, device)
            else torch.zeros(value.shape, dtype=form, device=device)
        )

    return pytree.tree_map(position, inputs)
