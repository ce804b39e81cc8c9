"""Transformers models built from their configurations, without weights or downloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError, UnknownNameError, UnreadableError, did_you_mean, first_line
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_json
from mlsys.unit_checks import checked_count
from mlsys.workloads.hf_faults import refuse_impossible_config, refuse_other_parts
from mlsys.workloads.operator import NETWORK, PREFILL

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

_MOST_BYTES = 2_000_000  # limit of a config.json

_SEQUENCE, _IMAGE, _AUDIO_FRAMES = 128, 224, 3000


def from_hf_config(
    config: object,
    *,
    batch: int = 1,
    sequence: int | None = None,
    image: int | None = None,
    precision: str = "fp32",
    dynamic: bool = False,
) -> Workload:
    """Capture the model described by a transformers configuration.

    The class named under ``architectures`` is built, or the bare model if none is named, on the meta device. The KV
    cache is off: the pass is a prefill.

    Parameters
    ----------
    config
        A ``transformers.PretrainedConfig``, its dict, or the path of its ``config.json``.
    batch
        Sequences or images.
    sequence
        Tokens; by default 128, or the model's maximum if that is less.
    image
        Side of a square image; by default that of the configuration, or 224.
    precision
        fp64, fp32, fp16 or bf16.
    dynamic
        Whether to leave batch and sequence free, see :meth:`Workload.at`.

    Raises
    ------
    ArgumentError
        If the file is not a configuration, transformers is not installed, or the model cannot be built.
    UnknownNameError
        If the kind of model or the precision is unknown.

    Examples
    --------
    >>> config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100}
    >>> print(from_hf_config(config, sequence=16).product_flops)
    3276800 FLOP
    """
    sizes = {"batch": batch} | {
        name: value for name, value in (("sequence", sequence), ("image", image)) if value is not None
    }
    for name, value in sizes.items():
        checked_count("from_hf_config", name, value)
    from mlsys.workloads.torch_import.build import from_torch

    model, inputs = built_model(config, batch=batch, sequence=sequence, image=image, precision=precision)
    with _quietly(_transformers()):
        name = type(model).__name__
        workload = from_torch(model, inputs, dynamic=_free(inputs) if dynamic else None, name=name)
        sizes = dict(workload.sizes) or sizes_of(inputs)
        return replace(workload, kind=kind_of_class(name), sizes=FrozenDict(sizes))


def sizes_of(inputs: Mapping[str, Any]) -> dict[str, int]:
    """Return batch, and sequence or image side, of the inputs of a transformers model.

    Examples
    --------
    >>> import torch
    >>> sizes_of({"input_ids": torch.zeros(2, 16, dtype=torch.long)})
    {'batch': 2, 'sequence': 16}
    """
    main = next(iter(inputs.values()))
    sizes = {"batch": int(main.shape[0])}
    if main.dim() == 2:
        sizes["sequence"] = int(main.shape[1])
    elif main.dim() == 4 and main.shape[-1] == main.shape[-2]:
        sizes["image"] = int(main.shape[-1])
    elif "decoder_input_ids" in inputs:
        sizes["sequence"] = int(inputs["decoder_input_ids"].shape[1])
    return sizes


def kind_of_class(name: str) -> str:
    """Return the kind of network of a transformers class, by its name.

    Examples
    --------
    >>> kind_of_class("LlamaForCausalLM"), kind_of_class("BertModel")
    ('llm prefill', 'network')
    """
    return PREFILL if name.endswith(("ForCausalLM", "LMHeadModel")) else NETWORK


def kind_of_file(path: Path) -> str:
    """Return the kind of network described by a ``config.json`` or its folder; the general kind if unreadable."""
    try:
        described = read_json(path / "config.json" if path.is_dir() else path, _MOST_BYTES)
        return kind_of_class(str(described["architectures"][0]))
    except (UnreadableError, LookupError, TypeError):
        return NETWORK


def built_model(
    config: object,
    *,
    batch: int = 1,
    sequence: int | None = None,
    image: int | None = None,
    precision: str = "fp32",
    device: str = "meta",
) -> tuple[Any, dict[str, Any]]:
    """Return the model described by a configuration, with random weights if any, and its inputs.

    Raises
    ------
    ArgumentError
        If the file is not a configuration, transformers is not installed, or the model cannot be built.
    UnknownNameError
        If the kind of model or the precision is unknown.
    """
    import torch

    from mlsys.workloads.torch_import.capture import in_words
    from mlsys.workloads.torch_models import torch_dtype

    dtype = torch_dtype(precision)
    transformers = _transformers()
    with _quietly(transformers):
        described = _described(transformers, config)
        try:
            with torch.device(device):
                model = _built(transformers, described, dtype, device).eval()
                return model, _inputs(model, described, batch, sequence, image, dtype)
        except (ArgumentError, UnknownNameError):
            raise
        except Exception as error:  # the code of hundreds of models, each with its own errors
            raise ArgumentError(
                f"from_hf_config(): the model of {type(described).__name__} cannot be built without downloading: "
                f"{in_words(error)}. Use a configuration that describes every part itself"
            ) from error


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ArgumentError(
            "from_hf_config(): the package transformers is not installed. Install it with: pip install 'mlsys[hf]'"
        ) from error
    return transformers


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """Suppress transformers' messages about other models."""
    logging: Any = transformers.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _described(transformers: Any, config: Any) -> Any:
    """Return a configuration object from one, from a dict, or from a file."""
    if isinstance(config, transformers.PretrainedConfig):
        return config
    if isinstance(config, (str, Path)):
        path = Path(config)
        path = path / "config.json" if path.is_dir() else path
        try:
            if not path.exists():
                raise ArgumentError(
                    f"from_hf_config(): there is no file {str(path)!r}. Model names are not looked up: "
                    "give the path of a config.json"
                )
            config = read_json(path, _MOST_BYTES)
        except UnreadableError as error:
            raise ArgumentError(f"from_hf_config(): {error}") from error
    if not isinstance(config, Mapping):
        raise ArgumentError(
            "from_hf_config(): `config` must be a transformers configuration, its dict, or the path of its JSON file, "
            f"got {config!r}. Write e.g. from_hf_config('config.json')"
        )
    refuse_impossible_config(config)
    kind = config.get("model_type")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    if not isinstance(kind, str) or kind not in known:
        raise UnknownNameError(
            f"from_hf_config(): `model_type` is {kind!r}, which transformers {transformers.__version__} does not know."
            f"{did_you_mean(str(kind), known)}"
        )
    try:
        described = transformers.AutoConfig.for_model(
            kind, **{str(key): value for key, value in config.items() if key != "model_type"}
        )
    except Exception as error:  # transformers raises its own validation errors
        raise ArgumentError(
            f"from_hf_config(): transformers {transformers.__version__} rejects the configuration of a {kind}: "
            f"{first_line(error)}"
        ) from error
    refuse_other_parts(config, described)
    return described


