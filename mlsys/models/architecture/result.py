"""The result of the architecture models: time, energy and bytes, in total and by operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.models.architecture.plan import TilePlan
from mlsys.models.record import amounts, facts_of
from mlsys.models.result import Result
from mlsys.provenance import Fact
from mlsys.units import Quantity


@dataclass(frozen=True)
class ArchitectureResult(Result):
    """A :class:`~mlsys.models.result.Result` with energy, bytes by level, and the plan.

    ``bound_by`` may also be ``"on-chip memory"`` and ``"power"``.

    Attributes
    ----------
    energy
        Energy of *compute*, *on-chip*, *off-chip* and *static*, J; they sum to ``spent``.
    moved
        Bytes that each memory level exchanges with the next inner one, main memory first.
    plan
        Tile plan of the operator; None for a network, whose children have their own.
    """

    energy: FrozenDict[str, Quantity] = field(kw_only=True)
    moved: FrozenDict[str, Quantity] = field(kw_only=True)
    plan: TilePlan | None = field(default=None, kw_only=True, repr=False)

    @property
    def spent(self) -> Quantity:
        """Total energy, J."""
        return self.figures["energy"]

    @property
    def power(self) -> Quantity:
        """Average power, W."""
        return self.figures["average power"]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact that the result depends on, without duplicates."""
        return tuple(dict.fromkeys((*super().facts, *facts_of(self.energy, self.moved))))

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, with energy, bytes and the tile plan."""
        plan = {} if self.plan is None else {"plan": self.plan.record()}
        return {**super().record(), "energy": amounts(self.energy), "moved": amounts(self.moved), **plan}

    def explain(self) -> str:
        """Return the result as readable text and tables."""
        lines = [super().explain(), "Energy:"]
        whole = self.spent
        for name, part in self.energy.items():
            share = float((part / whole).m_as("")) if whole.magnitude else 0.0
            lines.append(f"  {name:<22} {part.to_compact():>12.4g}  {share:6.1%}")
        lines.append("Bytes from each level:")
        lines += [f"  {name:<22} {part.to_compact():>12.4g}" for name, part in self.moved.items()]
        if self.plan is not None:
            lines.append(f"Plan: {self.plan!r}")
        return "\n".join(lines)

    def named(self, workload: str) -> ArchitectureResult:
        """Return the result renamed for an identical operator."""
        if workload == self.workload:
            return self
        copied: ArchitectureResult = object.__new__(ArchitectureResult)
        copied.__dict__.update(self.__dict__)
        copied.__dict__["workload"] = workload
        return copied
