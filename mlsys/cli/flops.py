"""``mlsys flops``: the work, the weights and the bytes of a network."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import speak_plainly

__all__ = ["captured", "flops"]

_BATCH_NAMES = ("batch", "batch_size", "N", "n")
_SEQUENCE_NAMES = ("sequence", "sequence_length", "seq_len", "seq", "length")


@click.command()
@click.argument("model")
@click.option("--batch", type=int, help="Images or sequences; by default 1.")
@click.option("--sequence", type=int, help="Tokens; by default what is usual for the network.")
@click.option("--image", type=int, help="Side of a square image.")
@click.option("--shape", help="Shape of the one input of a factory's module: 1,3,224,224.")
@click.option("--precision", help="fp64, fp32, fp16 or bf16; by default fp32.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=NUMBER", help="A size that an ONNX model leaves open.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speak_plainly
def flops(model: str, as_json: bool, sizes: tuple[str, ...], **options: Any) -> None:
    """Count the work, the weights and the traffic of MODEL; nothing is computed, no weight is loaded.

    MODEL is the name of a network, a `package.module:factory` that returns a torch module or
    (module, example_inputs), the config.json of a transformers model, or an ONNX file.

    `flops` are those of matrix products, convolutions and attention, two for each MAC, as
    torch.utils.flop_counter counts them; work on single elements stands beside it.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("batch", "sequence", "image"):
        if name in given and given[name] < 1:
            raise ValueError(f"--{name} must be a whole number above zero, got {given[name]}")
    work = captured(model, given, sizes)
    click.echo(json.dumps(_report(work), indent=1, ensure_ascii=False) if as_json else work.explain())


def captured(model: str, given: dict[str, Any], sizes: tuple[str, ...] = ()) -> Any:
    """Return the workload that MODEL means, at the given batch, sequence, image, shape and precision."""
    from mlsys.workloads import Workload

    path = Path(model)
    if path.suffix == ".onnx":
        _refuse(given, {"batch", "sequence"}, "an ONNX file, which fixes its images and number formats")
        return _onnx(model, given, sizes)
    if sizes:
        raise ValueError("--size is for the open sizes of an ONNX file; other networks take --batch and --sequence")
    if path.suffix == ".json" or (path.is_dir() and (path / "config.json").is_file()):
        _refuse(given, {"batch", "sequence", "image", "precision"}, "a configuration")
        return Workload.from_hf_config(model, **given)
    if ":" in model:
        return _made(model, given)
    _refuse(given, {"batch", "sequence", "image", "precision"}, "a network of the catalogue")
    return _named(model, given)


def _refuse(given: Mapping[str, Any], taken: set[str], what: str) -> None:
    for name in given:
        if name not in taken:
            raise ValueError(f"--{name} does not go with {what}. It takes {', '.join(f'--{n}' for n in sorted(taken))}")


def _onnx(model: str, given: Mapping[str, Any], sizes: tuple[str, ...]) -> Any:
    from mlsys.workloads import Workload
    from mlsys.workloads.onnx_import import open_sizes

    wanted: dict[str, int] = {}
    for pair in sizes:
        name, _, number = pair.partition("=")
        if not number.isdecimal():
            raise ValueError(f"--size must be NAME=NUMBER, such as batch=8, got {pair!r}")
        wanted[name] = int(number)
    names = open_sizes(model)
    for option, usual in (("batch", _BATCH_NAMES), ("sequence", _SEQUENCE_NAMES)):
        found = next((known for known in usual if known in names), None)
        if option in given and found is None:
            raise ValueError(f"--{option}: the model has no open size of that name. Open: {', '.join(names) or 'none'}")
        if found is not None:
            wanted.setdefault(found, given.get(option, 1 if option == "batch" else 128))
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
    from mlsys.errors import did_you_mean
    from mlsys.workloads import Workload

    home, _, name = model.partition(":")
    sys.path.insert(0, "")
    try:
        place = importlib.import_module(home)
    except ImportError as error:
        raise ValueError(f"{model!r}: cannot import {home!r}: {error}. Run it where that module is") from error
    finally:
        sys.path.remove("")
    factory = getattr(place, name, None)
    if factory is None:
        raise ValueError(f"{model!r}: {home} has no {name!r}.{did_you_mean(name, vars(place))}")
    import torch

    from mlsys.workloads.torch_import.capture import in_words
    from mlsys.workloads.torch_import.guess import adjusted, guessed_inputs

    try:
        with torch.device("meta"):
            made = factory if isinstance(factory, torch.nn.Module) else factory()
    except TypeError as error:
        raise ValueError(f"{model!r} cannot be called without arguments: {in_words(error)}") from error
    module, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise ValueError(
            f"{model!r} gave {type(module).__name__}; wanted a torch.nn.Module or (module, example_inputs)"
        )
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


def _report(found: Any) -> dict[str, Any]:
    kinds = found.by_kind()
    nodes = len(found) + found.views
    return {
        "model": found.name,
        "source": found.source,
        "flops": int(found.flops.m_as("FLOP")),
        "macs": int(found.macs.m_as("MAC")),
        "elementwise_flops": int(found.elementwise_flops.m_as("FLOP")),
        "flops_by_kind": {row.kind: int(row.flops.magnitude) for row in kinds if row.flops.magnitude},
        "elementwise_flops_by_kind": {
            row.kind: int(row.elementwise.magnitude) for row in kinds if row.elementwise.magnitude
        },
        "operators": {row.kind: row.count for row in kinds},
        "params": int(found.parameters.m_as("param")),
        "bytes": {
            "weights": int(found.weight_bytes.m_as("byte")),
            "buffers": int(found.buffer_bytes.m_as("byte")),
            "inputs": int(found.input_bytes.m_as("byte")),
            "activations": int(found.activation_bytes.m_as("byte")),
            "read": int(found.read.m_as("byte")),
            "written": int(found.written.m_as("byte")),
        },
        "coverage": {"percent": round(100 * found.coverage, 2), "nodes": nodes, "views": found.views},
        "unknown": [
            {"name": one.name, "operator": one.target, "module": one.path, "bytes": int(one.data.m_as("byte"))}
            for one in found.unknown
        ],
    }
