"""Effects with known widths, learned from a few rows: an average over answers, by how likely each makes the rows.

A row far off counts less, as under Student's t distribution with four degrees of freedom. What is learned of kernels is
asked for each row by the others, and counts in full where it tells such rows nearer than no lesson does.

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999,
for the average over models.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TAILS, ROUNDS = 4.0, 6
# What is learned counts in full where it tells rows that it was not learned from this much nearer than no lesson does.
# Else it counts as its odds against none are, of errors to this power: ten rows are some four opinions, as shapes
# alike are off alike. Fewest rows to ask, and how often many are asked.
CLEARLY, OPINIONS, FEWEST_ASKED, MOST_ASKED = 0.9, 4.0, 6, 20


def averaged(
    design: Array, y: Array, widths: Sequence[tuple[Array, float]], scatters: Sequence[float]
) -> tuple[Array, float]:
    """Return the effects, and the variance of a further row, over all widths and scatters as likely as they are."""
    effects, networks = (np.array(part).repeat(len(scatters), axis=0) for part in zip(*widths, strict=True))
    scatter = np.tile(scatters, len(widths))
    answers, likely, open_ = _solved(design, y, effects, scatter)
    part = np.exp(likely - likely.max())
    part /= part.sum()
    return part @ answers, float(part @ (scatter**2 + open_ + networks**2))


def heard(design: Array, y: Array, widths: Sequence[tuple[Array, float]], scatters: Sequence[float]) -> float:
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


def _solved(design: Array, y: Array, widths: Array, scatters: Array) -> tuple[Array, Array, Array]:
    """Return the effects, the logarithm of how likely the rows are, and the mean variance that effects leave open.

    Of each of some answers side by side: ``widths`` is of shape (answers, effects), ``scatters`` (answers,).
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
    left = between - between @ np.linalg.solve(whole, between)
    evidence = -tails - len(y) * np.log(scatters) - 0.5 * drawn - 0.5 * peak
    return widths**2 * (pulls @ design), evidence, np.diagonal(left, axis1=1, axis2=2).mean(axis=1)
