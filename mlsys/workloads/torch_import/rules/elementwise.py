"""Rules for element-wise work: activations, arithmetic, normalisation, softmax."""

from mlsys.workloads.operators import LAYER_NORM_OPERATIONS, SOFTMAX_OPERATIONS
from mlsys.workloads.torch_import.calls import Call, CallCounts, Tensor
from mlsys.workloads.torch_import.rules.registry import RULES, rule

# FLOP for each output element. An addition, a product, a comparison, an exponential, a
# logarithm, an error function each count one, like the terms of softmax in
# mlsys.workloads.operators; what is not listed and works on single elements counts one.
_ACTIVATIONS = {
    "relu": 1,  # one comparison
    "relu6": 2,
    "leaky_relu": 2,
    "prelu": 2,
    "_prelu_kernel": 2,
    "rrelu": 2,
    "threshold": 1,
    "hardtanh": 2,
    "sigmoid": 4,  # negate, exponential, add, divide
    "tanh": 5,  # scale, exponential, add, subtract, divide
    "log_sigmoid": 4,
    "silu": 5,  # sigmoid and a product
    "mish": 9,  # exponential, add, logarithm, tanh (5), product
    "gelu": 5,  # scale, error function, add one, product, halve; see _gelu for its tanh form
    "elu": 3,
    "celu": 4,
    "selu": 4,
    "hardsigmoid": 4,  # scale, shift, two comparisons
    "hardswish": 5,
    "softplus": 3,
    "softsign": 3,
    "hardshrink": 2,
    "softshrink": 2,
    "tanhshrink": 2,
}
_ARITHMETIC = {
    "addcmul": 3,
    "addcdiv": 3,
    "lerp": 3,
    "clamp": 2,
    "rsqrt": 2,
    "sub": 1,
    "log1p": 2,
    "expm1": 2,
    "copysign": 1,
    "masked_fill": 1,
    "dropout": 2,
}
_COPIES = ("to", "_to_copy", "type_as", "float", "half", "clone", "alias", "detach", "copy", "lift_fresh")
_GELU_TANH = 10  # cube and scale (4), tanh (4, its scale merged), add, product


def pointwise(call: Call) -> CallCounts:
    """Count a fixed number of FLOP for each output element."""
    name = call.op.removesuffix("_") if call.in_place else call.op
    each = _ACTIVATIONS.get(name, _ARITHMETIC.get(name, 1))
    if name == "gelu" and call.get("approximate") == "tanh":
        each = _GELU_TANH
    scaled = name in ("add", "sub", "rsub") and call.get("alpha", 1) != 1
    kind = "activation" if name in _ACTIVATIONS else "elementwise"
    return _elementwise(call, kind, each + scaled)


def _elementwise(call: Call, kind: str, each: int) -> CallCounts:
    elements = call.out.elements
    written = call.out.bytes if call.in_place else None
    return CallCounts(kind, elementwise=elements * each, written=written, shape=(("elements", elements),))


# Single elements too, though torch does not tag them so; ONNX shares the names.
_PLAIN = (
    *("floor_divide", "true_divide", "divide", "multiply", "subtract", "negative", "absolute", "square", "clip"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isclose", "equal", "where"),
    *("add", "mul", "div", "mod", "remainder", "fmod", "pow", "sqrt", "exp", "log", "abs", "neg", "erf", "sign"),
    *("floor", "ceil", "round", "reciprocal", "minimum", "maximum", "greater", "less", "nll_loss_forward"),
    *("quantize_per_tensor", "dequantize", "fake_quantize_per_tensor_affine", "nll_loss", "nll_loss_nd"),
)

for _name in (*_ACTIVATIONS, *_ARITHMETIC, *_PLAIN):
    RULES[_name] = pointwise


@rule("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def _dropout(call: Call) -> CallCounts:
    """Count nothing at inference: the tensor passes through."""
    if not call.get("train") or not call.get("p"):
        return CallCounts("view", read=0, written=0)
    return _elementwise(call, "elementwise", 2)


@rule("glu")
def _glu(call: Call) -> CallCounts:
    return _elementwise(call, "activation", 5)


@rule("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax", "softmin", "logsumexp")
def _softmax(call: Call) -> CallCounts:
    """Count the terms of a softmax over ``axis``, counted from the last one."""
    given = call.inputs[0]
    each = sum(SOFTMAX_OPERATIONS.values())
    axis = call.get("dim", call.get("axis", -1))
    along = axis - len(given.shape) if isinstance(axis, int) and axis >= 0 else axis
    shape = (("elements", given.elements), *((("axis", along),) if isinstance(along, int) else ()))
    return CallCounts("softmax", elementwise=given.elements * each, shape=shape)


def _affine(call: Call) -> int:
    return sum(isinstance(call.get(name), Tensor) for name in ("weight", "bias"))


@rule("layer_norm", "native_layer_norm", "group_norm", "native_group_norm", "instance_norm")
def _layer_norm(call: Call) -> CallCounts:
    """Count mean, variance and scaling, and gain and bias where there are any."""
    each = sum(LAYER_NORM_OPERATIONS.values()) - LAYER_NORM_OPERATIONS["gain, bias"] + _affine(call)
    return CallCounts("normalisation", elementwise=call.out.elements * each, shape=(("elements", call.out.elements),))


@rule("rms_norm", "_fused_rms_norm", "fused_rms_norm")
def _rms_norm(call: Call) -> CallCounts:
    """Count square, sum, scale and, where there is one, gain."""
    each = 3 + _affine(call)
    return CallCounts("normalisation", elementwise=call.out.elements * each, shape=(("elements", call.out.elements),))


@rule(
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "cudnn_batch_norm",
    "_batch_norm_impl_index",
)
def _batch_norm(call: Call) -> CallCounts:
    """Count one product and one addition: mean, variance, gain and bias fold into two numbers per channel."""
    training = call.get("training", call.get("train", False))
    each = sum(LAYER_NORM_OPERATIONS.values()) if training else 2
    return CallCounts("normalisation", elementwise=call.out.elements * each, shape=(("elements", call.out.elements),))


@rule(*_COPIES)
def _copy(call: Call) -> CallCounts:
    """Count the bytes of a conversion or a copy, and no FLOP."""
    return CallCounts("copy", shape=(("elements", call.out.elements),))
