"""How far off a setting's substitute is: each setting in turn is predicted by the nearest of the others.

A token depends on its bytes in any program; a microcontroller's network on its loops, which another
library writes otherwise. So the range of unmeasured settings is estimated for each kind of work.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.calibration.times import case_times
from mlsys.models.estimate import Parameters
from mlsys.models.estimate.library import fallback_stack
from mlsys.models.estimate.ranges import COVERAGE

Array = NDArray[np.float64]
# Measurements of a setting that are compared, and settings that what is known of all kinds of work counts for.
MOST_SAMPLED, PRIOR_SETTINGS = 60, 2.0
# Parts of a setting's measurements that stand for all of them, so that each setting counts the same.
_PARTS = np.linspace(0.025, 0.975, 20)


def stand_ins(chosen: Mapping[str, Sequence[Case]], parameters: Mapping[str, Parameters]) -> dict[str, float]:
    """Return how far, in logarithm of time, four measurements in five lie from what another setting says.

    Parameters
    ----------
    chosen
        Measurements by setting.
    parameters
        Of each setting, as fitted.

    Returns
    -------
    dict
        By kind of work; a kind of few settings is drawn towards all.
    """
    errors_by_kind: dict[str, list[Array]] = {}
    fitted = sorted(parameters)  # the first of equals stands in, and settings are fitted in no fixed order
    for name, cases in chosen.items():
        other = fallback_stack(name, [known for known in fitted if known != name])
        if other:
            sample = cases[:: -(-len(cases) // MOST_SAMPLED)]
            result = case_times(sample, np.array([parameters[other].vectorised()] * len(sample)))
            errors = np.abs(np.log([case.seconds for case in sample]) - np.log(result))
            errors_by_kind.setdefault(cases[0].kind, []).append(np.quantile(errors, _PARTS))
    every = float(np.quantile(np.concatenate([errors for own in errors_by_kind.values() for errors in own]), COVERAGE))
    return {
        kind: math.sqrt(
            (PRIOR_SETTINGS * every**2 + len(own) * float(np.quantile(np.concatenate(own), COVERAGE)) ** 2)
            / (PRIOR_SETTINGS + len(own))
        )
        for kind, own in errors_by_kind.items()
    }
