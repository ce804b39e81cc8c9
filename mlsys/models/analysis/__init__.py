"""Bottleneck analysis: the time of a network on a device, its limits, and possible gains."""

from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.deprecated import analyse
from mlsys.models.analysis.model import analyze
from mlsys.models.analysis.parts import BottleneckGroup, OperatorTime, Repeated, WhatIf

__all__ = ["Analysis", "BottleneckGroup", "OperatorTime", "Repeated", "WhatIf", "analyse", "analyze"]
