"""Rules for matrix products, convolutions, attention and recurrent layers: operators with multiply-accumulates."""

import math
from typing import Any

from mlsys.workloads.operators import SOFTMAX_OPERATIONS
from mlsys.workloads.torch_import.calls import Call, CallCounts, Tensor
from mlsys.workloads.torch_import.rules.registry import rule

__all__: list[str] = []

_SOFTMAX = sum(SOFTMAX_OPERATIONS.values())


def _shape(**sizes: int) -> tuple[tuple[str, int], ...]:
    return tuple(sizes.items())


def _bias(call: Call, *names: str) -> int:
    """Return one addition for each output element where the call adds a tensor."""
    return call.out.elements if any(isinstance(call.get(name), Tensor) for name in names) else 0


def _places(label: str, sizes: tuple[int, ...]) -> dict[str, int]:
    axes = ("depth", "height", "width")[-len(sizes) :]
    return {f"{label}_{axis}": size for axis, size in zip(axes, sizes, strict=True)}


@rule("linear")
def _linear(call: Call) -> CallCounts:
    """Count every leading axis: batch, tokens and all others before the features."""
    given, out = call.tensor("input"), call.out
    k, n = given.shape[-1], out.shape[-1] if len(call.tensor("weight").shape) == 2 else 1
    rows = given.elements // max(k, 1)
    return CallCounts("gemm", rows * n * k, _bias(call, "bias"), shape=_shape(m=rows, n=n, k=k))


@rule("linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16")
def _dynamic_linear(call: Call) -> CallCounts:
    """Count scaling and rounding of each input, the product, and scaling back of each output with its bias."""
    given, out = call.tensor("X"), call.out
    k, n = given.shape[-1], out.shape[-1]
    rows = given.elements // max(k, 1)
    beside = 2 * given.elements + (2 if "relu" in call.op else 1) * out.elements + _bias(call, "bias")
    return CallCounts("gemm", rows * n * k, beside, shape=_shape(m=rows, n=n, k=k))


@rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "_int_mm")
def _matmul(call: Call) -> CallCounts:
    left, right = call.inputs[0], call.inputs[-1]  # the same tensor twice is read once
    k = left.shape[-1] if left.shape else 1
    n = right.shape[-1] if len(right.shape) > 1 else 1
    m = left.shape[-2] if len(left.shape) > 1 else 1
    return _product(call.out.elements, m, n, k)


