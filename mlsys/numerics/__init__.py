"""Number formats bit by bit, block scaling, N:M sparsity, and square roots by iteration."""

from mlsys.numerics.blocks import BlockFormat, block_format
from mlsys.numerics.formats import FORMATS, FloatFormat, float_format
from mlsys.numerics.sparsity import SparseBlocks, compress, index_bits, pattern_count, prune, stored_fraction
from mlsys.numerics.square_roots import (
    SQUARE_ROOT_GUESSES,
    heron_sqrt,
    inverse_sqrt_guess,
    newton_inverse_sqrt,
    square_root_errors,
)

__all__ = [
    "FORMATS",
    "SQUARE_ROOT_GUESSES",
    "BlockFormat",
    "FloatFormat",
    "SparseBlocks",
    "block_format",
    "compress",
    "float_format",
    "heron_sqrt",
    "index_bits",
    "inverse_sqrt_guess",
    "newton_inverse_sqrt",
    "pattern_count",
    "prune",
    "square_root_errors",
    "stored_fraction",
]
