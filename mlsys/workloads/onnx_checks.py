"""Whether the inputs of an ONNX operator fit each other, and the output shapes that onnx does not infer rightly.

onnx's own shape inference accepts channels, weights and biases that no runtime takes, and rounds pooling up
where a window would begin outside the padded input. Each check here raises :class:`Mismatch` with the two sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Shape = tuple[int, ...]
_Shapes = Sequence[Shape | None]


class Mismatch(ValueError):
    """The inputs of a node do not fit; the message goes on after the name of the node."""


def text_of(shape: Sequence[object] | None) -> str:
    """Return a shape in words.

    Examples
    --------
    >>> text_of((1, 3, 224, 224)), text_of(()), text_of((7,))
    ('1 × 3 × 224 × 224', 'a scalar', '(7)')
    """
    if shape is None:
        return "unknown shape"
    if not shape:
        return "a scalar"
    return f"({shape[0]})" if len(shape) == 1 else " × ".join(map(str, shape))


def checked_shapes(
    node: Any, shapes: _Shapes, data: Sequence[Any], attributes: Mapping[str, Any]
) -> tuple[Shape | None, ...]:
    """Check the inputs of a standard operator and return the output shapes that onnx does not infer rightly.

    Parameters
    ----------
    node
        The ``NodeProto``.
    shapes
        Of its inputs, None where one is left out or not known.
    data
        Values of its inputs, None where they are not known.
    attributes
        Of the node.

    Raises
    ------
    Mismatch
        If the inputs do not fit each other.
    """
    check = _CHECKS.get(node.op_type)
    if check is None:
        return ()
    padded = [*shapes, *[None] * 10]
    return check(_Node(node, padded, [*data, *[None] * 10], attributes)) or ()


class _Node:
    """What a check sees of a node."""

    def __init__(self, node: Any, shapes: _Shapes, data: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        self.op, self.shapes, self.data, self.attributes = node.op_type, shapes, data, attributes
        self._names = [*node.input, *[""] * 10]

    def known(self, *places: int) -> bool:
        return all(self.shapes[place] is not None for place in places)

    def shape(self, place: int) -> Shape:
        return self.shapes[place] or ()

    def named(self, place: int) -> str:
        return f"{self._names[place]!r} of {text_of(self.shapes[place])}"

    def get(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)

    def size(self, what: str, place: int, axis: int, wanted: int) -> None:
        """Refuse an input whose size along an axis is not the one wanted."""
        if self.shapes[place] is not None and self.shape(place)[axis] != wanted:
            raise Mismatch(f"needs {wanted} {what}, and {self.named(place)} has {self.shape(place)[axis]}")

    def vector(self, place: int, length: int, *, one: bool = False) -> None:
        """Refuse an input that is no vector of a length."""
        if self.shapes[place] is None or (one and math.prod(self.shape(place)) == 1):
            return
        if self.shape(place) != (length,):
            raise Mismatch(f"needs {length} numbers, one a channel, and has {self.named(place)}")

    def rank(self, place: int, least: int, most: int | None = None) -> None:
        if self.shapes[place] is not None and not least <= len(self.shape(place)) <= (most or 99):
            wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise Mismatch(f"needs {wanted} axes, and {self.named(place)} has {len(self.shape(place))}")


_Check = Callable[[_Node], "tuple[Shape | None, ...] | None"]


def _window(node: _Node, sizes: Shape, kernel: Shape) -> Shape:
    """Return the places of a window: of a convolution, or of a pooling with ``ceil_mode``."""
    dims = len(sizes)
    for name, length in (("strides", dims), ("dilations", dims), ("pads", 2 * dims), ("kernel_shape", dims)):
        if name in node.attributes and len(node.attributes[name]) != length:
            raise Mismatch(
                f"has {len(node.attributes[name])} `{name}`, and {dims} axes of {node.named(0)} need {length}"
            )
    strides = node.get("strides", (1,) * dims)
    dilations = node.get("dilations", (1,) * dims)
    pads = node.get("pads", (0,) * 2 * dims)
    auto = node.get("auto_pad", b"NOTSET").decode()
    if auto not in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
        raise Mismatch(f"has `auto_pad` {auto!r}. It must be NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    rounded_up = bool(node.get("ceil_mode", 0)) and node.op in ("MaxPool", "AveragePool", "LpPool")
    places = []
    for axis, (size, window, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        reach = dilation * (window - 1) + 1
        begin, end = (pads[axis], pads[axis + dims]) if auto == "NOTSET" else (0, 0)
        if min(begin, end) < 0:
            raise Mismatch(f"has `pads` {list(pads)}. Each must be 0 or more")
        if node.op.endswith("Pool") and max(begin, end) >= window:
            raise Mismatch(f"has `pads` {list(pads)}, and its window of {text_of(kernel)} is no larger")
        if auto.startswith("SAME"):
            places.append(-(-size // stride))
            continue
        room = size + begin + end - reach
        if room < 0:
            raise Mismatch(
                f"has a window of {reach} along axis {axis + 2}, and {node.named(0)} leaves {size + begin + end}. "
                "Give a larger input"
            )
        count = (-(-room // stride) if rounded_up else room // stride) + 1
        if rounded_up and (count - 1) * stride >= size + begin:
            count -= 1
        places.append(count)
    return tuple(places)


def _convolution(node: _Node) -> tuple[Shape | None, ...] | None:
    weight = {"QLinearConv": 3}.get(node.op, 1)
    bias = {"QLinearConv": 8, "Conv": 2, "FusedConv": 2}.get(node.op)
    if not node.known(0, weight):
        return None
    given, kernel = node.shape(0), node.shape(weight)
    node.rank(0, 3)
    if len(given) != len(kernel):
        raise Mismatch(f"cannot take {node.named(0)} with a weight {node.named(weight)}: they differ in their axes")
    group = node.get("group", 1)
    if given[1] != kernel[1] * group:
        groups = f" in {group:,} groups" if group > 1 else ""
        raise Mismatch(
            f"takes {kernel[1] * group:,} channels by its weight {node.named(weight)}{groups}, and {node.named(0)} has "
            f"{given[1]:,}"
        )
    if kernel[0] % group:
        raise Mismatch(f"has `group` {group:,}, which does not divide its filters, {kernel[0]:,}")
    _same_kernel(node, kernel)
    if bias is not None:
        node.vector(bias, kernel[0])
    return ((given[0], kernel[0], *_window(node, given[2:], kernel[2:])),)


def _same_kernel(node: _Node, kernel: Shape) -> None:
    said = tuple(node.get("kernel_shape", kernel[2:]))
    if said != kernel[2:]:
        raise Mismatch(f"has `kernel_shape` {text_of(said)}, and its weight is {text_of(kernel)}")


def _transposed_convolution(node: _Node) -> tuple[Shape | None, ...] | None:
    if not node.known(0, 1):
        return None
    given, kernel, group = node.shape(0), node.shape(1), node.get("group", 1)
    node.rank(0, 3)
    if len(given) != len(kernel):
        raise Mismatch(f"cannot take {node.named(0)} with a weight {node.named(1)}: they differ in their axes")
    if given[1] != kernel[0]:
        raise Mismatch(f"takes {kernel[0]} channels by its weight {node.named(1)}, and {node.named(0)} has {given[1]}")
    if kernel[0] % group:
        raise Mismatch(f"has `group` {group:,}, which does not divide its channels, {kernel[0]:,}")
    _same_kernel(node, kernel)
    node.vector(2, kernel[1] * group)
    dims = len(given) - 2
    strides, dilations = node.get("strides", (1,) * dims), node.get("dilations", (1,) * dims)
    pads, more = node.get("pads", (0,) * 2 * dims), node.get("output_padding", (0,) * dims)
    for name, values, length in (("strides", strides, dims), ("dilations", dilations, dims), ("pads", pads, 2 * dims),
                                 ("output_padding", more, dims)):  # fmt: skip
        if len(values) != length:
            raise Mismatch(f"has {len(values)} `{name}`, and {dims} axes of {node.named(0)} need {length}")
    auto = node.get("auto_pad", b"NOTSET").decode()
    if "output_shape" in node.attributes:
        places = tuple(node.attributes["output_shape"])[-dims:]
    else:
        places = tuple(
            stride * (size - 1) + extra + dilation * (window - 1) + 1
            for size, window, stride, dilation, extra in zip(given[2:], kernel[2:], strides, dilations, more, strict=True)
        )
        if auto == "NOTSET":
            places = tuple(size - pads[axis] - pads[axis + dims] for axis, size in enumerate(places))
        elif auto.startswith("SAME"):  # padding is cut off, and none is added
            places = tuple(min(size * stride, most) for size, stride, most in zip(given[2:], strides, places, strict=True))
    if min(places) < 1:
        raise Mismatch(f"leaves {text_of(places)} of {node.named(0)}. Give a larger input or smaller `pads`")
    return ((given[0], kernel[1] * group, *places),)


def _pooling(node: _Node) -> tuple[Shape | None, ...] | None:
    if not node.known(0):
        return None
    node.rank(0, 3)
    given = node.shape(0)
    if "kernel_shape" not in node.attributes:
        raise Mismatch("has no `kernel_shape`")
    shape = (*given[:2], *_window(node, given[2:], tuple(node.attributes["kernel_shape"])))
    return shape, shape


def _normalisation(node: _Node) -> None:
    """Check a scale and a bias for each channel."""
    if node.known(0):
        node.rank(0, 2 if node.op == "BatchNormalization" else 3)
        for place in range(1, 5 if node.op == "BatchNormalization" else 3):
            node.vector(place, node.shape(0)[1])


def _group_normalisation(node: _Node) -> None:
    if node.known(0):
        node.rank(0, 3)
        channels, groups = node.shape(0)[1], node.get("num_groups", 1)
        if groups < 1 or channels % groups:
            raise Mismatch(f"has `num_groups` {groups:,}, which does not divide the channels of {node.named(0)}")
        for place in (1, 2):
            if node.shapes[place] not in (None, (groups,), (channels,)):
                node.vector(place, channels)


def _layer_normalisation(node: _Node) -> None:
    """Check that scale and bias spread over the axes that are normalised."""
    if not node.known(0):
        return
    given = node.shape(0)
    axis = node.get("axis", -1)
    if not -len(given) <= axis < len(given):
        raise Mismatch(f"has `axis` {axis}, and {node.named(0)} has {len(given)} axes")
    for place in (1, 2):
        if node.shapes[place] is not None and not _spreads(node.shape(place), given[axis % len(given) :]):
            raise Mismatch(f"needs a scale or bias of {text_of(given[axis % len(given) :])}, and has "
                           f"{node.named(place)}")  # fmt: skip


def _spreads(shape: Shape, over: Shape) -> bool:
    """Return whether a shape broadcasts to another without enlarging it."""
    return len(shape) <= len(over) and all(
        size in (1, whole) for size, whole in zip(shape[::-1], over[::-1], strict=False)
    )


def _gemm(node: _Node) -> None:
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


def _product(node: _Node) -> None:
    """Check the inner sizes of a matrix product and that its stacks broadcast."""
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
        raise Mismatch(f"cannot multiply {node.named(0)} by {node.named(second)}: their stacks differ")


def _elementwise(node: _Node) -> None:
    """Check that all inputs broadcast to one shape."""
    places = [place for place, shape in enumerate(node.shapes) if shape]
    for index, place in enumerate(places):
        for other in places[:index]:
            pairs = zip(node.shape(other)[::-1], node.shape(place)[::-1], strict=False)
            wrong = next(((a, b) for a, b in pairs if a != b and 1 not in (a, b)), None)
            if wrong:
                raise Mismatch(
                    f"cannot combine {node.named(other)} with {node.named(place)}: {wrong[0]:,} and {wrong[1]:,} "
                    "are not the same size"
                )


def _slope(node: _Node) -> tuple[Shape | None, ...] | None:
    """Check the slopes, which runtimes also take where they enlarge the input."""
    _elementwise(node)
    return (broadcast(node.shape(0), node.shape(1)),) if node.known(0, 1) else None


def _gathered(node: _Node) -> None:
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


def _concat(node: _Node) -> None:
    shapes = [(place, shape) for place, shape in enumerate(node.shapes) if shape is not None]
    if len(shapes) < 2:
        return
    first, rank = shapes[0][0], len(shapes[0][1])
    axis = node.get("axis", 0)
    if not -rank <= axis < rank:
        raise Mismatch(f"has `axis` {axis}, and {node.named(first)} has {rank} axes")
    for place, shape in shapes[1:]:
        if len(shape) != rank or any(
            a != b for index, (a, b) in enumerate(zip(shapes[0][1], shape, strict=True)) if index != axis % rank
        ):
            raise Mismatch(f"cannot join {node.named(first)} and {node.named(place)} along axis {axis}")


def _reshape(node: _Node) -> None:
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
        raise Mismatch(f"cannot turn {node.named(0)}, {whole:,} elements, into {text_of(tuple(wanted))}")


def _transpose(node: _Node) -> None:
    if node.known(0) and "perm" in node.attributes:
        order = list(node.attributes["perm"])
        if sorted(order) != list(range(len(node.shape(0)))):
            raise Mismatch(f"has `perm` {order}, and {node.named(0)} has {len(node.shape(0))} axes")


def _made_of_shape(node: _Node) -> None:
    if node.data[0] is None:
        return
    sizes = [int(size) for size in node.data[0].ravel()]
    for axis, size in enumerate(sizes):
        if size < 0:
            raise Mismatch(
                f"makes a tensor of shape {text_of(tuple(sizes))}: its size {axis} is {size}. Sizes are not negative"
            )


def _recurrent(node: _Node) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.op]
    if not node.known(0, 1, 2):
        return
    for place in range(3):
        node.rank(place, 3, 3)
    directions = 2 if node.get("direction", b"forward") == b"bidirectional" else 1
    hidden = node.get("hidden_size", node.shape(2)[2])
    node.size(f"features, as many as {node.named(0)} has", 1, 2, node.shape(0)[2])
    wanted = {
        1: (directions, gates * hidden, node.shape(0)[2]),
        2: (directions, gates * hidden, hidden),
        3: (directions, 2 * gates * hidden),
    }
    for place, shape in wanted.items():
        if node.known(place) and node.shape(place) != shape:
            raise Mismatch(f"needs a weight of {text_of(shape)}, and has {node.named(place)}")
    batch = node.shape(0)[0 if node.get("layout", 0) else 1]
    state = (batch, directions, hidden) if node.get("layout", 0) else (directions, batch, hidden)
    for place in (5, 6) if node.op == "LSTM" else (5,):
        if node.known(place) and node.shape(place) != state:
            raise Mismatch(f"needs an initial state of {text_of(state)}, and has {node.named(place)}")
    if node.known(4):
        node.vector(4, batch)


def _einsum(node: _Node) -> None:
    equation = node.get("equation", b"").decode().replace(" ", "")
    sizes: dict[str, tuple[int, int]] = {}
    for place, term in enumerate(equation.partition("->")[0].split(",")):
        if not node.known(place):
            continue
        letters = [letter for letter in term.replace("...", "")]
        shape = node.shape(place)
        if len(letters) > len(shape) or ("..." not in term and len(letters) != len(shape)):
            raise Mismatch(f"has {term!r} in its equation, and {node.named(place)} has {len(shape)} axes")
        before = term.partition("...")[0]
        places = [*range(len(before)), *range(len(shape) - len(letters) + len(before), len(shape))]
        own: dict[str, int] = {}
        for letter, axis in zip(letters, places, strict=True):
            if own.setdefault(letter, shape[axis]) != shape[axis]:
                raise Mismatch(f"has {letter!r} twice in {node.named(place)}, as {own[letter]} and as {shape[axis]}")
            other, where = sizes.setdefault(letter, (shape[axis], place))
            if other != shape[axis] and 1 not in (other, shape[axis]):
                raise Mismatch(
                    f"has {letter!r} as {other} in {node.named(where)} and as {shape[axis]} in {node.named(place)}"
                )


def _attention(node: _Node) -> None:
    """Check heads and widths of query, key and value."""
    if not node.known(0, 1, 2):
        return
    shapes = []
    for place, name in enumerate(("q_num_heads", "kv_num_heads", "kv_num_heads")):
        node.rank(place, 3, 4)
        shape = node.shape(place)
        if len(shape) == 3:
            heads = node.get(name, 0)
            if heads < 1 or shape[2] % heads:
                raise Mismatch(f"has `{name}` {heads}, which does not divide the width of {node.named(place)}")
            shape = (shape[0], heads, shape[1], shape[2] // heads)
        shapes.append(shape)
    query, key, value = shapes
    past = node.shape(4)[-2] if node.known(4) else 0
    for place, (a, b), what in (
        (1, (query[0], key[0]), "batch"),
        (2, (key[0], value[0]), "batch"),
        (1, (query[3], key[3]), "width of a head"),
        (2, (key[2], value[2]), "number of keys"),
        (2, (key[1], value[1]), "number of heads"),
    ):
        if a != b:
            raise Mismatch(f"cannot take {node.named(0 if place == 1 else 1)} with {node.named(place)}: the {what} is "
                           f"{a} and {b}")  # fmt: skip
    if query[1] % key[1]:
        raise Mismatch(f"shares {key[1]} key heads among {query[1]} query heads, which they do not divide")
    if node.known(3):
        whole = (query[0], query[1], query[2], key[2] + past)
        if not _spreads(node.shape(3), whole):
            raise Mismatch(f"cannot spread the mask {node.named(3)} over scores of {text_of(whole)}")


def _split(node: _Node) -> None:
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
        raise Mismatch(f"splits {node.named(0)} along axis {axis} into {list(sizes)}, which are not {node.shape(0)[axis]}")


def _block_moves(node: _Node) -> None:
    if node.known(0):
        node.rank(0, 4, 4)
        block, (_, channels, height, width) = node.get("blocksize", 1), node.shape(0)
        whole = channels % block**2 == 0 if node.op == "DepthToSpace" else not (height % block or width % block)
        if block < 1 or not whole:
            raise Mismatch(f"has `blocksize` {block}, which does not divide {node.named(0)}")


def _top(node: _Node) -> None:
    if node.known(0) and node.data[1] is not None and node.shape(0):
        axis, count = node.get("axis", -1), int(node.data[1].ravel()[0])
        if -len(node.shape(0)) <= axis < len(node.shape(0)) and not 0 <= count <= node.shape(0)[axis]:
            raise Mismatch(f"takes the {count} largest along axis {axis}, and {node.named(0)} has {node.shape(0)[axis]}")


_ELEMENTWISE = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "Where", "And", "Or", "Xor", "Equal"),
    *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"),
)
_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), lambda node: node.rank(0, 3)),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "FusedConv"), _convolution),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pooling),
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
    **dict.fromkeys(("Gather", "GatherElements"), _gathered),
}


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """Return the shape that two broadcast to; None where they do not.

    Examples
    --------
    >>> broadcast((3, 1), (4,)), broadcast((2,), (3,))
    ((3, 4), None)
    """
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    padded = (*(1,) * (len(longer) - len(shorter)), *shorter)
    if any(a != b and 1 not in (a, b) for a, b in zip(longer, padded, strict=True)):
        return None
    return tuple(b if a == 1 else a for a, b in zip(longer, padded, strict=True))
