"""What every model answers with."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlsys.frozen import FrozenDict
from mlsys.units import Quantity

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """Time, what bounds it, and the parts that sum to it.

    Attributes
    ----------
    model, device, workload
        Names of what was asked.
    time
        Seconds.
    bound_by
        ``"compute"``, ``"memory"`` or ``"launch"``.
    parts
        Seconds by cause; they sum to ``time``.
    figures
        Named quantities worth reporting: intensity, ridge, attained rate, utilisation.
    assumptions
        What the model takes for granted, in words.
    children
        Results of the operators, where the workload is a network.
    """

    model: str
    device: str
    workload: str
    time: Quantity
    bound_by: str
    parts: FrozenDict[str, Quantity]
    figures: FrozenDict[str, Quantity]
    assumptions: tuple[str, ...]
    children: tuple[Result, ...] = field(default=(), repr=False)

    def explain(self) -> str:
        """Return the result in sentences and a small table, for people."""
        lines = [
            f"{self.workload} on {self.device}: {self.time.to_compact():.4g}, bound by {self.bound_by} ({self.model}).",
            "Time:",
        ]
        for name, part in self.parts.items():
            share = (part / self.time).m_as("") if self.time.magnitude else 0.0
            lines.append(f"  {name:<22} {part.to_compact():>12.4g}  {share:6.1%}")
        lines.append("Figures:")
        lines += [f"  {name:<22} {figure.to_compact():>12.4g}" for name, figure in self.figures.items()]
        lines.append("Assumptions:")
        lines += [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)
