"""``load``: a network from a name of the catalogue, a factory, a configuration or an ONNX file."""

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

_LONGEST = 1000  # characters of a name or a path


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

    A network of the catalogue is built from its layer recipe or loaded from a stored capture of its PyTorch code, both
    without torch; the others are defined operator by operator.

    Parameters
    ----------
    model
        The name of a network of the catalogue, ``package.module:factory``, the ``config.json`` of a
        transformers model or its folder, a GGUF file, a ``.safetensors`` file or index beside a ``config.json``
        (their headers are read, for the bytes of weights), or an ONNX file.
    batch
        Images or sequences; by default 1, or that of a factory's inputs or an ONNX file. The batch axis of a factory's
        inputs is found by running the module without data.
    sequence, image
        Tokens, or the side of a square image; by default those of the network: 512 tokens for decoders and 128 for
        encoders of the catalogue, except where a paper fixes another number.
    precision
        Number format in which values are stored; by default FP32, or that of a factory, a configuration or an ONNX
        file. It overrides the ``quantization_config`` of a configuration.
    phase
        Phase of a decoder language model of the catalogue or of a configuration: ``"prefill"`` (the default), or
        ``"decode"``, one token that attends to ``sequence``. Of an encoder-decoder also ``None``: both halves read
        ``sequence`` tokens; in the prefill the decoder then begins with one, except for Whisper.
    sizes
        Values of the sizes that an ONNX file leaves open, by their names in the file.
    shape
        Shape of the only input of a factory's module.
    weight_format, kv_format
        Of a decoder language model of the catalogue or of a configuration: formats of its stored weights, such as
        ``"int4 g128"`` or ``"q4_k_m"``, and of its key-value cache; by default what the model states, or
        ``precision``, which stays the format of the activations.
    option
        Format in which errors write the name of an argument.

    Returns
    -------
    Workload
        The network; its ``sizes`` are those that were used and its ``recipe`` names its source.

    Raises
    ------
    UnknownNameError
        If the network, number format or open size is unknown.
    ArgumentError
        If an argument does not apply to the network, or the network is invalid.

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
    """Return whether there is no configuration that specifies a number format."""
    from mlsys.workloads.stated_precision import stated_precision

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
            "an ONNX file, which specifies the rest",
        )
        return _stored(_from_onnx(name, given, dict(sizes or {}), option), form)
    if sizes:
        raise ArgumentError(
            f"{option.format('size')} applies to the open sizes of an ONNX file; other networks accept "
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
        encoder = configured_encoder(model, given, precision, phase, option, formats)
        if encoder is not None:
            return encoder
        refuse_others(option, formats, set(), f"{model}, which is built by transformers and traced")
        return traced_configuration(model, given, precision, phase, option, error)
