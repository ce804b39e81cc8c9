"""What a plan answers with: placements in order, and how sure that is."""

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
        What was asked.
    strategy
        ``"exact"`` or ``"beam"``: how the answer was found.
    optimal
        Whether it is proven that these are the best, in this order; for none, that there is none.
    placements
        The best first.
    bound
        A score that no placement beats; infinite if there is proven to be none.
    binding
        Where there is no placement: what bars all of them, in words.
    labels
        Partial placements that were looked at.
    weight
        Of time in a balanced goal.
    stopped
        Whether the search ended because its time was over: another machine may find another answer.
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
        """Whether it is proven that the caps allow no placement."""
        return not self.placements and self.bound == float("inf")

    @property
    def gap(self) -> float:
        """How far the best placement may lie above the least score possible, as a share of it."""
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
            raise ArgumentError(f"PlanResult.best: no placement is allowed: {'; '.join(self.binding)}")
        return self.placements[0].placed

    def record(self) -> dict[str, Any]:
        """Return the plan as plain data: what ``mlsys plan --format json`` prints."""
        from mlsys.planner.placement.report import record

        return record(self)

    def explain(self) -> str:
        """Return the plan as text."""
        from mlsys.planner.placement.report import plan_text

        return plan_text(self)

    @property
    def why(self) -> tuple[str, ...]:
        """What speaks for the best placement, in sentences."""
        from mlsys.planner.placement.words import why

        return why(self)
