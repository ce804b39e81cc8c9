"""Measure a network with several backends, store every sample, and attribute its time to causes.

Importing this package loads no backend; measuring does.
"""

from mlsys.explain.attribution import CAUSES, Attribution, Cause, LayerShare, attribute, attribute_times
from mlsys.explain.doubts import LIMITS, Limits, doubts
from mlsys.explain.log import Cold, LayerWork, Log, Sample, read_log
from mlsys.explain.stored import stored_logs

__all__ = [
    "CAUSES",
    "LIMITS",
    "Attribution",
    "Cause",
    "Cold",
    "LayerShare",
    "LayerWork",
    "Limits",
    "Log",
    "Sample",
    "attribute",
    "attribute_times",
    "doubts",
    "read_log",
    "stored_logs",
]
