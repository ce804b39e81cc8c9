"""Speedup of a whole when a part gets faster: Amdahl, his inverse, and Gustafson.

``parallel_fraction`` is the share of the original run time that the accelerator
takes over; the rest stays on the host. A kernel that waits for memory on the
accelerator is *not* serial in this sense: it belongs to the accelerated part.
"""

import numpy as np

from mlsys.door import at_least, door, fraction


def _complain_if(condition: object, text: str) -> str | None:
    return text if np.asarray(condition).any() else None


@door("", parallel_fraction=fraction(), accelerator_speedup=at_least(1))
def amdahl_speedup(parallel_fraction: float, accelerator_speedup: float) -> float:
    r"""Return the end-to-end speedup, :math:`1 / ((1-p) + p/S)`.

    Parameters
    ----------
    parallel_fraction
        Share *p* of the original time that is accelerated, 0 to 1, pure number.
    accelerator_speedup
        Speedup *S* >= 1 of that share, pure number.

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


@door("", parallel_fraction=fraction(below_one=True))
def amdahl_ceiling(parallel_fraction: float) -> float:
    r"""Return the speedup that no accelerator can pass, :math:`1/(1-p)`.

    Parameters
    ----------
    parallel_fraction
        Share *p* of the original time that is accelerated, at least 0 and below 1.

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


@door(
    "",
    lambda target_speedup, accelerator_speedup: _complain_if(
        target_speedup > accelerator_speedup,
        "`target_speedup` cannot be above `accelerator_speedup`: even a program that is accelerated whole "
        "gains no more than the accelerator gives. Lower the target or take a faster accelerator",
    ),
    target_speedup=at_least(1),
    accelerator_speedup=at_least(1),
)
def required_parallel_fraction(target_speedup: float, accelerator_speedup: float) -> float:
    r"""Return the accelerated share a target needs, :math:`(1-1/X)/(1-1/S)`.

    Parameters
    ----------
    target_speedup
        Wanted end-to-end speedup *X*, from 1 to *S*, pure number.
    accelerator_speedup
        Speedup *S* of the accelerated share, pure number. With *S* = 1 the answer is 0.

    Returns
    -------
    Quantity
        Pure number from 0 to 1.

    Raises
    ------
    ArgumentError
        If the target lies above *S*, which no share reaches.

    Examples
    --------
    >>> print(f"{required_parallel_fraction(8, 100):.4f}")
    0.8838
    """
    wanted, saved = np.broadcast_arrays(1 - 1 / np.asarray(target_speedup), 1 - 1 / np.asarray(accelerator_speedup))
    share = np.divide(wanted, saved, out=np.zeros(saved.shape), where=saved > 0)
    return share if share.ndim else float(share)


@door(
    "",
    lambda target_speedup, parallel_fraction: _complain_if(
        target_speedup * (1 - parallel_fraction) >= 1,
        "`target_speedup` is at or above the ceiling 1/(1 - parallel_fraction), which no accelerator reaches. "
        "Lower the target or move more of the program",
    ),
    target_speedup=at_least(1),
    parallel_fraction=fraction(),
)
def required_accelerator_speedup(target_speedup: float, parallel_fraction: float) -> float:
    r"""Return the accelerator speedup a target needs, :math:`p / (1/X - (1-p))`.

    Parameters
    ----------
    target_speedup
        Wanted end-to-end speedup *X* >= 1, below the ceiling, pure number.
    parallel_fraction
        Share *p* that is accelerated, pure number.

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


@door("", accelerator_speedup=at_least(1))
def device_bound_fraction(accelerator_speedup: float) -> float:
    r"""Return the share above which the accelerator, not the host, takes longer: :math:`S/(S+1)`.

    Parameters
    ----------
    accelerator_speedup
        Speedup *S* >= 1 of the accelerated share, pure number.

    Returns
    -------
    Quantity
        Pure number; at this *p* the host and the device take the same time.

    Examples
    --------
    >>> print(f"{device_bound_fraction(100):.4f}")
    0.9901
    """
    return accelerator_speedup / (accelerator_speedup + 1)


@door("", parallel_fraction=fraction(), accelerator_speedup=at_least(1))
def serial_share(parallel_fraction: float, accelerator_speedup: float) -> float:
    r"""Return the part of the *new* run time that is host time, :math:`(1-p)/((1-p)+p/S)`.

    Parameters
    ----------
    parallel_fraction
        Share *p* of the original time that is accelerated.
    accelerator_speedup
        Speedup *S* >= 1 of that share.

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


@door("", parallel_fraction=fraction(), processors=at_least(1))
def gustafson_speedup(parallel_fraction: float, processors: float) -> float:
    r"""Return the scaled speedup, :math:`(1-p) + pN`, for a problem that grows with the machine.

    Parameters
    ----------
    parallel_fraction
        Share *p* of the time *on the parallel machine* that runs in parallel.
    processors
        Number *N* >= 1 of processors, or the speedup of the parallel share.

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
