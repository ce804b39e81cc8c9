"""Cost of each operator: one rule per name, and one for unknown names."""

from mlsys.workloads.torch_import.calls import WEIGHT_ROLES, Call, CallCounts
from mlsys.workloads.torch_import.rules import elementwise, movement, products, stated
from mlsys.workloads.torch_import.rules.counts import Counts
from mlsys.workloads.torch_import.rules.registry import RULES, Rule

__all__ = ["RULES", "Counts", "counts_of", "is_known"]

_MODULES = (elementwise, movement, products, stated)  # importing them fills RULES


def is_known(call: Call) -> bool:
    """Return whether the operator has a rule, is a view, or is element-wise."""
    return call.is_view or _rule(call) is not None


def _rule(call: Call) -> Rule | None:
    """Return the rule of the operator, or of its namesake that is not in place."""
    name = call.op
    if name not in RULES and call.in_place:
        name = name.removesuffix("_")
    return RULES.get(name, elementwise.pointwise if call.pointwise else None)


def counts_of(call: Call) -> Counts:
    """Return the work and the traffic of one call whose sizes are all numbers.

    An operator without a rule is counted as pure traffic, every input read and every
    output written, and says so in ``known``.

    Examples
    --------
    >>> from mlsys.workloads.torch_import.calls import Tensor
    >>> tokens = Tensor((4, 50, 128), (4, 50, 128), "float32", 4, "input", 0)
    >>> weight = Tensor((256, 128), (256, 128), "float32", 4, "parameter", 1)
    >>> out = Tensor((4, 50, 256), (4, 50, 256), "float32", 4)
    >>> counts = counts_of(Call("linear", "default", (("input", tokens), ("weight", weight)), (out,)))
    >>> 2 * counts.macs, counts.weights
    (13107200, 131072)
    """
    if call.is_view:
        work = CallCounts("view", read=0, written=0)
    else:
        counts = _rule(call)
        work = counts(call) if counts else CallCounts("unknown")
    made = 0 if call.in_place or work.kind == "view" else sum(tensor.bytes for tensor in call.outputs)
    inputs = call.inputs
    read = sum(tensor.bytes for tensor in inputs) if work.read is None else work.read
    written = sum(tensor.bytes for tensor in call.outputs) if work.written is None else work.written
    weights = sum(tensor.bytes for tensor in inputs if tensor.role in WEIGHT_ROLES)
    return Counts(
        kind=work.kind,
        macs=work.macs,
        elementwise=work.elementwise,
        read=read,
        written=written,
        weights=min(weights, read),
        made=made,
        parameters=sum(tensor.elements for tensor in inputs if tensor.role == "parameter"),
        known=is_known(call),
        shape=work.shape,
    )