def _product(elements: int, m: int, n: int, k: int, extra: int = 0) -> CallCounts:
    """Return the work of as many (m × k) by (k × n) products as fill ``elements`` of output."""
    return CallCounts("gemm", elements * k, extra, shape=_shape(m=m, n=n, k=k, copies=elements // max(m * n, 1)))


@rule("addmm", "baddbmm", "addmv", "_addmm_activation")
def _added_matmul(call: Call) -> CallCounts:
    left = call.tensor("mat1", "batch1", "mat")
    n = 1 if call.op == "addmv" else call.out.shape[-1]
    return _product(call.out.elements, left.shape[-2], n, left.shape[-1], call.out.elements)


@rule("addbmm")
def _summed_matmul(call: Call) -> CallCounts:
    left, right = call.tensor("batch1"), call.tensor("batch2")
    rows, n, k = left.elements // max(left.shape[-1], 1), right.shape[-1], left.shape[-1]
    return CallCounts("gemm", rows * n * k, rows * n, shape=_shape(m=rows, n=n, k=k))


@rule("_scaled_mm")
def _scaled_matmul(call: Call) -> CallCounts:
    left, right = call.tensor("self"), call.tensor("mat2")
    m, k, n = left.shape[0], left.shape[1], right.shape[1]
    return CallCounts(
        "gemm", m * n * k, call.out.elements * (2 if call.get("bias") else 1), shape=_shape(m=m, n=n, k=k)
    )


@rule("grouped_mm", "_grouped_mm", "grouped_mm_fallback")
def _grouped_matmul(call: Call) -> CallCounts:
    """Count a product in which each row is multiplied by the matrix of its group (mixture of experts).

    A row reads the matrix of one group, so that few rows leave most matrices unread.
    """
    left = call.inputs[0]
    k, n = left.shape[-1], call.out.shape[-1]
    rows = call.out.elements // max(n, 1)
    read = sum(tensor.bytes for tensor in call.inputs)
    for matrices in call.inputs[1:]:
        if len(matrices.shape) == 3 and matrices.shape[0] > rows:
            read -= matrices.bytes * (matrices.shape[0] - rows) // matrices.shape[0]
    return CallCounts("gemm", rows * n * k, read=read, shape=_shape(m=rows, n=n, k=k))


@rule(
    *(f"conv{dims}d" for dims in (1, 2, 3)),
    *(f"conv_transpose{dims}d" for dims in (1, 2, 3)),
    "convolution",
    "_convolution",
    "cudnn_convolution",
    "mkldnn_convolution",
    "_slow_conv2d_forward",
)
def _convolution(call: Call) -> CallCounts:
    """Count batch × weights × positions: of the output, or of the input if it is transposed."""
    given, weight, out = call.tensor("input", "self"), call.tensor("weight"), call.out
    dims = len(weight.shape) - 2
    transposed = call.op.startswith("conv_transpose") or call.get("transposed") is True
    batch = given.shape[0] if len(given.shape) == dims + 2 else 1
    channels = given.shape[-dims - 1]
    places = math.prod((given if transposed else out).shape[-dims:])
    groups = channels // weight.shape[1] if not transposed else out.shape[-dims - 1] // weight.shape[1]
    return CallCounts(
        f"conv_transpose{dims}d" if transposed else f"conv{dims}d",
        batch * weight.elements * places,
        _bias(call, "bias"),
        shape=_shape(
            batch=batch,
            in_channels=channels,
            out_channels=out.shape[-dims - 1],
            groups=groups,
            **_stride(call.get("stride")),
            **_places("in", given.shape[-dims:]),
            **_places("out", out.shape[-dims:]),
            **_places("kernel", weight.shape[2:]),
        ),
    )


@rule(
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)
def _attention(call: Call) -> CallCounts:
    """Count Q·Kᵀ and scores·V for every query head; a causal mask does not shorten the count.

    The scores stay on the chip. Grouped key and value heads are read once, used by several
    query heads.
    """
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    keys, head_dim, value_dim = key.shape[-2], query.shape[-1], value.shape[-1]
    queries = query.shape[-2]
    seen_by = call.out if len(call.out.shape) == len(query.shape) else query  # ONNX may join the heads of the output
    scores = math.prod(seen_by.shape[:-1]) * keys
    heads = query.shape[-3] if len(query.shape) > 2 else 1
    batch = scores // max(queries * keys * heads, 1)
    masked = scores if isinstance(call.get("attn_mask", call.get("attn_bias")), Tensor) else 0
    return CallCounts(
        "attention",
        scores * (head_dim + value_dim),
        _SOFTMAX * scores + masked,
        shape=_shape(batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim),
    )


def _stride(stride: Any) -> dict[str, int]:
    """Return the stride where it is one for all axes; torch leaves it out where it is 1."""
    steps = set(stride) if isinstance(stride, tuple) else {stride or 1}
    return {"stride": int(steps.pop())} if len(steps) == 1 and all(isinstance(step, int) for step in steps) else {}


# FLOP for each hidden unit and step beside the products: gates, activations, the new state.
CELLS = {
    # name: (rows of a gate matrix per hidden unit, activations and state updates per hidden unit)
    "lstm": (4, 9),  # σ, σ, σ, tanh, tanh; f∘c, i∘g, their sum, o∘tanh
    "gru": (3, 8),  # σ, σ, tanh; r∘(…), 1 − z, two products, their sum
    "rnn_tanh": (1, 1),
    "rnn_relu": (1, 1),
}


@rule(*CELLS)
def _recurrent(call: Call) -> CallCounts:
    """Count every weight matrix once for each token of each sequence.

    Compulsory traffic reads the weights once, which takes a chip that keeps them between steps.
    """
    gates, updates = CELLS[call.op]
    given = call.tensor("input", "data")
    weights = [tensor for tensor in call.get("params", ()) if len(tensor.shape) == 2]
    biased = bool(call.get("has_biases"))
    tokens = given.elements // max(given.shape[-1], 1)
    layers = int(call.get("num_layers", 1)) * (2 if call.get("bidirectional") else 1)
    each = max(len(weights) // layers, 1)  # two matrices, or three where the state is projected
    hidden = sum(tensor.shape[0] // gates for tensor in weights[::each])
    per_unit = gates * (1 + 2 * biased) + updates
    return CallCounts(
        "recurrent",
        tokens * sum(tensor.elements for tensor in weights),
        tokens * hidden * per_unit,
        shape=_shape(tokens=tokens, in_features=given.shape[-1], hidden=hidden, matrices=len(weights)),
    )
