"""A configuration as a workload: written down layer by layer, as decoders of the catalogue are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.workloads.transformer_config.load import config_of, described_file, is_checkpoint, read_checkpoint
from mlsys.workloads.transformer_config.read import read_config, read_file, stated_dtype
from mlsys.workloads.transformer_config.structure import TransformerConfig

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

_USUAL = 512  # tokens, as for decoders of the catalogue


def configured_decoder(
    path: str | Path,
    given: Mapping[str, int],
    precision: str | None,
    phase: Phase | None,
    option: str,
    formats: Mapping[str, str] | None = None,
) -> Workload:
    """Return the workload of a ``config.json`` that is read without torch.

    Parameters
    ----------
    path
        The file or its folder.
    given
        ``batch`` and ``sequence``, where they are given.
    precision
        Number format of all values, which overrides ``quantization_config``; by default the one that is stated.
    phase
        ``"prefill"`` (the default) or ``"decode"``.
    option
        How an error writes the name of what was given.
    formats
        ``weight_format`` and ``kv_format``, where they are given.

    Raises
    ------
    UnknownArchitectureError
        If the architecture is not read here.
    ArgumentError
        If it is no configuration, or something was given that does not go with it.
    """
    from mlsys.workloads.from_catalogue import from_entry, in_formats
    from mlsys.workloads.zoo.entry import Entry

    path = Path(path)
    described, quantized = described_file(path), precision is None and "weight_format" not in (formats or {})
    if is_checkpoint(path):
        config = read_checkpoint(path, quantized=quantized)
    else:
        config = read_config(described, quantized=quantized)
    stored = "quantization_config" if described.get("quantization_config") else "general.file_type"
    overridden = stored if precision is not None and described.get(stored) is not None else None
    usual = min(_USUAL, *(most for most in (config.learned, config.context) if most), _USUAL)
    entry = Entry(
        config.name, config.name, "language", _source(path, config, precision, overridden), sequence=usual,
        model=config, longest=config.learned, drawn=_drawable(config),
    )  # fmt: skip
    if formats:
        entry = in_formats(entry, formats, option)
    form = precision or config.dtype or "fp32"
    config = entry.model if isinstance(entry.model, TransformerConfig) else config
    workload = from_entry(entry, {"batch": 1, **given}, form, phase, option)
    recipe = workload.recipe.replace("; written down", ". Written down")
    captured = (
        None
        if phase == "decode" or config.quantization is not None or path.suffix == ".gguf"
        else partial(_captured, str(config_of(path) if is_checkpoint(path) else path), workload.sizes, form)
    )
    return replace(workload, recipe=recipe, source="configuration", _captured=captured)


def configured_encoder(
    path: str | Path,
    given: Mapping[str, int],
    precision: str | None,
    phase: Phase | None,
    option: str,
    formats: Mapping[str, str] | None = None,
) -> Workload | None:
    """Return the workload of an encoder or encoder-decoder that is read without torch; None for other configurations.

    Parameters
    ----------
    path, given, precision, phase, option, formats
        As of :func:`configured_decoder`; ``given`` may also have ``image``.

    Raises
    ------
    ArgumentError
        If it states how weights are stored and no precision overrides it, or something does not go with it.
    """
    from mlsys.workloads.from_catalogue import from_entry, in_formats
    from mlsys.workloads.hf import from_hf_config
    from mlsys.workloads.transformer_config.encoders import encoder_entry

    described = read_file(path)
    entry = encoder_entry(described, f"configuration {path}, read without building the model")
    if entry is None or (described.get("quantization_config") is not None and precision is None):
        return None
    if formats:
        entry = in_formats(entry, formats, option)
    form = precision or stated_dtype(described) or "fp32"
    workload = from_entry(entry, {"batch": 1, **given}, form, phase, option)
    recipe = workload.recipe.replace("; written down", ". Written down")
    sizes: dict[str, Any] = dict(workload.sizes)
    captured = partial(from_hf_config, str(path), **sizes) if phase is None and not formats else None
    return replace(workload, recipe=recipe, source="configuration", _captured=captured)


def _captured(path: str, sizes: Mapping[str, int], precision: str) -> Workload:
    from mlsys.workloads.hf import from_hf_config
    from mlsys.workloads.torch_import.assemble import TORCH_DTYPES

    captured_in = precision if precision in TORCH_DTYPES else "fp32"
    workload = from_hf_config(path, batch=sizes["batch"], sequence=sizes["sequence"], precision=captured_in)
    recipe = f"configuration {path}, built by transformers"
    workload = replace(workload, recipe=recipe)
    return workload if captured_in == precision else replace(workload.stored_as(precision), recipe=recipe)


def _source(path: str | Path, config: TransformerConfig, precision: str | None, overridden: str | None) -> str:
    """Return where the numbers come from, with all that was assumed or overridden."""
    parts = [f"configuration {path} ({config.model_type}), read without building the model"]
    if config.quantization is not None:
        parts.append(f"weights as it says: {config.quantization}")
    if overridden is not None:
        parts.append(f"its `{overridden}` is overridden by {precision}")
    if config.cache_format is not None:
        parts.append(f"cache in {config.cache_format}, as it says")
    if config.assumed:
        parts.append(f"assumed, as it does not say: {', '.join(config.assumed)}")
    if not config.head:
        parts.append("it names no class with a classifier: the bare model, without logits")
    if any(layer.selects for layer in config.layers):
        parts.append("attention is counted over the keys that its indexer selects, which transformers masks instead")
    if config.left_out:
        parts.append(f"its language model alone, without {', '.join(config.left_out)}")
    return "; ".join(parts)


def _drawable(model: TransformerConfig) -> bool:
    """Return whether the drawn form of a decoder has all that this one has: plain GPT-2 and plain Llama."""
    layer = model.layers[0]
    uniform = all(other == layer for other in model.layers) and model.head and not model.head_bias
    plain = uniform and not (layer.experts or layer.latent or layer.window or layer.recurrence or model.quantization)
    if not plain or model.embedding_width or layer.norms != 2:
        return False
    norm = 2 if layer.centred else 1
    if layer.small != 2 * norm * model.hidden or model.outer_parameters != norm * model.hidden:
        return False
    if model.model_type == "gpt2":
        return layer.act in ("gelu", "exact gelu", "relu", "silu", "tanh")
    return model.model_type in ("llama", "mistral") and not layer.biases and layer.act == "silu"


def traced_configuration(
    path: str, given: Mapping[str, Any], precision: str | None, phase: Phase | None, option: str, why: ArgumentError
) -> Workload:
    """Return the workload of a configuration that is not read here: transformers builds it, and it is traced.

    Raises
    ------
    ArgumentError
        If a phase is requested, or the configuration states how weights are stored and no precision overrides it.
    """
    from mlsys.workloads.hf import from_hf_config
    from mlsys.workloads.torch_import.assemble import TORCH_DTYPES

    reason = str(why).removeprefix("config.json: ").partition(". Known:")[0]
    if phase is not None:
        raise ArgumentError(
            f"{option.format('phase')}: {reason}, so that transformers builds the model and one pass over a prompt is "
            f"traced. Leave {option.format('phase')} out"
        )
    described = read_file(path)
    if described.get("quantization_config") is not None and precision is None:
        raise ArgumentError(
            f"config.json: {reason}, so that its `quantization_config` cannot be applied. Give "
            f"{option.format('precision')}, such as fp16, to count all weights in one format"
        )
    form = precision or stated_dtype(described) or "fp32"
    captured_in = form if form in TORCH_DTYPES else "fp32"
    workload = from_hf_config(path, **given, precision=captured_in)
    recipe = f"configuration {path}, built by transformers and traced, as {reason}"
    if _has_experts(described):
        recipe += "; experts are counted as the code of transformers runs them, which may be all of them for each token"
    workload = replace(workload, recipe=recipe)
    return workload if form == captured_in else replace(workload.stored_as(form), recipe=recipe, sizes=workload.sizes)


def _has_experts(given: Mapping[str, Any]) -> bool:
    """Return whether a configuration, or one within it, states a number of experts."""
    return any(
        _has_experts(value) if isinstance(value, Mapping) else "experts" in key and isinstance(value, int) and value > 1
        for key, value in given.items()
    )
