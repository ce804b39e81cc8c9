"""Views of the labs: functions from parameters to a figure and a text summary, independent of widgets."""

from mlsys.viz.views.amdahl import AmdahlScene
from mlsys.viz.views.dataflow import DataflowScene
from mlsys.viz.views.explain import ExplainScene
from mlsys.viz.views.memory import MemoryScene
from mlsys.viz.views.network import NetworkScene
from mlsys.viz.views.placement import PlacementScene
from mlsys.viz.views.roofline import KINDS, RooflineScene, layer
from mlsys.viz.views.service import ServiceScene
from mlsys.viz.views.slips import SlipsScene
from mlsys.viz.views.systolic import SystolicScene
from mlsys.viz.views.tiling import TilingScene
from mlsys.viz.views.view import Scene, View

__all__ = [
    "KINDS",
    "AmdahlScene",
    "DataflowScene",
    "ExplainScene",
    "MemoryScene",
    "NetworkScene",
    "PlacementScene",
    "RooflineScene",
    "Scene",
    "ServiceScene",
    "SlipsScene",
    "SystolicScene",
    "TilingScene",
    "View",
    "layer",
]
