"""Schematics of mechanisms, drawn from the models that count them."""

from mlsys.viz.schematics.copy_paths import copy_paths
from mlsys.viz.schematics.dram_row import dram_rows
from mlsys.viz.schematics.launches import launches
from mlsys.viz.schematics.loop_nest import loop_nest
from mlsys.viz.schematics.ring_steps import ring_steps
from mlsys.viz.schematics.row_stationary import row_stationary_grid
from mlsys.viz.schematics.system_map import system_map
from mlsys.viz.schematics.tensor_path import tensor_path
from mlsys.viz.schematics.warp_sectors import warp_sectors

__all__ = [
    "copy_paths",
    "dram_rows",
    "launches",
    "loop_nest",
    "ring_steps",
    "row_stationary_grid",
    "system_map",
    "tensor_path",
    "warp_sectors",
]
