"""Collectives: measured times of NCCL beside the predictions of its model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import cast

from mlsys.choices import Collective
from mlsys.hardware import systems
from mlsys.inputs import csv_records
from mlsys.models.collectives import collective_candidates

_DATA = Path(__file__).parents[1] / "data" / "scale" / "collectives.csv"
LARGE = 1e6
"""Bytes from which a message is large."""


@dataclass(frozen=True)
class MeasuredCollective:
    """One measured collective and its prediction, s.

    Attributes
    ----------
    source, licence, note
        Where it is published, under which licence, and what is known against it.
    """

    operation: str
    system: str
    chips: int
    size: float
    seconds: float
    predicted: float
    source: str
    licence: str
    note: str

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return abs(self.predicted / self.seconds - 1)

    @property
    def factor(self) -> float:
        """How many times too long or too short the prediction is."""
        return max(self.predicted / self.seconds, self.seconds / self.predicted)

    @property
    def series(self) -> tuple[str, str, str, int]:
        """Source, system, operation and number of chips."""
        return self.source.partition("@")[0], self.system, self.operation, self.chips


def rows() -> Iterator[MeasuredCollective]:
    """Yield the measured collectives with their predictions.

    Examples
    --------
    >>> first = next(rows())
    >>> first.operation, first.chips > 1, first.predicted > 0
    ('all-gather', True, True)
    """
    (_, columns), *lines = csv_records(_DATA)
    for row in (dict(zip(columns, cells, strict=True)) for _, cells in lines):
        system, chips, size = systems[row["system"]], int(row["chips"]), float(row["size_bytes"])
        if chips > system.chips_per_node:
            system = system.with_nodes(chips // system.chips_per_node)
        operation = cast(Collective, row["operation"])
        best = collective_candidates(system, operation, size, chips)[0]
        yield MeasuredCollective(
            operation, row["system"], chips, size, float(row["microseconds"]) * 1e-6, best.seconds,
            row["source"], row["licence"], row["note"],
        )  # fmt: skip


@dataclass(frozen=True)
class Errors:
    """Errors of a set of measurements: of the large messages relative, of the small ones as a factor."""

    large: int
    median_error: float
    ninth_decile: float
    worst: float
    small: int
    median_factor: float


def errors(measured: Iterable[MeasuredCollective]) -> Errors:
    """Return the errors of measurements, large and small messages apart.

    Examples
    --------
    >>> found = errors(rows())
    >>> found.large > 100 and found.median_error < 0.2 and found.median_factor < 2
    True
    """
    every = list(measured)
    large = sorted(each.error for each in every if each.size >= LARGE)
    small = [each.factor for each in every if each.size < LARGE]
    return Errors(
        large=len(large),
        median_error=median(large) if large else 0.0,
        ninth_decile=large[int(0.9 * len(large))] if large else 0.0,
        worst=large[-1] if large else 0.0,
        small=len(small),
        median_factor=median(small) if small else 1.0,
    )
