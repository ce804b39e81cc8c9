"""Networks in plain torch, built from code, without trained weights, by name.

The table of names knows no torch; it is loaded when a network is made.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.precision import precision_name

if TYPE_CHECKING:
    from mlsys.workloads.torch_import.assemble import Template

__all__ = ["RECIPES", "Recipe", "recipe", "template"]

TORCH_DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Recipe:
    """Constructor of a network and its example inputs.

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
    return Recipe(
        home,
        factory,
        arguments,
        ("sequence",),
        default,
    )


# Networks whose recipe is their code; those that the catalogue writes down with their edges need none.
RECIPES: dict[str, Recipe] = {
    "mlp": Recipe("small", "mlp", (), (128,)),
    "lenet5": Recipe("small", "lenet5", (), (1, 32, 32)),
    "small-cnn": Recipe("small", "small_cnn", (), (1, 28, 28)),
    "ds-cnn": Recipe("tiny", "ds_cnn", (), (1, 49, 10)),
    "resnet8": Recipe("tiny", "resnet8", (), (3, 32, 32)),
    "ad-autoencoder": Recipe("tiny", "autoencoder", (), (640,)),
    "alexnet": Recipe("vision", "alexnet"),
    **{f"squeezenet-{version}": Recipe("vision", "squeezenet", (version,)) for version in ("1.0", "1.1")},
    **{f"vgg{depth}": Recipe("vision", "vgg", (depth,)) for depth in (11, 13, 16, 19)},
    **{f"densenet{depth}": Recipe("vision", "densenet", (depth,)) for depth in (121, 161, 169, 201)},
    **{  # the authors' released coefficients of width and depth, and sides of the picture
        f"efficientnet-{size}": Recipe("vision", "efficientnet", (width, depth, size == "lite0"), default=side)
        for size, width, depth, side in (
            *(("b0", 1.0, 1.0, 224), ("b1", 1.0, 1.1, 240), ("b2", 1.1, 1.2, 260), ("b3", 1.2, 1.4, 300)),
            *(("b4", 1.4, 1.8, 380), ("lite0", 1.0, 1.0, 224)),
        )
    },
    "unet": Recipe("small", "UNet", (), (3, "image", "image"), 256, multiple=16),
    "detr-r50": Recipe("transformers", "DETR", (), (3, "image", "image"), 800, converts=True),
    "lstm-lm": _tokens("Recurrent", "LSTM", default=35, home="small"),
    "gru-lm": _tokens("Recurrent", "GRU", default=35, home="small"),
}


def recipe(name: str) -> Recipe:
    """Return the recipe for a network of the catalogue in PyTorch, by any usual spelling of its name.

    Raises
    ------
    UnknownNameError
        If there is no such network.
    ArgumentError
        If it is only counted: its recipe does not say what reads what.

    Examples
    --------
    >>> recipe("ResNet-50").shape, recipe("bert-large").default
    ((3, 'image', 'image'), 384)
    """
    from mlsys.workloads import zoo
    from mlsys.workloads.argument_checks import unknown_network

    entry = zoo.resolve(name)
    if entry is None:
        raise unknown_network(name)
    if entry.code:
        return RECIPES[entry.code]
    if not entry.drawn:
        raise ArgumentError(
            f"{name!r} cannot be run: the catalogue counts its layers and does not say what reads what. Give another "
            f"network, such as {', '.join(list(RECIPES)[:3])}, a package.module:factory, or a config.json"
        )
    if entry.image is None:
        return Recipe("built", "drawn_network", (entry.name,), ("sequence",), entry.sequence or 1)
    return Recipe(
        "built", "drawn_network", (entry.name,), (entry.image[0], "image", "image"), entry.image[1], fitted=True
    )


def template(name: str, precision: str = "fp32") -> Template:
    """Capture a network of the table on the meta device, batch, sequence and image left free where its code allows.

    :func:`mlsys.workloads.load` gives the same from a file, without torch.

    Examples
    --------
    >>> captured = template("alexnet")
    >>> sorted(captured.free), print(captured.at(captured.sizes | {"batch": 1}).macs)
    714188480 MAC
    (['batch', 'image'], None)
    """
    from mlsys.workloads.torch_import.build import template_of

    if name not in RECIPES:
        raise UnknownNameError(f"unknown network {name!r}. Known: {', '.join(RECIPES)}.{did_you_mean(name, RECIPES)}")
    recipe = RECIPES[name]
    module, inputs = recipe.ready(2, dtype=torch_dtype(precision))
    (taken,) = list(inspect.signature(module.forward).parameters)
    free: dict[str, Any] = {"batch": {taken: 0}}
    if recipe.free == "sequence":
        free["sequence"] = {taken: 1}
    if recipe.free == "image" and not recipe.fitted:
        free |= {"image": {taken: 2}, "width": {taken: 3}}
    captured = template_of(module, inputs, dynamic=free, name=name)
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
