"""Kernel fusion: which operators of a captured network run as one kernel.

Choices only; what they cost is for :mod:`mlsys.models` to say.
"""

from mlsys.mapping.fusion.folding import fold_batch_norm
from mlsys.mapping.fusion.fused import FusedWorkload, PatternTotal, as_kernels, as_loops, fuse
from mlsys.mapping.fusion.kernel import FusedOperator
from mlsys.mapping.fusion.match import FusionGroup, find_groups
from mlsys.mapping.fusion.pattern import DEFAULT_PATTERNS, PATTERNS, Pattern, PatternRegistry
from mlsys.mapping.fusion.running import as_run, has_convolutions, in_loops

__all__ = [
    "DEFAULT_PATTERNS",
    "PATTERNS",
    "FusedOperator",
    "FusedWorkload",
    "FusionGroup",
    "Pattern",
    "PatternRegistry",
    "PatternTotal",
    "as_kernels",
    "as_loops",
    "as_run",
    "find_groups",
    "fold_batch_norm",
    "fuse",
    "has_convolutions",
    "in_loops",
]
