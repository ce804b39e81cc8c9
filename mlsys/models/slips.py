"""Effects of common slips on a number: one fact read in several ways, and a plan with four slips at once."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.hardware import Device
from mlsys.units import Q_

__all__ = ["Step", "plan_slips"]


@dataclass(frozen=True)
class Step:
    """One correction of a plan: what is corrected, and the time after it, relative to the plan."""

    name: str
    factor: float


def plan_slips(device: Device, kept: float) -> tuple[Step, ...]:
    """Return how the time of a plan grows when its slips are corrected one after the other.

    The plan divides MACs, called FLOP, by the sparse FP8 peak; the program computes in dense BF16 and keeps up a share
    of that peak.

    Parameters
    ----------
    device
        A device with a sparse FP8 peak.
    kept
        Share of the dense BF16 peak that is kept up, above 0 and up to 1.

    Raises
    ------
    ArgumentError
        If the share is out of range, or the device has no such peak.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [f"{step.factor:.0f}" for step in plan_slips(Hardware.Cloud.H100, 0.5)]
    ['1', '2', '4', '8', '16']
    """
    if not 0 < kept <= 1:
        raise ArgumentError(f"plan_slips(): `kept` must lie above 0 and up to 1, got {kept}. Write e.g. kept=0.4")
    sparse, dense, used = device.peak("fp8", "2:4"), device.peak("fp8"), device.peak("bf16")
    names = ("as planned", "FLOPs, not MACs", "dense, not sparse", "BF16, not FP8", "kept up, not peak")
    ratios = (1.0, Q_(1, "MAC").m_as("FLOP"), (sparse / dense).m_as(""), (dense / used).m_as(""), 1 / kept)
    steps: list[Step] = []
    factor = 1.0
    for name, ratio in zip(names, ratios, strict=True):
        factor *= ratio
        steps.append(Step(name, factor))
    return tuple(steps)
