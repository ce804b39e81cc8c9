"""Local search for pipeline throughput: move stages off the busiest device while that helps."""

import numpy as np

from mlsys.deadline import Deadline
from mlsys.planner.placement.layers import Layers


def balanced(layers: Layers, places: list[int], deadline: Deadline) -> tuple[int, ...]:
    """Return a placement with a bottleneck no larger than before, by moves of one stage.

    Parameters
    ----------
    layers
        The pipeline; its caps named ``busy_ms`` are minimised, the others are constraints.
    places
        Initial choice of each stage, within the caps.
    deadline
        Time limit of the search.
    """
    busy = np.array([name.startswith("busy_ms") for name in layers.names])
    limits = np.where(busy, np.inf, layers.caps * (1 + 1e-9))
    places = list(places)

    def step(stage: int, before: int, choice: np.ndarray | int) -> np.ndarray:
        return np.asarray(layers.steps[stage][before, choice, 1:])

    use = sum((step(s, places[s - 1] if s else 0, places[s]) for s in range(len(places))), np.zeros(len(busy)))
    improved = True
    while improved and not deadline.passed:
        improved = False
        for stage in np.argsort([-float(use[busy].max() == use[busy][_device(layers, s, places, busy)])
                                 for s in range(len(places))], kind="stable"):  # fmt: skip
            s = int(stage)
            before = places[s - 1] if s else 0
            every = np.arange(layers.steps[s].shape[1])
            now = step(s, before, places[s])
            then = step(s, before, every)
            if s + 1 < len(places):
                now = now + step(s + 1, places[s], places[s + 1])
                then = then + layers.steps[s + 1][every, places[s + 1], 1:]
            with np.errstate(invalid="ignore"):
                after = use - now + then
            allowed = np.isfinite(after).all(axis=1) & (after <= limits).all(axis=1)
            worst = np.where(allowed, np.nan_to_num(after[:, busy], posinf=np.inf).max(axis=1), np.inf)
            best = int(np.argmin(worst))
            if worst[best] < float(use[busy].max()) * (1 - 1e-12):
                use, places[s], improved = after[best], best, True
                break
    return tuple(places)


def _device(layers: Layers, stage: int, places: list[int], busy: np.ndarray) -> int:
    """Return the bottleneck device on which a stage takes the most time."""
    table = layers.steps[stage][places[stage - 1] if stage else 0, places[stage], 1:]
    return int(np.argmax(table[busy]))
