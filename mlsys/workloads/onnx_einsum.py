"""Work of an ``Einsum``: operands are contracted pairwise from left to right, as in runtimes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mlsys.workloads.einsum_order import einsum_labels, label_sizes
from mlsys.workloads.onnx_fused import stated
from mlsys.workloads.torch_import.calls import Call, Tensor


def einsum_call(equation: str, operands: Sequence[Tensor], outputs: tuple[Tensor, ...]) -> Call:
    """Return an ``Einsum`` as a call with its work.

    Labels that occur in one operand only and not in the output are summed first; then each operand is multiplied by the
    previous result, and labels in neither the output nor a later operand are summed.

    Examples
    --------
    >>> a, b = (Tensor(shape, shape, "float32", 4, identity=index) for index, shape in enumerate([(2, 3), (3, 5)]))
    >>> dict(einsum_call("ij,jk->ik", [a, b], (Tensor((2, 5), (2, 5), "float32", 4),)).arguments)["macs"]
    30
    """
    shapes = [operand.shape for operand in operands]
    terms, result = einsum_labels(equation, shapes)
    sizes = label_sizes(terms, shapes)
    macs = additions = 0
    last: dict[str, int] = {}
    left: list[str] = []
    for index, term in enumerate(terms):
        later = {label for other in terms[index + 1 :] for label in other} | set(result)
        here = set(term)
        alone = here - later - set(left)
        if alone:
            additions += _count(here, sizes)
            here -= alone
        if not index:
            left = sorted(here)
            continue
        lonely = set(left) - here - later
        if lonely:
            additions += _count(set(left), sizes)
            left = sorted(set(left) - lonely)
        both = set(left) | here
        macs += _count(both, sizes)
        summed = both - later
        last = {
            "m": _count(set(left) - here, sizes),
            "n": _count(here - set(left), sizes),
            "k": _count(summed, sizes),
            "copies": _count((set(left) & here) - summed, sizes),
        }
        left = sorted(both - summed)
    return stated("gemm" if macs else "reduction" if additions else "copy", operands, outputs, macs, additions, **last)


def _count(labels: set[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[label] for label in labels)
