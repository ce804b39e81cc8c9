"""Constructors of common operators, each counted by the formulas of the book.

Every function takes shapes and a precision and returns an :class:`Operator`. The cost per element of a reduction is
itemised in the ``*_OPERATIONS`` tables, because counts in the literature differ without saying so.
"""

from dataclasses import replace

from mlsys import formulas
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.precision import element_size, precision_name
from mlsys.unit_checks import checked_count, checked_counts, plain_arguments
from mlsys.units import Q_, Quantity
from mlsys.workloads.operator import Operator

# FLOP per element, in the order of a two-pass kernel; the few per-row operations (square root, reciprocal, epsilon) are
# negligible for long rows.
LAYER_NORM_OPERATIONS = FrozenDict(
    {"sum for the mean": 1, "subtract, square, sum for the variance": 3, "subtract, scale": 2, "gain, bias": 2}
)
SOFTMAX_OPERATIONS = FrozenDict({"maximum": 1, "subtract": 1, "exponential": 1, "sum": 1, "divide": 1})


_MOST_FLOP = 10**60  # larger numbers are typing errors, and floats overflow


def gemm(m: int, n: int, k: int, precision: str = "fp16", name: str | None = None) -> Operator:
    """Return a matrix product, (m × k) by (k × n).

    Parameters
    ----------
    m, n, k
        Rows and columns of the output, length of the reduction.
    precision
        Number format of both operands and the product.
    name
        Label of the operator.

    Examples
    --------
    >>> gemm(32, 2048, 2048)
    <gemm gemm 32×2048×2048, fp16: 268.4 MFLOP, 8.651 MB, 31.03 FLOP/B>
    """
    m, n, k = checked_counts("gemm", m=m, n=n, k=k)
    operations = formulas.gemm_macs(m, n, k).to("FLOP")
    if operations.m_as("FLOP") > _MOST_FLOP:
        raise ArgumentError("gemm(): `m`, `n` and `k` give more work than any machine can do. Use smaller sizes")
    return Operator(
        name=name or f"gemm {m}×{n}×{k}",
        kind="gemm",
        precision=precision_name(precision),
        operations=operations,
        data=formulas.gemm_bytes(m, n, k, element_size(precision)),
        shape=FrozenDict({"m": m, "n": n, "k": k}),
    )


def dense(
    batch: int, in_features: int, out_features: int, precision: str = "fp16", name: str | None = None
) -> Operator:
    """Return a fully connected layer without bias; the batch counts every row, including tokens.

    Parameters
    ----------
    batch, in_features, out_features
        Rows of the input, its columns, columns of the output.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> print(f"{dense(1, 2048, 2048).intensity:.3f}")
    0.999 FLOP/B
    """
    batch, in_features, out_features = checked_counts(
        "dense", batch=batch, in_features=in_features, out_features=out_features
    )
    name = name or f"dense {in_features}→{out_features}, batch {batch}"
    held = in_features * out_features
    product = gemm(batch, out_features, in_features, precision, name)
    return replace(product, weights=held * element_size(precision), parameters=held)


