"""Restoration of the caller's module: weights, buffers, gradients and their devices and formats."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the module, which may be moved or converted inside the context, and restore every tensor at the end.

    A factory may return a module that its owner goes on using, and ``module.to()`` works in place.

    Examples
    --------
    >>> import torch
    >>> layer = nn.Linear(2, 3)
    >>> with untouched(layer) as module:
    ...     moved = module.to(device="meta", dtype=torch.float16)
    >>> layer.weight.device, layer.weight.dtype
    (device(type='cpu'), torch.float32)
    """
    parts = [(part, dict(vars(part))) for part in module.modules()]
    tables: list[tuple[Any, dict[str, Any]]] = [
        (table, dict(table)) for part, _ in parts for table in (part._parameters, part._buffers)
    ]
    tensors = [(tensor, tensor.data, tensor.grad) for tensor in module.parameters()]
    gradients = [(gradient, gradient.data) for _, _, gradient in tensors if gradient is not None]
    try:
        yield module
    finally:
        for part, attributes in parts:
            vars(part).clear()
            vars(part).update(attributes)
        for table, entries in tables:
            table.clear()
            table.update(entries)
        for tensor, data, gradient in tensors:
            tensor.data, tensor.grad = data, gradient
        for gradient, data in gradients:
            gradient.data = data
