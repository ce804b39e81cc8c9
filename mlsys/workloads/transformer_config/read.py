"""Read a ``config.json``: which model it describes, and its resolved form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, UnreadableError
from mlsys.faults import short
from mlsys.inputs import read_json
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.transformer_config.common import Common
from mlsys.workloads.transformer_config.dbrx import flattened
from mlsys.workloads.transformer_config.fields import Fields, fault, known_models, names_of_sizes
from mlsys.workloads.transformer_config.gguf import ASSUMED, from_gguf, is_gguf
from mlsys.workloads.transformer_config.hybrids import spelled_out
from mlsys.workloads.transformer_config.latent import kimi_flattened
from mlsys.workloads.transformer_config.quantization import read_quantization
from mlsys.workloads.transformer_config.structure import TransformerConfig

_MOST_BYTES = 2_000_000
_MOST_SCALED = 1_000_000  # times that positions may be stretched
_DTYPES = {
    "float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float64": "fp64",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
}  # fmt: skip
_HEADS, _BARE = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"), ("Model",)
_NESTED = ("text_config", "language_config", "llm_config")
# The language model of each configuration that also has a vision tower.
_WRAPPERS = {
    "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text",
    "llava": "llama", "llava_next": "llama", "mistral3": "mistral", "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2", "qwen3_vl": "qwen3", "qwen3_vl_moe": "qwen3_moe", "paligemma": "gemma", "internvl": "qwen2",
    "llama4": "llama4_text", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text",
}  # fmt: skip
_SAME = {
    "qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe",
    "kimi_k2": "deepseek_v3", "glm4v_text": "glm4", "glm4v_moe_text": "glm4_moe",
}  # fmt: skip


_BESIDE = "Give the config.json beside it"
_WHERE = {
    "peft_type": "Give the config.json of the model that it adapts, which `base_model_name_or_path` names",
    "_diffusers_version": "Give the config.json of its text encoder, in a folder beside it",
}
# Models whose code comes with the checkpoint, and what they call fields of Llama, whose layers they have
# (baichuan-inc/Baichuan-7B, models/modeling_baichuan.py; InternLM2's modeling_internlm2.py, as copied in public).
_LIKE_LLAMA = {
    "baichuan": {"model_max_length": "max_position_embeddings"}, "internlm": {"bias": "attention_bias"},
    "internlm2": {"bias": "attention_bias"}, "Yi": {},
}  # fmt: skip
_PREPARED = {"dbrx": flattened, "kimi_linear": kimi_flattened, "nemotron_h": spelled_out}
_CLASSES = {
    "hunyuan_v1_dense": ("hunyuandensev1",),
    "hunyuan_v1_moe": ("hunyuanmoev1",),
    "falcon": ("rw",),
    "openai-gpt": ("openaigpt",),
    "internlm3": ("llama",),
    "iquestcoder": ("llama",),
}  # classes that are called otherwise


class UnknownArchitectureError(ArgumentError):
    """The configuration is one, but of an architecture that is not read here; transformers may know it."""


def read_file(path: str | Path) -> dict[str, Any]:
    """Return the JSON object of a ``config.json`` or of the folder that has one.

    Raises
    ------
    ArgumentError
        If there is no such file, it is no JSON object, a key is there twice, or it is no model's configuration.
    """
    file = Path(path)
    file = file / "config.json" if file.is_dir() else file
    if not file.exists():
        raise ArgumentError(
            f"there is no file {str(file)!r}. Names of models are not looked up: give the path of a config.json"
        )
    try:
        given = read_json(file, _MOST_BYTES, _once)
    except UnreadableError as error:
        raise ArgumentError(str(error)) from error
    if not isinstance(given, dict):
        raise ArgumentError(f"{file}: a config.json must be a JSON object, got {short(given)}")
    return given


def read_config(config: Mapping[str, Any] | str | Path, *, quantized: bool = True) -> TransformerConfig:
    """Return what a configuration describes, resolved as transformers resolves it, without importing it.

    Parameters
    ----------
    config
        The JSON object of a ``config.json``, its path, or that of its folder; or the metadata of a GGUF file.
    quantized
        Whether to read how weights are stored; False takes them as unquantised.

    Raises
    ------
    ArgumentError
        If it is no configuration of a model, or a field is missing, impossible, or contradicts another.
    UnknownArchitectureError
        If it is of an architecture that is not read here.

    Examples
    --------
    >>> falcon = read_config({"model_type": "falcon", "architectures": ["FalconForCausalLM"]})
    >>> print(falcon.layers[0].attention_kind, falcon.kv_cache_per_token())
    multi-query 8192 B
    """
    given = dict(config) if isinstance(config, Mapping) else read_file(config)
    if is_gguf(given):
        return _described(*from_gguf(given), quantized=quantized)
    kind = model_type_of(given)
    if kind in _LIKE_LLAMA:
        return _described(_as_llama(given, kind), "llama", given, quantized=quantized)
    inner, left_out = _language_part(given, kind)
    read = _described(
        inner, _SAME.get(kind, kind) if inner is given else inner["model_type"], given, quantized=quantized
    )
    return replace(read, left_out=left_out + read.left_out)


def model_type_of(given: Mapping[str, Any]) -> str:
    """Return the ``model_type`` of a configuration, or what its ``architectures`` say.

    Raises
    ------
    ArgumentError
        If neither is there.
    """
    kind = given.get("model_type")
    if isinstance(kind, str):
        return kind
    if kind is not None:
        raise fault(f"`model_type` must be text, got {short(kind)}")
    named = _class_name(given)
    if named:
        stem = next((named.removesuffix(end) for end in (*_HEADS, *_BARE) if named.endswith(end)), named)
        spelled = {name.replace("_", ""): name for name in (*ARCHITECTURES, *_WRAPPERS)}
        if stem.lower() in spelled:
            return spelled[stem.lower()]
        raise fault(f"`model_type` is missing, and `architectures` names {named!r}, which is not known here. Add it, "
                    'such as "model_type": "llama"')  # fmt: skip
    for key, what in (
        ("peft_type", "an adapter's configuration"), ("_diffusers_version", "a diffusion pipeline's index"),
        ("tokenizer_class", "a tokenizer's configuration"), ("added_tokens", "a tokenizer"),
        ("image_processor_type", "an image processor's configuration"), ("weight_map", "an index of weights"),
        ("do_sample", "a generation configuration"), ("_from_model_config", "a generation configuration"),
    ):  # fmt: skip
        if key in given:
            raise fault(f"this is {what} (it has `{key}`), not a model's. {_WHERE.get(key, _BESIDE)}")
    raise fault(
        '`model_type` is missing. Add it, such as "model_type": "llama", or name the class under `architectures`'
    )


def _as_llama(given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the configuration of a model that has Llama's layers in the words of Llama's."""
    names = _LIKE_LLAMA[kind]
    if "bias" in names and not isinstance(given.get("bias"), bool):
        raise fault(f"`bias` must be true or false for {kind}, got {short(given.get('bias'))}")
    fields = {name: value for name, value in given.items() if name not in names}
    for name, ours in names.items():
        if given.get(name) is not None:
            fields.setdefault(ours, given[name])
    return fields


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"the key {key!r} is there twice")
        record[key] = value
    return record


