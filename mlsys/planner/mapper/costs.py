"""Energy and time of a mapping from its traffic: the objectives of the mapper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.mapping.iteration import IterationSpace
from mlsys.models.dataflow.hierarchy import Hierarchy


@dataclass(frozen=True)
class Costs:
    """Cost of a word at each level, and cost of the arithmetic, which no mapping changes.

    Attributes
    ----------
    energies, times
        J and seconds per word into or out of each inner memory.
    arithmetic, computing
        J and seconds of all multiply-accumulates.
    overlap
        Whether memories and arithmetic work concurrently.
    """

    energies: tuple[float, ...]
    times: tuple[float, ...]
    arithmetic: float
    computing: float
    overlap: bool

    def energy(self, words: Sequence[Any]) -> Any:
        """Return the energy of the traffic at each level, J."""
        return self.arithmetic + sum(each * count for each, count in zip(self.energies, words, strict=True))

    def latency(self, words: Sequence[Any]) -> Any:
        """Return the time of the traffic at each level, s."""
        taken = [each * count for each, count in zip(self.times, words, strict=True)]
        if not self.overlap:
            return self.computing + sum(taken)
        slowest: Any = self.computing
        for each in taken:
            slowest = np.maximum(slowest, each)
        return slowest

    def edp(self, words: Sequence[Any]) -> Any:
        """Return the energy-delay product, J·s."""
        return self.energy(words) * self.latency(words)


def costs_of(chip: Hierarchy, space: IterationSpace, overlap: bool = True) -> Costs:
    """Return the costs of one operator on a machine's memories."""
    return Costs(chip.prices, chip.times, chip.multiplying * space.macs, 2 * space.macs / chip.rate, overlap)
