"""Many cases side by side, as columns of kernels and of the rates of the machines that run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.view import MachineView
from mlsys.models.calibrated.machine import Snapshot, snapshot
from mlsys.models.calibrated.work import ATTENTION, COLLECTIVE, MATMUL, PAIR, Work

Array = NDArray[np.float64]

# A cache holds what is used again when that fills no more than this part of it.
HOLDS = 0.7


@dataclass(frozen=True)
class Stack:
    """Many cases side by side: one column for each kernel, and whose it is.

    Attributes
    ----------
    case
        Index of the case that a kernel belongs to.
    kernels
        Columns of :class:`Work`, all cases after one another.
    engines
        Rates of the engine that runs each kernel, one row for each field of :class:`Snapshot` but its names.
    main, near
        Bytes of one launch that come from the main memory, and from the cache.
    cases
        How many.
    """

    case: NDArray[np.intp]
    kernels: Work
    engines: dict[str, Array]
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
    def of(cls, pairs: Sequence[tuple[MachineView | Snapshot, Work, float]]) -> Stack:
        """Return the cases side by side.

        Parameters
        ----------
        pairs
            For each case its machine (a view, or a share of one), its work, and whether data that fit stay in the
            cache from one kernel, or one repetition, to the next: how many copies of the weights take turns, or 0.
        """
        lengths = [work.columns.shape[1] for _, work, _ in pairs]
        case = np.repeat(np.arange(len(pairs)), lengths)
        columns = (
            np.concatenate([work.columns for _, work, _ in pairs], axis=1) if pairs else np.zeros((len(Work.FIELDS), 0))
        )
        machines = [machine if isinstance(machine, Snapshot) else snapshot(machine) for machine, _, _ in pairs]
        read: dict[tuple[int, frozenset[str]], list[float]] = {}
        rows = []
        asks: dict[tuple[int, float], frozenset[str]] = {}  # one work may run on hundreds of machines
        held: dict[int, float] = {}
        for machine, (_, work, kept) in zip(machines, pairs, strict=True):
            asked = id(work), kept
            if asked not in asks:
                asks[asked], held[id(work)] = _needed(work, kept), work.weights
            key = id(machine), asks[asked]
            if key not in read:
                read[key] = _rates(machine, key[1])
            rows.append(read[key])
        rates = np.array(rows).reshape(-1, len(cls.RATES))
        engines = {name: rates[case, index] for index, name in enumerate(cls.RATES)}
        kernels = Work(columns)
        copies = np.array([kept for _, _, kept in pairs], dtype=float)[case]
        stays = copies > 0
        totals = np.array([held[id(work)] for _, work, _ in pairs])[case]
        room = HOLDS * engines["cache"]
        weights = kernels["weights"]
        other = kernels["moved"] - weights
        weights_near = stays & (copies * totals + other <= room)
        other_near = stays & (other <= room)
        near = np.where(weights_near, weights, 0.0) + np.where(other_near, other, 0.0)
        # Each further step of a recurrence reads the weights again, from the cache where all of them stay there.
        again = kernels["further"] * weights
        again_near = np.where(weights <= room, again, 0.0)
        main = kernels["moved"] - near + again - again_near
        return cls(case, kernels, engines, main, near + again_near, len(pairs))

    def total(self, seconds: Array) -> Array:
        """Return, for each case, the sum over its kernels of count times ``seconds``."""
        summed = np.bincount(self.case, weights=seconds * self.kernels["count"], minlength=self.cases)
        return summed.astype(np.float64, copy=False)


# A rate that no kernel of a case asks for is not read: this stands in its place.
_IDLE = {"link": 0.0, "link_of_many": 0.0, "cache": 0.0, "controller": 0.0}


def _needed(work: Work, stays: float) -> frozenset[str]:
    """Return the rates that the time of some kernels, or its bounds, are computed from."""
    kinds = set(work["kind"].tolist())
    needed = {"matmul", "vector", "bandwidth", "cache_bandwidth", "units", "array", "bits", "controller"}
    needed |= {"requantised", "team", "joining", "reading", "issuing"}
    needed |= {"cache"} if stays or work["further"].any() else set()
    needed |= {"power", "over_vector"} if kinds & {MATMUL, ATTENTION} else set()
    needed |= {"clock", "each_cycle"} if MATMUL in kinds else set()
    peers = work["peers"][work["kind"] == COLLECTIVE]
    needed |= {"link"} if (peers <= PAIR).any() else set()
    needed |= {"link_of_many"} if (peers > PAIR).any() else set()
    return frozenset(needed)


def _rates(machine: Snapshot, needed: frozenset[str]) -> list[float]:
    """Return the rates of a machine, those read that are needed.

    A process matters where power is limited, and a clock where instructions wait for each other, as in no systolic
    array.
    """
    if machine.array > 1:
        needed -= {"clock"}
    rates = {name: getattr(machine, name) if name in needed else _IDLE.get(name, 1.0) for name in Stack.RATES}
    if "power" in needed and np.isfinite(rates["power"]):
        rates["node"] = machine.node
    if rates["controller"]:
        rates |= {"clock": machine.clock, "each_cycle": machine.each_cycle}
    return list(rates.values())
