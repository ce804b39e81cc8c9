"""Tiling: traffic of blocked matrix products and convolutions, and the largest tile that fits a memory."""

from mlsys.models.tiling.capacity import (
    gemm_lower_bound,
    gemm_tile_words,
    largest_accumulator_tile,
    largest_square_tile,
    tile_sizes,
)
from mlsys.models.tiling.model import Tiling, tiled_gemm
from mlsys.models.tiling.traffic import ConvTile, Traffic, conv2d_traffic, gemm_traffic

__all__ = [
    "ConvTile",
    "Tiling",
    "Traffic",
    "conv2d_traffic",
    "gemm_lower_bound",
    "gemm_tile_words",
    "gemm_traffic",
    "largest_accumulator_tile",
    "largest_square_tile",
    "tile_sizes",
    "tiled_gemm",
]
