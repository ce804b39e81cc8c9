r"""Amdahl's law on chips of many cores: symmetric, asymmetric and dynamic multicores of one area.

A chip has a budget of *n* base-core units of area; a core made of *r* units runs serial code :math:`\sqrt{r}` times as
fast as a base core (Pollack's rule).

References
----------
M. D. Hill, M. R. Marty, Amdahl's law in the multicore era, IEEE Computer 41(7), 2008.
"""

import numpy as np

from mlsys.unit_checks import at_least, fraction, quantity_function

_ARGUMENTS = {"parallel_fraction": fraction(), "units": at_least(1), "core_units": at_least(1)}


def _core_fits(parallel_fraction: float, units: float, core_units: float) -> str | None:
    if np.any(np.asarray(core_units) > np.asarray(units)):
        return "`core_units` cannot be above `units`: a core is no larger than its chip. Make the core smaller"
    return None


def _speedup(parallel_fraction: float, serial_rate: float, parallel_rate: float) -> float:
    """Return the speedup of serial and parallel code that run at their own rates, those of a base core being 1."""
    return 1 / ((1 - parallel_fraction) / serial_rate + parallel_fraction / parallel_rate)


@quantity_function("", _core_fits, **_ARGUMENTS)
def symmetric_speedup(parallel_fraction: float, units: float, core_units: float) -> float:
    r"""Return the speedup of a chip of equal cores, :math:`1 / ((1-p)/\sqrt{r} + p\,r/(\sqrt{r}\,n))`.

    Parameters
    ----------
    parallel_fraction
        Fraction *p* of the original time that runs on all cores, 0 to 1.
    units
        Area *n* of the chip, in base cores, 1 or more.
    core_units
        Area *r* of each core, from 1 to *n*.

    Returns
    -------
    Quantity
        Pure number, relative to one base core.

    Raises
    ------
    ArgumentError
        If a core is larger than the chip.

    Examples
    --------
    >>> print(f"{symmetric_speedup(0.975, 256, 7.1):.1f}")
    51.2
    """
    fast: float = np.sqrt(core_units)
    return _speedup(parallel_fraction, fast, fast * units / core_units)


@quantity_function("", _core_fits, **_ARGUMENTS)
def asymmetric_speedup(parallel_fraction: float, units: float, core_units: float) -> float:
    r"""Return the speedup of one large core beside base cores, :math:`1 / ((1-p)/\sqrt{r} + p/(\sqrt{r}+n-r))`.

    Parameters
    ----------
    parallel_fraction, units
        As for :func:`symmetric_speedup`.
    core_units
        Area *r* of the large core, from 1 to *n*; the rest are base cores.

    Returns
    -------
    Quantity
        Pure number, relative to one base core.

    Examples
    --------
    >>> print(f"{asymmetric_speedup(0.975, 256, 65):.1f}")
    125.0
    """
    fast: float = np.sqrt(core_units)
    return _speedup(parallel_fraction, fast, fast + units - core_units)


@quantity_function("", _core_fits, **_ARGUMENTS)
def dynamic_speedup(parallel_fraction: float, units: float, core_units: float) -> float:
    r"""Return the speedup of a chip whose cores join for serial code, :math:`1 / ((1-p)/\sqrt{r} + p/n)`.

    Parameters
    ----------
    parallel_fraction, units
        As for :func:`symmetric_speedup`.
    core_units
        Units *r* that join for serial code, from 1 to *n*; in parallel code all *n* are base cores.

    Returns
    -------
    Quantity
        Pure number, relative to one base core.

    Examples
    --------
    >>> print(f"{dynamic_speedup(0.975, 256, 256):.1f}")
    186.2
    """
    return _speedup(parallel_fraction, np.sqrt(core_units), units)
