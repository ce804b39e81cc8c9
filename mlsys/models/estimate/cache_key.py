"""Version of the fit and of the calibration: part of the key of cached estimates."""

from collections.abc import Hashable

from mlsys.frozen import IdentityKey
from mlsys.models.estimate.effects import fitted_effects
from mlsys.models.estimate.library import fitted, machines
from mlsys.models.estimate.ranges import fitted_ranges, unknown_source_factors
from mlsys.models.estimate.user_calibration import chosen_calibration


def calibration_version() -> Hashable:
    """Return the identity of the calibration file and of the fitted tables, on which estimates depend besides facts.

    Examples
    --------
    >>> calibration_version() == calibration_version()
    True
    """
    return chosen_calibration(), IdentityKey(
        (fitted(), machines(), fitted_ranges(), unknown_source_factors(), fitted_effects())
    )
