"""Which fit and which calibration hold now: part of the key of whatever is kept of estimates."""

from collections.abc import Hashable

from mlsys.frozen import IdentityKey
from mlsys.models.estimate.effects import fitted_effects
from mlsys.models.estimate.library import fitted, machines
from mlsys.models.estimate.ranges import fitted_ranges
from mlsys.models.estimate.user_calibration import chosen_calibration


def calibration_version() -> Hashable:
    """Return what estimates depend on besides facts of devices: the calibration file and the tables of the last fit.

    Examples
    --------
    >>> calibration_version() == calibration_version()
    True
    """
    return chosen_calibration(), IdentityKey((fitted(), machines(), fitted_ranges(), fitted_effects()))
