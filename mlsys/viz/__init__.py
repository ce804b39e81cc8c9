"""Pictures: functions that take an Axes, draw, and give it back."""

from mlsys.viz.amdahl import scaling_laws, speedup_map, time_bars
from mlsys.viz.layers import layer_panels, layers_under_roof, shares_by_kind, time_strip
from mlsys.viz.mapping import mapping_landscape, order_counts, words_by_dataflow
from mlsys.viz.memory import access_energies, bandwidth_by_bytes_in_flight, level_map, ridge_by_year
from mlsys.viz.roofline import device_map, intensity_by_batch, layer_scatter, roofs
from mlsys.viz.style import COLORS, apply_style, setup_plot
from mlsys.viz.systolic import SystolicAnimation, array_frame, energy_per_mac_bars, utilisation_teeth
from mlsys.viz.tiling import sectors_by_stride, tile_cache_map, traffic_by_tile
from mlsys.viz.validation import error_bars, measured_against_predicted, validation_panels

__all__ = [
    "COLORS",
    "SystolicAnimation",
    "access_energies",
    "apply_style",
    "array_frame",
    "bandwidth_by_bytes_in_flight",
    "device_map",
    "energy_per_mac_bars",
    "error_bars",
    "intensity_by_batch",
    "layer_panels",
    "layer_scatter",
    "layers_under_roof",
    "level_map",
    "mapping_landscape",
    "measured_against_predicted",
    "order_counts",
    "ridge_by_year",
    "roofs",
    "scaling_laws",
    "sectors_by_stride",
    "setup_plot",
    "shares_by_kind",
    "speedup_map",
    "tile_cache_map",
    "time_bars",
    "time_strip",
    "traffic_by_tile",
    "utilisation_teeth",
    "validation_panels",
    "words_by_dataflow",
]
