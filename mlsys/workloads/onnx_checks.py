"""Shape checks of ONNX operators, and output shapes where onnx's own inference is wrong.

onnx's own shape inference accepts channels, weights and biases that no runtime accepts, and rounds pooling up where a
window would begin outside the padded input. Each check here raises :class:`Mismatch` with the two sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlsys.workloads.onnx_node_view import Mismatch, NodeView, Shape, Shapes, broadcast, text_of
from mlsys.workloads.onnx_windows import convolution_shapes, pooling_shapes, transposed_convolution_shapes


def checked_shapes(
    node: Any, shapes: Shapes, data: Sequence[Any], attributes: Mapping[str, Any]
) -> tuple[Shape | None, ...]:
    """Check the inputs of a standard operator; return output shapes where onnx's inference is wrong.

    Parameters
    ----------
    node
        The ``NodeProto``.
    shapes
        Shapes of its inputs, None for omitted or unknown ones.
    data
        Values of its inputs, None if unknown.
    attributes
        Attributes of the node.

    Raises
    ------
    Mismatch
        If the inputs do not match each other.
    """
    check = _CHECKS.get(node.op_type)
    if check is None:
        return ()
    padded = [*shapes, *[None] * 10]
    return check(NodeView(node, padded, [*data, *[None] * 10], attributes)) or ()


_Check = Callable[[NodeView], "tuple[Shape | None, ...] | None"]


def _normalisation(node: NodeView) -> None:
    """Check a scale and a bias per channel."""
    if node.known(0):
        node.rank(0, 2 if node.op == "BatchNormalization" else 3)
        for slot in range(1, 5 if node.op == "BatchNormalization" else 3):
            node.vector(slot, node.shape(0)[1])


def _group_normalisation(node: NodeView) -> None:
    if node.known(0):
        node.rank(0, 3)
        channels, groups = node.shape(0)[1], node.get("num_groups", 1)
        if groups < 1 or channels % groups:
            raise Mismatch(f"has `num_groups` {groups:,}, which does not divide the channels of {node.named(0)}")
        for slot in (1, 2):
            if node.shapes[slot] not in (None, (groups,), (channels,)):
                node.vector(slot, channels)


def _layer_normalisation(node: NodeView) -> None:
    """Check that scale and bias broadcast over the normalised axes."""
    if not node.known(0):
        return
    given = node.shape(0)
    axis = node.get("axis", -1)
    if not -len(given) <= axis < len(given):
        raise Mismatch(f"has `axis` {axis}, and {node.named(0)} has {len(given)} axes")
    for slot in (1, 2):
        if node.shapes[slot] is not None and not _spreads(node.shape(slot), given[axis % len(given) :]):
            raise Mismatch(f"needs a scale or bias of {text_of(given[axis % len(given) :])}, and has "
                           f"{node.named(slot)}")  # fmt: skip


def _spreads(shape: Shape, over: Shape) -> bool:
    """Return whether a shape broadcasts to another without enlarging it."""
    return len(shape) <= len(over) and all(
        size in (1, whole) for size, whole in zip(shape[::-1], over[::-1], strict=False)
    )


def _gemm(node: NodeView) -> None:
    node.rank(0, 2, 2)
    node.rank(1, 2, 2)
    if not node.known(0, 1):
        return
    left, right = node.shape(0), node.shape(1)
    left = left[::-1] if node.get("transA", 0) else left
    right = right[::-1] if node.get("transB", 0) else right
    if left[1] != right[0]:
        raise Mismatch(f"cannot multiply {node.named(0)} by {node.named(1)}: {left[1]} columns meet {right[0]} rows")
    if node.known(2) and not _spreads(node.shape(2), (left[0], right[1])):
        raise Mismatch(f"cannot add {node.named(2)} to a product of {left[0]} × {right[1]}")


def _product(node: NodeView) -> None:
    """Check the inner sizes of a matrix product, and that the batch axes broadcast."""
    second = 3 if node.op == "QLinearMatMul" else 1
    if not node.known(0, second):
        return
    node.rank(0, 1)
    node.rank(second, 1)
    left, right = node.shape(0), node.shape(second)
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise Mismatch(
            f"cannot multiply {node.named(0)} by {node.named(second)}: {left[-1]:,} columns meet {inner:,} rows"
        )
    if any(a != b and 1 not in (a, b) for a, b in zip(left[:-2][::-1], right[:-2][::-1], strict=False)):
        raise Mismatch(f"cannot multiply {node.named(0)} by {node.named(second)}: their batch axes differ")


def _elementwise(node: NodeView) -> None:
    """Check that all inputs broadcast to one shape, or, before opset 7, the second into the first at an axis."""
    if node.get("broadcast", 0) and node.known(0, 1):
        first, second = node.shape(0), node.shape(1)
        axis = node.get("axis", len(first) - len(second)) % max(len(first), 1)
        if not _spreads(second, first[axis : axis + len(second)]):
            raise Mismatch(f"cannot combine {node.named(0)} with {node.named(1)} at its axis {axis}")
        return
    places = [slot for slot, shape in enumerate(node.shapes) if shape]
    for index, slot in enumerate(places):
        for other in places[:index]:
            pairs = zip(node.shape(other)[::-1], node.shape(slot)[::-1], strict=False)
            wrong = next(((a, b) for a, b in pairs if a != b and 1 not in (a, b)), None)
            if wrong:
                raise Mismatch(
                    f"cannot combine {node.named(other)} with {node.named(slot)}: {wrong[0]:,} and {wrong[1]:,} "
                    "do not broadcast"
                )


def _slope(node: NodeView) -> tuple[Shape | None, ...] | None:
    """Check the slopes, which runtimes also accept if they enlarge the input."""
    _elementwise(node)
    return (broadcast(node.shape(0), node.shape(1)),) if node.known(0, 1) else None


def _gathered(node: NodeView) -> None:
    """Check that constant indices lie within the axis."""
    if not node.known(0) or node.data[1] is None or not node.data[1].size:
        return
    given, axis = node.shape(0), node.get("axis", 0)
    if not -len(given) <= axis < len(given):
        raise Mismatch(f"has `axis` {axis}, and {node.named(0)} has {len(given)} axes")
    low, high = int(node.data[1].min()), int(node.data[1].max())
    if low < -given[axis] or high >= given[axis]:
        raise Mismatch(f"reads index {high if high >= given[axis] else low} along axis {axis} of {node.named(0)}, "
                       f"which has {given[axis]}")  # fmt: skip


def _concat(node: NodeView) -> None:
    shapes = [(slot, shape) for slot, shape in enumerate(node.shapes) if shape is not None]
    if len(shapes) < 2:
        return
    first, rank = shapes[0][0], len(shapes[0][1])
    axis = node.get("axis", 0)
    if not -rank <= axis < rank:
        raise Mismatch(f"has `axis` {axis}, and {node.named(first)} has {rank} axes")
    for slot, shape in shapes[1:]:
        if len(shape) != rank or any(
            a != b for index, (a, b) in enumerate(zip(shapes[0][1], shape, strict=True)) if index != axis % rank
        ):
            raise Mismatch(f"cannot join {node.named(first)} and {node.named(slot)} along axis {axis}")


def _reshape(node: NodeView) -> None:
    if not node.known(0) or node.data[1] is None:
        return
    given, wanted = node.shape(0), [int(size) for size in node.data[1].ravel()]
    sizes = [
        given[index] if size == 0 and not node.get("allowzero", 0) and index < len(given) else size
        for index, size in enumerate(wanted)
    ]
    whole, known = math.prod(given), math.prod(size for size in sizes if size != -1)
    fits = (whole % known == 0 if known else whole == 0) if -1 in sizes else whole == known
    if not fits or sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise Mismatch(f"cannot reshape {node.named(0)}, {whole:,} elements, to {text_of(tuple(wanted))}")


def _transpose(node: NodeView) -> None:
    if node.known(0) and "perm" in node.attributes:
        order = list(node.attributes["perm"])
        if sorted(order) != list(range(len(node.shape(0)))):
            raise Mismatch(f"has `perm` {order}, and {node.named(0)} has {len(node.shape(0))} axes")


def _made_of_shape(node: NodeView) -> None:
    if node.data[0] is None:
        return
    sizes = [int(size) for size in node.data[0].ravel()]
    for axis, size in enumerate(sizes):
        if size < 0:
            raise Mismatch(
                f"makes a tensor of shape {text_of(tuple(sizes))}: its size {axis} is {size}. Sizes must be >= 0"
            )


def _recurrent(node: NodeView) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.op]
    if not node.known(0, 1, 2):
        return
    for slot in range(3):
        node.rank(slot, 3, 3)
    directions = 2 if node.get("direction", b"forward") == b"bidirectional" else 1
    hidden = node.get("hidden_size", node.shape(2)[2])
    node.size(f"features, as many as {node.named(0)} has", 1, 2, node.shape(0)[2])
    wanted = {
        1: (directions, gates * hidden, node.shape(0)[2]),
        2: (directions, gates * hidden, hidden),
        3: (directions, 2 * gates * hidden),
    }
    for slot, shape in wanted.items():
        if node.known(slot) and node.shape(slot) != shape:
            raise Mismatch(f"needs a weight of {text_of(shape)}, and has {node.named(slot)}")
    batch = node.shape(0)[0 if node.get("layout", 0) else 1]
    state = (batch, directions, hidden) if node.get("layout", 0) else (directions, batch, hidden)
    for slot in (5, 6) if node.op == "LSTM" else (5,):
        if node.known(slot) and node.shape(slot) != state:
            raise Mismatch(f"needs an initial state of {text_of(state)}, and has {node.named(slot)}")
    if node.known(4):
        node.vector(4, batch)


def _einsum(node: NodeView) -> None:
    equation = node.get("equation", b"").decode().replace(" ", "")
    sizes: dict[str, tuple[int, int]] = {}
    for slot, term in enumerate(equation.partition("->")[0].split(",")):
        if not node.known(slot):
            continue
        letters = [letter for letter in term.replace("...", "")]
        shape = node.shape(slot)
        if len(letters) > len(shape) or ("..." not in term and len(letters) != len(shape)):
            raise Mismatch(f"has {term!r} in its equation, and {node.named(slot)} has {len(shape)} axes")
        before = term.partition("...")[0]
        places = [*range(len(before)), *range(len(shape) - len(letters) + len(before), len(shape))]
        own: dict[str, int] = {}
        for letter, axis in zip(letters, places, strict=True):
            if own.setdefault(letter, shape[axis]) != shape[axis]:
                raise Mismatch(f"has {letter!r} twice in {node.named(slot)}, as {own[letter]} and as {shape[axis]}")
            other, where = sizes.setdefault(letter, (shape[axis], slot))
            if other != shape[axis] and 1 not in (other, shape[axis]):
                raise Mismatch(
                    f"has {letter!r} as {other} in {node.named(where)} and as {shape[axis]} in {node.named(slot)}"
                )


def _attention(node: NodeView) -> None:
    """Check heads and widths of query, key and value."""
    if not node.known(0, 1, 2):
        return
    shapes = []
    for slot, name in enumerate(("q_num_heads", "kv_num_heads", "kv_num_heads")):
        node.rank(slot, 3, 4)
        shape = node.shape(slot)
        if len(shape) == 3:
            heads = node.get(name, 0)
            if heads < 1 or shape[2] % heads:
                raise Mismatch(f"has `{name}` {heads}, which does not divide the width of {node.named(slot)}")
            shape = (shape[0], heads, shape[1], shape[2] // heads)
        shapes.append(shape)
    query, key, value = shapes
    past = node.shape(4)[-2] if node.known(4) else 0
    for slot, (a, b), what in (
        (1, (query[0], key[0]), "batch"),
        (2, (key[0], value[0]), "batch"),
        (1, (query[3], key[3]), "width of a head"),
        (2, (key[2], value[2]), "number of keys"),
        (2, (key[1], value[1]), "number of heads"),
    ):
        if a != b:
            raise Mismatch(f"cannot combine {node.named(0 if slot == 1 else 1)} with {node.named(slot)}: the {what} is "
                           f"{a} and {b}")  # fmt: skip
    if query[1] % key[1]:
        raise Mismatch(f"shares {key[1]} key heads among {query[1]} query heads, which is not a multiple")
    if node.known(3):
        whole = (query[0], query[1], query[2], key[2] + past)
        if not _spreads(node.shape(3), whole):
            raise Mismatch(f"cannot broadcast the mask {node.named(3)} over scores of {text_of(whole)}")


def _split(node: NodeView) -> None:
    if not node.known(0):
        return
    sizes = node.attributes.get("split", node.data[1].ravel().tolist() if node.data[1] is not None else None)
    axis = node.get("axis", 0)
    if not -len(node.shape(0)) <= axis < len(node.shape(0)):
        raise Mismatch(f"has `axis` {axis}, and {node.named(0)} has {len(node.shape(0))} axes")
    count = node.get("num_outputs", 1)
    if count > node.shape(0)[axis]:
        raise Mismatch(f"splits {node.named(0)} along axis {axis} into {count} parts, and it has {node.shape(0)[axis]}")
    if sizes is not None and sum(sizes) != node.shape(0)[axis]:
        raise Mismatch(
            f"splits {node.named(0)} along axis {axis} into {list(sizes)}, whose sum is not {node.shape(0)[axis]}"
        )


def _block_moves(node: NodeView) -> None:
    if node.known(0):
        node.rank(0, 4, 4)
        block, (_, channels, height, width) = node.get("blocksize", 1), node.shape(0)
        whole = channels % block**2 == 0 if node.op == "DepthToSpace" else not (height % block or width % block)
        if block < 1 or not whole:
            raise Mismatch(f"has `blocksize` {block}, which does not divide {node.named(0)}")


def _top(node: NodeView) -> None:
    if node.known(0) and node.data[1] is not None and node.shape(0):
        axis, count = node.get("axis", -1), int(node.data[1].ravel()[0])
        if -len(node.shape(0)) <= axis < len(node.shape(0)) and not 0 <= count <= node.shape(0)[axis]:
            raise Mismatch(
                f"takes the {count} largest along axis {axis}, and {node.named(0)} has {node.shape(0)[axis]}"
            )


def _resized(node: NodeView) -> None:
    """Check that region, scales and sizes are lists with one number per axis."""
    for slot in range(1, 4):
        if node.shapes[slot] is not None and len(node.shape(slot)) != 1:
            raise Mismatch(f"needs a list of numbers, and has {node.named(slot)}")
    if node.known(0):
        axes = len(node.get("axes", node.shape(0)))
        for slot in (2, 3):
            if node.shapes[slot] not in (None, (0,), (axes,)):
                raise Mismatch(f"needs {axes} numbers, one per axis, and has {node.named(slot)}")


def _clipped(node: NodeView) -> None:
    for slot in (1, 2):
        if node.shapes[slot] not in (None, ()):
            raise Mismatch(f"needs a scalar as its bound, and has {node.named(slot)}")


_ELEMENTWISE = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "Where", "And", "Or", "Xor", "Equal"),
    *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"),
)
_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), lambda node: node.rank(0, 3)),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "FusedConv"), convolution_shapes),
    "ConvTranspose": transposed_convolution_shapes,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pooling_shapes),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _normalisation),
    "GroupNormalization": _group_normalisation,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_normalisation),
    "PRelu": _slope,
    "Gemm": _gemm,
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _product),
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "Concat": _concat,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "ConstantOfShape": _made_of_shape,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Einsum": _einsum,
    "Attention": _attention,
    "Split": _split,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _block_moves),
    "TopK": _top,
    "Resize": _resized,
    "Clip": _clipped,
    **dict.fromkeys(("Gather", "GatherElements"), _gathered),
}
