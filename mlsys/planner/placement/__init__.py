"""Placement of the stages of a pipeline or graph on devices, with costs, proofs and binding constraints."""

from mlsys.planner.placement.example import example
from mlsys.planner.placement.plan import plan
from mlsys.planner.placement.result import PlanResult
from mlsys.planner.placement.scenario import Scenario
from mlsys.planner.placement.thermal import heating, sustained_rate

__all__ = ["PlanResult", "Scenario", "example", "heating", "plan", "sustained_rate"]
