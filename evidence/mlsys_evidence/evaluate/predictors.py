"""Our errors beside those of other predictors, on the same rows of NeuSight's open data.

S. Lee, A. Phanishayee, D. Mahajan, NeuSight, ASPLOS 2025. Its repository publishes what it, Habitat, Li et al. and a
roofline predict for whole networks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.rows import Row
from mlsys.frozen import FrozenDict
from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys_evidence.evaluate.published import PREDICTORS, published_predictions
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.rows import typed

ALL, NEW, NEW_GPU = "all", "new to NeuSight", "GPU new to both"
OURS = "ours"
# The same in the narrow column of a table.
_WHICH = {ALL: "all", NEW: "new to it", NEW_GPU: "new GPU"}
_NETWORKS = ("network, forward", "network, forward, compiled", "training step", "training step on four GPUs")
# Columns of the tables: who is compared first, in sight where a page is narrow.
_SHOWN = {OURS: "ours", "neusight": "NeuSight", "roofline": "roofline", "li": "Li et al.", "habitat": "Habitat"}


@dataclass(frozen=True)
class Comparison:
    """Errors of each predictor on the same rows, relative to the measured time.

    Attributes
    ----------
    work, group
        Kind of work; and the group of rows: all networks and GPUs, those that NeuSight calls out of distribution, or
        the GPUs that neither it nor our fit has seen.
    rows
        Number of rows.
    mean, median
        Error of each predictor, the others' as published, ours of fits that never saw the machine; NaN where one of the
        rows has no prediction.
    """

    work: str
    group: str
    rows: int
    mean: FrozenDict[str, float]
    median: FrozenDict[str, float]


def _work(row: Row) -> str:
    if typed(row).operation.endswith("training"):
        return _NETWORKS[3 if row.n_devices > 1 else 2]
    return _NETWORKS[1 if typed(row).has("torch.compile") else 0]


def _groups(new_to: Iterable[str]) -> dict[str, NDArray[np.bool_]]:
    """Return a mask of rows for each group; of groups with the same rows, only the narrowest."""
    new = np.array(list(new_to))
    chosen = {ALL: np.full(len(new), True), NEW: new != "", NEW_GPU: np.char.find(new, "GPU") >= 0}
    narrowest = {here.tobytes(): name for name, here in chosen.items() if here.any()}
    return {name: chosen[name] for name in narrowest.values()}


def _by_name(errors: Iterable[float]) -> FrozenDict[str, float]:
    return FrozenDict(dict(zip((*PREDICTORS, OURS), errors, strict=True)))


@remembered
@traced
def comparisons() -> tuple[Comparison, ...]:
    """Return the errors of each predictor on whole networks, by kind of work and group of rows.

    Examples
    --------
    >>> networks = next(each for each in comparisons() if each.work == "network, forward")
    >>> networks.rows, networks.median["neusight"] < networks.median["roofline"]
    (44, True)
    """
    unseen = {each.row.id: each for each in held_out_predictions("device")}
    errors_by_work: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for each in published_predictions():
        if each.id not in unseen:
            continue
        own = unseen[each.id].seconds
        work = _work(unseen[each.id].row)
        errors = (abs(time / each.measured - 1) for time in (*each.predicted.values(), 1e3 * own))
        errors_by_work.setdefault(work, []).append((each.new_to, tuple(errors)))
    compared = []
    for work in _NETWORKS:
        errors_of = np.array([errors for _, errors in errors_by_work[work]])
        for group, here in _groups(new for new, _ in errors_by_work[work]).items():
            mean, median = (_by_name(whole(errors_of[here], axis=0).tolist()) for whole in (np.mean, np.median))
            compared.append(Comparison(work, group, int(here.sum()), mean, median))
    return tuple(compared)


def _percent(error: float) -> str:
    """Return an error in %, without its sign; errors above 100 % are rounded to whole percent."""
    return f"{100 * error:,.1f}" if error < 1 else f"{100 * error:,.0f}"


def _cells(each: Comparison) -> tuple[str, ...]:
    return tuple(
        "—" if np.isnan(each.mean[name]) else f"{_percent(each.mean[name])} ({_percent(each.median[name])})"
        for name in _SHOWN
    )


@tabled
def predictor_table() -> Table:
    """Return the errors on whole networks as a table."""
    rows = [(each.work, _WHICH[each.group], each.rows, *_cells(each)) for each in comparisons()]
    heads = ("work", "which", "rows", *_SHOWN.values())
    return Table("Whole networks of NeuSight's open data: mean error (median), in %", heads, rows)
