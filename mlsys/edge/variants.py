"""Pruned and quantised variants of a trained network."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from mlsys.edge.config import EdgeVariant
from mlsys.edge.task import EdgeTask, train
from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    import torch

_CALIBRATION = 128  # images for calibrating the activation ranges of static quantisation
_SAFE_WEIGHT = 64  # largest absolute weight for which two products with an unsigned byte fit into 16 bits
_FLOATS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class Sizes(NamedTuple):
    """Bytes of weights and biases, as stored in memory and without zeros, and of statistics and counters.

    ``sparse`` is one bit per weight plus the non-zero values; the dense size if that is smaller.
    """

    dense: int
    sparse: int
    nonzero: int
    parameters: int
    buffers: int


def pruned(
    module: torch.nn.Module, task: EdgeTask, variant: EdgeVariant, *, training: dict[str, Any], seed: int
) -> torch.nn.Module:
    """Return a pruned copy of a trained module, fine-tuned for a few epochs.

    Parameters
    ----------
    module
        A trained module.
    task
        Data for fine-tuning.
    variant
        Variant with pruning method and level. Structured pruning removes the channels of least absolute weight from
        every layer but the last, which reduces shapes and operations; unstructured pruning sets the least absolute
        weights of the whole network to zero and keeps the shapes.
    training
        ``finetune_epochs``, ``batch`` and ``learning_rate``.
    seed
        Seed of the order of the images.

    Raises
    ------
    ArgumentError
        If the module cannot be pruned in this way.

    References
    ----------
    G. Fang et al., DepGraph: Towards Any Structural Pruning, CVPR 2023 (torch-pruning, which finds channels that depend
    on each other); S. Han et al., Learning both Weights and Connections, NeurIPS 2015.
    """
    made = copy.deepcopy(module)
    if not variant.level:
        return made
    if variant.method == "structured":
        _cut_channels(made, task.test_x[:1], variant.level)
    else:
        _zero_weights(made, variant.level)
    train(
        made,
        task,
        epochs=training["finetune_epochs"],
        batch=training["batch"],
        learning_rate=training["learning_rate"] / 2,
        seed=seed + 1,
        masks=masks_of(made) if variant.method == "unstructured" else None,
    )
    return made


def _cut_channels(module: torch.nn.Module, example: torch.Tensor, level: float) -> None:
    import torch
    import torch_pruning as tp

    layers = [child for child in module.modules() if isinstance(child, (torch.nn.Linear, torch.nn.Conv2d))]
    if not layers:
        raise ArgumentError("structured pruning needs a convolution or linear layer, and the network has none")
    for parameter in module.parameters():
        parameter.requires_grad_(True)  # the dependencies are traced through the gradients
    try:
        cutter = tp.pruner.MagnitudePruner(
            module,
            example,
            importance=tp.importance.MagnitudeImportance(p=1),
            pruning_ratio=level,
            ignored_layers=[layers[-1]],
        )
        cutter.step()
        module(example)
    except Exception as error:  # a user's network may raise anything
        raise ArgumentError(
            f"structured pruning by {level:.0%} failed: {type(error).__name__}: {error}. Use a lower level"
        ) from error


def _zero_weights(module: torch.nn.Module, level: float) -> None:
    import torch
    from torch.nn.utils import prune

    weights = [(child, "weight") for child in module.modules() if isinstance(child, (torch.nn.Linear, torch.nn.Conv2d))]
    if not weights:
        raise ArgumentError("unstructured pruning needs a convolution or linear layer, and the network has none")
    prune.global_unstructured(weights, pruning_method=prune.L1Unstructured, amount=level)
    for layer, name in weights:
        prune.remove(layer, name)  # type: ignore[no-untyped-call]


def masks_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the masks of non-zero weights, by parameter name."""
    return {name: (value != 0).to(value.dtype) for name, value in module.named_parameters() if value.dim() > 1}


def input_dtype(precision: str) -> torch.dtype:
    """Return PyTorch's input format for a variant."""
    import torch

    dtype: torch.dtype = getattr(torch, _FLOATS.get(precision, "float32"))
    return dtype


def check_backend(backend: str, precisions: tuple[str, ...]) -> None:
    """Refuse an INT8 backend that this build of PyTorch lacks, if any format needs it."""
    import torch

    known = [name for name in torch.backends.quantized.supported_engines if name != "none"]
    if backend not in known and any(precision.startswith("int8") for precision in precisions):
        raise ArgumentError(
            f"quantization_backend: this PyTorch has no {backend!r}. It has {', '.join(known)}; or leave the INT8 "
            "formats from `precisions`"
        )


