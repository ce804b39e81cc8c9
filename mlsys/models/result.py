"""``Result``: the answer of every model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.models.record import VERSION, amounts, facts_behind, plain_amount
from mlsys.provenance import Fact
from mlsys.units import Q_, Quantity


@dataclass(frozen=True)
class Result:
    """Time, the cause that bounds it, and the parts that sum to it.

    Attributes
    ----------
    model, device, workload
        Names of the model, the device and the workload.
    time
        Seconds.
    bound_by
        ``"compute"``, ``"memory"`` or ``"launch"``.
    parts
        Seconds by cause; they sum to ``time``.
    figures
        Named quantities worth reporting: intensity, ridge, attained rate, utilisation.
    assumptions
        Assumptions of the model, in words.
    children
        Results of the operators, if the workload is a network.
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

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """80 % interval of the time, s, without an upper end: these models omit what slows a real machine down.

        A lower bound of an ideal machine says nothing about the upper end; the estimate of
        :func:`mlsys.models.analysis.analyze`, which is fitted to measurements, has one.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> from mlsys.models import roofline
        >>> from mlsys.workloads import dense
        >>> low, high = roofline(Hardware.Cloud.A100, dense(32, 2048, 2048)).range
        >>> print(f"{low:.3~g} to {high:~}")
        4.24e-06 s to inf s
        """
        return self.time, Q_(math.inf, "s")

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates: those its model read and those of its quantities."""
        return facts_behind(self, self.time, self.parts, self.figures)

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON: numbers with their units, and the names of its facts.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> from mlsys.models import roofline
        >>> from mlsys.workloads import dense
        >>> record = roofline(Hardware.Cloud.A100, dense(32, 2048, 2048)).record()
        >>> record["time"]["unit"], record["facts"]
        ('s', ['A100_80GB/peaks/fp16/matrix/dense', 'A100_80GB/memory/HBM/bandwidth'])
        """
        return {
            "record": VERSION,
            "model": self.model,
            "device": self.device,
            "workload": self.workload,
            "bound_by": self.bound_by,
            "time": plain_amount(self.time),
            "parts": amounts(self.parts),
            "figures": amounts(self.figures),
            "assumptions": list(self.assumptions),
            "facts": [fact.name for fact in self.facts],
            "children": [child.record() for child in self.children],
        }

    def explain(self) -> str:
        """Return the result as sentences and a small table."""
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


class ResultMembers:
    """Members shared by answers that contain a ``result``: time, bound, range, parts and facts."""

    result: Any

    @property
    def time(self) -> Quantity:
        """Time of the whole, s."""
        time: Quantity = self.result.time
        return time

    @property
    def bound_by(self) -> str:
        """The cause that bounds the time, such as ``"compute"`` or ``"memory"``."""
        return str(self.result.bound_by)

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """80 % interval of the time, s."""
        low, high = self.result.range
        return low, high

    @property
    def parts(self) -> FrozenDict[str, Quantity]:
        """Seconds by cause; they sum to ``time``."""
        parts: FrozenDict[str, Quantity] = self.result.parts
        return parts

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates."""
        return tuple(self.result.facts)
