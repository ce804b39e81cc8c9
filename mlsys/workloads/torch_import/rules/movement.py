"""Rules for operators that move, gather, pool or reduce data."""

import math

from mlsys.workloads.torch_import.calls import Call, CallCounts, Tensor
from mlsys.workloads.torch_import.rules.registry import RULES, rule

__all__: list[str] = []

_WHOLE_COPIES = (
    *("reshape", "contiguous", "flatten", "unflatten", "view_as", "reshape_as", "_unsafe_view", "_reshape_copy"),
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"),
    *("repeat", "tile", "pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "flip", "rot90", "tril", "triu"),
    *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "im2col", "col2im", "unfold"),
    *("permute_copy", "transpose_copy", "view_copy", "slice_copy", "expand_copy", "meshgrid", "slice_scatter"),
    *("split_with_sizes_copy", "unsqueeze_copy", "squeeze_copy", "select_scatter", "diag_embed", "combinations"),
)


def _moved(call: Call) -> CallCounts:
    return CallCounts("copy", shape=(("elements", sum(tensor.elements for tensor in call.outputs)),))


for _name in _WHOLE_COPIES:
    RULES[_name] = _moved


@rule("zeros", "ones", "full", "arange", "linspace", "eye", "scalar_tensor", "rand", "randn", "randint", "one_hot")
@rule("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full")
@rule("tensor", "fill", "fill_", "zero_", "randperm", "bernoulli", "tril_indices", "triu_indices")
def _filled(call: Call) -> CallCounts:
    """Write and read nothing (the shape of a ``*_like`` is not data)."""
    indices = call.get("self").bytes if call.op == "one_hot" else 0
    return CallCounts("fill", read=indices, written=sum(tensor.bytes for tensor in call.outputs))


