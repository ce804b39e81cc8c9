"""Networks in plain torch, built from code, without trained weights, by name.

The table of names knows no torch; it is loaded when a network is made.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsys.door import checked_number, count
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.precision import precision_name

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

__all__ = ["RECIPES", "Recipe", "canonical_name", "workload"]

TORCH_DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Recipe:
    """How to make a network and what to feed it.

    Attributes
    ----------
    home, factory
        Module below this package, and the class or function in it.
    arguments
        What it is called with.
    shape
        Input beside the batch: ``("sequence",)`` for tokens, else sizes; ``"image"`` stands
        for a side that can be chosen.
    default
        The usual sequence or image side.
    most
        Longest sequence, where positions are learned; 0 for no limit.
    fitted
        The module is made for one image side: it is called with ``image`` too.
    """

    home: str
    factory: str
    arguments: tuple[Any, ...] = ()
    shape: tuple[int | str, ...] = (3, "image", "image")
    default: int = 224
    most: int = 0
    fitted: bool = False

    @property
    def free(self) -> str | None:
        """``"sequence"``, ``"image"``, or None where the input has one size."""
        return next((name for name in self.shape if isinstance(name, str)), None)

    def make(self, image: int | None = None) -> Any:
        """Return the module, on whatever device is current."""
        factory = getattr(importlib.import_module(f"{__name__}.{self.home}"), self.factory)
        return factory(*self.arguments, image=image or self.default) if self.fitted else factory(*self.arguments)


def _tokens(factory: str, *arguments: Any, default: int = 128, most: int = 0, home: str = "transformers") -> Recipe:
    return Recipe(home, factory, arguments, ("sequence",), default, most)


# Sizes: GPT-2 Radford et al. 2019, table 2; BERT Devlin et al. 2019; ViT Dosovitskiy et al. 2021, table 1; LLaMA
# Touvron et al. 2023 (arXiv:2302.13971, table 2; 2307.09288); Llama 3 arXiv:2407.21783, table 3; Mistral
# arXiv:2310.06825, table 1; inner widths as in the released configurations.
RECIPES: dict[str, Recipe] = {
    "mlp": Recipe("small", "mlp", (), (128,)),
    "lenet5": Recipe("small", "lenet5", (), (1, 32, 32)),
    "small-cnn": Recipe("small", "small_cnn", (), (1, 28, 28)),
    "alexnet": Recipe("vision", "alexnet"),
    "squeezenet-1.0": Recipe("vision", "squeezenet"),
    **{f"vgg{depth}": Recipe("vision", "vgg", (depth,)) for depth in (11, 16)},
    **{f"resnet{depth}": Recipe("vision", "ResNet", (depth,)) for depth in (18, 34, 50, 101, 152)},
    "densenet121": Recipe("vision", "densenet121"),
    "mobilenet-v1": Recipe("vision", "mobilenet_v1"),
    "mobilenet-v2": Recipe("vision", "mobilenet_v2"),
    "efficientnet-b0": Recipe("vision", "efficientnet_b0"),
    "unet": Recipe("small", "UNet", (), (3, "image", "image"), 256),
    **{
        f"vit-{size}{patch}": Recipe("transformers", "VisionTransformer", (layers, width, heads, patch), fitted=True)
        for size, patch, layers, width, heads in (
            *(("b", 16, 12, 768, 12), ("b", 32, 12, 768, 12)),
            *(("l", 16, 24, 1024, 16), ("h", 14, 32, 1280, 16)),
        )
    },
    "detr-r50": Recipe("transformers", "DETR", (), (3, "image", "image"), 800),
    "lstm-lm": _tokens("Recurrent", "LSTM", default=35, home="small"),
    "gru-lm": _tokens("Recurrent", "GRU", default=35, home="small"),
    "bert-base": _tokens("BERT", 12, 768, 12, most=512),
    "bert-large": _tokens("BERT", 24, 1024, 16, most=512),
    "gpt2": _tokens("GPT", 12, 768, 12, default=1024, most=1024),
    "gpt2-medium": _tokens("GPT", 24, 1024, 16, default=1024, most=1024),
    "gpt2-large": _tokens("GPT", 36, 1280, 20, default=1024, most=1024),
    "gpt2-xl": _tokens("GPT", 48, 1600, 25, default=1024, most=1024),
    "llama-7b": _tokens("Llama", 32, 4096, 32, 32, 11008, default=2048),
    "llama-13b": _tokens("Llama", 40, 5120, 40, 40, 13824, default=2048),
    "llama2-70b": _tokens("Llama", 80, 8192, 64, 8, 28672, default=4096),
    "llama3-8b": _tokens("Llama", 32, 4096, 32, 8, 14336, 128256, default=8192),
    "mistral-7b": _tokens("Llama", 32, 4096, 32, 8, 14336, default=4096),
}


def canonical_name(name: str) -> str:
    """Return a name in the spelling of the table.

    Examples
    --------
    >>> canonical_name("MobileNet_V2"), canonical_name("ViT-B/16"), canonical_name("ResNet-50")
    ('mobilenet-v2', 'vit-b16', 'resnet50')
    """
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    return next((known for known in RECIPES if known.replace("-", "") == plain), name)


def workload(
    name: str,
    *,
    batch: int = 1,
    sequence: int | None = None,
    image: int | None = None,
    precision: str = "fp32",
    dynamic: bool = False,
) -> Workload:
    """Capture a network of the table, on the meta device: no weight is allocated.

    Parameters
    ----------
    name
        One of ``RECIPES``; capitals, hyphens and underscores do not matter.
    batch
        Images or sequences.
    sequence, image
        Tokens, or the side of a square image, by default the network's usual one.
    precision
        fp64, fp32, fp16 or bf16.
    dynamic
        Leave batch and sequence free, see :meth:`Workload.at`.

    Raises
    ------
    UnknownNameError
        If there is no such network or precision.
    ArgumentError
        If a size is no positive whole number or does not belong to this network.

    Examples
    --------
    >>> print(workload("ResNet-50").macs)
    4089184256 MAC
    """
    key = canonical_name(name)
    if key not in RECIPES:
        raise UnknownNameError(f"unknown network {name!r}. Known: {', '.join(RECIPES)}.{did_you_mean(name, RECIPES)}")
    recipe = RECIPES[key]
    number = {"batch": checked_number("workload", "batch", batch, count(), {})}
    for label, given in (("sequence", sequence), ("image", image)):
        if given is not None and recipe.free != label:
            takes = f"takes {recipe.free}" if recipe.free else "has one input size"
            raise ArgumentError(f"workload(): `{label}` was given, but {key} {takes}. Leave it out")
        if given is not None:
            number[label] = checked_number("workload", label, given, count(), {})
    if recipe.most and number.get("sequence", 0) > recipe.most:
        raise ArgumentError(
            f"workload(): `sequence` must be at most {recipe.most}, the positions that {key} has learned, "
            f"got {sequence}"
        )
    torch_dtype(precision)
    return _captured(
        key,
        int(number["batch"]),
        *(int(number[size]) if size in number else None for size in ("sequence", "image")),
        precision=precision_name(precision),
        dynamic=dynamic,
    )


@functools.lru_cache(maxsize=64)
def _captured(
    key: str, batch: int, sequence: int | None, image: int | None, *, precision: str, dynamic: bool
) -> Workload:
    """Capture once in a process: a workload never changes."""
    import torch

    from mlsys.workloads.torch_import.build import from_torch

    recipe, dtype = RECIPES[key], torch_dtype(precision)
    chosen = {"sequence": sequence, "image": image}
    sizes = [chosen[size] or recipe.default if isinstance(size, str) else size for size in recipe.shape]
    with torch.device("meta"):
        module = recipe.make(image).to(dtype)
        inputs = torch.zeros(batch, *sizes, dtype=torch.long if recipe.free == "sequence" else dtype)
    free = {"batch": 0} | ({"sequence": 1} if recipe.free == "sequence" else {}) if dynamic else None
    return from_torch(module, inputs, dynamic=free, name=key)


def torch_dtype(precision: str) -> Any:
    """Return torch's dtype of a precision that torch models compute in."""
    import torch

    name = precision_name(precision)
    if name not in TORCH_DTYPES:
        raise UnknownNameError(
            f"a torch model cannot be built in {precision!r}. Known: {', '.join(TORCH_DTYPES)}."
            f"{did_you_mean(name, TORCH_DTYPES)} Quantised layers need a module of your own"
        )
    return getattr(torch, TORCH_DTYPES[name])
