"""Networks of the catalogue as workloads: from a layer recipe, from a stored capture, or from an operator list."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsys.choices import Phase
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.precision import PRECISIONS, precision_name
from mlsys.workloads.argument_checks import checked_size, refuse_others, spelled, unknown_network
from mlsys.workloads.operator import NETWORK, PREFILL, Network

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.operator import Operator
    from mlsys.workloads.workload import Workload
    from mlsys.workloads.zoo.decoder import Decoder
    from mlsys.workloads.zoo.entry import Entry
    from mlsys.workloads.zoo.source_encoder import SourceEncoder


_FORMATS = {"weight_format": "weights", "kv_format": "cache"}


def from_catalogue(
    name: str,
    given: dict[str, int],
    precision: str,
    phase: Phase | None,
    option: str,
    abridged: bool = False,
    formats: Mapping[str, str] | None = None,
) -> Workload:
    """Return a network of the catalogue by name, in the form in which it is defined, or in other formats."""
    from mlsys.workloads import zoo

    entry = zoo.resolve(name)
    if entry is None:
        raise unknown_network(name)
    if formats:
        entry = in_formats(entry, formats, option)
    return from_entry(entry, given, precision, phase, option, abridged)


def in_formats(entry: Entry, formats: Mapping[str, str], option: str) -> Entry:
    """Return the entry of a decoder with weights and cache in other formats; its recipe without edges counts these.

    Raises
    ------
    ArgumentError
        If it is no decoder language model.
    UnknownNameError
        If a format is unknown.
    """
    if entry.model is None:
        raise ArgumentError(
            f"{spelled(option, next(iter(formats)))} is for models that generate tokens, of the catalogue or of a "
            f"configuration, and {entry.name!r} is none"
        )
    stored_in = [f"{what} in {formats[name]}" for name, what in _FORMATS.items() if name in formats]
    model: Decoder = entry.model
    for name, form in formats.items():
        try:
            model = model.in_formats(**{name: form})
        except UnknownNameError as error:
            raise UnknownNameError(f"{spelled(option, name)}: {error}") from None
    return replace(entry, model=model, drawn=False, source=f"{entry.source}; {', '.join(stored_in)}")


def from_entry(
    entry: Entry, given: dict[str, int], precision: str, phase: Phase | None, option: str, abridged: bool = False
) -> Workload:
    """Return the network described by an entry of the catalogue, or by a modified entry."""
    takes = {"batch"} | ({"image"} if entry.free_image else set()) | ({"sequence"} if entry.sequence else set())
    refuse_others(
        option, given, takes, f"{entry.name!r}" if takes > {"batch"} else f"{entry.name!r}, whose input has one size"
    )
    if phase is not None and not entry.model:
        raise ArgumentError(
            f"{option.format('phase')} applies to models that generate tokens, of the catalogue or of a configuration, "
            f"and {entry.name!r} is not one"
        )
    if entry.longest and given.get("sequence", 0) > entry.longest:
        raise ArgumentError(
            f"{option.format('sequence')} must be at most {entry.longest}, the positions learned by {entry.name}, "
            f"got {given['sequence']}"
        )
    if entry.drawn and phase != "decode":
        return _drawn(entry, {"batch": 1, **given}, precision, phase, abridged)
    if entry.code:
        return _captured(entry, given, precision, option)
    return _written_down(entry, {"batch": 1, **given}, precision, phase)


def _captured(entry: Entry, given: Mapping[str, int], precision: str, option: str) -> Workload:
    """Return a network from its stored capture, or from a new capture at a size that its code fixed."""
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
        _again=partial(_changed, _reference(entry), wanted, precision, None),
        _stored=partial(_in_format, _reference(entry), wanted, None),
        _apart=partial(_listed, entry.title, workload),
    )


def _anew(entry: Entry, recipe: Any, wanted: dict[str, int], precision: str, stuck: set[str]) -> Workload:
    if importlib.util.find_spec("torch") is None:
        raise ArgumentError(
            f"{entry.name} was captured at its default {' and '.join(sorted(stuck))} and must be captured again for "
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
    """Return a network with its graph, both built from its layer recipe."""
    sizes = _with_usual(entry, sizes)
    given: dict[str, Any] = {**sizes, "precision": precision}
    drawing = entry.drawing(**given, abridged=True)
    short = replace(
        drawing.finished().at({}),
        name=entry.title,
        kind=PREFILL if entry.model and entry.model.head else NETWORK,
        decoder=entry.model,
        sizes=FrozenDict(sizes),
        recipe=f"{entry.source}; defined layer by layer, with its graph",
        left_out=drawing.omitted_layers,
        _again=partial(_changed, _reference(entry), sizes, precision, phase, abridged=abridged),
        _stored=partial(_in_format, _reference(entry), sizes, phase),
        _apart=partial(_one_by_one, _reference(entry), {**given, "phase": phase}),
    )
    if abridged or not drawing.omitted_layers:
        return short
    whole = replace(short.with_layers(), views=short.views + drawing.omitted_layers * drawing.views_per_layer)
    return replace(whole, _abridged=short, _wired=partial(_edges, entry, given))


def _edges(entry: Entry, given: Mapping[str, Any], operators: tuple[Operator, ...]) -> OperatorGraph:
    """Return the graph of all layers, built on request; the operators are known."""
    return replace(entry.drawing(**given).finished().at({}).graph, operators=operators)


def _with_usual(entry: Entry, sizes: dict[str, int]) -> dict[str, int]:
    if entry.image and entry.free_image:
        sizes = {**sizes, "image": sizes.get("image", entry.image[1])}
    if entry.sequence:
        sizes = {**sizes, "sequence": sizes.get("sequence", entry.sequence)}
    return sizes


def _written_down(entry: Entry, sizes: dict[str, int], precision: str, phase: Phase | None) -> Workload:
    from mlsys.workloads.workload import Workload
    from mlsys.workloads.zoo.layer_builder import attention_in_one_kernel

    sizes = _with_usual(entry, sizes)
    given: dict[str, Any] = {**sizes, "precision": precision, "phase": phase}
    network = entry.build(**given, fused=False)
    operators = tuple(map(attention_in_one_kernel, network.operators))  # as in layer recipes and captures
    workload = Workload.from_network(replace(network, operators=operators))
    model = entry.model
    if model is not None and (model.quantization is not None or model.encoder is not None):
        bits = PRECISIONS[precision]
        count = int(model.parameters().magnitude)  # also of an encoder, which a decoding step does not run
        stored = count * bits / 8 if model.quantization is None else model.quantization.weight_bytes(model, bits)
        workload = replace(workload, held=workload.held._replace(parameters=count, weights=round(stored)))
    recipe = f"{entry.source}; defined operator by operator"
    if model is not None and model.encoder is not None:
        recipe += f"; {_encoder_words(sizes['sequence'], phase, model.encoder)}"
        model = model if model.encoder.fixed else model.reading(sizes["sequence"])
    return replace(
        workload,
        name=entry.title,
        decoder=model,
        sizes=FrozenDict(sizes),
        recipe=recipe,
        _again=partial(_changed, _reference(entry), sizes, precision, phase),
        _stored=partial(_in_format, _reference(entry), sizes, phase),
        _kernels=partial(_ride_along, _reference(entry), given),
        _apart=partial(_one_by_one, _reference(entry), given),
    )


def _encoder_words(tokens: int, phase: Phase | None, encoder: SourceEncoder) -> str:
    """Return what encoder and decoder read, in words."""
    read = encoder.tokens if encoder.fixed else tokens
    if phase == "decode":
        return f"a token attends to {tokens:,} of the decoder and {read:,} of the encoder, which has been run"
    begins = 1 if phase == "prefill" and not encoder.fixed else tokens
    return f"the encoder reads {read:,} tokens and the decoder {begins:,}"


def _reference(entry: Entry) -> str | Entry:
    """Return the reference to an entry stored in a workload: its name, or the entry if the catalogue lacks it."""
    from mlsys.workloads.zoo.catalogue import CATALOGUE

    return entry.name if entry.name in CATALOGUE and CATALOGUE[entry.name] is entry else entry


def _entry(reference: str | Entry) -> Entry:
    from mlsys.workloads import zoo

    return zoo.entry(reference) if isinstance(reference, str) else reference


def _changed(
    network: str | Entry,
    sizes: Mapping[str, int],
    precision: str,
    phase: Phase | None,
    changes: Mapping[str, int],
    abridged: bool = False,
) -> Workload:
    for size in changes:
        if size not in sizes:
            raise UnknownNameError(
                f"at(): {_entry(network).name!r} has no free size {size!r}. Free: {', '.join(sizes)}."
                f"{did_you_mean(size, sizes)}"
            )
    chosen = {size: checked_size(f"`{size}`", number) for size, number in {**sizes, **changes}.items()}
    return from_entry(_entry(network), chosen, precision, phase, "`{}`", abridged)


def _in_format(network: str | Entry, sizes: Mapping[str, int], phase: Phase | None, precision: str) -> Workload:
    entry = _entry(network)
    if entry.model is not None and entry.model.quantization is not None:  # one format is requested for all values
        entry = replace(entry, model=entry.model.unquantised())
    return from_entry(entry, dict(sizes), precision_name(precision), phase, "`{}`")


def _listed(name: str, workload: Workload) -> Network:
    return Network(name, workload.operators)


def _one_by_one(network: str | Entry, given: dict[str, Any]) -> Network:
    entry = _entry(network)
    return replace(entry.build(**given, fused=False), name=entry.title)


def _ride_along(network: str | Entry, given: dict[str, Any]) -> Network:
    entry = _entry(network)
    return replace(entry.build(**given, whole=True), name=entry.title)
