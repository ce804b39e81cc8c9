"""Dataflow: what a loop nest moves, and what that costs in time and energy."""

from mlsys.models.dataflow.cost import buffer_words, nest_cost
from mlsys.models.dataflow.counts import Movement, movements
from mlsys.models.dataflow.hierarchy import Hierarchy, hierarchy
from mlsys.models.dataflow.orders import order_words, orders, walked_words

__all__ = [
    "Hierarchy",
    "Movement",
    "buffer_words",
    "hierarchy",
    "movements",
    "nest_cost",
    "order_words",
    "orders",
    "walked_words",
]
