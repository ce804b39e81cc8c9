"""Caches: misses of least-recently-used caches on the access traces of real loop nests.

A trace is the sequence of addresses that a loop nest accesses; a cache has a capacity, lines
and ways. :func:`simulate` runs a trace through caches; :func:`miss_curve` gives the misses of
*every* capacity of a fully associative cache in one pass.
"""

from mlsys.models.cache.curve import MissCurve, miss_curve
from mlsys.models.cache.geometry import Cache
from mlsys.models.cache.nests import conv2d_trace, gathered_trace, gemm_trace, strided_trace
from mlsys.models.cache.simulate import CacheResult, LevelCounts, simulate
from mlsys.models.cache.trace import MOST_ACCESSES, Trace, trace_of

__all__ = [
    "MOST_ACCESSES",
    "Cache",
    "CacheResult",
    "LevelCounts",
    "MissCurve",
    "Trace",
    "conv2d_trace",
    "gathered_trace",
    "gemm_trace",
    "miss_curve",
    "simulate",
    "strided_trace",
    "trace_of",
]
