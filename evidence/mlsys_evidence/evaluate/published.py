"""Times of whole networks that other predictors published, for rows that ship.

From sitar-lab/NeuSight, scripts/asplos/summary/summary.csv@6945927d9 (MIT): its measured times, and the predictions of
its authors' own predictor and of three others. No fit reads any of it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mlsys.frozen import FrozenDict
from mlsys.inputs import csv_records

PREDICTORS = ("roofline", "habitat", "li", "neusight")
_DATA = Path(__file__).parents[1] / "data" / "predictors.csv.gz"


@dataclass(frozen=True)
class PublishedTime:
    """One time, as measured and as others predict it.

    Attributes
    ----------
    id
        Of the row that ships.
    new_to
        What of it NeuSight never saw: ``"network"``, ``"GPU"``, both, or nothing. Those are out of distribution.
    measured
        Milliseconds.
    predicted
        Milliseconds that each of ``PREDICTORS`` says, the last but one being Li et al.; NaN where none is published.
    """

    id: str
    new_to: str
    measured: float
    predicted: FrozenDict[str, float]


@lru_cache(maxsize=1)
def published_predictions() -> tuple[PublishedTime, ...]:
    """Return all of them.

    Examples
    --------
    >>> each = published_predictions()[0]
    >>> len(each.predicted), each.measured > 0
    (4, True)
    """
    lines = [cells for _, cells in csv_records(_DATA)[1:]]
    return tuple(
        PublishedTime(
            name,
            new,
            float(measured),
            FrozenDict(dict(zip(PREDICTORS, (float(cell or "nan") for cell in predicted), strict=True))),
        )
        for name, new, measured, *predicted in lines
    )
