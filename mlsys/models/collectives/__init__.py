"""Collective operations among chips: closed forms, a step-by-step simulator, and NCCL as it runs."""

from mlsys.models.collectives.collective import (
    CollectiveResult,
    collective_candidates,
    collective_seconds,
    collective_time,
    default_library,
    traffic_factor,
)
from mlsys.models.collectives.schedules import Message, Schedule, hierarchical_all_reduce, schedule
from mlsys.models.collectives.simulate import Simulation, simulate

__all__ = [
    "CollectiveResult",
    "Message",
    "Schedule",
    "Simulation",
    "collective_candidates",
    "collective_seconds",
    "collective_time",
    "default_library",
    "hierarchical_all_reduce",
    "schedule",
    "simulate",
    "traffic_factor",
]
