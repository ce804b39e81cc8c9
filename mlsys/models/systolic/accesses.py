"""What is counted of a product on an array: cycles, utilisation, and words by operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsys.choices import Convention
from mlsys.models.systolic.folds import Folds


@dataclass(frozen=True)
class Accesses:
    """Words read and written, by operand; sums that were written too early are read again."""

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
        """All words moved."""
        return self.reads + self.ofmap_writes

    def times(self, copies: Any) -> Accesses:
        """Return the words of several equal products."""
        return Accesses(
            self.ifmap_reads * copies, self.filter_reads * copies, self.ofmap_writes * copies, self.ofmap_reads * copies
        )


@dataclass(frozen=True)
class ArrayCounts:
    """What a product costs on an array; every number may be an array of many cases.

    Attributes
    ----------
    convention
        Who counts: ``"physical"`` or ``"scalesim"``.
    folds
        How the product was cut.
    cycles
        Cycles without stalls.
    macs
        Useful multiply-accumulates.
    utilisation
        Share of the array's multiply-accumulates in ``cycles`` that are useful.
    mapping_efficiency
        Share of the array that holds useful work, mean over the folds.
    compute_utilisation
        The same over the cycles in which a fold streams; None where folds follow each other
        directly (``fold_overlap="full"``): no cycle belongs to one fold then.
    sram, dram
        Words moved between array and buffers, and between buffers and DRAM.
    register_writes
        Words latched in registers of the array, or None where the convention has none.
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
