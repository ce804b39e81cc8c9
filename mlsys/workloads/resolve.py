"""The single way to a network: a name of the catalogue, a factory, a configuration or an ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.precision import precision_name
from mlsys.workloads.argument_checks import checked_size, refuse_others, unknown_network
from mlsys.workloads.from_catalogue import from_catalogue

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

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
    weight_format: str | None = None,
    kv_format: str | None = None,
    option: str = "`{}`",
) -> Workload:
    """Return a network as a workload; nothing is computed, and no weight is loaded.

    A network of the catalogue is drawn from the recipe that counts its products, or comes from a stored
    capture of its PyTorch code, both without torch; the others are written down operator by operator.

    Parameters
    ----------
    model
        The name of a network of the catalogue, ``package.module:factory``, the ``config.json`` of a
        transformers model or its folder, a GGUF file, a ``.safetensors`` file or index beside a ``config.json``
        (their headers are read, for the bytes of weights), or an ONNX file.
    batch
        Images or sequences; by default 1, or what a factory's inputs or an ONNX file say. Of a factory's inputs, the
        axis is found by running the module without data.
    sequence, image
        Tokens, or the side of a square image, by default the network's usual one: 512 tokens for
        decoders and 128 for encoders of the catalogue, except where a paper fixes another.
    precision
        Number format that values are stored in; by default FP32, or what a factory, a configuration or an ONNX file
        says. It overrides the ``quantization_config`` of a configuration.
    phase
        Of a decoder language model of the catalogue or of a configuration: ``"prefill"`` (the default), or
        ``"decode"``, one token that attends to ``sequence``.
    sizes
        Numbers for the sizes that an ONNX file leaves open, by its names for them.
    shape
        Shape of the one input of a factory's module.
    weight_format, kv_format
        Of a decoder language model of the catalogue or of a configuration: formats of its stored weights, such as
        ``"int4 g128"`` or ``"q4_k_m"``, and of its key-value cache; by default what the model states, or
        ``precision``, which stays the format of the activations.
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
    13.76 GB
    """
    formats = _named(weight_format=weight_format, kv_format=kv_format)
    workload = _loaded(str(model), batch, sequence, image, precision, phase, sizes, shape, formats, option)
    return replace(workload, default_format=True) if precision is None and _unstated(model) else workload


def _unstated(model: str | Path) -> bool:
    """Return whether no configuration states a number format."""
    from mlsys.workloads.transformer_config.workload import stated_precision

    return stated_precision(model) is None


def _loaded(
    name: str,
    batch: int | None,
    sequence: int | None,
    image: int | None,
    precision: str | None,
    phase: Phase | None,
    sizes: Mapping[str, int] | None,
    shape: tuple[int, ...] | None,
    formats: dict[str, str],
    option: str,
) -> Workload:
    if len(name) > _LONGEST:
        raise unknown_network(name)
    given: dict[str, Any] = {"batch": batch, "sequence": sequence, "image": image}
    given = {size: checked_size(option.format(size), number) for size, number in given.items() if number is not None}
    form = None if precision is None else precision_name(precision)
    path = Path(name)
    if path.suffix == ".onnx":
        refuse_others(
            option,
            given | _named(phase=phase, shape=shape, **formats),
            {"batch", "sequence"},
            "an ONNX file, which says the rest",
        )
        return _stored(_from_onnx(name, given, dict(sizes or {}), option), form)
    if sizes:
        raise ArgumentError(
            f"{option.format('size')} is for the open sizes of an ONNX file; other networks take "
            f"{option.format('batch')} and {option.format('sequence')}"
        )
    if path.suffix in (".json", ".gguf", ".safetensors") or (path.is_dir() and (path / "config.json").is_file()):
        refuse_others(option, _named(shape=shape), set(), "a configuration")
        return _from_config(name, given, form, phase, formats, option)
    if ":" in name:
        refuse_others(option, _named(phase=phase, **formats), set(), "a factory")
        from mlsys.workloads.from_factory import from_factory

        return from_factory(name, given, shape, form, option)
    refuse_others(option, _named(shape=shape), set(), "a network of the catalogue")
    return from_catalogue(name, given, form or "fp32", phase, option, formats=formats)


def _named(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _stored(workload: Workload, precision: str | None) -> Workload:
    return workload if precision is None else workload.stored_as(precision)


def _from_onnx(model: str, given: Mapping[str, int], sizes: dict[str, int], option: str) -> Workload:
    from mlsys.workloads.onnx_import import from_onnx, wanted_sizes

    checked = {name: checked_size(name, size) for name, size in sizes.items()}
    wanted = wanted_sizes(model, given, checked, option)
    return replace(from_onnx(model, sizes=wanted), recipe=f"ONNX file {model}")


def _from_config(
    model: str,
    given: dict[str, int],
    precision: str | None,
    phase: Phase | None,
    formats: dict[str, str],
    option: str,
) -> Workload:
    from mlsys.workloads.transformer_config import UnknownArchitectureError
    from mlsys.workloads.transformer_config.workload import (
        configured_decoder,
        configured_encoder,
        traced_configuration,
    )

    try:
        return configured_decoder(model, given, precision, phase, option, formats)
    except UnknownArchitectureError as error:
        refuse_others(option, formats, set(), f"{model}, which is built by transformers and traced")
        encoder = configured_encoder(model, given, precision, phase, option)
        return encoder or traced_configuration(model, given, precision, phase, option, error)
