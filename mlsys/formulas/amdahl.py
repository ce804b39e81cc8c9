"""Speedup of a program when a part of it is accelerated: Amdahl's law, its inverses, and Gustafson's law.

``parallel_fraction`` is the fraction of the original run time that moves to the
accelerator; the rest stays on the host. A memory-bound kernel on the accelerator
is *not* serial in this sense: it belongs to the accelerated part.
"""

import numpy as np

from mlsys.unit_checks import at_least, fraction, quantity_function


def _message_if(condition: object, text: str) -> str | None:
    return text if np.asarray(condition).any() else None


@quantity_function("", parallel_fraction=fraction(), accelerator_speedup=at_least(1))
def amdahl_speedup(parallel_fraction: float, accelerator_speedup: float) -> float:
    r"""Return the end-to-end speedup, :math:`1 / ((1-p) + p/S)`.

    Parameters
    ----------
    parallel_fraction
        Fraction *p* of the original time that is accelerated, 0 to 1, pure number.
    accelerator_speedup
        Speedup *S* >= 1 of that fraction, pure number.

    Returns
    -------
    Quantity
        Pure number between 1 and min(S, 1/(1-p)).

    Raises
    ------
    ArgumentError
        If *p* is outside [0, 1] or *S* below 1.

    References
    ----------
    G. M. Amdahl, AFIPS Spring Joint Computer Conference, 1967.

    Examples
    --------
    >>> print(f"{amdahl_speedup(0.95, 100):.2f}")
    16.81
    """
    return 1 / ((1 - parallel_fraction) + parallel_fraction / accelerator_speedup)


@quantity_function("", parallel_fraction=fraction(below_one=True))
def amdahl_ceiling(parallel_fraction: float) -> float:
    r"""Return the upper bound of the speedup with any accelerator, :math:`1/(1-p)`.

    Parameters
    ----------
    parallel_fraction
        Fraction *p* of the original time that is accelerated, at least 0 and below 1.

    Returns
    -------
    Quantity
        Pure number, 1 or more.

    Examples
    --------
    >>> print(f"{amdahl_ceiling(0.95):.1f}")
    20.0
    """
    return 1 / (1 - parallel_fraction)


@quantity_function(
    "",
    lambda target_speedup, accelerator_speedup: _message_if(
        target_speedup > accelerator_speedup,
        "`target_speedup` cannot be above `accelerator_speedup`: even a program that is accelerated "
        "entirely gains no more. Lower the target or choose a faster accelerator",
    ),
    target_speedup=at_least(1),
    accelerator_speedup=at_least(1),
)
def required_parallel_fraction(target_speedup: float, accelerator_speedup: float) -> float:
    r"""Return the accelerated fraction that a target speedup requires, :math:`(1-1/X)/(1-1/S)`.

    Parameters
    ----------
    target_speedup
        Target end-to-end speedup *X*, from 1 to *S*, pure number.
    accelerator_speedup
        Speedup *S* of the accelerated fraction, pure number. With *S* = 1 the result is 0.

    Returns
    -------
    Quantity
        Pure number from 0 to 1.

    Raises
    ------
    ArgumentError
        If the target is above *S*, which no fraction reaches.

    Examples
    --------
    >>> print(f"{required_parallel_fraction(8, 100):.4f}")
    0.8838
    """
    needed, saved = np.broadcast_arrays(1 - 1 / np.asarray(target_speedup), 1 - 1 / np.asarray(accelerator_speedup))
    required = np.divide(needed, saved, out=np.zeros(saved.shape), where=saved > 0)
    return required if required.ndim else float(required)


@quantity_function(
    "",
    lambda target_speedup, parallel_fraction: _message_if(
        target_speedup * (1 - parallel_fraction) >= 1,
        "`target_speedup` is at or above the ceiling 1/(1 - parallel_fraction), which no accelerator reaches. "
        "Lower the target or accelerate more of the program",
    ),
    target_speedup=at_least(1),
    parallel_fraction=fraction(),
)
def required_accelerator_speedup(target_speedup: float, parallel_fraction: float) -> float:
    r"""Return the accelerator speedup that a target speedup requires, :math:`p / (1/X - (1-p))`.

    Parameters
    ----------
    target_speedup
        Target end-to-end speedup *X* >= 1, below the ceiling, pure number.
    parallel_fraction
        Fraction *p* that is accelerated, pure number.

    Returns
    -------
    Quantity
        Pure number, 1 or more.

    Raises
    ------
    ArgumentError
        If the target is not below :math:`1/(1-p)`.

    Examples
    --------
    >>> print(f"{required_accelerator_speedup(16, 0.95):.1f}")
    76.0
    """
    return parallel_fraction / (1 / target_speedup - (1 - parallel_fraction))


@quantity_function("", accelerator_speedup=at_least(1))
def device_bound_fraction(accelerator_speedup: float) -> float:
    r"""Return the accelerated fraction above which the accelerator takes longer than the host, :math:`S/(S+1)`.

    Parameters
    ----------
    accelerator_speedup
        Speedup *S* >= 1 of the accelerated fraction, pure number.

    Returns
    -------
    Quantity
        Pure number; at this *p* host and accelerator take the same time.

    Examples
    --------
    >>> print(f"{device_bound_fraction(100):.4f}")
    0.9901
    """
    return accelerator_speedup / (accelerator_speedup + 1)


@quantity_function("", parallel_fraction=fraction(), accelerator_speedup=at_least(1))
def serial_share(parallel_fraction: float, accelerator_speedup: float) -> float:
    r"""Return the fraction of the *new* run time that is spent on the host, :math:`(1-p)/((1-p)+p/S)`.

    Parameters
    ----------
    parallel_fraction
        Fraction *p* of the original time that is accelerated.
    accelerator_speedup
        Speedup *S* >= 1 of that fraction.

    Returns
    -------
    Quantity
        Pure number from 0 to 1.

    Examples
    --------
    >>> print(f"{serial_share(0.98, 100):.3f}")
    0.671
    """
    return (1 - parallel_fraction) / ((1 - parallel_fraction) + parallel_fraction / accelerator_speedup)


@quantity_function("", parallel_fraction=fraction(), processors=at_least(1))
def gustafson_speedup(parallel_fraction: float, processors: float) -> float:
    r"""Return the scaled speedup, :math:`(1-p) + pN`, for a problem that grows with the machine.

    Parameters
    ----------
    parallel_fraction
        Fraction *p* of the time *on the parallel machine* that runs in parallel.
    processors
        Number *N* >= 1 of processors, or the speedup of the parallel fraction.

    Returns
    -------
    Quantity
        Pure number from 1 to *N*.

    References
    ----------
    J. L. Gustafson, Reevaluating Amdahl's law, CACM 31(5), 1988.

    Examples
    --------
    >>> print(f"{gustafson_speedup(0.95, 100):.2f}")
    95.05
    """
    return (1 - parallel_fraction) + parallel_fraction * processors
