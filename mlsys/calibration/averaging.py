"""Effects with known widths, learned from a few rows: an average over answers, by how likely each makes the rows.

A row far off counts less, as under Student's t distribution with four degrees of freedom. What is learned of kernels is
asked for each row by the others, and counts in full where it tells such rows nearer than no lesson does.

How far off a further row will be, each row says of the others: what they tell of it leaves so much open, and it is so
far off in fact. Both follow from the one solution in closed form; the first is worth as many rows as what is known of
other machines is worth elsewhere, and the more rows there are, the more the second counts.

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999,
for the average over models; C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006,
section 5.4.2, for rows left out; A. Gelman et al., Bayesian Data Analysis, 3rd edition, 2013, section 2.6, for a
variance that is known and observed.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.ranges import COVERAGE, FOUR_IN_FIVE

Array = NDArray[np.float64]
TAILS, ROUNDS = 4.0, 6
# Rows that what is known of the same work on other machines counts for.
PRIOR_ROWS = 2.0
# What is learned counts in full where it tells rows that it was not learned from this much nearer than no lesson does.
# Else it counts as its odds against none are, of errors to this power: ten rows are some four opinions, as shapes
# alike are off alike. Fewest rows to ask, and how often many are asked.
CLEARLY, OPINIONS, FEWEST_ASKED, MOST_ASKED = 0.9, 4.0, 6, 20


def averaged(design: Array, y: Array, widths: Sequence[Array], scatters: Sequence[float]) -> tuple[Array, float]:
    """Return the effects, and how far off a further row will be, over all widths and scatters as likely as they are."""
    scatter = np.tile(scatters, len(widths))
    answers, likely, open_, apart = _solved(design, y, np.repeat(widths, len(scatters), axis=0), scatter)
    part = np.exp(likely - likely.max())
    part /= part.sum()
    known = float(part @ (scatter**2 + open_.mean(axis=1)))
    seen = float(np.quantile(np.abs(part @ apart), COVERAGE, method="weibull")) / FOUR_IN_FIVE
    return part @ answers, math.sqrt((PRIOR_ROWS * known + len(y) * seen**2) / (PRIOR_ROWS + len(y)))


def shrinkage_weight(design: Array, y: Array, widths: Sequence[Array], scatters: Sequence[float]) -> float:
    """Return which part of what is learned counts, 0 to 1: each row is told from the others, or from none.

    Of many rows a part of them is told at a time.

    A library's choice for one shape says nothing of the next, and rows that scatter so lead astray.
    """
    if len(y) < FEWEST_ASKED:
        return 1.0
    told = np.empty(len(y))
    for part in range(min(len(y), MOST_ASKED)):
        left = np.arange(len(y)) % MOST_ASKED == part
        told[left] = design[left] @ averaged(design[~left], y[~left], widths, scatters)[0]
    unlearned, learned = float(np.abs(y).sum()), float(np.abs(y - told).sum())
    if learned <= CLEARLY * unlearned:
        return 1.0
    return float(1 / (1 + (learned / unlearned) ** OPINIONS))


def _solved(design: Array, y: Array, widths: Array, scatters: Array) -> tuple[Array, Array, Array, Array]:
    """Return the effects, how likely the rows are, and of each row what the others leave open, and how far off it is.

    The second is a logarithm, the third a variance without the row's own scatter. Of each of some answers side by side:
    ``widths`` is of shape (answers, effects), ``scatters`` (answers,), the last two (answers, rows).
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
    # Laplace's approximation: how likely the rows are at the effects, the effects, and the width of the peak.
    tails = ((TAILS + 1) / 2 * np.log1p(squares / TAILS)).sum(axis=1)
    peak = np.linalg.slogdet(whole)[1] - np.log(noise).sum(axis=1)
    drawn = ((between @ pulls[..., None])[..., 0] * pulls).sum(axis=1)
    evidence = -tails - len(y) * np.log(scatters) - 0.5 * drawn - 0.5 * peak
    alone = np.diagonal(np.linalg.inv(whole), axis1=1, axis2=2)
    return widths**2 * (pulls @ design), evidence, np.maximum(1 / alone - noise, 0.0), pulls / alone
