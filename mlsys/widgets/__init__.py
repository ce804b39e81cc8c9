"""The labs: predict, explore, check. The only package that uses ipywidgets."""

import mlsys.widgets._needed  # noqa: F401
from mlsys.widgets.amdahl import AmdahlLab
from mlsys.widgets.compiler import CompilerLab
from mlsys.widgets.dataflow import DataflowLab
from mlsys.widgets.edge import ShrinkLab
from mlsys.widgets.explain import ExplainLab
from mlsys.widgets.find_error import FindErrorLab
from mlsys.widgets.lab import Lab
from mlsys.widgets.memory import MemoryLab
from mlsys.widgets.network import RealNetworkLab
from mlsys.widgets.placement import PlacementLab
from mlsys.widgets.roofline import RooflineLab
from mlsys.widgets.service import ServiceLab
from mlsys.widgets.state import LabStateError
from mlsys.widgets.systolic import SystolicLab
from mlsys.widgets.tiling import TilingLab

__all__ = [
    "AmdahlLab",
    "CompilerLab",
    "DataflowLab",
    "ExplainLab",
    "FindErrorLab",
    "Lab",
    "LabStateError",
    "MemoryLab",
    "PlacementLab",
    "RealNetworkLab",
    "RooflineLab",
    "ServiceLab",
    "ShrinkLab",
    "SystolicLab",
    "TilingLab",
]
