"""The iron law: time of data movement, computation and fixed latency, with and without overlap."""

import numpy as np

from mlsys.unit_checks import efficiency, nonnegative, positive, quantity_function

_ARGUMENTS = {
    "data": nonnegative("byte"),
    "bandwidth": positive("byte/s"),
    "operations": nonnegative("FLOP"),
    "peak": positive("FLOP/s"),
    "efficiency": efficiency(),
    "latency": nonnegative("s"),
}


@quantity_function("s", **_ARGUMENTS)
def sequential_time(
    data: float, bandwidth: float, operations: float, peak: float, efficiency: float = 1.0, latency: float = 0.0
) -> float:
    r"""Return the time without overlap, :math:`D/BW + O/(R\,\eta) + L`.

    Parameters
    ----------
    data
        Bytes moved *D*.
    bandwidth
        Bandwidth *BW*, byte/s.
    operations
        Work *O*, FLOP.
    peak
        Peak rate *R* of the precision in use, FLOP/s.
    efficiency
        Fraction of the peak that is reached, above 0 and up to 1. It divides the
        rate: a less efficient program takes longer.
    latency
        Fixed time *L* in s, independent of bandwidth and peak.

    Returns
    -------
    Quantity
        Seconds.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If an argument has no unit, a wrong one, or a value out of range.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> t = sequential_time(Q_(2, "GB"), Q_(2, "TB/s"), Q_(3, "TFLOP"), Q_(3, "PFLOP/s"))
    >>> print(f"{t.to('ms'):.1f}")
    2.0 ms
    """
    return data / bandwidth + operations / (peak * efficiency) + latency


@quantity_function("s", **_ARGUMENTS)
def overlapped_time(
    data: float, bandwidth: float, operations: float, peak: float, efficiency: float = 1.0, latency: float = 0.0
) -> float:
    r"""Return the time when data movement and computation overlap, :math:`\max(D/BW, O/(R\,\eta)) + L`.

    Parameters and errors are those of :func:`sequential_time`.

    Parameters
    ----------
    data, bandwidth, operations, peak, efficiency, latency
        As in :func:`sequential_time`: byte, byte/s, FLOP, FLOP/s, pure number, s.

    Returns
    -------
    Quantity
        Seconds; with zero latency, between half of the time without overlap and all
        of it.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> t = overlapped_time(Q_(2, "GB"), Q_(2, "TB/s"), Q_(3, "TFLOP"), Q_(3, "PFLOP/s"))
    >>> print(f"{t.to('ms'):.1f}")
    1.0 ms
    """
    return np.maximum(data / bandwidth, operations / (peak * efficiency)) + latency  # type: ignore[no-any-return]
