"""What people mean by a network: a name, a factory, a configuration or an ONNX file, and what it becomes."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["captured"]

_BATCH_NAMES = ("batch", "batch_size", "N", "n")
_SEQUENCE_NAMES = ("sequence", "sequence_length", "seq_len", "seq", "length")


def captured(model: str, given: dict[str, Any], sizes: tuple[str, ...] = (), option: str = "--{}") -> Any:
    """Return the workload that ``model`` means, at the given batch, sequence, image, shape and precision.

    Parameters
    ----------
    model
        The name of a network, ``package.module:factory``, the config.json of a transformers model
        or its folder, or an ONNX file.
    given
        Sizes and the precision, by name; what is left out is as usual for the network.
    sizes
        ``"NAME=NUMBER"`` for each further open size of an ONNX file.
    option
        How an error writes the name of what was given.

    Raises
    ------
    ValueError
        If there is no such network, or something was given that does not go with it.
    """
    from mlsys.workloads import Workload

    path = Path(model)
    if path.suffix == ".onnx":
        _refuse(option, given, {"batch", "sequence"}, "an ONNX file, which fixes its images and number formats")
        return _onnx(model, given, sizes, option)
    if sizes:
        raise ValueError(
            f"{option.format('size')} is for the open sizes of an ONNX file; other networks take "
            f"{option.format('batch')} and {option.format('sequence')}"
        )
    if path.suffix == ".json" or (path.is_dir() and (path / "config.json").is_file()):
        _refuse(option, given, {"batch", "sequence", "image", "precision"}, "a configuration")
        return Workload.from_hf_config(model, **given)
    if ":" in model:
        return _made(model, given)
    _refuse(option, given, {"batch", "sequence", "image", "precision"}, "a network of the catalogue")
    return _named(model, given)


def _refuse(option: str, given: Mapping[str, Any], taken: set[str], what: str) -> None:
    for name in given:
        if name not in taken:
            known = ", ".join(map(option.format, sorted(taken)))
            raise ValueError(f"{option.format(name)} does not go with {what}. It takes {known}")


def _onnx(model: str, given: Mapping[str, Any], sizes: tuple[str, ...], option: str) -> Any:
    from mlsys.workloads import Workload
    from mlsys.workloads.onnx_import import open_sizes

    wanted: dict[str, int] = {}
    for pair in sizes:
        name, _, number = pair.partition("=")
        if not number.isdecimal():
            raise ValueError(f"{option.format('size')} must be NAME=NUMBER, such as batch=8, got {pair!r}")
        wanted[name] = int(number)
    names = open_sizes(model)
    for size, usual in (("batch", _BATCH_NAMES), ("sequence", _SEQUENCE_NAMES)):
        found = next((known for known in usual if known in names), None)
        if size in given and found is None:
            raise ValueError(
                f"{option.format(size)}: the model has no open size of that name. Open: {', '.join(names) or 'none'}"
            )
        if found is not None:
            wanted.setdefault(found, given.get(size, 1 if size == "batch" else 128))
    return Workload.from_onnx(model, sizes=wanted)


def _named(model: str, given: dict[str, Any]) -> Any:
    from mlsys.errors import UnknownNameError, did_you_mean
    from mlsys.workloads import Workload, zoo
    from mlsys.workloads.torch_models import RECIPES, canonical_name, workload

    if canonical_name(model) in RECIPES and importlib.util.find_spec("torch") is not None:
        return workload(model, **given)
    if zoo.resolve(model) is not None:
        return Workload.from_network(zoo.network(model, fused=False, **{"precision": "fp32", **given}))
    names = [*RECIPES, *(name for name in zoo.networks() if canonical_name(name) not in RECIPES)]
    raise UnknownNameError(
        f"unknown network {model!r}.{did_you_mean(model, names)} Give a name ({', '.join(list(RECIPES)[:4])}, … "
        f"{len(names)} in all), package.module:factory, a config.json or a .onnx file"
    )


def _made(model: str, given: dict[str, Any]) -> Any:
    """Return what a factory makes, captured."""
    from mlsys.workloads import Workload
    from mlsys.workloads.factory import module_of
    from mlsys.workloads.torch_import.guess import adjusted, guessed_inputs

    module, inputs, name = module_of(model, meta=True)
    shape = given.pop("shape", None)
    if inputs is None or shape:
        inputs = guessed_inputs(module, _sizes(shape) if shape else None, **given)
    module, inputs = adjusted(module, inputs, **given)
    return Workload.from_torch(module, inputs, name=name)


def _sizes(shape: str) -> tuple[int, ...]:
    parts = [part.strip() for part in shape.strip("()[] ").split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise ValueError(f"--shape must be whole numbers with commas, such as 1,3,224,224, got {shape!r}")
    return tuple(map(int, parts))
