"""Where a network's time goes on a device, and what there is to gain."""

from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.deprecated import analyse
from mlsys.models.analysis.model import analyze
from mlsys.models.analysis.parts import BottleneckGroup, OperatorTime, Repeated, WhatIf

__all__ = ["Analysis", "BottleneckGroup", "OperatorTime", "Repeated", "WhatIf", "analyse", "analyze"]
