"""Models: (device, workload, mapping) -> Result."""

from mlsys.models.result import Result
from mlsys.models.roofline import roofline

__all__ = ["Result", "roofline"]
