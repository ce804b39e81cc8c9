"""Weights as the files of a checkpoint store them: bytes by matrix, checked against the configuration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.workloads.transformer_config.headers import Header, Tensor
from mlsys.workloads.zoo.stored_weights import ABSORBED, OUTSIDE

if TYPE_CHECKING:
    from mlsys.workloads.zoo.decoder import Decoder

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|blk)\.(\d+)\.(.+)$")
_EXPERT = re.compile(r"\.experts\.\d+\.")
# Parts of a checkpoint that are no part of its language model.
_OTHERS = re.compile(r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal_projector|mm_projector|v|mm)\.")
_TABLES = ("embed_tokens", "wte", "word_embeddings", "token_embd", "embeddings", "embed_in")
_HEADS = ("lm_head", "output", "embed_out")
# Modules of llama.cpp, and of checkpoints that name experts otherwise, by the name that most checkpoints have.
_NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_a": "self_attn.q_a_proj", "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_b": "self_attn.kv_b_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.gate_proj", "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_down_exps": "mlp.experts.down_proj", "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj", "ffn_down_shexp": "mlp.shared_experts.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "ssm_in": "mamba.in_proj", "ssm_out": "mamba.out_proj",
    "ssm_x": "mamba.x_proj", "ssm_dt": "mamba.dt_proj", "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
}  # fmt: skip
_PARTS = {".w1": ".gate_proj", ".w3": ".up_proj", ".w2": ".down_proj"}
_PACKED = ("qweight", "weight_packed")
_INTEGERS = ("U8", "I8", "I16", "I32", "I64", "U16", "U32", "U64")  # several weights may be packed into one of these


@dataclass(frozen=True)
class StoredTensors:
    """How the files of a checkpoint store the weights of a decoder.

    Attributes
    ----------
    path
        The file that was named.
    formats
        Bytes by number format, largest first.
    modules
        Bytes of matrices by layer (None outside the layers) and module.
    whole
        Bytes of the matrices of each layer, named or not.
    total
        Bytes of all tensors of the language model.
    cache_format
        None: files of weights do not state the format of the cache.
    """

    path: str
    formats: tuple[tuple[str, int], ...]
    modules: Mapping[tuple[int | None, str], int] = field(hash=False)
    whole: Mapping[int, int] = field(hash=False)
    total: int
    cache_format: str | None = None

    def __str__(self) -> str:
        parts = ", ".join(f"{form} {100 * size / self.total:.3g} %" for form, size in self.formats[:4])
        return f"{self.total / 1e9:.4g} GB in {self.path}" + (f" ({parts})" if parts else "")

    def operator_bits(self, model: Decoder, layer: int | None, plain: float) -> Mapping[str, float]:
        """Return the bits of one weight by operator: of a layer, or with None outside of the layers."""
        if layer is None:
            width = model.embedding_width or model.hidden
            size = model.vocabulary * width / 8
            table = self.modules.get((None, "embed_tokens"), size * plain) / size
            head = self.modules.get((None, "lm_head"), table * size) / size
            outside = (*OUTSIDE, *(matrix.operator for matrix in model.outer_matrices))
            return dict.fromkeys(outside, plain) | {"embedding": table, "logits": table if model.tied else head}
        sizes = model.layer_list[layer]
        matrices = sizes.matrices(model.hidden)
        known = [matrix for matrix in matrices if (layer, matrix.name) in self.modules]
        rest = [matrix for matrix in matrices if (layer, matrix.name) not in self.modules]
        unnamed = self.whole.get(layer, 0) - sum(self.modules[layer, matrix.name] for matrix in known)
        elements = sum(matrix.elements for matrix in rest)
        bits = 8 * unnamed / elements if elements and unnamed > 0 else plain
        taken: Counter[str] = Counter()
        weights: Counter[str] = Counter()
        for matrix in matrices:
            stored = self.modules.get((layer, matrix.name))
            taken[matrix.operator] += bits * matrix.elements if stored is None else 8 * stored  # type: ignore[assignment]
            weights[matrix.operator] += matrix.elements
        means: dict[str, float] = {name: total / weights[name] for name, total in taken.items()}
        if "key and value" in means:
            means |= dict.fromkeys(ABSORBED, means["key and value"])
        return means | {"convolution": plain}

    def weight_bytes(self, model: Decoder, plain: float) -> float:
        """Return the bytes of all tensors, as the files have them."""
        return self.total


def stored_tensors(header: Header, model: Decoder) -> StoredTensors | None:
    """Return how a checkpoint stores a model's weights; None if it stores all in the one format stated elsewhere.

    Raises
    ------
    ArgumentError
        If tensors contradict the configuration: other sizes, layers that are missing, or other counts.
    """
    own = [tensor for tensor in header.tensors if not _OTHERS.search(tensor.name)]
    layers = len(model.layer_list)
    further = {tensor.name for tensor in own if (at := _place(tensor)[0]) is not None and at >= layers}
    if further and "num_nextn_predict_layers" not in getattr(model, "left_out", ()):
        raise ArgumentError(
            f"{header.path}: {min(further)!r} is of a layer beyond the {layers} of `num_hidden_layers`. Mend one"
        )
    own = [tensor for tensor in own if tensor.name not in further]
    if not own:
        return None if header.total is None else StoredTensors(header.path, (), {}, {}, header.total)
    _compare(header.path, own, model)
    modules: Counter[tuple[int | None, str]] = Counter()
    whole: Counter[int] = Counter()
    formats: Counter[str] = Counter()
    for tensor in own:
        formats[tensor.form] += tensor.bytes
        layer, module = _place(tensor)
        if len(tensor.shape) < 2 and not tensor.name.endswith("g_idx"):
            continue
        modules[layer, module] += tensor.bytes
        if layer is not None:
            whole[layer] += tensor.bytes
    total = sum(tensor.bytes for tensor in own)
    return StoredTensors(header.path, tuple(formats.most_common()), dict(modules), dict(whole), total)


def _place(tensor: Tensor) -> tuple[int | None, str]:
    """Return the layer of a tensor, or None, and the module that it belongs to."""
    found = _LAYER.search(tensor.name)
    name = found[2] if found else tensor.name
    module = _EXPERT.sub(".experts.", f".{name.rpartition('.')[0] or name}").removeprefix(".")
    for old, new in (("block_sparse_moe", "mlp"), ("feed_forward", "mlp"), ("shared_expert.", "shared_experts.")):
        module = module.replace(old, new)
    for old, new in _PARTS.items():
        module = module.removesuffix(old) + new if module.endswith(old) else module
    if found:
        return int(found[1]), _NAMES.get(module, module)
    last = module.rpartition(".")[2]
    return None, "embed_tokens" if last in _TABLES else "lm_head" if last in _HEADS else module


def _compare(path: str, tensors: list[Tensor], model: Decoder) -> None:
    """Refuse tensors whose sizes contradict the configuration."""
    present = {layer for tensor in tensors if (layer := _place(tensor)[0]) is not None}
    layers = len(model.layer_list)
    if len(present) < layers:
        absent = min(set(range(layers)) - present)
        raise ArgumentError(
            f"{path}: no tensor is of layer {absent}, and `num_hidden_layers` is {layers}. Give all parts of the "
            "checkpoint (its index), or mend the configuration"
        )
    expected = dict(_expected(model))
    packed = {_place(tensor) for tensor in tensors if tensor.name.rpartition(".")[2] in _PACKED}
    found: Counter[tuple[int | None, str]] = Counter()
    names: dict[tuple[int | None, str], str] = {}
    for tensor in tensors:
        place = _place(tensor)
        if (
            tensor.name.endswith("weight")
            and len(tensor.shape) > 1
            and place not in packed
            and tensor.form not in _INTEGERS
        ):
            found[place] += tensor.elements
            names[place] = f"{tensor.name!r} has {' × '.join(map(str, tensor.shape))} weights"
    for place, elements in found.items():
        if place in expected and elements != expected[place]:
            what = "the configuration's sizes give" if place[0] is not None else "its `vocab_size` and width give"
            raise ArgumentError(
                f"{path}: {names[place]}, {elements:,} in all, and {what} {expected[place]:,}. The files and the "
                "configuration are of different models"
            )


def _expected(model: Decoder) -> Iterator[tuple[tuple[int | None, str], int]]:
    table = model.vocabulary * (model.embedding_width or model.hidden)
    yield (None, "embed_tokens"), table
    yield (None, "lm_head"), table
    for index, layer in enumerate(model.layer_list):
        for matrix in layer.matrices(model.hidden):
            yield (index, matrix.name), matrix.elements
