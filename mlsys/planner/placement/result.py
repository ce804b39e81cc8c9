"""Result of a plan: placements in order, with a proof or a gap."""

from dataclasses import dataclass
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.planner.placement.scenario import Scenario


@dataclass(frozen=True)
class Ranked:
    """A placement and its score; lower is better."""

    score: float
    placed: Any


@dataclass(frozen=True)
class PlanResult:
    """The best placements of a scenario for a goal.

    Attributes
    ----------
    scenario, goal
        Scenario and goal of the plan.
    strategy
        ``"exact"`` or ``"beam"``: the strategy that found the answer.
    optimal
        Whether these are proven to be the best, in this order; without placements, that none exists.
    placements
        The best first.
    bound
        Lower bound of the score; infinite if it is proven that no placement exists.
    binding
        Conflicting constraints, in words, if there is no placement.
    labels
        Number of partial placements visited.
    weight
        Weight of time in a balanced goal.
    stopped
        Whether the time limit ended the search, so that another machine may return another answer.
    """

    scenario: Scenario
    goal: str
    strategy: str
    optimal: bool
    placements: tuple[Ranked, ...]
    bound: float
    binding: tuple[str, ...] = ()
    labels: int = 0
    weight: float = 0.5
    stopped: bool = False

    @property
    def impossible(self) -> bool:
        """Whether it is proven that no placement meets the caps."""
        return not self.placements and self.bound == float("inf")

    @property
    def gap(self) -> float:
        """Upper bound of the relative distance of the best placement from the optimum."""
        if not self.placements or self.optimal:
            return 0.0
        return self.placements[0].score / self.bound - 1 if self.bound > 0 else float("inf")

    @property
    def best(self) -> Any:
        """The best placement.

        Raises
        ------
        ArgumentError
            If there is none.
        """
        if not self.placements:
            raise ArgumentError(f"PlanResult.best: no feasible placement: {'; '.join(self.binding)}")
        return self.placements[0].placed

    def record(self) -> dict[str, Any]:
        """Return the plan as plain data, as printed by ``mlsys plan --format json``."""
        from mlsys.planner.placement.report import record

        return record(self)

    def explain(self) -> str:
        """Return the plan as text."""
        from mlsys.planner.placement.report import plan_text

        return plan_text(self)

    @property
    def why(self) -> tuple[str, ...]:
        """Justification of the best placement, in sentences."""
        from mlsys.planner.placement.words import why

        return why(self)
