"""Networks in plain torch, built from code, without trained weights, by name.

The table of names knows no torch; it is loaded when a network is made.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.precision import precision_name
from mlsys.workloads.zoo.encoders import BERTS, VITS
from mlsys.workloads.zoo.language_models import LANGUAGE_MODELS
from mlsys.workloads.zoo.residual import RESNETS

if TYPE_CHECKING:
    from mlsys.workloads.torch_import.assemble import Template

__all__ = ["RECIPES", "Recipe", "canonical_name", "template"]

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
    fitted
        The module is made for one image side: it is called with ``image`` too.
    multiple
        What an image side must be a multiple of.
    converts
        Its code converts to the number format of its weights, so that captures in two formats differ.
    """

    home: str
    factory: str
    arguments: tuple[Any, ...] = ()
    shape: tuple[int | str, ...] = (3, "image", "image")
    default: int = 224
    fitted: bool = False
    multiple: int = 1
    converts: bool = False

    @property
    def free(self) -> str | None:
        """``"sequence"``, ``"image"``, or None where the input has one size."""
        return next((name for name in self.shape if isinstance(name, str)), None)

    def make(self, image: int | None = None) -> Any:
        """Return the module, on whatever device is current."""
        factory = getattr(importlib.import_module(f"{__name__}.{self.home}"), self.factory)
        return factory(*self.arguments, image=image or self.default) if self.fitted else factory(*self.arguments)

    def ready(self, batch: int, sequence: int | None = None, image: int | None = None, *, dtype: Any) -> Any:
        """Return the module and its input on the meta device, where no weight is allocated."""
        import torch

        chosen = {"sequence": sequence, "image": image}
        sizes = [chosen[size] or self.default if isinstance(size, str) else size for size in self.shape]
        with torch.device("meta"):
            module = self.make(image).to(dtype)
            return module, torch.zeros(batch, *sizes, dtype=torch.long if self.free == "sequence" else dtype)


def _tokens(factory: str, *arguments: Any, default: int = 512, home: str = "transformers") -> Recipe:
    return Recipe(home, factory, arguments, ("sequence",), default, converts=factory == "Llama")


def _llama(name: str) -> Recipe:
    model = LANGUAGE_MODELS[name][0]
    sizes = (model.layers, model.hidden, model.heads, model.kv_heads, model.ffn, model.vocabulary)
    return _tokens("Llama", *sizes)


def _gpt(name: str) -> Recipe:
    model = LANGUAGE_MODELS[name][0]
    return _tokens("GPT", model.layers, model.hidden, model.heads, model.vocabulary, model.positions)


def _bert(name: str, default: int) -> Recipe:
    shape = BERTS[name]
    return _tokens("BERT", shape.layers, shape.width, shape.heads, shape.vocabulary, default=default)


# The sizes of transformers and residual networks stand in one place, with their sources: the tables of the catalogue.
RECIPES: dict[str, Recipe] = {
    "mlp": Recipe("small", "mlp", (), (128,)),
    "lenet5": Recipe("small", "lenet5", (), (1, 32, 32)),
    "small-cnn": Recipe("small", "small_cnn", (), (1, 28, 28)),
    "ds-cnn": Recipe("tiny", "ds_cnn", (), (1, 49, 10)),
    "resnet8": Recipe("tiny", "resnet8", (), (3, 32, 32)),
    "vww-mobilenet-v1": Recipe("tiny", "visual_wake_words", (), (3, "image", "image"), 96),
    "ad-autoencoder": Recipe("tiny", "autoencoder", (), (640,)),
    "alexnet": Recipe("vision", "alexnet"),
    **{f"squeezenet-{version}": Recipe("vision", "squeezenet", (version,)) for version in ("1.0", "1.1")},
    **{f"vgg{depth}": Recipe("vision", "vgg", (depth,)) for depth in (11, 13, 16, 19)},
    **{f"resnet{depth}": Recipe("vision", "ResNet", (depth,)) for depth in RESNETS},
    **{f"densenet{depth}": Recipe("vision", "densenet", (depth,)) for depth in (121, 161, 169, 201)},
    "mobilenet-v1": Recipe("vision", "mobilenet_v1"),
    "mobilenet-v2": Recipe("vision", "mobilenet_v2"),
    **{  # the authors' released coefficients of width and depth, and sides of the picture
        f"efficientnet-{size}": Recipe("vision", "efficientnet", (width, depth, size == "lite0"), default=side)
        for size, width, depth, side in (
            *(("b0", 1.0, 1.0, 224), ("b1", 1.0, 1.1, 240), ("b2", 1.1, 1.2, 260), ("b3", 1.2, 1.4, 300)),
            *(("b4", 1.4, 1.8, 380), ("lite0", 1.0, 1.0, 224)),
        )
    },
    "unet": Recipe("small", "UNet", (), (3, "image", "image"), 256, multiple=16),
    **{
        f"vit-{size[0]}{patch}": Recipe("transformers", "VisionTransformer", (*VITS[size], patch), fitted=True)
        for size, patch in (("base", 16), ("base", 32), ("large", 16), ("huge", 14))
    },
    "detr-r50": Recipe("transformers", "DETR", (), (3, "image", "image"), 800, converts=True),
    "lstm-lm": _tokens("Recurrent", "LSTM", default=35, home="small"),
    "gru-lm": _tokens("Recurrent", "GRU", default=35, home="small"),
    "bert-base": _bert("bert-base", 128),
    "bert-large": _bert("bert-large", 384),
    **{name: _gpt(name) for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")},
    **{name: _llama(name) for name in ("llama-7b", "llama-13b", "mistral-7b")},
    "llama2-70b": _llama("llama-2-70b"),
    "llama3-8b": _llama("llama-3-8b"),
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


def template(name: str, precision: str = "fp32") -> Template:
    """Capture a network of the table on the meta device, batch, sequence and image left free where its code allows.

    :func:`mlsys.workloads.load` gives the same from a file, without torch.

    Examples
    --------
    >>> captured = template("resnet50")
    >>> sorted(captured.free), print(captured.at(captured.sizes | {"batch": 1}).macs)
    4089184256 MAC
    (['batch', 'image'], None)
    """
    from mlsys.workloads.torch_import.build import template_of

    key = canonical_name(name)
    if key not in RECIPES:
        raise UnknownNameError(f"unknown network {name!r}. Known: {', '.join(RECIPES)}.{did_you_mean(name, RECIPES)}")
    recipe = RECIPES[key]
    module, inputs = recipe.ready(2, dtype=torch_dtype(precision))
    (taken,) = list(inspect.signature(module.forward).parameters)
    free: dict[str, Any] = {"batch": {taken: 0}}
    if recipe.free == "sequence":
        free["sequence"] = {taken: 1}
    if recipe.free == "image" and not recipe.fitted:
        free |= {"image": {taken: 2}, "width": {taken: 3}}
    captured = template_of(module, inputs, dynamic=free, name=key)
    if "width" in captured.free:  # pictures are square
        captured.free["image"] += captured.free.pop("width")
        captured.sizes.pop("width")
    return captured


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