def _built(transformers: Any, config: Any, dtype: Any, device: str) -> Any:
    architectures = getattr(config, "architectures", None) or ()
    if not isinstance(architectures, (list, tuple)) or not all(isinstance(name, str) for name in architectures):
        raise ArgumentError(f"from_hf_config(): `architectures` must be a list of names, got {architectures!r}")
    named = next(iter(architectures), None)
    made = getattr(transformers, named, None) if named else None
    if named and made is None:
        raise UnknownNameError(
            f"from_hf_config(): `architectures` names {named!r}, which transformers {transformers.__version__} "
            f"does not have.{did_you_mean(named, dir(transformers))}"
        )
    for part in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", ()))):
        if part is not None:
            part.use_cache = False
    built = made._from_config(config) if made is not None else transformers.AutoModel.from_config(config)
    return built.to(device=device, dtype=dtype)


def _inputs(model: Any, config: Any, batch: int, sequence: int | None, image: int | None, dtype: Any) -> dict[str, Any]:
    import torch

    main = model.main_input_name
    text = getattr(config, "text_config", config)
    if main == "pixel_values":
        if sequence is not None:
            raise ArgumentError(f"from_hf_config(): `sequence` was given, but {type(model).__name__} takes images")
        seen = getattr(config, "vision_config", config)
        side = image or _first(getattr(seen, "image_size", None)) or _IMAGE
        inputs = {main: torch.zeros(batch, getattr(seen, "num_channels", 3), side, side, dtype=dtype)}
    elif image is not None:
        raise ArgumentError(f"from_hf_config(): `image` was given, but {type(model).__name__} takes {main}")
    elif main == "input_features":
        frames = 2 * getattr(config, "max_source_positions", _AUDIO_FRAMES // 2)
        inputs = {main: torch.zeros(batch, getattr(config, "num_mel_bins", 80), frames, dtype=dtype)}
    elif main == "input_values":
        inputs = {main: torch.zeros(batch, sequence or 16000, dtype=dtype)}
    else:
        most = getattr(text, "max_position_embeddings", None) or _SEQUENCE
        inputs = {main: torch.zeros(batch, sequence or min(_SEQUENCE, most), dtype=torch.long)}
    if getattr(config, "is_encoder_decoder", False) and main != "pixel_values":
        inputs["decoder_input_ids"] = torch.zeros(batch, sequence or _SEQUENCE, dtype=torch.long)
    return inputs


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def _free(inputs: Mapping[str, Any]) -> dict[str, Any]:
    tokens = {name: 1 for name in inputs if name.endswith("ids")}
    return {"batch": 0} | ({"sequence": tokens} if tokens else {})
