"""The old name of :func:`mlsys.models.analysis.analyze`, for one release."""

import warnings
from typing import Any

from mlsys.hardware.device import Device
from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.model import analyze
from mlsys.workloads.operator import Network


def analyse(device: Device, network: Network, *, setting: str | None = None, **options: Any) -> Analysis:
    """Return what ``analyze(device, network, software=setting)`` returns; deprecated.

    .. deprecated:: 0.2
       It used to run every operator of a network that was not fused as a kernel of its own: give the network as
       ``mapping`` for that.
    """
    warnings.warn(
        "analyse() is deprecated and goes with the next release: write analyze(), with `software` for `setting`. "
        "Both fuse operators as the software does; analyze(device, network, network) fuses none",
        DeprecationWarning,
        stacklevel=2,
    )
    return analyze(device, network, software=setting, **options)
