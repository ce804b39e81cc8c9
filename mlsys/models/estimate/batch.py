"""Batches of cases, as columns of kernels and of the rates of the machines that run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.view import MachineView
from mlsys.models.estimate.machine import Snapshot, read_now, snapshot
from mlsys.models.estimate.work import Work

Array = NDArray[np.float64]

# Largest fraction of a cache that reused data may fill and still stay in it.
HOLDS = 0.7


@dataclass(frozen=True)
class CaseBatch:
    """A batch of cases: one column per kernel, with the case that it belongs to.

    Attributes
    ----------
    case
        Index of the case that a kernel belongs to.
    kernels
        Columns of :class:`Work`, all cases after one another.
    engines
        Rates of the engine that runs each kernel: one row for each field of :class:`Snapshot` except its names.
    copies
        Number of copies of the weights used in rotation, where data that fit stay in the cache between kernels; else 0.
    main, near
        Bytes of one launch read from the main memory, and from the cache.
    cases
        Number of cases.
    """

    case: NDArray[np.intp]
    kernels: Work
    engines: dict[str, Array]
    copies: Array
    main: Array
    near: Array
    cases: int

    RATES = (
        "matmul", "vector", "bandwidth", "cache", "cache_bandwidth", "units", "clock", "power", "link", "array",
        "node", "bits", "each_cycle", "over_vector", "controller", "requantised", "team",
        "joining", "reading", "issuing", "link_of_many",
    )  # fmt: skip

    # Those that are facts of a twin and stand in a sum; a cache holds the data or does not.
    RECORDED = (
        "matmul", "vector", "bandwidth", "cache_bandwidth", "units", "clock", "power", "link", "link_of_many", "node",
    )  # fmt: skip

    @classmethod
    def of(cls, pairs: Sequence[tuple[MachineView | Snapshot, Work, float]]) -> CaseBatch:
        """Return a batch of the given cases.

        Parameters
        ----------
        pairs
            For each case: its machine (a view, or a share of one), its work, and the number of copies of the weights
            used in rotation where data that fit stay in the cache between kernels or repetitions, or 0.
        """
        lengths = [work.columns.shape[1] for _, work, _ in pairs]
        case = np.repeat(np.arange(len(pairs)), lengths)
        columns = (
            np.concatenate([work.columns for _, work, _ in pairs], axis=1) if pairs else np.zeros((len(Work.FIELDS), 0))
        )
        machines = [machine if isinstance(machine, Snapshot) else snapshot(machine) for machine, _, _ in pairs]
        read: dict[tuple[int, frozenset[str]], list[float]] = {}
        rows = []
        for machine, (_, work, kept) in zip(machines, pairs, strict=True):
            needed = work.rates_needed(bool(kept))
            key = id(machine), needed
            if key not in read:
                read[key] = _rates(machine, needed)
            rows.append(read[key])
        rates = np.array(rows).reshape(-1, len(cls.RATES))[case].T
        engines = dict(zip(cls.RATES, rates, strict=True))
        copies = np.array([kept for *_, kept in pairs], dtype=float)[case]
        return cls._of(case, Work(columns), engines, copies, len(pairs))

    @classmethod
    def _of(
        cls, case: NDArray[np.intp], kernels: Work, engines: dict[str, Array], copies: Array, cases: int
    ) -> CaseBatch:
        stays, room = copies > 0, HOLDS * engines["cache"]
        weights = kernels["weights"]
        totals = np.bincount(case, weights=weights * kernels["count"], minlength=cases)[case]
        other = kernels["moved"] - weights
        weights_near = stays & (copies * totals + other <= room)
        other_near = stays & (other <= room)
        near = np.where(weights_near, weights, 0.0) + np.where(other_near, other, 0.0)
        # Each later step of a recurrence reads the weights again, from the cache if all of them stay there.
        again = kernels["extra_steps"] * weights
        again_near = np.where(weights <= room, again, 0.0)
        main = kernels["moved"] - near + again - again_near
        return cls(case, kernels, engines, copies, main, near + again_near, cases)

    def of_cases(self, chosen: Sequence[int] | NDArray[np.intp]) -> CaseBatch:
        """Return a subset of the cases, each at most once, renumbered in the order chosen."""
        number = np.full(self.cases, -1)
        number[np.asarray(chosen, dtype=np.intp)] = np.arange(len(chosen))
        here = number[self.case] >= 0
        engines = {name: values[here] for name, values in self.engines.items()}
        kernels = Work(self.kernels.columns[:, here])
        return CaseBatch(
            number[self.case[here]], kernels, engines, self.copies[here], self.main[here], self.near[here], len(chosen)
        )

    def doing(self, **columns: Array) -> CaseBatch:
        """Return the same kernels with other columns, such as ``m``."""
        return self._of(self.case, self.kernels.changed(**columns), self.engines, self.copies, self.cases)

    def total(self, seconds: Array) -> Array:
        """Return, for each case, the sum of count times ``seconds`` over its kernels."""
        summed = np.bincount(self.case, weights=seconds * self.kernels["count"], minlength=self.cases)
        return summed.astype(np.float64, copy=False)


# Placeholder for a rate that no kernel of a case needs and that is therefore not read.
_IDLE = {"link": 0.0, "link_of_many": 0.0, "cache": 0.0, "controller": 0.0}


def _rates(machine: Snapshot, needed: frozenset[str]) -> list[float]:
    """Return the rates of a machine, reading only those that are needed.

    The process node matters where power is limited, and the clock where instructions depend on each other, which is
    never the case in a systolic array.
    """
    if machine.array > 1:
        needed -= {"clock"}
    own = machine.__dict__  # not through `__getattribute__`, one by one
    rates = {name: read_now(own[name]) if name in needed else _IDLE.get(name, 1.0) for name in CaseBatch.RATES}
    if "power" in needed and np.isfinite(rates["power"]):
        rates["node"] = machine.node
    if rates["controller"]:
        rates |= {"clock": machine.clock, "each_cycle": machine.each_cycle}
    return list(rates.values())
