"""ONNX operators under the names and arguments of the counting rules for torch's operators."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlsys.workloads.onnx_contrib import DOMAIN
from mlsys.workloads.onnx_einsum import einsum_call
from mlsys.workloads.onnx_fused import fused_call, stated
from mlsys.workloads.torch_import.calls import Call, Tensor


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Expand"})
_COPIES = _names(
    "Transpose Slice Split Concat Pad Tile DepthToSpace SpaceToDepth Cast CastLike Trilu ReverseSequence CenterCropPad "
    "Col2Im Compress"
)
# Input names for operators whose rule needs them; other inputs are named by index.
_INPUTS = {
    "Conv": ("input", "weight", "bias"),
    "ConvTranspose": ("input", "weight", "bias"),
    "FusedConv": ("input", "weight", "bias"),
    "ConvInteger": ("input", "weight"),
    "QLinearConv": ("input", "", "", "weight", "", "", "", "", "bias"),
    "BatchNormalization": ("input", "weight", "bias", "mean", "variance"),
    "LayerNormalization": ("input", "weight", "bias"),
    "GroupNormalization": ("input", "weight", "bias"),
    "InstanceNormalization": ("input", "weight", "bias"),
    "RMSNormalization": ("input", "weight"),
    "SimplifiedLayerNormalization": ("input", "weight"),
    "Gather": ("weight", "indices"),
    "GatherElements": ("self", "index"),
    "GatherND": ("self", "index"),
    "ScatterND": ("self", "index", "src"),
    "ScatterElements": ("self", "index", "src"),
    "Attention": ("query", "key", "value", "attn_mask"),
}
_NAMES = {
    "MatMul": "matmul",
    "MatMulInteger": "matmul",
    "LayerNormalization": "layer_norm",
    "GroupNormalization": "group_norm",
    "InstanceNormalization": "instance_norm",
    "RMSNormalization": "rms_norm",
    "SimplifiedLayerNormalization": "rms_norm",
    "BatchNormalization": "batch_norm",
    "Attention": "scaled_dot_product_attention",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Gather": "embedding",
    "GatherElements": "gather",
    "GatherND": "gather",
    "ScatterND": "scatter",
    "ScatterElements": "scatter",
    "ArgMax": "argmax",
    "ArgMin": "argmin",
    "TopK": "topk",
    "CumSum": "cumsum",
    "NonZero": "nonzero",
    "OneHot": "one_hot",
    "GlobalAveragePool": "adaptive_avg_pool2d",
    "GlobalMaxPool": "adaptive_max_pool2d",
    "GlobalLpPool": "adaptive_avg_pool2d",
    "MeanVarianceNormalization": "instance_norm",
    "LpNormalization": "norm",
    "Hardmax": "argmax",
    "GridSample": "grid_sampler",
    "Clip": "clamp",
    "LeakyRelu": "leaky_relu",
    "PRelu": "prelu",
    "HardSigmoid": "hardsigmoid",
    "HardSwish": "hardswish",
    "Swish": "silu",
    "ThresholdedRelu": "threshold",
    "QuantizeLinear": "quantize_per_tensor",
    "DequantizeLinear": "dequantize",
}
# Element-wise operators whose cost is that of the rule of the lower-case name, or one FLOP.
_POINTWISE = _names(
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip "
    "Cos Cosh DequantizeLinear Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf "
    "IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow QuantizeLinear Reciprocal "
    "Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where "
    "Xor"
)

_Named = list[tuple[str, Any]]


def _convolution(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    dims = len(dict(named)["weight"].shape) - 2
    stride = [("stride", tuple(attributes["strides"]))] if "strides" in attributes else []
    return f"conv_transpose{dims}d" if op_type == "ConvTranspose" else f"conv{dims}d", [*named, *stride]


def _wide_convolution(op_type: str, tensors: Mapping[str, Tensor], outputs: tuple[Tensor, ...]) -> Call:
    """Return a convolution over more than three axes with its work."""
    given, weight, out = tensors["input"], tensors["weight"], outputs[0]
    places = given if op_type == "ConvTranspose" else out
    macs = places.shape[0] * math.prod(places.shape[2:]) * weight.elements
    biased = "bias" in tensors
    return stated("conv3d", list(tensors.values()), outputs, macs, out.elements * biased)


def _gemm(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    """Return (alpha ·) A · B + C with A and B transposed as specified by the node."""
    left, right, *rest = [tensor for _, tensor in named]
    left = left._replace(shape=left.shape[::-1]) if attributes.get("transA") else left
    right = right._replace(shape=right.shape[::-1]) if attributes.get("transB") else right
    added = [("bias", rest[0])] if rest and rest[0] is not None else []
    return ("addmm" if added else "mm"), [("mat1", left), ("mat2", right), *added]


def _quantised_product(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    tensors = [tensor for _, tensor in named]
    order = (0, 1, 2, 4, 5, 6, 7, 3) if op_type == "QLinearMatMul" else (0, 2, 3, 1)
    return "matmul", [(str(index), tensors[index]) for index in order if index < len(tensors)]


def _recurrent(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    given, weights, states, *rest = [tensor for _, tensor in named]
    flat = tuple(
        tensor._replace(shape=(tensor.shape[0] * tensor.shape[1], tensor.shape[2])) for tensor in (weights, states)
    )
    others = [(str(index), tensor) for index, tensor in enumerate(rest)]
    biased = bool(rest and rest[0] is not None)
    name = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[op_type]
    return name, [("input", given), ("params", flat), ("has_biases", biased), *others]


def _pool(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    kernel = tuple(attributes["kernel_shape"])
    return f"{'max' if op_type == 'MaxPool' else 'avg'}_pool{len(kernel)}d", [*named, ("kernel_size", kernel)]


def _reduced(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    names = {"ReduceMean": "mean", "ReduceL2": "norm", "ReduceSumSquare": "norm", "ReduceLogSumExp": "logsumexp"}
    return names.get(op_type, "sum"), named


def _einsum(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    return einsum_call(attributes["equation"].decode(), given, outputs)


def _rotated(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    """Return two products and their sum per rotated element."""
    return stated("elementwise", given, outputs, elementwise=3 * outputs[0].elements, elements=outputs[0].elements)


def _deformed(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    """Return the convolution, and the interpolation among four neighbours of each value that it reads."""
    image, weight = given[:2]
    batch, places = outputs[0].shape[0], math.prod(outputs[0].shape[2:])
    read = batch * image.shape[1] * math.prod(weight.shape[2:]) * places
    return stated("conv2d", given, outputs, batch * weight.elements * places, 7 * read)


def _dynamically_quantised(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    """Return a maximum and a minimum, then the scaling and the rounding of each element."""
    return stated("elementwise", given, outputs, elementwise=4 * given[0].elements, elements=given[0].elements)


def _locally_normalised(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    """Return the squares of the neighbouring channels, their sum, a power and a division."""
    work = outputs[0].elements * (2 * attributes.get("size", 1) + 2)
    return stated("normalisation", given, outputs, elementwise=work, elements=outputs[0].elements)


def _drawn(given: Sequence[Tensor], outputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Call:
    return Call("randn", "", (), outputs)


def _resized(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    mode = attributes.get("mode", b"nearest").decode()
    return {"nearest": "upsample_nearest2d", "cubic": "upsample_bicubic2d"}.get(mode, "upsample_bilinear2d"), named


def _attention(op_type: str, named: _Named, attributes: dict[str, Any]) -> tuple[str, _Named]:
    """Return the operator of opset 23 as torch's, with concatenated heads split."""
    tensors = dict(named)
    for label, heads in (("query", "q_num_heads"), ("key", "kv_num_heads"), ("value", "kv_num_heads")):
        tensor = tensors[label]
        if len(tensor.shape) == 3:
            batch, tokens, width = tensor.shape
            shape = (batch, attributes[heads], tokens, width // attributes[heads])
            tensors[label] = tensor._replace(shape=shape, stored=shape)
    past = tensors.get("4")  # keys of earlier tokens
    if isinstance(past, Tensor):
        for label in ("key", "value"):
            batch, count, tokens, width = tensors[label].shape
            tensors[label] = tensors[label]._replace(shape=(batch, count, tokens + past.shape[2], width))
    return "scaled_dot_product_attention", list(tensors.items())


_WHOLE: dict[str, Callable[[Sequence[Tensor], tuple[Tensor, ...], Mapping[str, Any]], Call]] = {
    "Einsum": _einsum,
    "RotaryEmbedding": _rotated,
    "DeformConv": _deformed,
    "DynamicQuantizeLinear": _dynamically_quantised,
    "LRN": _locally_normalised,
    **dict.fromkeys(
        _names("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli ConstantOfShape EyeLike"),
        _drawn,
    ),
}
_SPECIAL: dict[str, Callable[[str, _Named, dict[str, Any]], tuple[str, _Named]]] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv"), _convolution),
    "Gemm": _gemm,
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), _quantised_product),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(
        _names(
            "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
            "ReduceLogSumExp"
        ),
        _reduced,
    ),
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    "Attention": _attention,
}


