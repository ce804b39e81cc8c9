"""Trends over the years: exponential growth fitted to dated values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlsys._facts.dated import Milestone, Quotation, milestones
from mlsys._facts.dated import training_compute as recorded
from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.formulas import doubling_time
from mlsys.provenance import read
from mlsys.unit_checks import checked_choice
from mlsys.units import Q_, Quantity

__all__ = ["Growth", "Milestone", "decimal_year", "fit_growth", "milestones", "training_compute"]


@dataclass(frozen=True)
class Growth:
    """Exponential growth, fitted by least squares to logarithms.

    Attributes
    ----------
    per_year
        Factor of growth in a year.
    middle, level
        Year at the centre of the values, and the fitted value there, in ``unit``.
    unit
        Unit of the values.
    r_squared
        Share of the variance of the logarithms that the fit explains.
    residuals
        Value over fit, one for each point.

    Examples
    --------
    >>> growth = fit_growth([2000, 2001, 2002], [Q_(1, "W"), Q_(2, "W"), Q_(4, "W")])
    >>> print(f"{growth.per_year:.1f} {growth.doubling:.2f} {growth.at(2003):.1f} {growth.r_squared:.2f}")
    2.0 1.00 yr 8.0 W 1.00
    """

    per_year: float
    middle: float
    level: float
    unit: str
    r_squared: float
    residuals: tuple[float, ...]

    @property
    def doubling(self) -> Quantity:
        """Time in which the fit doubles, years."""
        return doubling_time(self.per_year)

    def at(self, year: float) -> Quantity:
        """Return the fitted value in a year; outside the values it extrapolates."""
        return Q_(self.level * self.per_year ** (year - self.middle), self.unit)


def training_compute(subject: str | None = None) -> tuple[Quotation, ...]:
    """Return the operations of published trainings, FLOP, oldest first; ``kind`` is how sure the source is.

    Parameters
    ----------
    subject
        Model whose training is returned; by default all.

    Raises
    ------
    UnknownNameError
        If no training of that model is recorded.

    Examples
    --------
    >>> last = training_compute()[-1]
    >>> last.subject, last.kind, f"{last.value:.2g~}"
    ('Llama 3.1 405B', 'confident', '3.8e+25 FLOP')
    >>> [f"{run.value:.3g~}" for run in training_compute("GPT-3")]
    ['3.14e+23 FLOP']
    """
    names = [each.subject for each in recorded()]
    if subject is not None:
        checked_choice("training_compute", "subject", subject, names)
    return tuple(replace(each, value=read(each.value)) for each in recorded() if subject in (None, each.subject))


def decimal_year(date: str) -> float:
    """Return a date as a year with a fraction; a missing month or day counts as the middle.

    Parameters
    ----------
    date
        ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.

    Examples
    --------
    >>> decimal_year("2012"), round(decimal_year("2012-10"), 2)
    (2012.5, 2012.79)
    """
    year, *rest = (int(part) for part in date.split("-"))
    if not rest:
        return year + 0.5
    day = rest[1] if len(rest) > 1 else 15
    return year + (rest[0] - 1 + (day - 0.5) / 30.5) / 12


def fit_growth(years: Sequence[float], values: Sequence[Quantity]) -> Growth:
    """Return the exponential growth that fits dated values best.

    Parameters
    ----------
    years
        Year of each value, with fractions.
    values
        Positive quantities of one dimension, as many as years; at least two in different years.

    Raises
    ------
    ArgumentError
        If there are too few values, or one is not positive.

    Notes
    -----
    Least squares of the logarithms: every value counts alike, whatever its size.
    """
    if len(years) != len(values) or len(set(years)) < 2:
        raise ArgumentError(
            f"fit_growth(): needs as many values as years, of at least two different years, got {len(values)} values "
            f"of the years {short(list(years))}"
        )
    unit = str(values[0].units)
    numbers = np.array([value.m_as(unit) for value in values], dtype=float)
    if not (numbers > 0).all():
        raise ArgumentError(f"fit_growth(): values must be positive, got {short(numbers.min())} {unit}")
    time, logs = np.asarray(years, dtype=float), np.log(numbers)
    middle, mean = float(time.mean()), float(logs.mean())
    slope = float(((time - middle) * (logs - mean)).sum() / ((time - middle) ** 2).sum())
    left = logs - mean - slope * (time - middle)
    spread = float(((logs - mean) ** 2).sum())
    r_squared = 1 - float((left**2).sum()) / spread if spread else 1.0
    residuals = tuple(float(each) for each in np.exp(left))
    return Growth(float(np.exp(slope)), middle, float(np.exp(mean)), unit, r_squared, residuals)