@rule("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
def _allocated(call: Call) -> CallCounts:
    return CallCounts("view", read=0, written=0)


@rule("embedding", "gather", "index_select", "index", "_unsafe_index", "take", "take_along_dim", "masked_select")
def _gathered(call: Call) -> CallCounts:
    """Read the indexed rows and the indices, not the whole table."""
    table = call.tensor("weight", "self")
    indices = sum(tensor.bytes for tensor in call.inputs if tensor.identity != table.identity)
    kind = "embedding" if call.op == "embedding" else "gather"
    return CallCounts(
        kind, read=int(call.out.elements * table.itemsize) + indices, shape=(("elements", call.out.elements),)
    )


@rule("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def _summed_rows(call: Call) -> CallCounts:
    table, indices = call.tensor("weight"), call.tensor("indices")
    read = indices.elements * table.shape[-1]
    others = sum(tensor.bytes for tensor in call.inputs if tensor.identity != table.identity)
    return CallCounts("embedding", elementwise=read, read=int(read * table.itemsize) + others, written=call.out.bytes)


@rule("scatter", "scatter_add", "scatter_reduce", "index_put", "index_add", "index_copy", "index_fill")
@rule("masked_scatter", "put", "_unsafe_index_put", "index_reduce")
@rule("scatter_", "scatter_add_", "scatter_reduce_", "index_put_", "index_add_", "index_copy_", "index_fill_")
@rule("masked_scatter_", "put_", "index_reduce_")
def _scattered(call: Call) -> CallCounts:
    """Write the given values; if out of place, copy the rest as well."""
    target = call.tensor("self")
    others = [tensor for tensor in call.inputs if tensor.identity != target.identity]
    source = call.get("src", call.get("source", call.get("values")))
    values = source if isinstance(source, Tensor) else max(others, key=lambda tensor: tensor.elements, default=target)
    adds = any(word in call.op for word in ("add", "reduce")) or call.get("accumulate") is True
    moved = int(math.prod(values.shape) * target.itemsize)
    read = sum(tensor.bytes for tensor in others) + (moved if adds else 0)
    elementwise = values.elements if adds else 0
    if call.in_place:
        return CallCounts("scatter", elementwise=elementwise, read=read, written=moved)
    return CallCounts("scatter", elementwise=elementwise, read=read + target.bytes, written=call.out.bytes + moved)


@rule("copy_")
def _overwritten(call: Call) -> CallCounts:
    return CallCounts("copy", read=call.tensor("src").bytes, written=call.out.bytes)


@rule("sum", "mean", "amax", "amin", "max", "min", "prod", "any", "all", "argmax", "argmin", "nansum", "aminmax")
@rule("cumsum", "cumprod", "cummax", "cummin", "count_nonzero", "median", "histc", "bincount", "diff")
@rule("cumsum_", "logcumsumexp", "nonzero", "unique")
def _reduced(call: Call) -> CallCounts:
    """Count one addition or comparison for each element that is read."""
    given, out = call.inputs[0], call.out
    if call.op in ("max", "min") and len(call.inputs) > 1:  # of two tensors, element by element
        return CallCounts("elementwise", elementwise=out.elements, shape=(("elements", out.elements),))
    divisions = out.elements if call.op == "mean" else 0
    return CallCounts("reduction", elementwise=given.elements + divisions, shape=(("elements", given.elements),))


@rule("norm", "linalg_vector_norm", "var", "std", "var_mean", "std_mean", "_linalg_vector_norm")
def _spread(call: Call) -> CallCounts:
    """Count square and sum; for a variance the mean and the differences as well."""
    given = call.inputs[0]
    each = 2 if "norm" in call.op else 4
    return CallCounts("reduction", elementwise=given.elements * each, shape=(("elements", given.elements),))


@rule("sort", "argsort", "topk", "kthvalue", "msort", "searchsorted", "bucketize")
def _sorted(call: Call) -> CallCounts:
    """Count n·log₂ n comparisons along the axis (log₂ k for the k largest)."""
    given = call.inputs[0]
    axis = int(call.get("dim", -1) or -1)
    length = given.shape[axis] if given.shape else 1
    depth = max(math.ceil(math.log2(max(call.get("k") or length, 2))), 1)
    return CallCounts(
        "sort", elementwise=given.elements * depth, shape=(("elements", given.elements), ("length", length))
    )


_POOLS = tuple(f"{kind}_pool{dims}d" for kind in ("max", "avg") for dims in (1, 2, 3))


@rule(*_POOLS, *(f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)))
def _pooled(call: Call) -> CallCounts:
    """Count one comparison or addition for each element of the window, and the division of a mean."""
    given, out = call.inputs[0], call.out
    dims = int(call.op[call.op.index("pool") + 4])
    kernel = call.get("kernel_size") or (1,)
    sizes = kernel if isinstance(kernel, tuple) else (kernel,)
    window = math.prod(sizes) if len(sizes) == dims else sizes[0] ** dims
    each = window - 1 + ("avg" in call.op)
    return CallCounts(
        "pooling",
        elementwise=out.elements * each,
        shape=(("in_elements", given.elements), ("out_elements", out.elements), ("window", window)),
    )


@rule(*(f"adaptive_{kind}_pool{dims}d" for kind in ("avg", "max") for dims in (1, 2, 3)))
@rule(*(f"_adaptive_avg_pool{dims}d" for dims in (2, 3)))
def _adaptively_pooled(call: Call) -> CallCounts:
    given, out = call.inputs[0], call.out
    divisions = out.elements if "avg" in call.op else 0
    sizes = (("in_elements", given.elements), ("out_elements", out.elements))
    return CallCounts("pooling", elementwise=max(given.elements, out.elements) + divisions, shape=sizes)


# FLOP for each output element: one product for each neighbour and the sum of them.
_NEIGHBOURS = {"nearest": 0, "linear": 3, "bilinear": 7, "trilinear": 15, "bicubic": 31}


def _resized(call: Call) -> CallCounts:
    method = call.op.removeprefix("_").removeprefix("upsample_").rstrip("123d_a").removesuffix("_exact")
    each = _NEIGHBOURS.get(method, 7)
    return CallCounts("resize", elementwise=call.out.elements * each, shape=(("elements", call.out.elements),))


for _name in (
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "grid_sampler"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "grid_sampler_2d"),
):
    RULES[_name] = _resized
