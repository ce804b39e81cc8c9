"""The single way to a decoder language model: a name of the catalogue, a configuration, or a checkpoint's files."""

from __future__ import annotations

from pathlib import Path

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.workloads.transformer_config.read import read_config, read_file
from mlsys.workloads.zoo.decoder import Decoder

CONFIG = "config.json"
_SAFETENSORS, _INDEX, _GGUF = ".safetensors", ".safetensors.index.json", ".gguf"


def load_decoder(model: str | Path | Decoder) -> Decoder:
    """Return the decoder language model that a name, a configuration or a checkpoint's file describes.

    Parameters
    ----------
    model
        A decoder, which is returned as it is; the name of a language model of the catalogue; a ``config.json``, or
        its folder; or a ``.safetensors`` file or index beside a ``config.json``. Nothing is downloaded.

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
    if isinstance(model, Decoder):
        return model
    if not isinstance(model, str | Path):
        raise ArgumentError(
            "`model` must be a language model, its name, such as 'llama-3-8b', or the path of its config.json, "
            f"got {short(model)}"
        )
    path = Path(model)
    if is_checkpoint(path):
        return read_config(config_of(path))
    if path.is_dir() and not (path / CONFIG).is_file():
        raise ArgumentError(f"the folder {str(path)!r} has no {CONFIG}. Give a folder that has one")
    if path.suffix == ".json" or path.is_dir():
        return read_config(read_file(path))
    return _of_catalogue(str(model))


def is_checkpoint(path: Path) -> bool:
    """Return whether a path names a file of weights, by its ending."""
    return path.name.endswith((_SAFETENSORS, _INDEX))


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
