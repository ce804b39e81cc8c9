"""What a group of effects, or a curve, is worth: the errors on sweeps and machines left out, with it and without.

    python -m mlsys_evidence.evaluate.ablation             each group of each pool, one at a time
    python -m mlsys_evidence.evaluate.ablation "products"  those of one pool

The parameters of the settings stay as they were fitted, also without each sweep; the effects are fitted anew. A
group whose removal raises the median error of no class of thirty rows by 0.2 points is not worth its numbers.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.calibration.times import stack_of, with_latency
from mlsys.cli.common import say
from mlsys.models.estimate import kernel_times
from mlsys.models.estimate.effects import POOLS, Pool, pool_of
from mlsys.models.estimate.features import features
from mlsys.models.estimate.library import plain_of
from mlsys_evidence.fit.pooling import fit_pool
from mlsys_evidence.fit.refit import parameters_alone, settings
from mlsys_evidence.rows import shipped_rows

Array = NDArray[np.float64]
# Rows of a class whose median counts, and points that removing a group must cost to keep it.
FEWEST, WORTH = 30, 0.2


@dataclass(frozen=True)
class PoolRows:
    """The rows of one pool, and how far off they are by their parameters.

    Attributes
    ----------
    cases
        Of all its settings.
    measures
        Features of their shapes.
    whole
        Logarithm of measured over predicted time, by the parameters fitted to all rows.
    without
        The same by those fitted without each row's machine, and without its sweep.
    """

    cases: list[Case]
    measures: Mapping[str, Array]
    whole: Array
    without: Array


def pool_rows() -> dict[str, PoolRows]:
    """Return the rows of each pool, and those of none under an empty name."""
    by_pool: dict[str, list[Case]] = {}
    for name, cases in settings().items():
        by_pool.setdefault(pool_of(name), []).extend(cases)
    lines = parameters_alone()
    rows = {}
    for name, cases in by_pool.items():
        stack = stack_of(cases)
        times = kernel_times(stack, np.array([plain_of(case.setting, case.twin)[0].vectorised() for case in cases]))
        measured = np.log([case.seconds for case in cases])
        left_out = np.log([lines.get(case.row.id, (np.nan, np.nan)) for case in cases])
        plain = np.log(with_latency(cases, stack.total(times.seconds)))
        rows[name] = PoolRows(cases, features(stack, times), measured - plain, measured[:, None] - left_out)
    return rows


def left_out_errors(pool: Pool | None, rows: PoolRows) -> Array:
    """Return the error of each row in percent of the published value, without its machine and without its sweep."""
    off = rows.without
    if pool is not None:
        result = fit_pool(pool, rows.cases, rows.measures, rows.whole, rows.without[:, 1])
        off = off - np.column_stack([result.without_device, result.without_sweep])
    inverse = np.array([case.inverse for case in rows.cases])[:, None]
    return np.asarray(100 * np.abs(np.exp(np.where(inverse, off, -off)) - 1), dtype=np.float64)


def medians(errors: Mapping[str, Array], rows: Mapping[str, PoolRows]) -> dict[str, float]:
    """Return the median error of each class of enough shipped rows, machine and sweep left out."""
    shipped = {row.id for row in shipped_rows()}
    by_class: dict[str, list[Array]] = {}
    for name, each in errors.items():
        for case, line in zip(rows[name].cases, each, strict=True):
            if case.row.id in shipped:
                by_class.setdefault(f"{case.row.device_class}: {case.kind}", []).append(line)
    found = {}
    for group, lines in sorted(by_class.items()):
        for index, which in enumerate(("device", "sweep")):
            known = [line[index] for line in lines if np.isfinite(line[index])]
            if len(known) >= FEWEST:
                found[f"{which} unseen, {group}"] = float(np.median(known))
    return found


def without_group(pool: Pool, group: str) -> Pool:
    """Return a pool without one of its groups or curves.

    Examples
    --------
    >>> without_group(POOLS["collectives"], "time").curves
    ()
    """
    groups, curves = (tuple(name for name in own if name != group) for own in (pool.groups, pool.curves))
    return replace(pool, groups=groups, curves=curves)


def ablation(name: str, rows: Mapping[str, PoolRows]) -> dict[str, dict[str, float]]:
    """Return, for each group and curve of a pool, by how many points its removal moves the median of each class."""
    whole = {each: left_out_errors(POOLS.get(each), own) for each, own in rows.items()}
    before = medians(whole, rows)
    moved = {}
    for group in (*POOLS[name].groups, *POOLS[name].curves):
        after = medians(whole | {name: left_out_errors(without_group(POOLS[name], group), rows[name])}, rows)
        moved[group] = {each: after[each] - before[each] for each in after if after[each] != before[each]}
    return moved


def main(names: Sequence[str]) -> None:
    """Print what each group of some pools, or of all, is worth."""
    rows = pool_rows()
    for name in names or sorted(POOLS):
        for group, moved in ablation(name, rows).items():
            most = max(moved, key=lambda each: moved[each], default="")
            cost = moved.get(most, 0.0)
            say(f"{name:<24}{group:<24}{cost:+7.2f}  {'' if cost >= WORTH else 'not worth it; '}{most}")


if __name__ == "__main__":
    main(sys.argv[1:])
