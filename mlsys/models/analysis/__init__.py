"""Where a network's time goes on a device, and what there is to gain."""

from mlsys.models.analysis.answer import Analysis, BottleneckGroup, OperatorTime, Repeated, WhatIf
from mlsys.models.analysis.model import analyse

__all__ = ["Analysis", "BottleneckGroup", "OperatorTime", "Repeated", "WhatIf", "analyse"]
