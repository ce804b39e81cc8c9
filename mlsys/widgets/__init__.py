"""The labs: predict, explore, check. The only code that knows ipywidgets."""

from mlsys.widgets.amdahl import AmdahlLab
from mlsys.widgets.lab import Lab
from mlsys.widgets.roofline import RooflineLab
from mlsys.widgets.state import LabStateError

__all__ = ["AmdahlLab", "Lab", "LabStateError", "RooflineLab"]
