"""Plans of a scenario: the best placements for a goal, how sure that is, and what bars all if none is allowed."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from mlsys.choices import Goal, Strategy
from mlsys.door import checked_choice
from mlsys.errors import ArgumentError
from mlsys.planner.placement.chain import Found, Weights, search_chain
from mlsys.planner.placement.costs import Caps, caps_of
from mlsys.planner.placement.result import PlanResult, Ranked
from mlsys.planner.placement.scenario import Scenario, exact

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
        How many placements.
    weight
        Of time in a balanced goal, from 0 to 1.
    switch_penalty
        Added to the score for every change of device.
    strategy
        ``"beam"`` keeps the ``width`` best partial placements after each stage and says how far from the best
        its answer may be; ``"exact"`` refuses where the proof needs more than ``max_exact_states``; ``"auto"``
        falls back to the beam.

    Returns
    -------
    PlanResult

    Raises
    ------
    ArgumentError
        If an option is out of range, or ``strategy="exact"`` finds no proof.
    ScenarioFileError
        If the scenario has faults.

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
                f"plan(): `{name}` must be a whole number from {low}, got {number!r}. Write e.g. {name}=3"
            )
    if not 0 <= weight <= 1:
        raise ArgumentError(f"plan(): `weight` must lie between 0 and 1, got {weight!r}. Write e.g. weight=0.5")
    if not 0 <= switch_penalty < 1e12:
        raise ArgumentError(
            f"plan(): `switch_penalty` must not be negative, got {switch_penalty!r}. Write e.g. switch_penalty=0.1"
        )
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
        )
    search = _Search(scenario, strategy, width, max_exact_states)
    caps = caps_of(scenario)
    penalty = exact(float(switch_penalty))
    if goal == "throughput":
        plans, scores = _throughput(search, caps, top)
    else:
        weights = _weights(search, caps, goal, exact(float(weight)), penalty)
        plans = Found((), float("inf"), True, 0) if weights is None else search(weights, caps, top)
        scores = [score for score, _ in plans.best]
    if strategy == "exact" and not plans.proven:
        raise ArgumentError(
            f"plan(): `strategy` 'exact' found no proof within {max_exact_states:,} partial placements; the gap is "
            f"at most {float(scores[0]) / plans.bound - 1 if scores and plans.bound > 0 else float('inf'):.3g}. "
            "Write e.g. strategy='auto', or a larger max_exact_states"
        )
    ranked = tuple(Ranked(float(score), placed) for score, (_, placed) in zip(scores, plans.best, strict=True))
    binding = () if ranked else _binding(search, scenario, caps)
    proven = plans.proven and search.proven
    return PlanResult(
        scenario, goal, "exact" if proven else "beam", proven, ranked, plans.bound, binding, search.labels, weight
    )


class _Search:
    """The search with the options of a plan; it remembers whether all of its answers were proven."""

    def __init__(self, scenario: Scenario, strategy: str, width: int, most: int) -> None:
        self.scenario, self.most = scenario, most
        self.width = width if strategy == "beam" else None
        self.proven, self.labels = True, 0

    def __call__(self, weights: Weights, caps: Caps, top: int) -> Found:
        plans = search_chain(self.scenario, weights, caps, top=top, most_labels=self.most, width=self.width)
        self.proven &= plans.proven
        self.labels += plans.labels
        return plans


def _weights(search: _Search, caps: Caps, goal: str, weight: Fraction, penalty: Fraction) -> Weights | None:
    if goal == "latency":
        return Weights(Fraction(1), Fraction(0), penalty)
    if goal == "efficiency":
        return Weights(Fraction(0), Fraction(1), penalty)
    quickest, thriftiest = search(_LATENCY, caps, 1), search(_ENERGY, caps, 1)
    if not quickest.best or not thriftiest.best:
        return None
    return Weights(weight / quickest.best[0][0], (1 - weight) / thriftiest.best[0][0], penalty)


def _throughput(search: _Search, caps: Caps, top: int) -> tuple[Found, list[Fraction]]:
    """Return placements of the least bottleneck, the quickest first; found by asking for less until there is none."""
    names = [device.name for device in search.scenario.devices]

    def within(limit: Fraction, strict: bool = True) -> Found:
        room = limit * (1 - Fraction(1, 10**9)) if strict else limit
        return search(_LATENCY, Caps((*caps.entries, *((f"busy_ms {name}", room) for name in names))), 1)

    plans = search(_LATENCY, caps, 1)
    if not plans.best:
        return plans, []
    best = plans.best[0][1]
    low, high = Fraction(0), best.bottleneck
    while high - low > high / 10**9:
        middle = (low + high) / 2
        limit = Fraction(middle).limit_denominator(10**12)
        trial = within(limit, strict=False)
        if trial.best:
            high = min(trial.best[0][1].bottleneck, limit)
            best = trial.best[0][1]
        else:
            low = limit
    high = best.bottleneck
    limited = Caps((*caps.entries, *((f"busy_ms {name}", high) for name in names)))
    last = search(_LATENCY, limited, top)
    ranked = sorted(last.best, key=lambda entry: (entry[1].bottleneck, entry[0], entry[1].switches, entry[1].key))
    return Found(tuple(ranked), float(low), last.proven, last.labels), [placed.bottleneck for _, placed in ranked]


def _binding(search: _Search, scenario: Scenario, caps: Caps) -> tuple[str, ...]:
    """Return a smallest set of caps that no placement meets together, in words with the least that is possible."""
    from mlsys.planner.placement.words import cap_in_words

    if not search(_LATENCY, Caps(()), 1).best:
        return (_broken_chain(scenario),)
    kept = caps
    for name, _ in caps.entries:
        if not search(_LATENCY, kept.without(name), 1).best:
            kept = kept.without(name)
    told = []
    for name, limit in kept.entries:
        least = _least(search, kept.without(name), name)
        told.append(cap_in_words(scenario, name, limit, least))
    return tuple(told)


def _least(search: _Search, others: Caps, name: str) -> Fraction | None:
    """Return the least use of a resource under the other caps, where the search can make it small."""
    weights = {"latency_ms": _LATENCY, "energy_mj": _ENERGY}.get(name)
    if weights is None:
        return None
    plans = search(weights, others, 1)
    return plans.best[0][0] if plans.best else None


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
    return "a stage holds more memory than any device has that it has a profile for"
