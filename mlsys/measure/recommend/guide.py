"""Platform selection: a decision tree grown from feasible rows and checked against all of them.

A tree fitted to a few rows places its thresholds between them, and may answer a requirement of 50 ms with a row of 52
ms. Here the tree splits at the rows' own values, must agree with the rows in every cell that limits can fall into, and
its answer is verified against the row.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.escaping import fenced, markdown_table, markdown_text
from mlsys.measure.recommend.platforms import BETTER, Platform

INFEASIBLE = "INFEASIBLE"
_MOST_CELLS = 20_000


@dataclass(frozen=True)
class Requirement:
    """Limits on a platform; None means no limit.

    Attributes
    ----------
    latency_ms, energy_mj, memory_kb, cost_usd
        Upper limits.
    accuracy
        Lower limit, percent.

    Examples
    --------
    >>> Requirement(latency_ms=-1)
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: Requirement(): `latency_ms` must be above 0, got -1. Write e.g. latency_ms=50
    """

    latency_ms: float | None = None
    energy_mj: float | None = None
    memory_kb: float | None = None
    accuracy: float | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        faults = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (value > 0 and np.isfinite(value)):
                faults.append(f"Requirement(): `{each.name}` must be above 0, got {value!r}. Write e.g. {each.name}=50")
        if self.accuracy is not None and self.accuracy > 100:
            faults.append(f"Requirement(): `accuracy` must be at most 100, got {self.accuracy!r}")
        if faults:
            raise ArgumentError("\n".join(faults))

    @property
    def requested(self) -> dict[str, float]:
        """The limits that are set, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) is not None}


def misses(row: Platform, wanted: Requirement) -> list[str]:
    """Return the limits that a row violates, in words; an unknown value violates its limit."""
    missed = []
    for name, limit in wanted.requested.items():
        value = getattr(row, name)
        if value is None:
            missed.append(f"{name} is unknown")
        elif BETTER[name] == "less" and value > limit:
            missed.append(f"{name} {value:.6g} is above {limit:g}")
        elif BETTER[name] == "more" and value < limit:
            missed.append(f"{name} {value:.6g} is below {limit:g}")
    return missed


def feasible(rows: Sequence[Platform], wanted: Requirement) -> list[Platform]:
    """Return the rows that meet a requirement."""
    return [row for row in rows if not misses(row, wanted)]


def _choice(rows: Sequence[Platform], wanted: Requirement) -> str:
    """Return the best feasible row: least cost times energy, as far as known for all rows; else the fastest."""
    rows_left = feasible(rows, wanted)
    return min(rows_left, key=lambda row: _score(rows, row)).platform if rows_left else INFEASIBLE


def _score(rows: Sequence[Platform], row: Platform) -> tuple[float, ...]:
    known = [name for name in ("cost_usd", "energy_mj") if all(getattr(row, name) is not None for row in rows)]
    product = float(np.prod([getattr(row, name) for name in known])) if known else 0.0
    return product, row.latency_ms if row.latency_ms is not None else float("inf")


@dataclass(frozen=True)
class Guide:
    """The chosen platform, and the reasons.

    Attributes
    ----------
    answer
        A platform, or ``INFEASIBLE``.
    wanted
        The requirement.
    tree
        The decision tree in text.
    tree_answer
        The tree's answer; always equal to ``answer``.
    why
        Violated limits of each row; none for a feasible row.
    cells
        Number of requirements that the tree was checked with.
    by
        Criterion of the choice among feasible rows.
    """

    answer: str
    wanted: Requirement
    tree: str
    tree_answer: str
    why: dict[str, list[str]]
    cells: int
    by: str


def guide(rows: Sequence[Platform], wanted: Requirement) -> Guide:
    """Return the best platform for a requirement, with the decision tree.

    Parameters
    ----------
    rows
        Platforms with different names.
    wanted
        The requirement; at least one limit.

    Raises
    ------
    ArgumentError
        If there are no rows, a name occurs twice, or no limit is set.

    Examples
    --------
    >>> rows = [Platform("server", 52.0, 150.0), Platform("board", 145.0, 18.0)]
    >>> guide(rows, Requirement(latency_ms=50)).answer
    'INFEASIBLE'
    >>> guide(rows, Requirement(latency_ms=52)).answer
    'server'
    """
    names = [row.platform for row in rows]
    if not rows:
        raise ArgumentError("guide(): `rows` is empty. Give at least one platform")
    if len(set(names)) < len(names):
        raise ArgumentError(f"guide(): `rows` has duplicate {next(n for n in names if names.count(n) > 1)!r}")
    if not wanted.requested:
        raise ArgumentError("guide(): `wanted` sets no limit. Write e.g. Requirement(latency_ms=50)")
    ladder = {name: _values(rows, name) for name in wanted.requested}
    tree, cells = _fit_tree(rows, ladder)
    by_tree = str(tree.predict([[_rank(name, ladder[name], limit) for name, limit in wanted.requested.items()]])[0])
    answer = _choice(rows, wanted)
    if by_tree != answer:
        raise ArgumentError(f"guide(): internal error: the tree answers {by_tree!r} and the rows {answer!r}")
    known = [name for name in ("cost_usd", "energy_mj") if all(getattr(row, name) is not None for row in rows)]
    return Guide(
        answer, wanted, "\n".join(_lines(tree, ladder)), by_tree, {row.platform: misses(row, wanted) for row in rows},
        cells, " × ".join(known) or "latency_ms",
    )  # fmt: skip


