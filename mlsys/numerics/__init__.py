"""Number formats bit by bit, block scaling, and N:M sparsity."""

from mlsys.numerics.blocks import BlockFormat, block_format
from mlsys.numerics.formats import FORMATS, FloatFormat, float_format
from mlsys.numerics.sparsity import SparseBlocks, compress, index_bits, pattern_count, prune, stored_fraction

__all__ = [
    "FORMATS",
    "BlockFormat",
    "FloatFormat",
    "SparseBlocks",
    "block_format",
    "compress",
    "float_format",
    "index_bits",
    "pattern_count",
    "prune",
    "stored_fraction",
]
