"""Figures: functions that draw into an Axes and return it."""

from mlsys.viz.amdahl import scaling_laws, speedup_map, time_bars
from mlsys.viz.architecture import bytes_by_level, bytes_by_onchip, energy_split, latency_energy, tiles_by_footprint
from mlsys.viz.collectives import all_reduce_times, bus_bandwidth, copy_timeline
from mlsys.viz.compiler import kernel_bars, pass_waterfall, speedup_scatter
from mlsys.viz.concept_map import concept_map
from mlsys.viz.economics import (
    cost_by_batch,
    parts_by_place,
    quotations_by_provider,
    rent_or_buy,
    stacked_parts,
    tornado_bars,
    value_for_money,
)
from mlsys.viz.feasibility import memory_by_sequence, step_time_by_batch
from mlsys.viz.fusion import bytes_by_pattern, intensity_shift, memory_passes, speedup_by_chain
from mlsys.viz.history import growth_lines, power_density, rate_steps, timeline
from mlsys.viz.interconnect import attained_bandwidth, bandwidth_taper, ring_time
from mlsys.viz.journey import journey_energy, journey_time, price_by_passes
from mlsys.viz.layers import layer_panels, layers_under_roof, shares_by_kind, time_strip
from mlsys.viz.layout import layout_strip
from mlsys.viz.mapping import mapping_landscape, order_counts, words_by_dataflow, words_by_rows
from mlsys.viz.memory import access_energies, bandwidth_by_bytes_in_flight, level_map, ridge_by_year
from mlsys.viz.mistakes import error_factors
from mlsys.viz.numerics import bit_fields, padding_steps, sparse_blocks, value_spacing
from mlsys.viz.primitives import instruction_counts, square_root_convergence, throughput_ladder
from mlsys.viz.roofline import device_map, intensity_by_batch, layer_scatter, roof_ceilings, roofs
from mlsys.viz.schedule import live_chart, memory_figure, memory_map, stream_gantt
from mlsys.viz.schematics import (
    batch_slots,
    cache_blocks,
    copy_paths,
    dram_rows,
    execution_models,
    fusion_stages,
    launches,
    loop_nest,
    loop_reuse,
    message_rounds,
    padded_rows,
    parallel_split,
    product_shadows,
    quantity_chain,
    ring_steps,
    row_stationary_grid,
    stationary_tiles,
    system_map,
    tensor_path,
    warp_divergence,
    warp_sectors,
)
from mlsys.viz.serving import (
    goodput_by_load,
    latency_by_load,
    latency_distribution,
    speedup_by_draft,
    waits_by_load,
)
from mlsys.viz.style import COLORS, apply_style, setup_plot
from mlsys.viz.sweep import cost_front, rate_map, speed_ratio_by_batch
from mlsys.viz.systolic import array_frame, energy_per_mac_levels, utilisation_teeth
from mlsys.viz.systolic_player import SystolicAnimation
from mlsys.viz.tiling import sectors_by_stride, tile_cache_map, traffic_by_tile
from mlsys.viz.training import gradient_buckets, pipeline_timeline, scaling_panels, step_parts, training_memory

__all__ = [
    "COLORS",
    "SystolicAnimation",
    "access_energies",
    "all_reduce_times",
    "apply_style",
    "array_frame",
    "attained_bandwidth",
    "bandwidth_by_bytes_in_flight",
    "bandwidth_taper",
    "batch_slots",
    "bit_fields",
    "bus_bandwidth",
    "bytes_by_level",
    "bytes_by_onchip",
    "bytes_by_pattern",
    "cache_blocks",
    "concept_map",
    "copy_paths",
    "copy_timeline",
    "cost_by_batch",
    "cost_front",
    "device_map",
    "dram_rows",
    "energy_per_mac_levels",
    "energy_split",
    "error_factors",
    "execution_models",
    "fusion_stages",
    "goodput_by_load",
    "gradient_buckets",
    "growth_lines",
    "instruction_counts",
    "intensity_by_batch",
    "intensity_shift",
    "journey_energy",
    "journey_time",
    "kernel_bars",
    "latency_by_load",
    "latency_distribution",
    "latency_energy",
    "launches",
    "layer_panels",
    "layer_scatter",
    "layers_under_roof",
    "layout_strip",
    "level_map",
    "live_chart",
    "loop_nest",
    "loop_reuse",
    "mapping_landscape",
    "memory_by_sequence",
    "memory_figure",
    "memory_map",
    "memory_passes",
    "message_rounds",
    "order_counts",
    "padded_rows",
    "padding_steps",
    "parallel_split",
    "parts_by_place",
    "pass_waterfall",
    "pipeline_timeline",
    "power_density",
    "price_by_passes",
    "product_shadows",
    "quantity_chain",
    "quotations_by_provider",
    "rate_map",
    "rate_steps",
    "rent_or_buy",
    "ridge_by_year",
    "ring_steps",
    "ring_time",
    "roof_ceilings",
    "roofs",
    "row_stationary_grid",
    "scaling_laws",
    "scaling_panels",
    "sectors_by_stride",
    "setup_plot",
    "shares_by_kind",
    "sparse_blocks",
    "speed_ratio_by_batch",
    "speedup_by_chain",
    "speedup_by_draft",
    "speedup_map",
    "speedup_scatter",
    "square_root_convergence",
    "stacked_parts",
    "stationary_tiles",
    "step_parts",
    "step_time_by_batch",
    "stream_gantt",
    "system_map",
    "tensor_path",
    "throughput_ladder",
    "tile_cache_map",
    "tiles_by_footprint",
    "time_bars",
    "time_strip",
    "timeline",
    "tornado_bars",
    "traffic_by_tile",
    "training_memory",
    "utilisation_teeth",
    "value_for_money",
    "value_spacing",
    "waits_by_load",
    "warp_divergence",
    "warp_sectors",
    "words_by_dataflow",
    "words_by_rows",
]
