"""Memory planning: lifetimes of tensors, and their offsets in one memory block."""

from mlsys.planner.memory.fit import MemoryFit, fits_on
from mlsys.planner.memory.liveness import Buffer, Liveness, liveness
from mlsys.planner.memory.offsets import STRATEGIES, place_in_order
from mlsys.planner.memory.order import OperatorOrder, lean_order
from mlsys.planner.memory.plan import MemoryPlan, Placement, compare_strategies, conflicts, plan_memory

__all__ = [
    "STRATEGIES",
    "Buffer",
    "Liveness",
    "MemoryFit",
    "MemoryPlan",
    "OperatorOrder",
    "Placement",
    "compare_strategies",
    "conflicts",
    "fits_on",
    "lean_order",
    "liveness",
    "place_in_order",
    "plan_memory",
]
