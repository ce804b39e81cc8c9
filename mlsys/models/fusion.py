"""Gain of operator fusion: a network's roofline bound before and after."""

from dataclasses import dataclass
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.mapping.fusion import FusedWorkload
from mlsys.models.result import Result, ResultMembers
from mlsys.models.roofline import roofline
from mlsys.provenance import Fact, traced
from mlsys.units import Quantity


@dataclass(frozen=True)
class FusionGain(ResultMembers):
    """The bound of a network before and after fusion.

    Attributes
    ----------
    unfused, fused
        Least times with their parts; operators are their children.
    kernels
        Number of kernels before and after.
    saved
        Bytes that are no longer moved.
    """

    unfused: Result
    fused: Result
    kernels: tuple[int, int]
    saved: Quantity

    @property
    def result(self) -> Result:
        """The result of the fused network."""
        return self.fused

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the two times depend on, without duplicates."""
        return tuple(dict.fromkeys((*self.unfused.facts, *self.fused.facts)))

    def record(self) -> dict[str, Any]:
        """Return the gain as plain data, for JSON: both results, and the savings of fusion."""
        return {
            "unfused": self.unfused.record(),
            "fused": self.fused.record(),
            "kernels": list(self.kernels),
            "saved_bytes": self.saved.m_as("byte"),
            "speedup": self.speedup,
        }

    @property
    def speedup(self) -> float:
        """Ratio of the least time before fusion to that after."""
        return float((self.unfused.time / self.fused.time).m_as(""))

    def explain(self) -> str:
        """Return the effect of fusion, as text."""
        before, after = self.kernels
        lines = [
            f"{self.fused.workload} on {self.fused.device}: {self.unfused.time.to_compact():.4g} in {before} kernels, "
            f"{self.fused.time.to_compact():.4g} in {after}: {self.speedup:.3g}× as fast "
            f"({self.saved.to_compact():.4g} not moved)"
        ]
        for name, part in self.unfused.parts.items():
            lines.append(f"  {name:<16} {part.to_compact():>12.4g} → {self.fused.parts[name].to_compact():.4g}")
        lines += [f"  - {assumption}" for assumption in self.fused.assumptions]
        return "\n".join(lines)


@traced
def fusion_gain(
    device: Device,
    workload: FusedWorkload,
    mapping: Mapping | None = None,
    *,
    launch_overhead: Quantity | None = None,
) -> FusionGain:
    """Return the least time of a network before and after fusion, by the roofline of each kernel.

    Parameters
    ----------
    device
        A device, such as ``Hardware.Cloud.A100``.
    workload
        A fused network; it is compared with the network that it was made from.
    mapping
        As for :func:`mlsys.models.roofline`.
    launch_overhead
        Time added for each kernel, s; zero by default.

    Raises
    ------
    ArgumentError
        If the network was not fused.
    UnknownNameError
        If the device lacks the precision, unit or level.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.mapping.fusion import fuse
    >>> from mlsys.workloads import load
    >>> gain = fusion_gain(Hardware.Cloud.A100, fuse(load("resnet50", precision="fp16", batch=32)))
    >>> print(gain.kernels, f"{gain.speedup:.2f}")
    (174, 56) 2.35
    """
    if not isinstance(workload, FusedWorkload):
        raise ArgumentError(
            f"fusion_gain(): `workload` must be a fused network, got {type(workload).__name__}. "
            "Write e.g. workload=fuse(Workload.from_torch(module, inputs))"
        )
    unfused = roofline(device, workload.unfused, mapping, launch_overhead=launch_overhead)
    fused = roofline(device, workload, mapping, launch_overhead=launch_overhead)
    return FusionGain(unfused, fused, (len(workload.unfused), workload.kernels), workload.saved)
