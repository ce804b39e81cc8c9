"""Models: (device, workload, mapping) -> Result."""

from mlsys.models.result import Result
from mlsys.models.roofline import roofline
from mlsys.models.systolic import SystolicArray, systolic

__all__ = ["Result", "SystolicArray", "roofline", "systolic"]
