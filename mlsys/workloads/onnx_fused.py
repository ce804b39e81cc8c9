"""Work of ONNX Runtime's fused operators, as calls under the names of the counting rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlsys.workloads.onnx_contrib import turned
from mlsys.workloads.operators import LAYER_NORM_OPERATIONS, SOFTMAX_OPERATIONS
from mlsys.workloads.torch_import.calls import Call, Tensor

_Given = Sequence[Tensor | None]
_Attributes = Mapping[str, Any]
_Made = tuple[Tensor, ...]
_SOFTMAX = sum(SOFTMAX_OPERATIONS.values())
_LAYER_NORM = sum(LAYER_NORM_OPERATIONS.values())
_RMS_NORM = 4  # square, sum, scale, gain
_ROTATION = 3  # two products and their sum per element


def fused_call(op_type: str, given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    """Return an operator of ONNX Runtime as a call; None for one without a rule.

    Parameters
    ----------
    op_type, given, outputs, attributes
        As for :func:`mlsys.workloads.onnx_operators.call_of`.
    """
    make = _CALLS.get(op_type)
    if make is None:
        return None
    return make([*given, *[None] * 16], outputs, attributes)


def stated(
    kind: str, given: _Given, outputs: _Made, macs: int = 0, elementwise: int = 0, read: int | None = None, **sizes: int
) -> Call:
    """Return a call with explicitly given work."""
    named = tuple((str(index), tensor) for index, tensor in enumerate(given) if tensor is not None)
    work = (
        ("kind", kind),
        ("macs", macs),
        ("elementwise", elementwise),
        ("read", read),
        ("sizes", tuple(sizes.items())),
    )
    return Call("stated_work", "", (*work, *named), outputs)


def _product(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    """Return the product of the first two inputs, with the second one last."""
    left, right, *rest = given
    if left is None or right is None:
        return None
    left = left._replace(shape=turned(left.shape, attributes.get("transA")))
    right = right._replace(shape=turned(right.shape, attributes.get("transB")))
    order = (left, *(tensor for tensor in rest if tensor is not None), right)
    return Call("matmul", "", tuple((str(index), tensor) for index, tensor in enumerate(order)), outputs)


def _packed_product(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    """Return the product with a weight of few bits, packed into bytes."""
    left, packed, *rest = given
    if left is None or packed is None:
        return None
    right = packed._replace(shape=(attributes["K"], attributes["N"]))
    return _product([left, right, *rest], outputs, {})


def _biased_product(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    left, right, bias = given[:3]
    if left is None or right is None:
        return None
    matrices = [
        ("mat1", left._replace(shape=turned(left.shape, attributes.get("transA")))),
        ("mat2", right._replace(shape=turned(right.shape, attributes.get("transB")))),
    ]
    named = (*matrices, *([("bias", bias)] if bias is not None else []))
    return Call("addmm" if bias is not None else "mm", "", named, outputs)


def _quantised_gemm(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    call = _biased_product([given[0], given[3], given[6]], outputs, attributes)
    if call is None:
        return None
    others = tuple((str(slot), given[slot]) for slot in (1, 2, 4, 5, 7, 8) if given[slot] is not None)
    return call._replace(arguments=(*call.arguments, *others))


def _attention(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    """Return the projection to queries, keys and values, followed by attention."""
    tokens, weight, bias = given[:3]
    if tokens is None or weight is None:
        return None
    batch, queries, width = tokens.shape
    total = weight.shape[1]
    past = given[4] if not attributes.get("_quantised") else given[8]
    keys = queries + (past.shape[3] if past is not None and len(past.shape) == 5 else 0)
    value = outputs[0].shape[-1]
    key = (total - value) // 2
    heads = attributes["num_heads"]
    scores = batch * heads * queries * keys
    macs = batch * queries * width * total + batch * queries * keys * (key + value)
    added = batch * queries * total if bias is not None else 0
    return stated(
        "attention", given, outputs, macs, _SOFTMAX * scores + added, batch=batch, heads=heads, queries=queries,
        keys=keys, head_dim=key // heads,
    )  # fmt: skip


def _heads(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    """Return attention over queries, keys and values with concatenated heads."""
    query, key, value = given[:3]
    if query is None or key is None or value is None or len(query.shape) != 3:
        return None
    count = attributes["num_heads"]
    split = []
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if len(tensor.shape) == 3:
            batch, tokens, width = tensor.shape
            tensor = tensor._replace(shape=(batch, count, tokens, width // count))
        split.append((name, tensor))
    others = [(str(slot), tensor) for slot, tensor in enumerate(given[3:], 3) if tensor is not None]
    return Call("scaled_dot_product_attention", "", (*split, *others), outputs)


def _grouped_heads(given: _Given, outputs: _Made, attributes: _Attributes) -> Call | None:
    query, past = given[0], given[3]
    if query is None or not outputs or len(outputs[0].shape) != 3:
        return None
    batch, queries, width = outputs[0].shape
    heads, kv_heads = attributes["num_heads"], attributes["kv_num_heads"]
    keys = queries + (past.shape[2] if past is not None and len(past.shape) == 4 else 0)
    scores = batch * heads * queries * keys
    rotated = batch * queries * (heads + kv_heads) * (width // heads) if attributes.get("do_rotary") else 0
    return stated(
        "attention", given, outputs, scores * 2 * (width // heads), _SOFTMAX * scores + _ROTATION * rotated,
        batch=batch, heads=heads, queries=queries, keys=keys, head_dim=width // heads,
    )  # fmt: skip


def _skipped_norm(each: int) -> Callable[[_Given, _Made, _Attributes], Call]:
    def make(given: _Given, outputs: _Made, attributes: _Attributes) -> Call:
        bias = 4 if each == _LAYER_NORM else 3
        added = each + 1 + (given[bias] is not None)
        return stated("normalisation", given, outputs, elementwise=outputs[0].elements * added)

    return make


def _pointwise(kind: str, each: int, biased: int = 0) -> Callable[[_Given, _Made, _Attributes], Call]:
    """Return the rule of element-wise work: FLOP per element, without and with a bias."""

    def make(given: _Given, outputs: _Made, attributes: _Attributes) -> Call:
        count = each + (biased if given[1] is not None else 0)
        sizes = {"elements": outputs[0].elements}
        return stated(kind, given, outputs, elementwise=outputs[0].elements * count, **sizes)

    return make


def _embedded(given: _Given, outputs: _Made, attributes: _Attributes) -> Call:
    """Return the look-up in two or three tables, their sum and its normalisation."""
    rows = outputs[0]
    tables = [tensor for tensor in given[2:5] if tensor is not None]
    others = sum(tensor.bytes for tensor in (*given[:2], *given[5:]) if tensor is not None)
    work = rows.elements * (_LAYER_NORM + len(tables) - 1)
    return stated("embedding", given, outputs, elementwise=work, read=rows.bytes * len(tables) + others)


def _averaged(given: _Given, outputs: _Made, attributes: _Attributes) -> Call:
    assert given[0] is not None
    work = given[0].elements + outputs[0].elements
    return stated("pooling", given, outputs, elementwise=work, in_elements=given[0].elements,
                  out_elements=outputs[0].elements)  # fmt: skip


_CALLS: dict[str, Callable[[_Given, _Made, _Attributes], Call | None]] = {
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _product),
    "MatMulNBits": _packed_product,
    "FusedGemm": _biased_product,
    "QGemm": _quantised_gemm,
    "Attention": _attention,
    "QAttention": lambda given, outputs, attributes: _attention(given, outputs, {**attributes, "_quantised": True}),
    "MultiHeadAttention": _heads,
    "GroupQueryAttention": _grouped_heads,
    "SkipLayerNormalization": _skipped_norm(_LAYER_NORM),
    "SkipSimplifiedLayerNormalization": _skipped_norm(_RMS_NORM),
    "SimplifiedLayerNormalization": _pointwise("normalisation", _RMS_NORM),
    "LayerNormalization": _pointwise("normalisation", _LAYER_NORM),
    "EmbedLayerNormalization": _embedded,
    **dict.fromkeys(("Gelu", "BiasGelu"), _pointwise("activation", 5, 1)),
    "FastGelu": _pointwise("activation", 10, 1),
    "QuickGelu": _pointwise("activation", 6),
    "BiasAdd": _pointwise("elementwise", 2),
    "RotaryEmbedding": _pointwise("elementwise", _ROTATION),
    # Each byte is scaled on input and on output.
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _pointwise("elementwise", 4)),
    "QLinearSigmoid": _pointwise("activation", 6),
    "QLinearLeakyRelu": _pointwise("activation", 4),
    "QLinearSoftmax": _pointwise("softmax", 2 + _SOFTMAX),
    "QLinearConcat": _pointwise("copy", 0),
    "QLinearGlobalAveragePool": _averaged,
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _pointwise("elementwise", 1)),
}
