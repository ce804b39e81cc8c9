"""Bayesian model averaging of effects with known variances, learned from a few rows.

Outliers count less, as under Student's t distribution with four degrees of freedom. For single kernels, what was
learned is cross-validated, and counts in full only if it predicts left-out rows better than no learning does.

The expected error of a further row is estimated in two ways: the posterior variance of each row given the others, and
the actual leave-one-out errors. Both follow from the one solution in closed form; the first is weighted like a fixed
number of rows, so the second dominates as rows accumulate.

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999, for
model averaging; C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, section 5.4.2,
for leave-one-out; A. Gelman et al., Bayesian Data Analysis, 3rd edition, 2013, section 2.6, for a variance with a
prior.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.ranges import COVERAGE, FOUR_IN_FIVE

Array = NDArray[np.float64]
TAILS, ROUNDS = 4.0, 6
# Number of rows that the prior knowledge of the same work on other machines is worth.
PRIOR_ROWS = 2.0
# Learning counts in full if it reduces the errors of left-out rows to this fraction. Otherwise it is weighted by its
# odds against no learning, with errors to this power: ten rows are worth some four independent ones, since similar
# shapes have similar errors. Fewest rows for a cross-validation, and number of folds for many rows.
CLEARLY, OPINIONS, FEWEST_ROWS, FOLDS = 0.9, 4.0, 6, 20


def averaged(design: Array, y: Array, widths: Sequence[Array], scatters: Sequence[float]) -> tuple[Array, float]:
    """Return the effects and the expected error of a further row, averaged over widths and scatters."""
    scatter = np.tile(scatters, len(widths))
    answers, likely, open_, residuals = _solved(design, y, np.repeat(widths, len(scatters), axis=0), scatter)
    part = np.exp(likely - likely.max())
    part /= part.sum()
    known = float(part @ (scatter**2 + open_.mean(axis=1)))
    seen = float(np.quantile(np.abs(part @ residuals), COVERAGE, method="weibull")) / FOUR_IN_FIVE
    return part @ answers, math.sqrt((PRIOR_ROWS * known + len(y) * seen**2) / (PRIOR_ROWS + len(y)))


def shrinkage_weight(design: Array, y: Array, widths: Sequence[Array], scatters: Sequence[float]) -> float:
    """Return the weight of what was learned, 0 to 1, by cross-validation against no learning.

    Many rows are left out in folds.

    A library's choice for one shape may say nothing about the next; rows with such scatter would mislead.
    """
    if len(y) < FEWEST_ROWS:
        return 1.0
    predicted = np.empty(len(y))
    for part in range(min(len(y), FOLDS)):
        left = np.arange(len(y)) % FOLDS == part
        predicted[left] = design[left] @ averaged(design[~left], y[~left], widths, scatters)[0]
    unlearned, learned = float(np.abs(y).sum()), float(np.abs(y - predicted).sum())
    if learned <= CLEARLY * unlearned:
        return 1.0
    return float(1 / (1 + (learned / unlearned) ** OPINIONS))


def _solved(design: Array, y: Array, widths: Array, scatters: Array) -> tuple[Array, Array, Array, Array]:
    """Return the effects, the log-likelihood of the rows, and each row's variance and error given the others.

    The variance excludes the row's own scatter. All for several models at once: ``widths`` is of shape (models,
    effects), ``scatters`` (models,), the last two results (models, rows).
    """
    between = (design * widths[:, None] ** 2) @ design.T
    noise = np.repeat(scatters[:, None] ** 2, len(y), axis=1)
    rows = np.arange(len(y))
    for turn in range(ROUNDS + 1):
        whole = between.copy()
        whole[:, rows, rows] += noise
        pulls = np.linalg.solve(whole, np.broadcast_to(y[:, None], (len(scatters), len(y), 1)))[..., 0]
        squares = (noise * pulls) ** 2 / scatters[:, None] ** 2
        if turn < ROUNDS:
            noise = scatters[:, None] ** 2 * (TAILS + squares) / (TAILS + 1)
    # Laplace's approximation: likelihood of the rows at the effects, prior of the effects, and width of the peak.
    tails = ((TAILS + 1) / 2 * np.log1p(squares / TAILS)).sum(axis=1)
    peak = np.linalg.slogdet(whole)[1] - np.log(noise).sum(axis=1)
    drawn = ((between @ pulls[..., None])[..., 0] * pulls).sum(axis=1)
    evidence = -tails - len(y) * np.log(scatters) - 0.5 * drawn - 0.5 * peak
    alone = np.diagonal(np.linalg.inv(whole), axis1=1, axis2=2)
    return widths**2 * (pulls @ design), evidence, np.maximum(1 / alone - noise, 0.0), pulls / alone
