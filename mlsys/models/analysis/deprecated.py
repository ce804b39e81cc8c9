"""The deprecated name of :func:`mlsys.models.analysis.analyze`, kept for one release."""

import warnings
from typing import Any

from mlsys.hardware.device import Device
from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.model import analyze
from mlsys.workloads.operator import Network


def analyse(device: Device, network: Network, *, setting: str | None = None, **options: Any) -> Analysis:
    """Return ``analyze(device, network, software=setting)``; deprecated.

    .. deprecated:: 0.2
       It ran every operator of an unfused network as a separate kernel: pass the network as ``mapping`` for that.
    """
    warnings.warn(
        "analyse() is deprecated and will be removed in the next release: write analyze(), with `software` instead of "
        "`setting`. Both fuse operators as the software does; analyze(device, network, network) disables fusion",
        DeprecationWarning,
        stacklevel=2,
    )
    return analyze(device, network, software=setting, **options)