def _class_name(given: Mapping[str, Any]) -> str | None:
    names = given.get("architectures")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise fault(f"`architectures` must be a list of names, got {short(names)}")
    return names[0] if names else None


def _is_class_of(named: str, kind: str, stated: Any) -> bool:
    """Return whether a class is the bare model or the language model of a ``model_type``; others have other heads."""
    end = next((end for end in (*_HEADS, *_BARE) if named.endswith(end)), None)
    if end is None:
        return False
    stem = named.removesuffix(end).replace("_", "").lower()
    types = {kind, str(stated), *_CLASSES.get(kind, ())}
    return stem in {name.replace("_", "").removesuffix("text") for name in types}


def _language_part(given: Mapping[str, Any], kind: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the configuration of the language model within one of several parts, and the names of the others."""
    names = [name for name in _NESTED if given.get(name) is not None]
    if len(names) > 1:
        raise fault(f"`{names[0]}` and `{names[1]}` are both there, and each describes a language model. Remove one")
    name = names[0] if names else None
    others = tuple(
        key
        for key, value in given.items()
        if key.endswith("_config") and isinstance(value, dict) and key not in (*_NESTED, "quantization_config")
    )
    usual = _WRAPPERS.get(kind)
    if name is None:
        if usual is None:
            return given, ()
        # The fields of the language model stand beside those of the other parts, or all are the defaults.
        flat = kind.startswith("qwen")
        inner: dict[str, Any] = {key: value for key, value in given.items() if key not in others} if flat else {}
    else:
        nested = given[name]
        if not isinstance(nested, Mapping):
            raise fault(f"`{name}` must be a JSON object, got {short(nested)}")
        inner = dict(nested)
        stated = inner.get("model_type", usual)
        usual = _SAME.get(stated, stated) if isinstance(stated, str) else None
        others += _sizes_beside(given, inner, name, kind)
    if usual not in ARCHITECTURES:
        raise UnknownArchitectureError(
            f"config.json: the language model of {kind!r} is {inner.get('model_type')!r}, which is not read here"
        )
    for key in ("torch_dtype", "dtype", "quantization_config"):
        if inner.get(key) is None and given.get(key) is not None:
            inner[key] = given[key]
    outer, own = given.get("tie_word_embeddings"), inner.get("tie_word_embeddings")
    for stated in (outer, own):
        if stated is not None and not isinstance(stated, bool):
            raise fault(f"`tie_word_embeddings` must be true or false, got {short(stated)}")
    if outer is not None:
        inner["tie_word_embeddings"] = outer or (
            kind not in ("gemma3", "gemma3n", "gemma4", "paligemma", "mistral3") and bool(own)
        )
    elif own is None:
        inner["tie_word_embeddings"] = known_models()[usual]["defaults"].get("tie_word_embeddings", False)
    if not any(key.endswith("_config") for key in others):
        others = ("vision_config" if kind in _WRAPPERS else f"the other parts of {kind}", *others)
    return inner | {"model_type": usual}, others


def _sizes_beside(given: Mapping[str, Any], inner: Mapping[str, Any], nested: str, kind: str) -> tuple[str, ...]:
    """Return the sizes beside a nested configuration that differ from its own, which count.

    Raises
    ------
    ArgumentError
        If a size stands beside the nested configuration alone, where no model reads it.
    """
    if kind not in _WRAPPERS:  # of others, transformers decides what the outer fields mean
        return ()
    sizes = names_of_sizes()
    own = {sizes[name]: value for name, value in inner.items() if name in sizes and value is not None}
    beside = {name: value for name, value in given.items() if name in sizes and value is not None}
    for name, value in beside.items():
        if sizes[name] not in own:
            raise fault(
                f"`{name}` {short(value)} stands beside `{nested}`, and {kind} reads the sizes of its language model "
                f"there. Move it into `{nested}`"
            )
    return tuple(f"`{name}` {short(value)} beside `{nested}`" for name, value in beside.items()
                 if value != own[sizes[name]])  # fmt: skip


def _described(
    fields: Mapping[str, Any], kind: str, outer: Mapping[str, Any] | None = None, *, quantized: bool
) -> TransformerConfig:
    """Return the resolved form; ``outer`` is the whole configuration, whose class and dtype count."""
    whole = fields if outer is None else outer
    named = _class_name(whole)
    own = named is None or _is_class_of(named, kind, whole.get("model_type"))
    others = [other for other in (*ARCHITECTURES, *_WRAPPERS) if named is not None and _is_class_of(named, other, None)]
    if kind in ARCHITECTURES and not own and others:
        raise fault(
            f"`architectures` names {named!r}, a class of {others[0]}, and `model_type` is "
            f"{whole.get('model_type')!r}. Mend one of them"
        )
    if kind not in ARCHITECTURES or not own:
        what = f"`model_type` {kind!r}" if kind not in ARCHITECTURES else f"the class {named!r}"
        raise UnknownArchitectureError(f"config.json: {what} is not read here")
    prepared = _PREPARED.get(kind)
    read = Fields(fields if prepared is None else prepared(fields), kind)
    resolved = ARCHITECTURES[kind](Common(read))
    shared: dict[Any, Any] = {}
    stored = read_quantization(fields.get("quantization_config")) if quantized else None
    return TransformerConfig(
        name=named or kind,
        model_type=kind,
        hidden=read.whole("hidden_size"),
        vocabulary=read.whole("vocab_size"),
        layers=tuple(shared.setdefault(layer, layer) for layer in resolved.layers),
        tied=resolved.tied,
        positions=resolved.learned + resolved.offset if resolved.learned else 0,
        learned=resolved.learned,
        context=_context(read),
        outer_parameters=resolved.outer,
        head=named is not None and named.endswith(_HEADS),
        head_bias=resolved.head_bias,
        embedding_width=resolved.embedding_width,
        outer_matrices=resolved.outer_matrices,
        per_layer_table=resolved.per_layer_table,
        dtype=stated_dtype(fields),
        quantization=stored,
        cache_format=None if stored is None else stored.cache_format,
        assumed=(*read.assumed.values(), *whole.get(ASSUMED, ())),
        left_out=("num_nextn_predict_layers",) if fields.get("num_nextn_predict_layers") else (),
    )


def stated_dtype(given: Mapping[str, Any]) -> str | None:
    """Return the number format of ``dtype`` or ``torch_dtype``, of a nested configuration too, or None.

    Raises
    ------
    ArgumentError
        If it is not known.

    Examples
    --------
    >>> stated_dtype({"torch_dtype": "bfloat16"})
    'bf16'
    """
    nested = [given[name] for name in _NESTED if isinstance(given.get(name), Mapping)]
    for part in (given, *nested):
        both = [part[key] for key in ("dtype", "torch_dtype") if part.get(key) is not None]
        if len(both) == 2 and both[0] != both[1]:
            raise fault(f"`dtype` is {short(both[0])} and `torch_dtype` is {short(both[1])}. Remove one")
    stated = (part.get(key) for part in (given, *nested) for key in ("dtype", "torch_dtype"))
    name = next((name for name in stated if name is not None), None)
    if name is None or name == "auto":
        # Kernels for quantised weights compute in 16 bits, and so transformers loads them.
        return "fp16" if any(part.get("quantization_config") for part in (given, *nested)) else None
    form = _DTYPES.get(str(name).removeprefix("torch."))
    if form is None:
        raise fault(f"`torch_dtype` is {short(name)}, which is not known here. Known: {', '.join(_DTYPES)}")
    return form


def _context(read: Fields) -> int:
    """Return the tokens that the model is made for: what is stated, or what scaled positions reach if that is more."""
    stated = read.optional("max_position_embeddings") or 0
    name = "rope_scaling" if read.value("rope_scaling") is not None else "rope_parameters"
    scaling = read.value(name)
    if scaling is None:
        return stated
    if not isinstance(scaling, Mapping):
        raise fault(f"`{name}` must be a JSON object or null, got {short(scaling)}")
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings")
    if factor is not None and (
        isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= _MOST_SCALED
    ):
        raise fault(
            f"`factor` of `{name}` must be a number above zero and at most {_MOST_SCALED:,}, got {short(factor)}"
        )
    if original is not None and (isinstance(original, bool) or not isinstance(original, int) or original < 1):
        raise fault(
            f"`original_max_position_embeddings` of `{name}` must be a whole number from 1, got {short(original)}"
        )
    return stated if factor is None or original is None else max(stated, round(factor * original))
