"""Views of the labs: parameters in, figure and plain words out; they know no widget."""

from mlsys.viz.views.amdahl import AmdahlScene, amdahl_view
from mlsys.viz.views.roofline import KINDS, RooflineScene, layer, roofline_view
from mlsys.viz.views.view import Scene, View

__all__ = ["KINDS", "AmdahlScene", "RooflineScene", "Scene", "View", "amdahl_view", "layer", "roofline_view"]
