"""Choices of layout and batch, and the Pareto front of latency against cost among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.mapping.parallel import Layout
from mlsys.models.inference.placed import batches_up_to

if TYPE_CHECKING:
    from mlsys.models.inference.result import Sizing


@dataclass(frozen=True)
class Choice:
    """A layout at a batch.

    Attributes
    ----------
    layout, chips, batch
        How one copy is split, the chips of all copies, and the sequences of one copy.
    tpot_seconds, tokens_per_second, usd_per_million_tokens
        Time between tokens, rate of all copies, and cost; None where no rent is known.
    """

    layout: Layout
    chips: int
    batch: int
    tpot_seconds: float
    tokens_per_second: float
    usd_per_million_tokens: float | None

    @property
    def tokens_per_second_per_chip(self) -> float:
        """Rate over chips."""
        return self.tokens_per_second / self.chips

    def __str__(self) -> str:
        return f"{self.layout}, batch {self.batch}"


def choices(sizing: Sizing, layouts: int = 8) -> tuple[Choice, ...]:
    """Return the layouts of a sizing, each at batches up to the most that fit.

    Parameters
    ----------
    sizing
        On a system.
    layouts
        How many layouts are looked at, the best first; those of the fewest chips always are.
    """
    placed = [*sizing.placed[:layouts]]
    placed += [each for each in sorted(sizing.placed, key=lambda one: one.chips)[:2] if each not in placed]
    found = []
    for each in placed:
        for batch in batches_up_to(each.largest_batch, 1024):
            rates = each.at(batch)
            step = rates.tpot or rates.ttft
            if step is None:
                continue
            cost = sizing.money.at(rates.tokens_per_second, each.chips).usd_per_million_tokens
            found.append(Choice(each.layout, each.chips, batch, step.seconds, rates.tokens_per_second, cost))
    return tuple(found)


def pareto_front(found: Iterable[Choice]) -> tuple[Choice, ...]:
    """Return the choices that no other is at least as good as in both latency and rate per chip, the fastest first.

    Rent is paid by the chip, so that the most tokens per second and chip are the cheapest.

    Examples
    --------
    >>> slow, fast, worse = (Choice(Layout(), 1, 1, time, rate, None) for time, rate in ((2, 9), (1, 5), (2, 4)))
    >>> [each.tpot_seconds for each in pareto_front([slow, fast, worse])]
    [1, 2]
    """
    front: list[Choice] = []
    for each in sorted(found, key=lambda one: (one.tpot_seconds, -one.tokens_per_second_per_chip)):
        if not front or each.tokens_per_second_per_chip > front[-1].tokens_per_second_per_chip:
            front.append(each)
    return tuple(front)
