"""Dataflow: what a loop nest moves, and what that costs in time and energy."""

from mlsys.models.dataflow.cost import buffer_words, nest_cost
from mlsys.models.dataflow.counts import Movement, movements
from mlsys.models.dataflow.machine import Machine, Memory, machine_of
from mlsys.models.dataflow.orders import order_words, orders, walked_words

__all__ = [
    "Machine",
    "Memory",
    "Movement",
    "buffer_words",
    "machine_of",
    "movements",
    "nest_cost",
    "order_words",
    "orders",
    "walked_words",
]