def call_of(
    op_type: str,
    domain: str,
    given: Sequence[Tensor | None],
    outputs: tuple[Tensor, ...],
    attributes: Mapping[str, Any],
) -> Call:
    """Return an ONNX operator as a call under the name of its counting rule.

    Parameters
    ----------
    op_type, domain
        As in the node; operators of other domains than ONNX's own have no rule.
    given, outputs
        Input tensors, None for omitted ones, and output tensors.
    attributes
        Attributes of the node.

    Examples
    --------
    >>> x = Tensor((2, 3), (2, 3), "float32", 4)
    >>> call_of("Relu", "", [x], (x,), {}).op
    'relu'
    """
    labels = _INPUTS.get(op_type, ())
    named = [
        (labels[index] if index < len(labels) and labels[index] else str(index), tensor)
        for index, tensor in enumerate(given)
    ]
    fused = fused_call(op_type, given, outputs, attributes) if domain == DOMAIN else None
    if fused is not None:
        return fused
    if domain not in ("", "ai.onnx") and (domain, op_type) != (DOMAIN, "FusedConv"):
        return Call(op_type, "", tuple(named), outputs)
    if op_type in VIEWS:
        return Call(op_type, "", tuple(named), outputs, is_view=True)
    whole = _WHOLE.get(op_type)
    if whole:
        return whole([tensor for tensor in given if tensor is not None], outputs, attributes)
    special = _SPECIAL.get(op_type)
    there = {label: tensor for label, tensor in named if tensor is not None}
    if special is _convolution and len(there["weight"].shape) > 5:  # more than three spatial axes
        return _wide_convolution(op_type, there, outputs)
    if special:
        op, named = special(op_type, named, dict(attributes))
    else:
        op = "cat" if op_type in _COPIES else _NAMES.get(op_type, "")
    if not op:
        op = op_type.lower() if op_type in _POINTWISE else op_type
    plain = [(key, _plain(value)) for key, value in attributes.items() if not key.startswith("_")]
    return Call(op, "", (*named, *plain), outputs, pointwise=op_type in _POINTWISE)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (bool, int, float, str)):
        return value
    return (
        tuple(value) if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value) else None
    )
