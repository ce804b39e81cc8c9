"""Traffic across the borders between memories, and the division of memories shared by several operands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlsys.planner.mapper.accelerator import Store
from mlsys.planner.mapper.chains import Numbers


@dataclass(frozen=True)
class Border:
    """The border between a memory of one operand and the memory (or the array) inside it."""

    operand: str
    store: Store | None
    fits: Numbers
    bits: Numbers
    cost: Numbers


@dataclass(frozen=True)
class Problem:
    """Borders whose memories are to be divided; of shape (states, borders), bits are NaN for infeasible states."""

    borders: list[Border]
    fixed: float
    bits: Numbers
    cost: Numbers
    full: tuple[float, ...]
    shared: tuple[tuple[int, ...], ...]  # borders of one memory

    @classmethod
    def of(cls, borders: list[Border], fixed: float) -> Problem:
        """Return the problem of some borders, given an energy that no division changes."""
        bits, cost = (np.empty((borders[0].cost.size, len(borders))) for _ in range(2))
        for number, border in enumerate(borders):
            bits[:, number] = np.where(border.fits, border.bits, np.nan).ravel()
            cost[:, number] = border.cost.ravel()
        names = [border.store.name if border.store is not None else None for border in borders]
        shared = (tuple(i for i, other in enumerate(names) if other == name) for name in dict.fromkeys(names) if name)
        full = (b.store.capacity if b.store is not None else None for b in borders)
        return cls(borders, fixed, bits, cost, tuple(math.inf if f is None else f for f in full), tuple(shared))

    @property
    def even(self) -> tuple[float, ...]:
        """The problem with every memory divided evenly."""
        among = {border: len(group) for group in self.shared for border in group}
        return tuple(room // among.get(border, 1) for border, room in enumerate(self.full))

    def overfull(self, held: list[float]) -> tuple[int, ...] | None:
        """Return the borders of a memory that exceeds its capacity, if there is one."""
        return next((group for group in self.shared if sum(held[i] for i in group) > self.full[group[0]]), None)

    def divided(
        self, crowd: tuple[int, ...], held: list[float], high: tuple[float, ...], low: tuple[float, ...]
    ) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
        """Yield two subproblems, with limits for each border, that exclude the present division."""
        widest = max(crowd, key=lambda i: (held[i] - low[i], held[i]))
        tiles = self.bits[:, widest]
        below = tiles[tiles <= (low[widest] + held[widest]) // 2].max(initial=-1)
        if below >= low[widest]:
            yield (*high[:widest], below, *high[widest + 1 :]), low
        lows = list(low)
        lows[widest] = tiles[tiles > below].min()
        rest = self.full[widest] - sum(lows[i] for i in crowd)
        tops = tuple(min(top, rest + lows[i]) if i in crowd and i != widest else top for i, top in enumerate(high))
        if all(top >= least for top, least in zip(tops, lows, strict=True)):
            yield tops, tuple(lows)
