"""Dataflow models: data movement, time and energy of a loop nest."""

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
