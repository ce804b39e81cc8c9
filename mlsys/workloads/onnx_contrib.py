"""Fused operators of ONNX Runtime (domain ``com.microsoft``): shapes.

Shapes follow ONNX Runtime's documentation of its contributed operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mlsys.workloads.onnx_node_view import Mismatch, Shape, broadcast, text_of

DOMAIN = "com.microsoft"
SAME_IN_STANDARD = frozenset({"SimplifiedLayerNormalization", "LayerNormalization"})  # also in domain ai.onnx
_Shapes = Sequence[Shape | None]


class Made(NamedTuple):
    """An output: its shape, and the index of the input with the same element type."""

    shape: Shape | None
    like: int = 0


def contrib_shapes(node: Any, shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    """Return the outputs of an operator of ONNX Runtime; empty for an unknown operator.

    Raises
    ------
    Mismatch
        If its inputs do not match each other.
    """
    infer = _SHAPES.get(node.op_type)
    if infer is None or node.domain not in (DOMAIN, "", "ai.onnx") or not shapes:
        return ()
    return infer([*shapes, *[None] * 16], attributes)


def _same(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    return (Made(shapes[0]),)


def _skip(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    """Return the normalised sum, its statistics, and the sum itself."""
    given, skip = shapes[0], shapes[1]
    if given and skip and skip[-1] != given[-1]:
        raise Mismatch(f"cannot add {text_of(skip)} to {text_of(given)}")
    return Made(given), Made(None), Made(None), Made(given)


def _product(like: int) -> Callable[[_Shapes, Mapping[str, Any]], tuple[Made, ...]]:
    """Return the shape rule of a matrix product whose output has the element type of a given input."""

    def infer(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
        left, right = shapes[0], shapes[1]
        if left is None or right is None:
            return ()
        left, right = turned(left, attributes.get("transA")), turned(right, attributes.get("transB"))
        if len(left) < 1 or len(right) < 2 or left[-1] != right[-2]:
            raise Mismatch(f"cannot multiply {text_of(left)} by {text_of(right)}")
        stack = broadcast(left[:-2], right[:-2])
        if stack is None:
            raise Mismatch(f"cannot multiply {text_of(left)} by {text_of(right)}: their batch axes differ")
        return (Made((*stack, *left[-2:-1], right[-1]), like),)

    return infer


def turned(shape: Shape, is_turned: object) -> Shape:
    """Return a matrix's shape, transposed if the operator reads it transposed."""
    return (*shape[:-2], shape[-1], shape[-2]) if is_turned and len(shape) > 1 else shape


def _packed_product(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    given = shapes[0]
    if given is None:
        return ()
    if given[-1] != attributes["K"]:
        raise Mismatch(f"has `K` {attributes['K']}, and its input is {text_of(given)}")
    return (Made((*given[:-1], attributes["N"])),)


def _attention(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    given, weight = shapes[0], shapes[1]
    if given is None or weight is None:
        return ()
    if len(given) != 3 or len(weight) != 2 or given[2] != weight[0]:
        raise Mismatch(f"cannot multiply {text_of(given)} by {text_of(weight)}")
    value = attributes["qkv_hidden_sizes"][2] if "qkv_hidden_sizes" in attributes else weight[1] // 3
    return (Made((*given[:2], value)),)


def _heads(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    query, value = shapes[0], shapes[2]
    if query is None or len(query) != 3 or query[2] % attributes["num_heads"]:
        return ()
    if value is None or len(value) not in (3, 4):
        return (Made(query),)
    width = value[2] if len(value) == 3 else value[1] * value[3]
    return (Made((*query[:2], width)),)


def _grouped_heads(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    query, key, past = shapes[0], shapes[1], shapes[3]
    heads, kv_heads = attributes["num_heads"], attributes["kv_num_heads"]
    if query is None or len(query) != 3:
        return ()
    packed = key is None
    width = query[2] // (heads + 2 * kv_heads) if packed else query[2] // heads
    if heads % kv_heads or (key is not None and key[-1] != kv_heads * width):
        raise Mismatch(
            f"has {heads} heads and {kv_heads} of keys, but its inputs are {text_of(query)} and {text_of(key)}"
        )
    keys = query[1] + (past[2] if past is not None and len(past) == 4 else 0)
    present = Made((query[0], kv_heads, keys, width))
    return Made((*query[:2], heads * width)), present, present


def _embedded(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    words, table = shapes[0], shapes[2]
    if words is None or table is None:
        return ()
    return Made((*words, table[-1]), 2), Made((words[0],), 0), Made((*words, table[-1]), 2)


def _combined(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    if shapes[0] is None or shapes[3] is None:
        return ()
    shape = broadcast(shapes[0], shapes[3])
    if shape is None:
        raise Mismatch(f"cannot combine {text_of(shapes[0])} with {text_of(shapes[3])}")
    return (Made(shape),)


def _joined(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    parts = [shape for shape in shapes[2::3] if shape is not None]
    axis = attributes.get("axis", 0)
    sizes = [list(part) for part in parts]
    if not parts or any(len(part) != len(parts[0]) for part in parts):
        return ()
    whole = sizes[0]
    whole[axis] = sum(part[axis] for part in parts)
    return (Made(tuple(whole), 2),)


def _averaged(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    given = shapes[0]
    if given is None:
        return ()
    last = attributes.get("channels_last")
    return (Made((given[0], *(1,) * (len(given) - 2), given[-1]) if last else (*given[:2], *(1,) * (len(given) - 2))),)


def _quantised_gemm(shapes: _Shapes, attributes: Mapping[str, Any]) -> tuple[Made, ...]:
    left, right = shapes[0], shapes[3]
    if left is None or right is None:
        return ()
    left, right = turned(left, attributes.get("transA")), turned(right, attributes.get("transB"))
    if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
        raise Mismatch(f"cannot multiply {text_of(left)} by {text_of(right)}")
    return (Made((left[0], right[1]), 8 if shapes[8] is not None else 1),)


_SHAPES: dict[str, Callable[[_Shapes, Mapping[str, Any]], tuple[Made, ...]]] = {
    **dict.fromkeys(
        ("SimplifiedLayerNormalization", "LayerNormalization", "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "BiasAdd",
         "RotaryEmbedding", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearReduceMean", "GroupNorm"),
        _same,
    ),
    "QuantizeLinear": lambda shapes, attributes: (Made(shapes[0], 2),),
    "DequantizeLinear": lambda shapes, attributes: (Made(shapes[0], 1),),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip),
    "FusedMatMul": _product(0),
    "TransposeMatMul": _product(0),
    "DynamicQuantizeMatMul": _product(0),
    "MatMulIntegerToFloat": _product(2),
    "MatMulNBits": _packed_product,
    "QGemm": _quantised_gemm,
    "FusedGemm": _product(0),
    "Attention": _attention,
    "QAttention": lambda shapes, attributes: tuple(Made(made.shape, 2) for made in _attention(shapes, attributes)),
    "MultiHeadAttention": _heads,
    "GroupQueryAttention": _grouped_heads,
    "EmbedLayerNormalization": _embedded,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _combined),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": _averaged,
}  # fmt: skip
