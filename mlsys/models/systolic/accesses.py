"""Counts of a matrix product on an array: cycles, utilisation, and words moved by operand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlsys.choices import Convention
from mlsys.models.record import with_units
from mlsys.models.systolic.folds import Folds


@dataclass(frozen=True)
class Accesses:
    """Words read and written, by operand; partial sums that are written before they are complete are read again."""

    ifmap_reads: Any
    filter_reads: Any
    ofmap_writes: Any
    ofmap_reads: Any

    @property
    def reads(self) -> Any:
        """Words read."""
        return self.ifmap_reads + self.filter_reads + self.ofmap_reads

    @property
    def total(self) -> Any:
        """Words moved, reads and writes."""
        return self.reads + self.ofmap_writes

    def record(self, level: str) -> dict[str, Any]:
        """Return the words of a memory level as plain data."""
        return {
            f"{level}_ifmap_reads": self.ifmap_reads,
            f"{level}_filter_reads": self.filter_reads,
            f"{level}_ofmap_writes": self.ofmap_writes,
            f"{level}_ofmap_reads": self.ofmap_reads,
        }

    def times(self, copies: Any) -> Accesses:
        """Return the words of ``copies`` equal products."""
        return Accesses(
            self.ifmap_reads * copies, self.filter_reads * copies, self.ofmap_writes * copies, self.ofmap_reads * copies
        )


@dataclass(frozen=True)
class ArrayCounts:
    """Cycles and accesses of a matrix product on an array; every number may be a NumPy array of cases.

    Attributes
    ----------
    convention
        Counting convention, ``"physical"`` or ``"scalesim"``.
    folds
        Folds into which the product is cut.
    cycles
        Cycles without stalls.
    macs
        Useful multiply-accumulates.
    utilisation
        Share of the array's multiply-accumulates in ``cycles`` that are useful.
    mapping_efficiency
        Share of the processing elements with useful work, averaged over the folds.
    compute_utilisation
        The same over the cycles in which a fold streams; None with ``fold_overlap="full"``,
        where a cycle may belong to two folds.
    sram, dram
        Words moved between array and buffers, and between buffers and DRAM.
    register_writes
        Words latched in registers of the array, or None if the convention does not count them.
    """

    convention: Convention
    folds: Folds
    cycles: Any
    macs: Any
    utilisation: Any
    mapping_efficiency: Any
    compute_utilisation: Any
    sram: Accesses
    dram: Accesses
    register_writes: Any = None

    def record(self) -> dict[str, Any]:
        """Return sizes, cycles, shares and words of one product, as ``mlsys systolic --json`` prints them."""
        return with_units(self.row())

    def row(self) -> dict[str, Any]:
        """Return the sizes of product and array, and :meth:`figures`, as one row of plain data."""
        cut = self.folds
        array = {"array_rows": cut.array_rows, "array_cols": cut.array_columns, "dataflow": cut.dataflow}
        return {"name": f"{cut.m}x{cut.n}x{cut.k}", "M": cut.m, "N": cut.n, "K": cut.k, **array, **self.figures()}

    def figures(self) -> dict[str, Any]:
        """Return cycles, shares in percent and words, as plain data.

        SCALE-Sim does not count partial sums that are read again, so its figures have no ``ofmap_reads``.
        """
        shares = {
            "overall_util_pct": _percent(self.utilisation),
            "mapping_eff_pct": _percent(self.mapping_efficiency),
        }
        if self.compute_utilisation is not None:
            shares["compute_util_pct"] = _percent(self.compute_utilisation)
        words = {**self.sram.record("sram"), **self.dram.record("dram")}
        counted = {
            name: count
            for name, count in words.items()
            if self.convention == "physical" or not name.endswith("ofmap_reads")
        }
        return {"total_cycles": self.cycles, **shares, **counted}


def _percent(share: float) -> float | str:
    return "" if math.isnan(share) else 100 * share
