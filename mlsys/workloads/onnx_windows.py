"""Sliding windows over ONNX tensors: convolutions, transposed convolutions, and pooling."""

from __future__ import annotations

from mlsys.workloads.onnx_node_view import Mismatch, NodeView, Shape, text_of


def _window(node: NodeView, sizes: Shape, kernel: Shape) -> Shape:
    """Return the output positions of a convolution, or of a pooling with ``ceil_mode``."""
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
    if auto != "NOTSET" and any(pads) and not node.op.endswith("Pool"):
        raise Mismatch(f"has both `pads` {list(pads)} and `auto_pad` {auto}. It must have one of them")
    rounded_up = bool(node.get("ceil_mode", 0)) and node.op in ("MaxPool", "AveragePool", "LpPool")
    places = []
    for axis, (size, window, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        reach = dilation * (window - 1) + 1
        begin, end = (pads[axis], pads[axis + dims]) if auto == "NOTSET" else (0, 0)
        if min(begin, end) < 0:
            raise Mismatch(f"has `pads` {list(pads)}. Each must be at least 0")
        if node.op.endswith("Pool") and max(begin, end) >= window:
            raise Mismatch(f"has `pads` {list(pads)}, but its window of {text_of(kernel)} is no larger")
        if auto.startswith("SAME"):
            places.append(-(-size // stride))
            continue
        room = size + begin + end - reach
        if room < 0:
            raise Mismatch(
                f"has a window of {reach} along axis {axis + 2}, and {node.named(0)} leaves {size + begin + end}. "
                "Use a larger input"
            )
        count = (-(-room // stride) if rounded_up else room // stride) + 1
        if rounded_up and (count - 1) * stride >= size + begin:
            count -= 1
        places.append(count)
    return tuple(places)


def convolution_shapes(node: NodeView) -> tuple[Shape | None, ...] | None:
    """Check channels, groups and bias of a convolution; return the shape of its output."""
    weight = {"QLinearConv": 3}.get(node.op, 1)
    bias = {"QLinearConv": 8, "Conv": 2, "FusedConv": 2}.get(node.op)
    if not node.known(0, weight):
        return None
    given, kernel = node.shape(0), node.shape(weight)
    node.rank(0, 3)
    if len(given) != len(kernel):
        raise Mismatch(
            f"cannot combine {node.named(0)} with a weight {node.named(weight)}: their numbers of axes differ"
        )
    group = node.get("group", 1)
    if given[1] != kernel[1] * group:
        groups = f" in {group:,} groups" if group > 1 else ""
        raise Mismatch(
            f"needs {kernel[1] * group:,} channels for its weight {node.named(weight)}{groups}; {node.named(0)} has "
            f"{given[1]:,}"
        )
    if kernel[0] % group:
        raise Mismatch(f"has `group` {group:,}, which does not divide its filters, {kernel[0]:,}")
    _same_kernel(node, kernel)
    if bias is not None:
        node.vector(bias, kernel[0])
    return ((given[0], kernel[0], *_window(node, given[2:], kernel[2:])),)


def _same_kernel(node: NodeView, kernel: Shape) -> None:
    window = tuple(node.get("kernel_shape", kernel[2:]))
    if window != kernel[2:]:
        raise Mismatch(f"has `kernel_shape` {text_of(window)}, and its weight is {text_of(kernel)}")


def transposed_convolution_shapes(node: NodeView) -> tuple[Shape | None, ...] | None:
    """Check channels, groups and bias of a transposed convolution; return the shape of its output."""
    if not node.known(0, 1):
        return None
    given, kernel, group = node.shape(0), node.shape(1), node.get("group", 1)
    node.rank(0, 3)
    if len(given) != len(kernel):
        raise Mismatch(f"cannot combine {node.named(0)} with a weight {node.named(1)}: their numbers of axes differ")
    if given[1] != kernel[0]:
        raise Mismatch(f"needs {kernel[0]} channels for its weight {node.named(1)}, and {node.named(0)} has {given[1]}")
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
            for size, window, stride, dilation, extra in zip(
                given[2:], kernel[2:], strides, dilations, more, strict=True
            )
        )
        if auto == "NOTSET":
            places = tuple(size - pads[axis] - pads[axis + dims] for axis, size in enumerate(places))
        elif auto.startswith("SAME"):  # padding is cut off, and none is added
            places = tuple(
                min(size * stride, most) for size, stride, most in zip(given[2:], strides, places, strict=True)
            )
    if min(places) < 1:
        raise Mismatch(f"leaves {text_of(places)} of {node.named(0)}. Use a larger input or smaller `pads`")
    return ((given[0], kernel[1] * group, *places),)


def pooling_shapes(node: NodeView) -> tuple[Shape | None, ...] | None:
    """Check the window of a pooling; return the shapes of its output and of its indices."""
    if not node.known(0):
        return None
    node.rank(0, 3)
    given = node.shape(0)
    if "kernel_shape" not in node.attributes:
        raise Mismatch("has no `kernel_shape`")
    shape = (*given[:2], *_window(node, given[2:], tuple(node.attributes["kernel_shape"])))
    return shape, shape
