"""Figures: functions that draw into an Axes and return it."""

from mlsys.viz.amdahl import scaling_laws, speedup_map, time_bars
from mlsys.viz.architecture import bytes_by_level, bytes_by_onchip, energy_split, latency_energy, tiles_by_footprint
from mlsys.viz.collectives import bus_bandwidth, copy_timeline
from mlsys.viz.compiler import kernel_bars, pass_waterfall, speedup_scatter
from mlsys.viz.economics import rent_or_buy, tornado_bars
from mlsys.viz.fusion import bytes_by_pattern, intensity_shift, memory_passes, speedup_by_chain
from mlsys.viz.history import growth_lines, timeline
from mlsys.viz.layers import layer_panels, layers_under_roof, shares_by_kind, time_strip
from mlsys.viz.layout import layout_strip
from mlsys.viz.mapping import mapping_landscape, order_counts, words_by_dataflow
from mlsys.viz.memory import access_energies, bandwidth_by_bytes_in_flight, level_map, ridge_by_year
from mlsys.viz.mistakes import error_factors
from mlsys.viz.numerics import bit_fields, padding_steps, sparse_blocks, value_spacing
from mlsys.viz.roofline import device_map, intensity_by_batch, layer_scatter, roofs
from mlsys.viz.schedule import live_chart, memory_figure, memory_map, stream_gantt
from mlsys.viz.schematics import dram_rows, launches, loop_nest, row_stationary_grid, system_map, warp_sectors
from mlsys.viz.serving import latency_by_load, request_gantt
from mlsys.viz.style import COLORS, apply_style, setup_plot
from mlsys.viz.sweep import cost_front, rate_map
from mlsys.viz.systolic import array_frame, energy_per_mac_levels, utilisation_teeth
from mlsys.viz.systolic_player import SystolicAnimation
from mlsys.viz.tiling import sectors_by_stride, tile_cache_map, traffic_by_tile
from mlsys.viz.training import pipeline_timeline, training_memory

__all__ = [
    "COLORS",
    "SystolicAnimation",
    "access_energies",
    "apply_style",
    "array_frame",
    "bandwidth_by_bytes_in_flight",
    "bit_fields",
    "bus_bandwidth",
    "bytes_by_level",
    "bytes_by_onchip",
    "bytes_by_pattern",
    "copy_timeline",
    "cost_front",
    "device_map",
    "dram_rows",
    "energy_per_mac_levels",
    "energy_split",
    "error_factors",
    "growth_lines",
    "intensity_by_batch",
    "intensity_shift",
    "kernel_bars",
    "latency_by_load",
    "latency_energy",
    "launches",
    "layer_panels",
    "layer_scatter",
    "layers_under_roof",
    "layout_strip",
    "level_map",
    "live_chart",
    "loop_nest",
    "mapping_landscape",
    "memory_figure",
    "memory_map",
    "memory_passes",
    "order_counts",
    "padding_steps",
    "pass_waterfall",
    "pipeline_timeline",
    "rate_map",
    "rent_or_buy",
    "request_gantt",
    "ridge_by_year",
    "roofs",
    "row_stationary_grid",
    "scaling_laws",
    "sectors_by_stride",
    "setup_plot",
    "shares_by_kind",
    "sparse_blocks",
    "speedup_by_chain",
    "speedup_map",
    "speedup_scatter",
    "stream_gantt",
    "system_map",
    "tile_cache_map",
    "tiles_by_footprint",
    "time_bars",
    "time_strip",
    "timeline",
    "tornado_bars",
    "traffic_by_tile",
    "training_memory",
    "utilisation_teeth",
    "value_spacing",
    "warp_sectors",
    "words_by_dataflow",
]