def in_format(module: torch.nn.Module, task: EdgeTask, precision: str, backend: str) -> torch.nn.Module:
    """Return a copy of a module that stores and computes in a number format.

    Parameters
    ----------
    module
        A module in FP32.
    task
        Task whose training images calibrate static INT8.
    precision
        One of :data:`mlsys.edge.schema.FORMATS`. Dynamic INT8 stores the weights of linear and recurrent layers in 8
        bits and determines the range of each input at run time; static INT8 also quantises convolutions and
        activations, with calibrated ranges, and stores weights in 7 bits, so that sums of products are exact with all
        kernels and on all CPUs.
    backend
        Quantisation backend for INT8.

    Raises
    ------
    ArgumentError
        If this PyTorch has no such backend, or cannot quantise the module.
    """
    import torch

    if precision in _FLOATS:
        return copy.deepcopy(module).to(getattr(torch, _FLOATS[precision]))
    torch.backends.quantized.engine = backend
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch announces a future move of its quantisation
        try:
            if precision == "int8-dynamic":
                return _dynamic(module)
            return _static(module, task.train_x[:_CALIBRATION])
        except ArgumentError:
            raise
        except Exception as error:  # a user's network may raise anything
            raise ArgumentError(f"{precision}: cannot be quantised: {type(error).__name__}: {error}") from error


def _dynamic(module: torch.nn.Module) -> torch.nn.Module:
    import torch

    kinds = {torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU}
    if not any(type(child) in kinds for child in module.modules()):
        raise ArgumentError("int8-dynamic: the network has no linear or recurrent layer, so nothing would change")
    narrow: torch.nn.Module = torch.ao.quantization.quantize_dynamic(copy.deepcopy(module), kinds, dtype=torch.qint8)
    return narrow


def _static(module: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    import torch
    from torch.ao.quantization import quantize_fx

    ready = quantize_fx.prepare_fx(copy.deepcopy(module).eval(), _exact_mapping(), (images[:1],))
    with torch.no_grad():
        ready(images)
    narrow: torch.nn.Module = quantize_fx.convert_fx(ready)
    return narrow


def _exact_mapping() -> Any:
    """Return a mapping for static INT8 with 7-bit weights, with which no kernel of any CPU saturates.

    On x86 CPUs without VNNI, fbgemm and oneDNN add two products in 16 bits: 2 · 255 · 127 overflows, 2 · 255 · 64 does
    not. PyTorch's own mapping for fbgemm calibrates activations to seven bits instead, which inputs outside the
    calibrated range exceed; its mapping for oneDNN does not prevent saturation.
    """
    import torch
    from torch.ao.quantization import HistogramObserver, MinMaxObserver, QConfig, get_default_qconfig_mapping
    from torch.ao.quantization.observer import PerChannelMinMaxObserver

    narrow = {"dtype": torch.qint8, "quant_min": -_SAFE_WEIGHT, "quant_max": _SAFE_WEIGHT - 1}
    activation = HistogramObserver.with_args(reduce_range=False)
    channels = QConfig(activation, PerChannelMinMaxObserver.with_args(qscheme=torch.per_channel_symmetric, **narrow))
    whole = QConfig(activation, MinMaxObserver.with_args(qscheme=torch.per_tensor_symmetric, **narrow))
    mapping = get_default_qconfig_mapping("qnnpack").set_global(channels)  # with 8-bit activations
    for kind in list(mapping.object_type_qconfigs):
        if "transpose" in str(kind).lower():
            mapping.set_object_type(kind, whole)
    return mapping


def stored_sizes(module: torch.nn.Module) -> Sizes:
    """Return the bytes of all weights and biases of a module, including packed weights of quantised layers.

    Scales and zero points of quantised tensors are excluded: a few bytes per channel.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(4, 2, bias=False)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[0.0, 0, 0, 1], [0, 0, 0, 2]]))
    >>> stored_sizes(layer)
    Sizes(dense=32, sparse=9, nonzero=2, parameters=8, buffers=0)
    """
    dense = sparse = nonzero = count = 0
    for tensor in _tensors(module):
        size, kept = tensor.numel(), int((tensor != 0).sum())
        whole = size * tensor.element_size()
        dense += whole
        sparse += min(whole, -(-size // 8) + kept * tensor.element_size())
        nonzero += kept
        count += size
    buffers = sum(buffer.numel() * buffer.element_size() for buffer in module.buffers())
    return Sizes(dense, sparse, nonzero, count, buffers)


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    from mlsys.workloads.torch_import.build import packed_tensors

    yield from module.parameters()
    yield from packed_tensors(module)
