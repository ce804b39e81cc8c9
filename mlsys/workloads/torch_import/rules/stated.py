"""Operators whose work the reader of a file counts itself, such as fused ones with several products."""

from mlsys.workloads.torch_import.calls import Call, CallCounts
from mlsys.workloads.torch_import.rules.registry import rule

__all__: list[str] = []


@rule("stated_work")
def _stated(call: Call) -> CallCounts:
    """Return the work that the arguments of the call state."""
    return CallCounts(
        call.get("kind"),
        call.get("macs", 0),
        call.get("elementwise", 0),
        read=call.get("read"),
        shape=call.get("sizes", ()),
    )
