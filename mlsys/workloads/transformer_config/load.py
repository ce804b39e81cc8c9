"""Load a decoder language model from a catalogue name, a configuration file or the files of a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.transformer_config.encoder_decoders import ENCODER_DECODERS, read_encoder_decoder
from mlsys.workloads.transformer_config.headers import Header, read_gguf, read_safetensors
from mlsys.workloads.transformer_config.read import UnknownArchitectureError, read_config, read_file
from mlsys.workloads.transformer_config.stored import StoredTensors, stored_tensors
from mlsys.workloads.transformer_config.structure import TransformerConfig
from mlsys.workloads.zoo.decoder import Decoder

CONFIG = "config.json"
_SAFETENSORS, _INDEX, _GGUF = ".safetensors", ".safetensors.index.json", ".gguf"


def load_decoder(model: str | Path | Decoder, *, encoders: bool = False) -> Decoder:
    """Return the decoder language model that a name, a configuration or a checkpoint's file describes.

    Parameters
    ----------
    model
        A decoder, which is returned as it is; the name of a language model of the catalogue; a ``config.json``, or
        its folder; a GGUF file; or a ``.safetensors`` file or index beside a ``config.json``. Of files of weights the
        headers alone are read, and the bytes of weights are those of the file. Nothing is downloaded.
    encoders
        Whether to take models whose decoder reads an encoder: T5 and Whisper.

    Returns
    -------
    Decoder
        Of a configuration a :class:`~mlsys.workloads.transformer_config.TransformerConfig`.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such network.
    ArgumentError
        If there is no such file, the network is no decoder language model, or the file is not a model's.

    Examples
    --------
    >>> print(load_decoder("llama-3-8b").kv_cache_per_token().to("KiB"))
    128 KiB
    """
    found = _loaded(model)
    if found.encoder is not None and not encoders:
        raise ArgumentError(
            f"{found.name} has an encoder, and a decoder language model is needed here. `mlsys size` takes it"
        )
    return found


def _loaded(model: str | Path | Decoder) -> Decoder:
    if isinstance(model, Decoder):
        return model
    if not isinstance(model, str | Path):
        raise ArgumentError(
            "`model` must be a language model, its name, such as 'llama-3-8b', or the path of its config.json, "
            f"got {short(model)}"
        )
    path = Path(model)
    if is_checkpoint(path):
        return read_checkpoint(path)
    if path.is_dir() and not (path / CONFIG).is_file():
        raise ArgumentError(f"the folder {str(path)!r} has no {CONFIG}. Give a folder that has one")
    if path.suffix == ".json" or path.is_dir():
        return _read(path)
    return _of_catalogue(str(model))


def is_checkpoint(path: Path) -> bool:
    """Return whether a path names a file of weights, by its ending."""
    return path.name.endswith((_SAFETENSORS, _INDEX, _GGUF))


def read_checkpoint(path: Path, *, quantized: bool = True) -> TransformerConfig:
    """Return the decoder of a GGUF file, or of a safetensors file or index beside a ``config.json``.

    Parameters
    ----------
    path
        The file.
    quantized
        Whether weights take the bytes that they have in the file; False takes them as unquantised.

    Raises
    ------
    ArgumentError
        If a file cannot be read, or its tensors contradict the configuration.
    UnknownArchitectureError
        If it is of an architecture that is not read here.
    """
    if path.name.endswith(_GGUF):
        header = read_gguf(path)
        config = _gguf_config(header, quantized)
    else:
        config = _read(config_of(path), quantized)
        header = read_safetensors(path)
    stored = stored_tensors(header, config)
    if not quantized or stored is None or _matches_config(config, stored):
        return config
    return replace(config, quantization=stored)


def described_file(path: Path) -> dict[str, Any]:
    """Return the JSON object that describes a model: a ``config.json``, also beside weights, or GGUF metadata.

    Raises
    ------
    ArgumentError
        If there is none, or it is no JSON object.
    """
    if path.name.endswith(_GGUF):
        return dict(read_gguf(path).metadata)
    return read_file(config_of(path) if is_checkpoint(path) else path)


def _gguf_config(header: Header, quantized: bool) -> TransformerConfig:
    names = {tensor.name for tensor in header.tensors}
    metadata = {key: value for key, value in header.metadata.items() if key != "general.file_type"}
    if "general.architecture" not in metadata:
        raise ArgumentError(f"{header.path}: the metadata lacks `general.architecture`. Is it a model?")
    config = read_config(metadata, quantized=quantized)
    kept = tuple(each for each in config.assumed if "general.file_type" not in each)
    return replace(config, tied=bool(names) and "output.weight" not in names, assumed=kept)


def _matches_config(config: TransformerConfig, stored: StoredTensors) -> bool:
    """Return whether files hold all parameters in one format of 16 or more bits, as the configuration alone says."""
    return (
        config.quantization is None
        and len(stored.formats) == 1
        and stored.total in (2 * config.parameters().magnitude, 4 * config.parameters().magnitude)
    )


def _read(path: Path, quantized: bool = True) -> TransformerConfig:
    given = read_file(path)
    both = read_encoder_decoder(given)
    if both is not None:
        return both
    try:
        return read_config(given, quantized=quantized)
    except UnknownArchitectureError as error:
        raise UnknownArchitectureError(
            f"{error}, and a decoder language model is needed. Read are "
            f"{', '.join(sorted((*ARCHITECTURES, *ENCODER_DECODERS)))}"
        ) from None


def config_of(path: Path) -> Path:
    """Return the ``config.json`` beside a file of weights.

    Raises
    ------
    ArgumentError
        If the file or its configuration is not there.
    """
    if not path.exists():
        raise ArgumentError(f"there is no file {str(path)!r}. Give the path of a checkpoint's file")
    beside = path.parent / CONFIG
    if not beside.is_file():
        raise ArgumentError(
            f"{path}: there is no {CONFIG} beside it, and the tensors alone do not say how heads and layers are "
            f"arranged. Put the model's {CONFIG} into {str(path.parent)!r}"
        )
    return beside


def _of_catalogue(name: str) -> Decoder:
    from mlsys.workloads import zoo

    entry = zoo.resolve(name)
    if entry is None:
        names = [known for known in zoo.networks() if zoo.entry(known).model is not None]
        raise UnknownNameError(
            f"no language model {short(name)}.{did_you_mean(name, names)} Give a name ({', '.join(names[:4])}, … "
            f"{len(names)} in all), or the path of a {CONFIG}; names of model hubs are not looked up"
        )
    if entry.model is None:
        raise ArgumentError(
            f"{entry.name!r} is a {entry.family} network, and a decoder language model is needed, such as 'llama-3-8b'"
        )
    return entry.model
