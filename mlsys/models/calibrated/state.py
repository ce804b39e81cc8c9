"""Which fit and which calibration hold now: part of the key of whatever is kept of estimates."""

from collections.abc import Hashable

from mlsys.frozen import Same
from mlsys.models.calibrated.effects import fitted_effects
from mlsys.models.calibrated.library import fitted, machines
from mlsys.models.calibrated.own import chosen_calibration
from mlsys.models.calibrated.ranges import fitted_ranges


def in_force() -> Hashable:
    """Return what estimates lean on beside the facts of machines: the calibration file, and the tables of the last fit.

    Examples
    --------
    >>> in_force() == in_force()
    True
    """
    return chosen_calibration(), Same((fitted(), machines(), fitted_ranges(), fitted_effects()))