@plain_arguments
def conv2d(
    batch: int,
    in_channels: int,
    out_channels: int,
    size: int,
    kernel: int,
    stride: int = 1,
    padding: int | None = None,
    groups: int = 1,
    precision: str = "fp16",
    name: str | None = None,
) -> Operator:
    """Return a square 2-D convolution of a square image.

    Parameters
    ----------
    batch, in_channels, out_channels
        Images and channels.
    size
        Height and width of the input.
    kernel, stride, groups
        Size, stride and groups of the filters.
    padding
        Padding on each side; by default ``kernel // 2``, which keeps the size at stride 1.
    precision, name
        As for :func:`gemm`.

    Raises
    ------
    ArgumentError
        If the kernel does not fit, or ``groups`` does not divide the channels.

    Examples
    --------
    >>> conv2d(32, 128, 256, size=56, kernel=3)
    <conv2d conv 3×3, 128→256 @ 56, fp16: 59.19 GFLOP, 77.66 MB, 762.2 FLOP/B>
    """
    batch, in_channels, out_channels, size, kernel, stride, groups = checked_counts(
        "conv2d",
        batch=batch,
        in_channels=in_channels,
        out_channels=out_channels,
        size=size,
        kernel=kernel,
        stride=stride,
        groups=groups,
    )
    pad = kernel // 2 if padding is None else padding
    out = int(formulas.conv_output_size(size, kernel, stride, pad).m_as(""))
    macs = formulas.conv2d_macs(batch, in_channels, out_channels, out, out, kernel, kernel, groups)
    held = out_channels * (in_channels // groups) * kernel * kernel
    return Operator(
        name=name or f"conv {kernel}×{kernel}, {in_channels}→{out_channels} @ {size}",
        kind="conv2d",
        precision=precision_name(precision),
        operations=macs.to("FLOP"),
        data=formulas.conv2d_bytes(
            batch, in_channels, size, size, out_channels, out, out, kernel, kernel, element_size(precision), groups
        ),
        shape=FrozenDict(
            {
                "batch": batch,
                "in_channels": in_channels,
                "out_channels": out_channels,
                "size": size,
                "out_size": out,
                "kernel": kernel,
                "stride": stride,
                "groups": groups,
            }
        ),
        weights=held * element_size(precision),
        parameters=held,
    )


def depthwise_conv2d(
    batch: int, channels: int, size: int, kernel: int = 3, precision: str = "fp16", name: str | None = None
) -> Operator:
    """Return a depthwise convolution: one filter per channel.

    Parameters
    ----------
    batch, channels, size, kernel
        As for :func:`conv2d`, with stride 1.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> print(f"{depthwise_conv2d(32, 128, 56).intensity:.1f}")
    4.5 FLOP/B
    """
    batch, channels, size, kernel = checked_counts(
        "depthwise_conv2d", batch=batch, channels=channels, size=size, kernel=kernel
    )
    name = name or f"depthwise {kernel}×{kernel}, {channels} @ {size}"
    return conv2d(batch, channels, channels, size, kernel, groups=channels, precision=precision, name=name)


@plain_arguments
def elementwise(
    elements: int,
    operations_per_element: float,
    inputs: int = 1,
    outputs: int = 1,
    precision: str = "fp16",
    name: str = "element-wise",
) -> Operator:
    """Return an element-wise operator or row reduction that reads and writes whole tensors.

    Parameters
    ----------
    elements
        Elements of one tensor.
    operations_per_element
        FLOP per element.
    inputs, outputs
        Tensors of that size that are read and written.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> elementwise(1024, 1, inputs=2, name="add")
    <elementwise add, fp16: 1.024 kFLOP, 6.144 kB, 0.1667 FLOP/B>
    """
    elements = checked_count("elementwise", "elements", elements)
    if operations_per_element <= 0:
        raise ArgumentError(
            "elementwise(): `operations_per_element` must be above zero FLOP, "
            f"got {operations_per_element}. A copy is traffic, not work: count at least one comparison or add"
        )
    return Operator(
        name=name,
        kind="elementwise",
        precision=precision_name(precision),
        operations=formulas.elementwise_flops(elements, Q_(operations_per_element, "FLOP")),
        data=formulas.elementwise_bytes(elements, inputs, outputs, element_size(precision)),
        shape=FrozenDict({"elements": elements}),
    )


def relu(elements: int, precision: str = "fp16", name: str = "ReLU") -> Operator:
    """Return a ReLU: one comparison per element, one tensor in, one out.

    Examples
    --------
    >>> print(relu(4096).intensity, relu(4096, "fp32").intensity)
    0.25 FLOP/B 0.125 FLOP/B
    """
    return elementwise(elements, 1, precision=precision, name=name)


@plain_arguments
def layer_norm(
    rows: int, width: int, precision: str = "fp16", operations_per_element: float | None = None, name: str = "LayerNorm"
) -> Operator:
    """Return a layer normalisation over the last axis.

    Parameters
    ----------
    rows, width
        Shape of the tensor; each row is normalised.
    operations_per_element
        FLOP per element; by default the sum of ``LAYER_NORM_OPERATIONS``.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> print(layer_norm(16384, 768).intensity, layer_norm(16384, 768, operations_per_element=6).intensity)
    2 FLOP/B 1.5 FLOP/B
    """
    per_element = sum(LAYER_NORM_OPERATIONS.values()) if operations_per_element is None else operations_per_element
    return elementwise(_elements("layer_norm", rows, width), per_element, precision=precision, name=name)


@plain_arguments
def softmax(
    rows: int, width: int, precision: str = "fp16", operations_per_element: float | None = None, name: str = "softmax"
) -> Operator:
    """Return a softmax over the last axis.

    Parameters
    ----------
    rows, width
        Shape of the tensor.
    operations_per_element
        FLOP per element; by default the sum of ``SOFTMAX_OPERATIONS``.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> print(softmax(4096, 512).intensity)
    1.25 FLOP/B
    """
    per_element = sum(SOFTMAX_OPERATIONS.values()) if operations_per_element is None else operations_per_element
    return elementwise(_elements("softmax", rows, width), per_element, precision=precision, name=name)


def _elements(where: str, rows: int, width: int) -> int:
    """Return rows × width, each checked separately, since two negative numbers have a positive product."""
    return checked_count(where, "rows", rows) * checked_count(where, "width", width)


def attention(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    head_dim: int,
    precision: str = "fp16",
    fused: bool = False,
    name: str | None = None,
) -> Operator:
    """Return scaled-dot-product attention: two products and a softmax.

    Parameters
    ----------
    batch, heads, queries, keys, head_dim
        Shapes; every query attends to every key (no causal saving).
    fused
        Whether the scores stay on the chip. Unfused, they cross memory four times.
    precision, name
        As for :func:`gemm`.

    Examples
    --------
    >>> unfused, fused = (attention(1, 12, 2048, 2048, 64, fused=f) for f in (False, True))
    >>> unfused.flops == fused.flops, unfused.data > fused.data
    (True, True)
    """
    batch, heads, queries, keys, head_dim = checked_counts(
        "attention", batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim
    )
    products = formulas.attention_macs(batch, heads, queries, keys, head_dim).to("FLOP")
    scores = batch * heads * queries * keys
    exponentials = formulas.elementwise_flops(scores, Q_(sum(SOFTMAX_OPERATIONS.values()), "FLOP"))
    return Operator(
        name=name or ("fused attention" if fused else "attention"),
        kind="attention",
        precision=precision_name(precision),
        operations=products + exponentials,
        data=formulas.attention_bytes(
            batch, heads, queries, keys, head_dim, element_size(precision), score_passes=0 if fused else 4
        ),
        shape=FrozenDict({"batch": batch, "heads": heads, "queries": queries, "keys": keys, "head_dim": head_dim}),
    )


def decode_step(parameters: Quantity, batch: int = 1, precision: str = "fp16", name: str | None = None) -> Operator:
    """Return one decoding step of a transformer: each weight is read once and used once per sequence.

    Parameters
    ----------
    parameters
        Parameters of the model, in param.
    batch
        Sequences decoded together; each adds work but no weight traffic.
    precision, name
        As for :func:`gemm`. The KV cache is not counted.

    Examples
    --------
    >>> print(decode_step(Q_(1.5, "Gparam")).intensity)
    1 FLOP/B
    """
    weights = formulas.weight_bytes(parameters, element_size(precision))
    stored = int(parameters.m_as("param"))
    sequences = checked_count("decode_step", "batch", batch)
    operations = formulas.elementwise_flops(stored, Q_(2 * sequences, "FLOP"))
    return Operator(
        name=name or f"decode step, batch {batch}",
        kind="decode",
        precision=precision_name(precision),
        operations=operations,
        data=weights,
        shape=FrozenDict({"batch": batch, "parameters": stored}),
        weights=weights,
        parameters=stored,
    )
