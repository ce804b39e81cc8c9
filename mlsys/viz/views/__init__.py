"""Views of the labs: parameters in, figure and plain words out; they know no widget."""

from mlsys.viz.views.amdahl import AmdahlScene, amdahl_view
from mlsys.viz.views.dataflow import DataflowScene, dataflow_view
from mlsys.viz.views.explain import ExplainScene, explain_view
from mlsys.viz.views.memory import MemoryScene, memory_view
from mlsys.viz.views.placement import PlacementScene, placement_view
from mlsys.viz.views.roofline import KINDS, RooflineScene, layer, roofline_view
from mlsys.viz.views.systolic import SystolicScene, systolic_view
from mlsys.viz.views.tiling import TilingScene, tiling_view
from mlsys.viz.views.view import Scene, View

__all__ = [
    "KINDS",
    "AmdahlScene",
    "DataflowScene",
    "ExplainScene",
    "MemoryScene",
    "PlacementScene",
    "RooflineScene",
    "Scene",
    "SystolicScene",
    "TilingScene",
    "View",
    "amdahl_view",
    "dataflow_view",
    "explain_view",
    "layer",
    "memory_view",
    "placement_view",
    "roofline_view",
    "systolic_view",
    "tiling_view",
]
