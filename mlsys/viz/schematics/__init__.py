"""Schematics of mechanisms, drawn from the models that count them."""

from mlsys.viz.schematics.batching import batch_slots, cache_blocks, padded_rows
from mlsys.viz.schematics.copy_paths import copy_paths
from mlsys.viz.schematics.dram_row import dram_rows
from mlsys.viz.schematics.execution import execution_models, warp_divergence
from mlsys.viz.schematics.fusion_stages import fusion_stages
from mlsys.viz.schematics.launches import launches
from mlsys.viz.schematics.loop_nest import loop_nest
from mlsys.viz.schematics.loop_reuse import loop_reuse
from mlsys.viz.schematics.message_rounds import message_rounds
from mlsys.viz.schematics.parallel_split import parallel_split
from mlsys.viz.schematics.quantity_chain import quantity_chain
from mlsys.viz.schematics.requests_in_flight import requests_in_flight
from mlsys.viz.schematics.reuse_window import reuse_window
from mlsys.viz.schematics.ring_steps import ring_steps
from mlsys.viz.schematics.row_stationary import row_stationary_grid
from mlsys.viz.schematics.shadows import product_shadows
from mlsys.viz.schematics.stationary import stationary_tiles
from mlsys.viz.schematics.system_map import system_map
from mlsys.viz.schematics.tensor_path import tensor_path
from mlsys.viz.schematics.warp_sectors import warp_sectors

__all__ = [
    "batch_slots",
    "cache_blocks",
    "copy_paths",
    "dram_rows",
    "execution_models",
    "fusion_stages",
    "launches",
    "loop_nest",
    "loop_reuse",
    "message_rounds",
    "padded_rows",
    "parallel_split",
    "product_shadows",
    "quantity_chain",
    "requests_in_flight",
    "reuse_window",
    "ring_steps",
    "row_stationary_grid",
    "stationary_tiles",
    "system_map",
    "tensor_path",
    "warp_divergence",
    "warp_sectors",
]
