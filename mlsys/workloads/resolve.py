"""The one door to a network: a name of the catalogue, a factory, a configuration or an ONNX file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.choices import Phase
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.frozen import FrozenDict
from mlsys.precision import precision_name
from mlsys.workloads.operator import NETWORK, PREFILL

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.operator import Network, Operator
    from mlsys.workloads.workload import Workload
    from mlsys.workloads.zoo.entry import Entry

LARGEST = 10**9  # of a batch, a sequence, an image side: what is larger is a slip of the keyboard
_BATCH_NAMES = ("batch", "batch_size", "N", "n")
_SEQUENCE_NAMES = ("sequence", "sequence_length", "seq_len", "seq", "length")
_SIZES = ("batch", "sequence", "image")
_MOST_AXES = 16
_LONGEST = 1000  # letters of a name or a path


def load(
    model: str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    precision: str | None = None,
    phase: Phase | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    option: str = "`{}`",
) -> Workload:
    """Return a network as a workload; nothing is computed, and no weight is loaded.

    A network of the catalogue is drawn from the recipe that counts its products, or comes from a stored
    capture of its PyTorch code, both without torch; the others are written down operator by operator.

    Parameters
    ----------
    model
        The name of a network of the catalogue, ``package.module:factory``, the ``config.json`` of a
        transformers model or its folder, or an ONNX file.
    batch
        Images or sequences; by default 1, or what a factory's inputs or an ONNX file say.
    sequence, image
        Tokens, or the side of a square image, by default the network's usual one: 512 tokens for
        decoders and 128 for encoders of the catalogue, except where a paper fixes another.
    precision
        Number format that values are stored in; by default FP32, or what a factory or an ONNX file says.
    phase
        Of a decoder language model of the catalogue: ``"prefill"`` (the default), or ``"decode"``,
        one token that attends to ``sequence``.
    sizes
        Numbers for the sizes that an ONNX file leaves open, by its names for them.
    shape
        Shape of the one input of a factory's module.
    option
        How an error writes the name of what was given.

    Returns
    -------
    Workload
        Its ``sizes`` are those that were used and its ``recipe`` says where it comes from.

    Raises
    ------
    UnknownNameError
        If there is no such network, number format or open size.
    ArgumentError
        If something was given that does not go with the network, or the network is broken.

    Examples
    --------
    >>> resnet = load("resnet50", batch=32)
    >>> print(resnet.macs.to("GMAC"), dict(resnet.sizes))
    130.853896 GMAC {'batch': 32, 'image': 224}
    >>> print(f"{load('llama-2-7b', phase='decode', sequence=1024, precision='fp16').data.to('GB'):.2f}")
    13.77 GB
    """
    name = str(model)
    if len(name) > _LONGEST:
        raise unknown_network(name)
    given: dict[str, Any] = {"batch": batch, "sequence": sequence, "image": image}
    given = {size: _checked(option.format(size), number) for size, number in given.items() if number is not None}
    form = None if precision is None else precision_name(precision)
    path = Path(name)
    if path.suffix == ".onnx":
        _only(
            option, given | _named(phase=phase, shape=shape), {"batch", "sequence"}, "an ONNX file, which says the rest"
        )
        return _stored(_from_onnx(name, given, dict(sizes or {}), option), form)
    if sizes:
        raise ArgumentError(
            f"{option.format('size')} is for the open sizes of an ONNX file; other networks take "
            f"{option.format('batch')} and {option.format('sequence')}"
        )
    if path.suffix == ".json" or (path.is_dir() and (path / "config.json").is_file()):
        _only(option, _named(phase=phase, shape=shape), set(), "a configuration")
        return _from_config(name, given, form)
    if ":" in name:
        _only(option, _named(phase=phase), set(), "a factory")
        return _from_factory(name, given, shape, form, option)
    _only(option, _named(shape=shape), set(), "a network of the catalogue")
    return _from_catalogue(name, given, form or "fp32", phase, option)


def unknown_network(model: str) -> UnknownNameError:
    """Return the error for a name that is none."""
    from mlsys.workloads import zoo

    names = zoo.networks()
    return UnknownNameError(
        f"unknown network {short(model)}.{did_you_mean(model, names)} Give a name ({', '.join(names[:4])}, … "
        f"{len(names)} in all), package.module:factory, a config.json or a .onnx file"
    )


def _checked(label: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 1 <= number <= LARGEST:
        raise ArgumentError(f"{label} must be a whole number from 1 to {LARGEST:,}, got {number!r}")
    return int(number)


def _named(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _only(option: str, given: Mapping[str, Any], taken: set[str], what: str) -> None:
    for name in given:
        if name not in taken:
            known = ", ".join(option.format(name) for name in sorted(taken or set(_SIZES)))
            raise ArgumentError(f"{option.format(name)} does not go with {what}. It takes {known}")


def _stored(workload: Workload, precision: str | None) -> Workload:
    return workload if precision is None else replace(workload.stored_as(precision), recipe=workload.recipe)


def _from_onnx(model: str, given: Mapping[str, int], sizes: dict[str, int], option: str) -> Workload:
    from mlsys.workloads.onnx_import import from_onnx, open_sizes

    wanted = {name: _checked(name, size) for name, size in sizes.items()}
    names = open_sizes(model)
    for size, usual in (("batch", _BATCH_NAMES), ("sequence", _SEQUENCE_NAMES)):
        known = next((name for name in usual if name in names), None)
        if size in given and known is None:
            raise ArgumentError(
                f"{option.format(size)}: the model has no open size of that name. Open: {', '.join(names) or 'none'}"
            )
        if known is not None:
            wanted.setdefault(known, given.get(size, 1 if size == "batch" else 128))
    return replace(from_onnx(model, sizes=wanted), recipe=f"ONNX file {model}")


def _from_config(model: str, given: dict[str, int], precision: str | None) -> Workload:
    from mlsys.workloads.hf import from_hf_config
    from mlsys.workloads.torch_import.assemble import TORCH_DTYPES

    captured_in = precision if precision in TORCH_DTYPES else "fp32"
    sizes: dict[str, Any] = dict(given)
    workload = from_hf_config(model, **sizes, precision=captured_in)
    workload = replace(workload, recipe=f"configuration {model}, built by transformers")
    return workload if precision in (None, captured_in) else _stored(workload, precision)


def _from_factory(
    model: str, given: dict[str, Any], shape: tuple[int, ...] | None, precision: str | None, option: str
) -> Workload:
    from mlsys.workloads.factory import module_of
    from mlsys.workloads.torch_import.assemble import TORCH_DTYPES
    from mlsys.workloads.torch_import.build import from_torch
    from mlsys.workloads.torch_import.guess import adjusted, guessed_inputs

    if shape is not None:
        if len(shape) > _MOST_AXES:
            raise ArgumentError(f"{option.format('shape')} must have at most {_MOST_AXES} sizes, got {len(shape)}")
        for size in shape:
            _checked(option.format("shape"), size)
    device = "meta"
    try:
        module, inputs, name = module_of(model, meta=True)
    except ArgumentError as refused:  # quantising, say, needs weights that are there
        try:
            module, inputs, name = module_of(model, meta=False)
        except ArgumentError:
            raise refused from None
        device = "cpu"
    if precision is not None:
        given = given | {"precision": precision if precision in TORCH_DTYPES else "fp32"}
    if inputs is None or shape:
        inputs = guessed_inputs(module, shape, **given)
    module, inputs = adjusted(module, inputs, **given, device=device)
    workload = replace(from_torch(module, inputs, name=name), recipe=f"factory {model}")
    return workload if precision in (None, given.get("precision")) else _stored(workload, precision)


def _from_catalogue(
    name: str, given: dict[str, int], precision: str, phase: Phase | None, option: str, abridged: bool = False
) -> Workload:
    from mlsys.workloads import zoo

    entry = zoo.resolve(name)
    if entry is None:
        raise unknown_network(name)
    takes = {"batch"} | ({"image"} if entry.free_image else set()) | ({"sequence"} if entry.sequence else set())
    _only(option, given, takes, f"{entry.name!r}" if takes > {"batch"} else f"{entry.name!r}, whose input has one size")
    if phase is not None and not entry.model:
        raise ArgumentError(
            f"{option.format('phase')} is for the decoder language models of the catalogue, and {name!r} is none"
        )
    if entry.longest and given.get("sequence", 0) > entry.longest:
        raise ArgumentError(
            f"{option.format('sequence')} must be at most {entry.longest}, the positions that {entry.name} has "
            f"learned, got {given['sequence']}"
        )
    if entry.drawn and phase != "decode":
        return _drawn(entry, {"batch": 1, **given}, precision, phase, abridged)
    if entry.code:
        return _captured(entry, given, precision, option)
    return _written_down(entry, {"batch": 1, **given}, precision, phase)


def _captured(entry: Entry, given: Mapping[str, int], precision: str, option: str) -> Workload:
    """Return a network with code from its stored capture, or captured anew at a size that its code fixed."""
    from mlsys.workloads.captures import stored_template
    from mlsys.workloads.torch_models import RECIPES

    recipe = RECIPES[str(entry.code)]
    if given.get("image", recipe.multiple) % recipe.multiple:
        raise ArgumentError(
            f"{option.format('image')} must be a multiple of {recipe.multiple} for {entry.name}, got {given['image']}"
        )
    template = stored_template(str(entry.code), precision)
    usual = {"batch": 1} | ({recipe.free: recipe.default} if recipe.free else {})
    wanted = {**usual, **given}
    stuck = {name for name, size in wanted.items() if size != usual[name] and not template.free.get(name)}
    if not stuck:
        workload = template.at(wanted)
        recipe_text = f"{entry.source}; PyTorch code of the catalogue, captured by {template.source} and stored"
    else:
        workload = _anew(entry, recipe, wanted, precision, stuck)
        recipe_text = f"{entry.source}; PyTorch code of the catalogue, captured by {workload.source}"
    return replace(
        workload,
        name=entry.title,
        sizes=FrozenDict(wanted),
        recipe=recipe_text,
        _again=partial(_changed, entry.name, wanted, precision, None),
        _stored=partial(_in_format, entry.name, wanted, None),
    )


def _anew(entry: Entry, recipe: Any, wanted: dict[str, int], precision: str, stuck: set[str]) -> Workload:
    if importlib.util.find_spec("torch") is None:
        raise ArgumentError(
            f"{entry.name} was captured at its usual {' and '.join(sorted(stuck))} and must be captured anew for "
            "another, which needs torch. Install it with: pip install 'mlsys[torch]'"
        )
    import torch

    from mlsys.workloads.torch_import.assemble import TORCH_DTYPES
    from mlsys.workloads.torch_import.build import from_torch

    captured_in = precision if precision in TORCH_DTYPES else "fp16"
    module, inputs = recipe.ready(**wanted, dtype=getattr(torch, TORCH_DTYPES[captured_in]))
    workload = from_torch(module, inputs, name=entry.name)
    return workload if precision == captured_in else workload.stored_as(precision)


def _drawn(entry: Entry, sizes: dict[str, int], precision: str, phase: Phase | None, abridged: bool) -> Workload:
    """Return a network with its graph, both drawn from the recipe that counts its products."""
    sizes = _with_usual(entry, sizes)
    given: dict[str, Any] = {**sizes, "precision": precision}
    drawing = entry.drawing(**given, abridged=True)
    short = replace(
        drawing.finished().at({}),
        name=entry.title,
        kind=PREFILL if entry.model else NETWORK,
        sizes=FrozenDict(sizes),
        recipe=f"{entry.source}; written down layer by layer, with its edges",
        left_out=drawing.alike,
        _again=partial(_changed, entry.name, sizes, precision, phase, abridged=abridged),
        _stored=partial(_in_format, entry.name, sizes, phase),
    )
    if abridged or not drawing.alike:
        return short
    whole = replace(short.with_layers(), views=short.views + drawing.alike * drawing.looks)
    return replace(whole, _abridged=short, _wired=partial(_edges, entry, given))


def _edges(entry: Entry, given: Mapping[str, Any], operators: tuple[Operator, ...]) -> OperatorGraph:
    """Return the graph of all layers, drawn when it is asked for; the operators are known."""
    return replace(entry.drawing(**given).finished().at({}).graph, operators=operators)


def _with_usual(entry: Entry, sizes: dict[str, int]) -> dict[str, int]:
    if entry.image and entry.free_image:
        sizes = {**sizes, "image": sizes.get("image", entry.image[1])}
    if entry.sequence:
        sizes = {**sizes, "sequence": sizes.get("sequence", entry.sequence)}
    return sizes


def _written_down(entry: Entry, sizes: dict[str, int], precision: str, phase: Phase | None) -> Workload:
    from mlsys.workloads.workload import Workload

    sizes = _with_usual(entry, sizes)
    given: dict[str, Any] = {**sizes, "precision": precision, "phase": phase}
    return replace(
        Workload.from_network(entry.build(**given, fused=False)),
        name=entry.title,
        sizes=FrozenDict(sizes),
        recipe=f"{entry.source}; written down operator by operator",
        _again=partial(_changed, entry.name, sizes, precision, phase),
        _stored=partial(_in_format, entry.name, sizes, phase),
        _kernels=partial(_ride_along, entry.name, given),
    )


def _changed(
    name: str,
    sizes: Mapping[str, int],
    precision: str,
    phase: Phase | None,
    changes: Mapping[str, int],
    abridged: bool = False,
) -> Workload:
    for size in changes:
        if size not in sizes:
            raise UnknownNameError(
                f"at(): {name!r} has no free size {size!r}. Free: {', '.join(sizes)}.{did_you_mean(size, sizes)}"
            )
    chosen = {size: _checked(f"`{size}`", number) for size, number in {**sizes, **changes}.items()}
    return _from_catalogue(name, chosen, precision, phase, "`{}`", abridged)


def _in_format(name: str, sizes: Mapping[str, int], phase: Phase | None, precision: str) -> Workload:
    chosen: dict[str, Any] = dict(sizes)
    return load(name, **chosen, precision=precision, phase=phase)


def _ride_along(name: str, given: dict[str, Any]) -> Network:
    from mlsys.workloads import zoo

    entry = zoo.entry(name)
    return replace(entry.build(**given, whole=True), name=entry.title)
