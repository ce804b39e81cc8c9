"""Energy model linear in time, cycles and accesses, fitted with non-negative coefficients and cross-validated.

energy = static power · time + energy of a cycle · cycles + energy of an access · accesses
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError


@dataclass(frozen=True)
class EnergySample:
    """One measurement: time in ms, cycles, accesses, energy in mJ."""

    time_ms: float
    cycles: float
    accesses: float
    energy_mj: float


@dataclass(frozen=True)
class EnergyFit:
    """A fitted energy model.

    Attributes
    ----------
    static_mw, cycle_nj, access_nj
        Coefficients; zero for terms that the measurements do not need.
    held_out
        Mean absolute relative error, each sample predicted from the others.
    samples
        Number of samples.
    """

    static_mw: float
    cycle_nj: float
    access_nj: float
    held_out: float
    samples: int

    def energy(self, time_ms: float, cycles: float, accesses: float) -> float:
        """Return the energy of a run, mJ."""
        return (self.static_mw * time_ms * 1e-3) + 1e-6 * (self.cycle_nj * cycles + self.access_nj * accesses)


def fit_energy(samples: Sequence[EnergySample]) -> EnergyFit:
    """Fit the model to samples by relative errors, with a leave-one-out error.

    Parameters
    ----------
    samples
        At least four, from one device at one voltage.

    Raises
    ------
    ArgumentError
        If there are too few samples, a value is negative, or an energy or time is not positive.

    Examples
    --------
    >>> made = [EnergySample(t, c, 0.0, 0.03 * t + 2e-6 * c) for t, c in ((10, 1e5), (10, 2e6), (40, 1e6), (5, 3e6))]
    >>> energies = fit_energy(made)
    >>> round(energies.static_mw, 6), round(energies.cycle_nj, 6), energies.access_nj
    (30.0, 2.0, 0.0)
    """
    if len(samples) < 4:
        raise ArgumentError(f"fit_energy(): `samples` must have at least four entries, got {len(samples)}")
    for index, each in enumerate(samples):
        amounts = (each.time_ms, each.cycles, each.accesses, each.energy_mj)
        if not all(np.isfinite(amounts)) or min(amounts) < 0 or not each.time_ms or not each.energy_mj:
            raise ArgumentError(f"fit_energy(): `samples[{index}]` must have values >= 0, and time and energy > 0")
    terms = np.array([[sample.time_ms * 1e-3, sample.cycles * 1e-6, sample.accesses * 1e-6] for sample in samples])
    energies = np.array([sample.energy_mj for sample in samples])
    errors = []
    for out in range(len(samples)):
        kept = np.arange(len(samples)) != out
        errors.append(abs(terms[out] @ _solved(terms[kept], energies[kept]) / energies[out] - 1))
    static, cycle, access = _solved(terms, energies)
    return EnergyFit(float(static), float(cycle), float(access), float(np.mean(errors)), len(samples))


def _solved(terms: Any, energies: Any) -> Any:
    from scipy.optimize import nnls

    weighted = terms / energies[:, None]
    size = weighted.max(axis=0)
    size[size == 0] = 1.0  # a term that is zero in all samples gets no share
    return nnls(weighted / size, np.ones(len(energies)))[0] / size
