"""Modules with weights in memory, ready to run: by name, or from a factory."""

from __future__ import annotations

from typing import Any

from mlsys.door import checked_number, count
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean

__all__ = ["ready_model"]

_SEED = 0
_WORDS = 1000  # tokens are drawn from so many words; every vocabulary of the catalogue is larger


def ready_model(
    model: str, *, batch: int = 1, image: int | None = None, sequence: int | None = None
) -> tuple[Any, Any, str]:
    """Return a module in evaluation mode, its inputs, and its name.

    Parameters
    ----------
    model
        A network of :data:`mlsys.workloads.torch_models.RECIPES`, with random weights of a fixed seed; or
        ``package.module:factory``, a module or a function that returns one or ``(module, inputs)``.
    batch, image, sequence
        As :func:`mlsys.workloads.torch_models.workload` takes them.

    Raises
    ------
    UnknownNameError
        If there is no such network.
    ArgumentError
        If a size does not go with it, or the factory does not return a module.

    Examples
    --------
    >>> module, inputs, name = ready_model("mlp", batch=4)
    >>> name, tuple(inputs.shape), module.training
    ('mlp', (4, 128), False)
    """
    import torch

    given = {"batch": batch, "image": image, "sequence": sequence}
    sizes = {
        name: int(checked_number("ready_model", name, value, count(), {}))
        for name, value in given.items()
        if value is not None
    }
    torch.manual_seed(_SEED)
    module, inputs, name = _made(model, sizes) if ":" in model else _named(model, sizes)
    return module.eval(), inputs, name


def _named(model: str, sizes: dict[str, int]) -> tuple[Any, Any, str]:
    import torch

    from mlsys.workloads.torch_models import RECIPES, canonical_name

    name = canonical_name(model)
    if name not in RECIPES:
        raise UnknownNameError(
            f"{model!r} cannot be run: it is no network with PyTorch code here.{did_you_mean(model, RECIPES)} "
            f"Give one of {', '.join(RECIPES)}, or package.module:factory; "
            "configurations and ONNX files hold no code to compile"
        )
    recipe = RECIPES[name]
    for label in ("image", "sequence"):
        if label in sizes and recipe.free != label:
            takes = f"takes --{recipe.free}" if recipe.free else "has one input size"
            raise ArgumentError(f"--{label} does not go with {name}, which {takes}. Leave it out")
    if recipe.most and sizes.get("sequence", recipe.default) > recipe.most:
        raise ArgumentError(f"--sequence must be at most {recipe.most} for {name}, got {sizes['sequence']}")
    shape = [sizes.get(size, recipe.default) if isinstance(size, str) else size for size in recipe.shape]
    module = recipe.make(sizes.get("image"))
    if recipe.free == "sequence":
        return module, torch.randint(0, _WORDS, (sizes["batch"], *shape)), name
    return module, torch.randn(sizes["batch"], *shape), name


def _made(model: str, sizes: dict[str, Any]) -> tuple[Any, Any, str]:
    import torch

    from mlsys.workloads.factory import module_of
    from mlsys.workloads.torch_import.guess import adjusted, guessed_inputs

    module, inputs, name = module_of(model, meta=False)
    if inputs is None:
        module, inputs = adjusted(module, guessed_inputs(module, None, **sizes), **sizes)
        inputs = torch.randn(inputs.shape) if inputs.is_floating_point() else torch.randint(0, _WORDS, inputs.shape)
    elif sizes != {"batch": 1}:
        raise ArgumentError(f"{model!r} brings its own inputs: leave --batch, --image and --sequence out")
    return module, inputs, name
