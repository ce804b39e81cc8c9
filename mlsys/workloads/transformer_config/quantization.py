"""Storage formats of weights: ``quantization_config``, matrix by matrix."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsys.errors import did_you_mean
from mlsys.faults import short
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.zoo.weight_formats import weight_bits

if TYPE_CHECKING:
    from mlsys.workloads.zoo.decoder import Decoder
    from mlsys.workloads.zoo.decoder_layer import WeightMatrix

_SCALE = 16  # bits of a scale of GPTQ, AWQ and packed formats, which are stored in 16 bits
# `general.file_type` of llama.cpp (ggml-org/llama.cpp, include/llama.h, enum llama_ftype).
_GGUF_FILES = {
    0: "fp32", 1: "fp16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 12: "q3_k_m",
    14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m", 18: "q6_k", 32: "bf16",
}  # fmt: skip


@dataclass(frozen=True)
class QuantizedWeights:
    """How the weights of a checkpoint are stored.

    Attributes
    ----------
    method
        ``quant_method``, such as ``"gptq"``.
    bits
        Of one weight.
    group
        Weights along the inputs that share a scale; 0 for all inputs of an output.
    group_outputs
        Outputs that share a scale: more than one in square blocks.
    scale_bits, zero_bits, row_bits
        Bits of each scale, of each zero point, and of what is stored for each input (GPTQ's ``g_idx``).
    skipped
        Modules that keep their format: patterns of module names.
    chosen
        Modules that are quantised, where that is not all linear layers: patterns of module names.
    head, router, embedding
        Whether the classifier, the routers of experts and the table of tokens are quantised too.
    experts_only
        Whether only experts are quantised.
    cache_format
        Number format of the cache, where one is stated.
    """

    method: str
    bits: float
    group: int = 0
    group_outputs: int = 1
    scale_bits: float = 0
    zero_bits: float = 0
    row_bits: float = 0
    skipped: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    head: bool = False
    router: bool = False
    embedding: bool = False
    experts_only: bool = False
    cache_format: str | None = None

    def __str__(self) -> str:
        group = f", groups of {self.group}" if self.group else ""
        blocks = f" × {self.group_outputs}" if self.group_outputs > 1 else ""
        what = " of the experts" if self.experts_only else f" of {', '.join(self.chosen)}" if self.chosen else ""
        return f"{self.method}, {self.bits:g} bits{group}{blocks}{what}"

    def matrix_bits(self, inputs: int, outputs: int) -> float:
        """Return the bits of a quantised matrix with its scales and zero points."""
        group = self.group or inputs
        scales = -(-inputs // group) * -(-outputs // self.group_outputs)
        return self.bits * inputs * outputs + (self.scale_bits + self.zero_bits) * scales + self.row_bits * inputs

    def quantised(self, layer: int | None, matrix: WeightMatrix) -> bool:
        """Return whether a matrix of a layer, or with None one outside of the layers, is quantised."""
        experts = ".experts." in matrix.name
        if matrix.operator in ("router", "shared expert gate") and not self.router:
            return False
        if self.experts_only and not experts:
            return False
        names = {f"model.layers.{layer}.{matrix.name}"} if layer is not None else {matrix.name, f"model.{matrix.name}"}
        # Families differ in what they call the module of experts.
        names |= {name.replace(".mlp.", ".block_sparse_moe.") for name in names}
        names |= {f"language_{name}" for name in names} | {
            name.replace("shared_experts", "shared_expert") for name in names
        }
        if self.chosen and not any(_matches(pattern, name) for pattern in self.chosen for name in names):
            return False
        return not any(_matches(pattern, name) for pattern in self.skipped for name in names)

    def operator_bits(self, model: Decoder, layer: int | None, plain: float) -> Mapping[str, float]:
        """Return the bits of one weight by operator: of a layer, or with None outside of the layers."""
        if layer is None:
            hidden, width = model.hidden, model.embedding_width or model.hidden
            head = self._outside("lm_head", width, model.vocabulary, plain, self.head and not model.tied)
            table = self._outside("embed_tokens", width, model.vocabulary, plain, self.embedding)
            moved = self._outside("embedding", width, hidden, plain, self.embedding)
            further = dict.fromkeys(("embedding of layers", *(each.operator for each in model.outer_matrices)), plain)
            return further | {
                "embedding": table,
                "logits": table if model.tied else head,
                "embedding up": moved,
                "embedding down": moved,
            }
        return _layer_bits(self, model, layer, plain)

    def weight_bytes(self, model: Decoder, plain: float) -> float:
        """Return the bytes of all parameters; those that are not quantised take ``plain`` bits."""
        width, total = model.embedding_width or model.hidden, 0.0
        outside = self.operator_bits(model, None, plain)
        tables = model.vocabulary * width
        total += tables * outside["embedding"]
        counted = tables
        if model.head and not model.tied:
            total += tables * outside["logits"]
            counted += tables
        total += (model.outside_parameters() - counted) * plain
        for index, layer in enumerate(model.layer_list):
            bits, matrices = self.operator_bits(model, index, plain), layer.matrices(model.hidden)
            elements = sum(matrix.elements for matrix in matrices)
            total += sum(matrix.elements * bits[matrix.operator] for matrix in matrices)
            total += (layer.parameters(model.hidden) - elements) * plain
        return total / 8

    def _outside(self, name: str, inputs: int, outputs: int, plain: float, chosen: bool) -> float:
        picked = not self.chosen or any(_matches(pattern, name) for pattern in self.chosen)
        if not chosen or not picked or any(_matches(pattern, name) for pattern in self.skipped):
            return plain
        return self.matrix_bits(inputs, outputs) / (inputs * outputs)


@lru_cache(maxsize=512)
def _matches(pattern: str, name: str) -> bool:
    """Return whether a pattern of module names matches a module, as transformers and compressed-tensors match them."""
    if pattern.startswith("re:"):
        return bool(re.match(pattern[3:], name))
    try:
        return (
            bool(re.match(rf"(?:{pattern})(?:(?<=\.)|(?=\.|$))", name))
            or name.endswith(pattern)
            or (f".{pattern}." in f".{name}.")
        )
    except re.error:
        return f".{pattern}." in f".{name}."


@lru_cache(maxsize=4096)
def _layer_bits(stored: QuantizedWeights, model: Decoder, layer: int, plain: float) -> Mapping[str, float]:
    bits: dict[str, float] = {}
    elements: dict[str, int] = {}
    sizes = model.layer_list[layer]
    for matrix in sizes.matrices(model.hidden):
        each = matrix.inputs * matrix.outputs
        taken = stored.matrix_bits(matrix.inputs, matrix.outputs) if stored.quantised(layer, matrix) else plain * each
        bits[matrix.operator] = bits.get(matrix.operator, 0) + taken * matrix.copies
        elements[matrix.operator] = elements.get(matrix.operator, 0) + matrix.elements
    means = {name: total / elements[name] for name, total in bits.items()}
    if "key and value" in means:
        means |= dict.fromkeys(("query absorbed", "value absorbed"), means["key and value"])
    return means | ({"convolution": plain} if sizes.recurrence is not None else {})


def read_quantization(given: Any) -> QuantizedWeights | None:
    """Return how weights are stored, from a ``quantization_config``; None where it is absent.

    Raises
    ------
    ArgumentError
        If the method is not known, or a field is impossible.

    Examples
    --------
    >>> print(read_quantization({"quant_method": "gptq", "bits": 4, "group_size": 128}))
    gptq, 4 bits, groups of 128
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise fault(f"`quantization_config` must be a JSON object, got {short(given)}")
    method = given.get("quant_method")
    if method is None and (given.get("load_in_4bit") or given.get("load_in_8bit")):
        method = "bitsandbytes"
    reader = _METHODS.get(str(method))
    if reader is None:
        raise fault(
            f"`quant_method` of `quantization_config` is {short(method)}, whose bytes are not known here. Known: "
            f"{', '.join(_METHODS)}.{did_you_mean(str(method), _METHODS)} A precision of your own overrides it"
        )
    return reader(given)


def _whole(given: Mapping[str, Any], name: str, usual: int | None = None, *, least: int = 1) -> int:
    value = given.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise fault(f"`{name}` of `quantization_config` must be a whole number from {least}, got {short(value)}")
    return value


def _names(given: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    names: list[str] = []
    for key in keys:
        value = given.get(key) or []
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise fault(f"`{key}` of `quantization_config` must be a list of module names, got {short(value)}")
        for pattern in value:
            if pattern.startswith("re:"):
                _refuse_broken(pattern, key)
        names += value
    return tuple(names)


def _refuse_broken(pattern: str, key: str) -> None:
    """Refuse a regular expression that cannot be compiled."""
    try:
        re.compile(pattern.removeprefix("re:"))
    except re.error as error:
        raise fault(
            f"`{key}` of `quantization_config` has {short(pattern)}, which is no regular expression: {error}"
        ) from error


def _bits(given: Mapping[str, Any], name: str, allowed: tuple[int, ...], usual: int | None = None) -> int:
    bits = _whole(given, name, usual)
    if bits not in allowed:
        raise fault(f"`{name}` of `quantization_config` must be one of {', '.join(map(str, allowed))}, got {bits}")
    return bits


def _true(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise fault(f"`{name}` of `quantization_config` must be true or false, got {short(value)}")
    return bool(value)


def _group(given: Mapping[str, Any], *keys: str, usual: int) -> int:
    name = next((key for key in keys if key in given), keys[0])
    size = given.get(name, usual)
    return 0 if size in (-1, None) else _whole(given, name, usual)


def _gptq(given: Mapping[str, Any]) -> QuantizedWeights:
    """Packed weights, 16-bit scales, packed zero points, and the group of each input in 32 bits (AutoGPTQ's layout)."""
    bits = _bits(given, "bits", (2, 3, 4, 8))
    if given.get("dynamic"):
        raise fault("`dynamic` of `quantization_config` gives modules formats of their own, which is not known here")
    blocks = given.get("modules_in_block_to_quantize") or []
    if not isinstance(blocks, list):
        raise fault(f"`modules_in_block_to_quantize` of `quantization_config` must be a list, got {short(blocks)}")
    flat = [name for block in blocks for name in (block if isinstance(block, list) else [block])]
    return QuantizedWeights(
        "gptq", bits, _group(given, "group_size", usual=128), scale_bits=_SCALE, zero_bits=bits, row_bits=32,
        skipped=_names(given, "modules_to_not_convert"), head=_true(given, "lm_head"),
        chosen=_names({"modules_in_block_to_quantize": flat}, "modules_in_block_to_quantize"),
    )  # fmt: skip


def _awq(given: Mapping[str, Any]) -> QuantizedWeights:
    bits = _bits(given, "bits" if "bits" in given else "w_bit", (4, 8), 4)
    return QuantizedWeights(
        "awq", bits, _group(given, "group_size", "q_group_size", usual=128), scale_bits=_SCALE, zero_bits=bits,
        skipped=_names(given, "modules_to_not_convert"),
    )  # fmt: skip


def _bitsandbytes(given: Mapping[str, Any]) -> QuantizedWeights:
    """NF4 or FP4 in blocks of 64 with a 32-bit maximum, itself quantised where doubled; or bytes by row."""
    skipped = (*_names(given, "llm_int8_skip_modules"), "lm_head")
    four, eight = _true(given, "load_in_4bit"), _true(given, "load_in_8bit")
    if four and eight:
        raise fault("`quantization_config` has both `load_in_4bit` and `load_in_8bit`. Set one of them to false")
    if four:
        # Doubled: 8 bits for each maximum, and 32 more for 256 of them (Dettmers et al. 2023, arXiv:2305.14314).
        scale = 8 + 32 / 256 if _true(given, "bnb_4bit_use_double_quant") else 32
        name = str(given.get("bnb_4bit_quant_type", "fp4"))
        return QuantizedWeights(f"bitsandbytes {name}", 4, 64, scale_bits=scale, skipped=skipped, router=True)
    if eight:
        return QuantizedWeights("bitsandbytes int8", 8, scale_bits=32, skipped=skipped, router=True)
    raise fault("`quantization_config` of bitsandbytes must have `load_in_4bit` or `load_in_8bit`")


def _fp8(given: Mapping[str, Any]) -> QuantizedWeights:
    block = given.get("weight_block_size")
    if block is None:
        sizes = (0, 1)
    elif isinstance(block, list) and len(block) == 2 and all(isinstance(side, int) and side > 0 for side in block):
        sizes = (block[1], block[0])
    else:
        raise fault(f"`weight_block_size` of `quantization_config` must be two whole numbers, got {short(block)}")
    return QuantizedWeights(
        "fp8", 8, *sizes, scale_bits=32, skipped=_names(given, "modules_to_not_convert", "ignored_layers")
    )


def _fbgemm(given: Mapping[str, Any]) -> QuantizedWeights:
    """FP8 with a 32-bit scale for each output (transformers, integrations/fbgemm_fp8.py)."""
    return QuantizedWeights("fbgemm_fp8", 8, scale_bits=32, skipped=_names(given, "modules_to_not_convert"))


def _mxfp4(given: Mapping[str, Any]) -> QuantizedWeights:
    """4-bit elements, one 8-bit scale for 32 (OCP MX v1.0); transformers quantises the experts alone."""
    skipped = _names(given, "modules_to_not_convert")
    return QuantizedWeights("mxfp4", 4, 32, scale_bits=8, skipped=skipped, experts_only=True)


def _compressed(given: Mapping[str, Any]) -> QuantizedWeights:
    """Read the format of llm-compressor: groups of modules, of which one kind is read."""
    groups = given.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise fault(f"`config_groups` of `quantization_config` must be a JSON object, got {short(groups)}")
    schemes = [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
    weights = schemes[0] if schemes else None
    if not isinstance(weights, Mapping) or any(other != weights for other in schemes):
        raise fault("`config_groups` of `quantization_config` must describe `weights`, alike in all groups")
    sparsity = given.get("sparsity_config")
    if isinstance(sparsity, Mapping) and sparsity.get("format", "dense") != "dense":
        raise fault(f"`sparsity_config` of `quantization_config` has the format {short(sparsity['format'])}; sparse "
                    "weights are not known here")  # fmt: skip
    targets = [name for each in groups.values() for name in _names(each, "targets")]
    bits, strategy = _bits(weights, "num_bits", tuple(range(2, 17))), weights.get("strategy")
    outputs = 1
    if strategy == "block":
        block = weights.get("block_structure")
        sizes = block if isinstance(block, list) else str(block).split("x")
        if len(sizes) != 2 or not all(str(size).isdecimal() and int(size) for size in sizes):
            raise fault(f"`block_structure` of `quantization_config` must be two whole numbers, got {short(block)}")
        outputs, group = int(sizes[0]), int(sizes[1])
    else:
        group = _group(weights, "group_size", usual=-1) if strategy in ("group", "tensor_group") else 0
    packed = 0 if weights.get("symmetric", True) else bits
    kept = given.get("kv_cache_scheme")
    cache = None
    if isinstance(kept, Mapping):
        cache = f"{'fp' if kept.get('type') == 'float' else 'int'}{_whole(kept, 'num_bits')}"
    kind = "fp" if weights.get("type") == "float" else "int"
    scale = 8 if (kind, bits) == ("fp", 4) else _SCALE
    return QuantizedWeights(
        f"compressed-tensors {kind}{bits}", bits, group, outputs, scale_bits=scale, zero_bits=packed,
        skipped=_names(given, "ignore"), cache_format=cache, chosen=() if "Linear" in targets else tuple(targets),
    )  # fmt: skip


def _modelopt(given: Mapping[str, Any]) -> QuantizedWeights:
    """ModelOpt: FP8 with one scale a tensor, NVFP4 with an 8-bit scale for 16."""
    scheme = str(given.get("quant_algo")).upper()
    skipped = _names(given, "ignore", "exclude_modules")
    cache = (
        "fp8" if str(given.get("kv_cache_quant_algo") or given.get("kv_cache_scheme") or "").upper() == "FP8" else None
    )
    if scheme == "FP8":
        return QuantizedWeights("modelopt fp8", 8, skipped=skipped, cache_format=cache)
    if scheme == "NVFP4":
        return QuantizedWeights("modelopt nvfp4", 4, 16, scale_bits=8, skipped=skipped, cache_format=cache)
    raise fault(f"`quant_algo` of `quantization_config` is {short(given.get('quant_algo'))}. Known: FP8, NVFP4")


def _gguf(given: Mapping[str, Any]) -> QuantizedWeights:
    kind = given.get("file_type")
    name = _GGUF_FILES.get(kind) if isinstance(kind, int) else None
    if name is None:
        raise fault(f"`general.file_type` is {short(kind)}, which is not known here. Known: "
                    f"{', '.join(f'{key} ({form})' for key, form in _GGUF_FILES.items())}")  # fmt: skip
    return QuantizedWeights(f"gguf {name}", weight_bits(name), head=True, router=True, embedding=True)


_METHODS: dict[str, Callable[[Mapping[str, Any]], QuantizedWeights]] = {
    "gptq": _gptq, "awq": _awq, "bitsandbytes": _bitsandbytes, "fp8": _fp8, "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed, "modelopt": _modelopt, "gguf": _gguf,
}  # fmt: skip
