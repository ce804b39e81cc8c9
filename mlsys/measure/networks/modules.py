"""Modules with weights in memory, ready to run: by name, or from a factory."""

from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_count

_SEED = 0
_WORDS = 1000  # size of the vocabulary that tokens are drawn from; every vocabulary of the catalogue is larger


def ready_model(
    model: str, *, batch: int = 1, image: int | None = None, sequence: int | None = None
) -> tuple[Any, Any, str]:
    """Return a module in evaluation mode, its inputs, and its name.

    Parameters
    ----------
    model
        A network of the catalogue that has PyTorch code, or the ``config.json`` of a transformers model, with
        random weights of a fixed seed; or ``package.module:factory``, a module or a function that returns
        one or ``(module, inputs)``.
    batch, image, sequence
        As for :func:`mlsys.workloads.load`.

    Raises
    ------
    UnknownNameError
        If the network is unknown.
    ArgumentError
        If a size does not apply to it, or the factory does not return a module.

    Examples
    --------
    >>> module, inputs, name = ready_model("mlp", batch=4)
    >>> name, tuple(inputs.shape), module.training
    ('mlp', (4, 128), False)
    """
    import torch

    given = {"batch": batch, "image": image, "sequence": sequence}
    sizes = {name: checked_count("ready_model", name, value) for name, value in given.items() if value is not None}
    torch.manual_seed(_SEED)
    path = Path(model)
    if path.suffix == ".onnx":
        raise ArgumentError(
            f"{model!r} cannot be compiled: an ONNX file has no PyTorch code. Give a name, a package.module:factory "
            "or a config.json"
        )
    if path.suffix == ".json" or (path.is_dir() and (path / "config.json").is_file()):
        module, inputs, name = _configured(model, sizes)
    else:
        module, inputs, name = _made(model, sizes) if ":" in model else _named(model, sizes)
    return module.eval(), inputs, name


def _named(model: str, sizes: dict[str, int]) -> tuple[Any, Any, str]:
    import torch

    from mlsys.workloads import zoo
    from mlsys.workloads.torch_models import recipe as recipe_of

    recipe, entry = recipe_of(model), zoo.entry(model)
    name = entry.name
    for label in ("image", "sequence"):
        if label in sizes and recipe.free != label:
            takes = f"takes --{recipe.free}" if recipe.free else "has one input size"
            raise ArgumentError(f"--{label} does not apply to {name}, which {takes}. Omit it")
    if entry.longest and sizes.get("sequence", recipe.default) > entry.longest:
        raise ArgumentError(f"--sequence must be at most {entry.longest} for {name}, got {sizes['sequence']}")
    shape = [sizes.get(size, recipe.default) if isinstance(size, str) else size for size in recipe.shape]
    module = recipe.make(sizes.get("image"))
    if recipe.free == "sequence":
        return module, torch.randint(0, _WORDS, (sizes["batch"], *shape)), name
    return module, torch.randn(sizes["batch"], *shape), name


def _configured(model: str, sizes: dict[str, int]) -> tuple[Any, Any, str]:
    """Return the model of a transformers configuration with random weights, and inputs to run it on."""
    from mlsys.workloads.hf import built_model

    module, inputs = built_model(model, **sizes, precision="fp32", device="cpu")
    words = min(_WORDS, getattr(module.config, "vocab_size", None) or _WORDS)
    return module, {name: _filled(value, words) for name, value in inputs.items()}, type(module).__name__


def _filled(given: Any, words: int = _WORDS) -> Any:
    import torch

    if given.is_floating_point():
        return torch.randn(given.shape, dtype=given.dtype)
    return torch.randint(0, words, given.shape)


def _made(model: str, sizes: dict[str, Any]) -> tuple[Any, Any, str]:

    from mlsys.workloads.factory import module_of
    from mlsys.workloads.torch_import.guess import as_placed, guessed_inputs

    module, inputs, name = module_of(model, meta=False)
    if inputs is None:
        inputs = _filled(as_placed(guessed_inputs(module, None, **sizes), None, "cpu"))
    elif sizes != {"batch": 1}:
        raise ArgumentError(f"{model!r} has its own inputs: omit --batch, --image and --sequence")
    return module, inputs, name