def as_markdown(report: Guide, rows: Sequence[Platform]) -> str:
    """Return the answer, the tree and a table of all rows with their violated limits, in Markdown."""
    limits = ", ".join(
        f"{name} {'≤' if BETTER[name] == 'less' else '≥'} {limit:g}" for name, limit in report.wanted.requested.items()
    )
    columns = ("platform", *BETTER, "misses", "source")
    lines = [
        f"# Which platform for {markdown_text(limits)}?",
        "",
        f"**{markdown_text(report.answer)}**, by {markdown_text(report.by)}.",
        "",
        *fenced(report.tree),
        "",
    ]
    table = []
    for row in rows:
        values = [getattr(row, name) for name in BETTER]
        cells = [row.platform, *("not known" if value is None else f"{value:.6g}" for value in values)]
        cells += ["; ".join(report.why[row.platform]) or "nothing", row.source]
        table.append(cells)
    return "\n".join([*lines, *markdown_table(columns, table), ""])


def _values(rows: Sequence[Platform], name: str) -> list[float]:
    """Return the values of a column between those that the strictest and the loosest requirement allow."""
    known = {getattr(row, name) for row in rows if getattr(row, name) is not None}
    return sorted(known, reverse=BETTER[name] == "more")


def _rank(name: str, values: Sequence[float], limit: float) -> int:
    """Return the number of a column's values that a limit allows: the tree splits on this rank."""
    return sum(value <= limit if BETTER[name] == "less" else value >= limit for value in values)


def _fit_tree(rows: Sequence[Platform], ladder: dict[str, list[float]]) -> tuple[Any, int]:
    """Fit a tree to every cell that limits can fall into, and check that it reproduces all of them.

    Raises
    ------
    ArgumentError
        If there are too many cells.
    """
    from sklearn.tree import DecisionTreeClassifier

    count = int(np.prod([len(values) + 1 for values in ladder.values()]))
    if count > _MOST_CELLS:
        raise ArgumentError(
            f"guide(): {len(rows)} rows and {len(ladder)} limits make {count:,} cells, at most {_MOST_CELLS:,}. "
            "Set fewer limits, or remove rows"
        )
    cells = list(itertools.product(*(range(len(values) + 1) for values in ladder.values())))
    labels = [_at(rows, ladder, cell) for cell in cells]
    tree = DecisionTreeClassifier(random_state=0).fit(cells, labels)
    assert list(tree.predict(cells)) == labels  # ranks are integers, so that every cell is separable
    return tree, len(cells)


def _at(rows: Sequence[Platform], ladder: dict[str, list[float]], cell: Sequence[int]) -> str:
    if not all(cell):
        return INFEASIBLE
    limits = {name: values[rank - 1] for (name, values), rank in zip(ladder.items(), cell, strict=True)}
    return _choice(rows, Requirement(**limits))


def _lines(tree: Any, ladder: dict[str, list[float]]) -> list[str]:
    """Return the tree as lines of text, each limit as the value that it must allow."""
    inner, names = tree.tree_, list(ladder)

    def walk(node: int, deep: int) -> list[str]:
        before = "|   " * deep
        if inner.children_left[node] < 0:
            return [f"{before}→ {tree.classes_[int(inner.value[node].argmax())]}"]
        name = names[inner.feature[node]]
        value = ladder[name][math.ceil(inner.threshold[node]) - 1]
        side = "allows" if BETTER[name] == "less" else "asks for no more than"
        return [
            f"{before}if {name} {side} {value:.6g}:", *walk(inner.children_right[node], deep + 1),
            f"{before}else:", *walk(inner.children_left[node], deep + 1),
        ]  # fmt: skip

    return walk(0, 0)
