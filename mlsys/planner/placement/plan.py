"""Plans of a scenario: the best placements for a goal, with a proof or a gap, or the conflicting caps."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np

from mlsys.choices import Goal, Strategy
from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError
from mlsys.planner.placement.balance import balanced
from mlsys.planner.placement.chain import ChainSearchResult, search_chain
from mlsys.planner.placement.costs import Caps, Placed, caps_of, price
from mlsys.planner.placement.layers import Layers, Steps, Weights, bottleneck_bound
from mlsys.planner.placement.milp import solve_chain, solver_needs
from mlsys.planner.placement.result import PlanResult, Ranked
from mlsys.planner.placement.scenario import Scenario, exact
from mlsys.unit_checks import checked_choice

SECONDS = 60.0
"""Default time limit of a search, in seconds."""
_UNKNOWN = "unknown: no placement was found in {seconds:g} s, and no proof that none exists. Increase seconds"
_LATENCY, _ENERGY = Weights(Fraction(1), Fraction(0)), Weights(Fraction(0), Fraction(1))


def plan(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    goal: Goal = "latency",
    *,
    top: int = 1,
    weight: float = 0.5,
    switch_penalty: float = 0.0,
    strategy: Strategy = "auto",
    width: int = 64,
    max_exact_states: int = 1_000_000,
    seconds: float = SECONDS,
    progress: Callable[[float, float], object] = lambda best, bound: None,
) -> PlanResult:
    """Return the best placements of a scenario.

    Parameters
    ----------
    scenario
        A scenario, its plain data, or the path of its file.
    goal
        ``"latency"``: the score is the time of one run, ms. ``"efficiency"``: its energy, mJ. ``"balanced"``:
        ``weight × L / L* + (1 - weight) × E / E*`` with the least time L* and the least energy E* that the caps
        allow, so never below 1. ``"throughput"``: the time of the busiest device, ms.
    top
        Number of placements to return.
    weight
        Weight of time in a balanced goal, 0 to 1.
    switch_penalty
        Added to the score for every change of device.
    strategy
        ``"beam"`` keeps the ``width`` best partial placements after each stage and reports the gap of its answer;
        ``"exact"`` raises if the proof needs more than ``max_exact_states``; ``"auto"`` falls back to the beam, and for
        a pipeline to a mixed-integer solver (HiGHS).
    seconds
        Time limit, after which the best placements so far are returned with their gap.
    progress
        Called with the best score so far and the bound, after each pass.

    Returns
    -------
    PlanResult

    Raises
    ------
    ArgumentError
        If an option is out of range, or ``strategy="exact"`` finds no proof.
    ScenarioFileError
        If the scenario is invalid.

    Examples
    --------
    >>> from mlsys.planner.placement import example
    >>> result = plan(example())
    >>> float(result.best.latency), float(result.best.energy), result.best.switches, result.optimal
    (27.97, 32.18, 2, True)
    """
    checked_choice("plan", "goal", goal, get_args(Goal))
    for name, number, low in (("top", top, 1), ("width", width, 1), ("max_exact_states", max_exact_states, 1)):
        if not isinstance(number, int) or isinstance(number, bool) or number < low:
            raise ArgumentError(
                f"plan(): `{name}` must be a whole number >= {low}, got {number!r}. Write e.g. {name}=3"
            )
    if not 0 <= weight <= 1:
        raise ArgumentError(f"plan(): `weight` must lie between 0 and 1, got {weight!r}. Write e.g. weight=0.5")
    if not 0 <= switch_penalty < 1e12:
        raise ArgumentError(
            f"plan(): `switch_penalty` must not be negative, got {switch_penalty!r}. Write e.g. switch_penalty=0.1"
        )
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds < 1e9:
        raise ArgumentError(f"plan(): `seconds` must be above zero, got {seconds!r}. Write e.g. seconds=60")
    deadline = Deadline(seconds)
    if not isinstance(scenario, Scenario):
        scenario = Scenario(scenario) if isinstance(scenario, Mapping) else Scenario.load(scenario)
    if scenario.is_graph:
        from mlsys.planner.placement.graph import plan_graph

        return plan_graph(
            scenario,
            goal,
            top=top,
            weight=weight,
            switch_penalty=switch_penalty,
            strategy=strategy,
            most_states=max_exact_states,
            deadline=deadline,
        )
    search = _Search(scenario, strategy, width, max_exact_states, deadline, progress)
    caps = caps_of(scenario)
    penalty = exact(float(switch_penalty))
    if goal == "throughput":
        plans, scores = _throughput(search, caps, top)
    else:
        weights = _weights(search, caps, goal, exact(float(weight)), penalty)
        plans = ChainSearchResult((), float("inf"), True, 0) if weights is None else search(weights, caps, top)
        scores = [score for score, _ in plans.best]
    if strategy == "exact" and not plans.proven:
        gap = float(scores[0]) / plans.bound - 1 if scores and plans.bound > 0 else float("inf")
        raise ArgumentError(
            f"plan(): `strategy` 'exact' found no proof within {max_exact_states:,} partial placements and "
            f"{seconds:g} s; the gap is at most {gap:.3g}. Write e.g. strategy='auto', or larger max_exact_states "
            "and seconds"
        )
    ranked = tuple(Ranked(float(score), placed) for score, (_, placed) in zip(scores, plans.best, strict=True))
    binding: tuple[str, ...] = ()
    if not ranked:
        binding = _binding(search, scenario, caps) if plans.proven else (_UNKNOWN.format(seconds=seconds),)
    proven = plans.proven and search.proven
    return PlanResult(
        scenario, goal, "exact" if proven else "beam", proven, ranked, plans.bound, binding, search.labels, weight,
        stopped=deadline.passed,
    )  # fmt: skip


class _Search:
    """The search with the options of a plan; it records whether all of its answers were proven."""

    def __init__(
        self, scenario: Scenario, strategy: str, width: int, most: int, deadline: Deadline,
        progress: Callable[[float, float], object],
    ) -> None:  # fmt: skip
        self.scenario, self.most, self.deadline, self.progress = scenario, most, deadline, progress
        self.width = width if strategy == "beam" else None
        self.proven, self.labels = True, 0
        self.steps = Steps(scenario)

    def __call__(
        self, weights: Weights, caps: Caps, top: int, *, any_will_do: bool = False, share: float = 1.0
    ) -> ChainSearchResult:
        plans = search_chain(
            self.scenario, weights, caps, top=top, most_labels=self.most, width=self.width, steps=self.steps,
            deadline=self.deadline.part(share), any_will_do=any_will_do,
            progress=(lambda best, bound: None) if any_will_do else self.progress,
        )  # fmt: skip
        self.proven &= plans.proven
        self.labels += plans.labels
        return plans

    def unreachable(self, caps: Caps) -> tuple[str, Fraction] | None:
        """Return the last cap that no placement meets even on its own; None if there is none."""
        layers = Layers(self.steps, _LATENCY, caps)
        found = None
        for index, entry in enumerate(caps.entries, start=1):
            only = np.eye(1 + len(layers.names))[index]
            if layers.cheapest_chain(only)[0] > float(entry[1]) * (1 + 1e-9):
                found = entry
        return found

    def allows(self, caps: Caps) -> bool | None:
        """Return whether a placement meets the caps; None if unknown."""
        plans = self(_LATENCY, caps, 1, any_will_do=True, share=0.2)
        return True if plans.best else False if plans.proven else None


def _weights(search: _Search, caps: Caps, goal: str, weight: Fraction, penalty: Fraction) -> Weights | None:
    if goal == "latency":
        return Weights(Fraction(1), Fraction(0), penalty)
    if goal == "efficiency":
        return Weights(Fraction(0), Fraction(1), penalty)
    quickest, lowest_energy = search(_LATENCY, caps, 1, share=0.3), search(_ENERGY, caps, 1, share=0.4)
    if not quickest.best or not lowest_energy.best:
        return None
    return Weights(weight / quickest.best[0][0], (1 - weight) / lowest_energy.best[0][0], penalty)


def _throughput(search: _Search, caps: Caps, top: int) -> tuple[ChainSearchResult, list[Fraction]]:
    """Return placements with the least bottleneck, fastest first, by lowering the limit until none is left."""
    names = [device.name for device in search.scenario.devices]

    def below(limit: Fraction) -> Caps:
        return Caps((*caps.entries, *((f"busy_ms {name}", limit) for name in names)))

    plans = search(_LATENCY, caps, 1, share=0.2)
    if not plans.best:
        return plans, []
    proven = search.proven
    best = plans.best[0][1]
    layers = Layers(search.steps, _LATENCY, below(best.bottleneck))
    floor = bottleneck_bound(layers, search.deadline.part(0.2))
    places = [
        stage.choices.index(placed.choice) for stage, placed in zip(search.scenario.stages, best.stages, strict=True)
    ]
    best = _quicker(search, caps, balanced(layers, places, search.deadline.part(0.2)), best)
    low, high, sure = exact(min(floor, float(best.bottleneck))), best.bottleneck, True
    bisection = search.deadline.part(0.5)
    while high - low > high / 10**9 and not bisection.passed:
        limit = Fraction((low + high) / 2).limit_denominator(10**12)
        trial = search(_LATENCY, below(limit), 1, any_will_do=True, share=0.1)
        if trial.best:
            high = min(trial.best[0][1].bottleneck, limit)
            best = trial.best[0][1]
        else:
            low, sure = limit, sure and trial.proven
    sure = sure and high - low <= high / 10**9
    bound = float(low) if sure else floor
    if not sure and search.width is None and search.deadline.remaining > solver_needs(layers):
        solution, solved = solve_chain(layers, search.deadline.part(0.8), bottleneck=True)
        bound = min(max(bound, solved), float(best.bottleneck))
        if solution is not None:
            best = _quicker(search, caps, solution, best)
        search.progress(float(best.bottleneck), bound)
    last = ChainSearchResult((), bound, False, 0)
    if not search.deadline.passed:
        last = search(_LATENCY, below(best.bottleneck), top)
    found = {placed.key: (score, placed) for score, placed in (*last.best, (best.latency, best))}
    ranked = sorted(found.values(), key=lambda entry: (entry[1].bottleneck, entry[0], entry[1].switches, entry[1].key))
    search.proven = search.proven and proven and sure
    return (
        ChainSearchResult(tuple(ranked[:top]), bound, last.proven and sure, last.labels),
        [placed.bottleneck for _, placed in ranked[:top]],
    )


def _quicker(search: _Search, caps: Caps, places: tuple[int, ...], best: Placed) -> Placed:
    """Return the placement of these choices if it meets the caps with a smaller bottleneck, else the other one."""
    stages = zip(search.scenario.stages, places, strict=True)
    placed = price(search.scenario, tuple(stage.choices[place] for stage, place in stages))
    if placed is not None and caps.allow(search.scenario, placed) and placed.bottleneck < best.bottleneck:
        return placed
    return best


def _binding(search: _Search, scenario: Scenario, caps: Caps) -> tuple[str, ...]:
    """Return a minimal set of conflicting caps, in words, with the least feasible value of each."""
    from mlsys.planner.placement.words import cap_in_words

    if search.allows(Caps(())) is False:
        return (_broken_chain(scenario),)
    alone = search.unreachable(caps)
    if alone is not None:
        name, limit = alone
        return (cap_in_words(scenario, name, limit, _least(search, Caps(()), name)),)
    kept = caps
    for name, _ in caps.entries:
        if not search.deadline.passed and search.allows(kept.without(name)) is False:
            kept = kept.without(name)
    binding = []
    for name, limit in kept.entries:
        least = None if search.deadline.passed else _least(search, kept.without(name), name)
        binding.append(cap_in_words(scenario, name, limit, least))
    return tuple(binding)


def _least(search: _Search, others: Caps, name: str) -> Fraction | None:
    """Return the least use of a resource under the other caps, if the search can minimise it."""
    weights = {"latency_ms": _LATENCY, "energy_mj": _ENERGY}.get(name)
    if weights is None:
        return None
    plans = search(weights, others, 1, share=0.5)
    return plans.best[0][0] if plans.best and plans.proven else None


def _broken_chain(scenario: Scenario) -> str:
    reached = {choice.device for choice in scenario.stages[0].choices}
    for before, stage in zip(scenario.stages, scenario.stages[1:], strict=False):
        then = {
            choice.device
            for choice in stage.choices
            if any(choice.device == device or (device, choice.device) in scenario.links for device in reached)
        }
        if not then:
            return (
                f"no link: stage {stage.name!r} has profiles for "
                f"{', '.join(sorted({c.device for c in stage.choices}))}, "
                f"and no link leads there from where stage {before.name!r} may run ({', '.join(sorted(reached))})"
            )
        reached = then
    return "a stage needs more memory than any device with a profile for it has"
