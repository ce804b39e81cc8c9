"""Our errors beside those that other predictors publish, on rows of the same open data."""

from dataclasses import dataclass

import numpy as np

from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys.validation.refit import held_out_predictions
from mlsys.validation.report import Prediction, validate

# Mean errors out of distribution by operator, of whole networks the median on unseen GPUs; roofline as they give it.
# Lee, Phanishayee, Mahajan, NeuSight, ASPLOS 2025, and the data of its repository.
_PUBLISHED = (
    ("batched product", "GEMM (batched)", "mean", 0.138),
    ("product of a layer", "GEMM", "mean", 0.139),
    ("layer normalisation", "layernorm", "mean", 0.567),
    ("element-wise", "(elementwise)", "mean", 0.193),
    ("network, forward", "inference|prefill", "median", 0.068),
    ("network, training step", "training", "median", 0.040),
)
_SOURCE = "sitar-lab/NeuSight"


@dataclass(frozen=True)
class Comparison:
    """One kind of work: how far a plain roofline, our estimate and NeuSight are off.

    Attributes
    ----------
    kind, statistic
        What is predicted, and whether the errors are a mean or a median.
    rows
        Rows of NeuSight's data that we ship and express.
    roofline, ours
        Error on these rows, as a part: of the bound alone, and of fits that never saw the machine.
    theirs
        What NeuSight publishes, on its own test set, which holds more rows than these.
    """

    kind: str
    statistic: str
    rows: int
    roofline: float
    ours: float
    theirs: float


def _matches(each: Prediction, words: str) -> bool:
    workload = each.row.workload
    if words == "GEMM":
        return workload == "GEMM"
    return any(word in workload for word in words.split("|"))


@remembered
@traced
def comparisons() -> tuple[Comparison, ...]:
    """Return the comparison of each kind of work.

    Examples
    --------
    >>> all(0 < each.ours and each.rows > 10 for each in comparisons())
    True
    """
    unseen = [each for each in held_out_predictions("device") if each.row.source == _SOURCE]
    bounds = {each.row.id: each.bound for each in validate([each.row for each in unseen]).predictions}
    compared = []
    for kind, words, statistic, theirs in _PUBLISHED:
        chosen = [each for each in unseen if each.case is not None and _matches(each, words)]
        measured = np.array([each.case.seconds for each in chosen if each.case])
        ours = np.abs(np.array([each.seconds for each in chosen]) / measured - 1)
        plain = np.abs(np.array([bounds[each.row.id] for each in chosen]) / measured - 1)
        whole = np.mean if statistic == "mean" else np.median
        compared.append(Comparison(kind, statistic, len(chosen), float(whole(plain)), float(whole(ours)), theirs))
    return tuple(compared)


@tabled
def predictor_table() -> Table:
    """Return the comparisons as a table."""
    heads = ("work", "rows", "statistic", "plain roofline", "ours, machine unseen", "NeuSight, as published")
    rows = [
        (
            comparison.kind,
            comparison.rows,
            comparison.statistic,
            f"{comparison.roofline:.0%}",
            f"{comparison.ours:.1%}",
            f"{comparison.theirs:.1%}",
        )
        for comparison in comparisons()
    ]
    return Table("Errors of predictors on NeuSight's open data", heads, rows)
