"""Batch normalisation at inference is one product and one sum a channel: the layer before it can do both."""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    from torch import nn


def fold_batch_norm(module: nn.Module) -> nn.Module:
    r"""Return a copy of a module whose batch normalisations are folded into the layers before them.

    With stored statistics a normalisation is :math:`y = (z - \mu)\,\gamma/\sqrt{\sigma^2+\epsilon} + \beta`.
    Where :math:`z = w x + b` and nobody else reads it, the same numbers come from
    :math:`w' = w\,\gamma/\sqrt{\sigma^2+\epsilon}` and
    :math:`b' = (b - \mu)\,\gamma/\sqrt{\sigma^2+\epsilon} + \beta`.

    Convolutions of one to three dimensions, transposed and grouped ones too, and linear layers take it
    up. A normalisation stays where the result of its layer has another reader, where a layer runs more
    than once, where it keeps no statistics, or where ``forward`` cannot be followed without running it.

    Parameters
    ----------
    module
        A module in evaluation mode; it is not changed.

    Raises
    ------
    ArgumentError
        If it is no torch module, or in training mode, where the statistics are those of the batch.

    References
    ----------
    B. Jacob et al., CVPR 2018 (arXiv:1712.05877), section 3.2.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
    >>> fold_batch_norm(net)
    Sequential(
      (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
      (1): Identity()
      (2): ReLU()
    )
    """
    from torch import nn

    if not isinstance(module, nn.Module):
        raise ArgumentError(
            f"fold_batch_norm(): `module` must be a torch.nn.Module, got {module!r}. Write e.g. fold_batch_norm(model)"
        )
    norms = [(name, part) for name, part in module.named_modules() if _is_norm(part)]
    training = [name or type(part).__name__ for name, part in norms if part.training]
    if module.training or training:
        where = f" ({training[0]})" if training else ""
        raise ArgumentError(
            f"fold_batch_norm(): `module` is in training mode{where}: there, batch normalisation takes mean "
            "and variance from each batch, which no weight can hold. Write fold_batch_norm(module.eval())"
        )
    folded = copy.deepcopy(module)
    times = Counter(id(part) for _, part in folded.named_modules(remove_duplicate=False))
    _fold_in(folded, {identity for identity, count in times.items() if count > 1})
    return folded


def _is_norm(part: Any) -> bool:
    from torch import nn

    return type(part) in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def _fold_in(module: nn.Module, shared: set[int]) -> None:
    """Fold what can be seen in the graph of a module; where it has none, in those of its parts."""
    from torch import fx

    try:
        graph = fx.Tracer().trace(module)
    except Exception:  # fx raises many kinds where forward() looks at values
        for part in module.children():
            _fold_in(part, shared)
        return
    calls = Counter(node.target for node in graph.nodes if node.op == "call_module")
    parts = dict(module.named_modules())
    for node in graph.nodes:
        if node.op != "call_module" or not _is_norm(parts[node.target]):
            continue
        layer = node.args[0] if node.args else None
        if not isinstance(layer, fx.Node) or layer.op != "call_module" or len(layer.users) > 1:
            continue
        pair = (parts[layer.target], parts[node.target])
        if calls[layer.target] > 1 or calls[node.target] > 1 or any(id(part) in shared for part in pair):
            continue
        if _can_fold(*pair):
            _put_into(*pair)
            home, _, name = node.target.rpartition(".")
            setattr(module.get_submodule(home), name, _in_place_of_norm(pair[0]))


def _can_fold(layer: Any, norm: Any) -> bool:
    from torch import nn
    from torch.nn.utils import parametrize

    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear)
    if type(layer) not in kinds or norm.running_mean is None or norm.running_var is None:
        return False
    hooked = any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in (layer, norm))
    made = layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels
    return not hooked and not parametrize.is_parametrized(layer) and made == norm.num_features


def _put_into(layer: Any, norm: Any) -> None:
    """Give a layer the weights with which it normalises too, computed in double precision."""
    import torch
    from torch import nn

    with torch.no_grad():
        mean, variance = norm.running_mean.double(), norm.running_var.double()
        gain = torch.ones_like(mean) if norm.weight is None else norm.weight.double()
        shift = torch.zeros_like(mean) if norm.bias is None else norm.bias.double()
        bias = torch.zeros_like(mean) if layer.bias is None else layer.bias.double()
        scale = gain / torch.sqrt(variance + norm.eps)
        weight = layer.weight.double()
        if isinstance(
            layer, nn.modules.conv._ConvTransposeNd
        ):  # (in, out / groups, …), the groups side by side in `in`
            into, each = weight.shape[0] // layer.groups, weight.shape[1]
            grouped = weight.reshape(layer.groups, into, each, -1) * scale.reshape(layer.groups, 1, each, 1)
            weight = grouped.reshape(weight.shape)
        else:
            weight = weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
        dtype = layer.weight.dtype
        layer.weight = nn.Parameter(weight.to(dtype), layer.weight.requires_grad)
        layer.bias = nn.Parameter(((bias - mean) * scale + shift).to(dtype), layer.weight.requires_grad)


def _in_place_of_norm(layer: Any) -> nn.Module:
    from torch import nn

    from mlsys.mapping.fusion.torch_parts import TwoAxes

    return TwoAxes() if isinstance(layer, nn.Linear) else nn.Identity()
