"""The roofline model: attainable performance as a function of arithmetic intensity.

References
----------
S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance
model for multicore architectures, CACM 52(4), 2009.
"""

import numpy as np

from mlsys.unit_checks import nonnegative, positive, quantity_function


@quantity_function("FLOP/byte", peak=positive("FLOP/s"), bandwidth=positive("byte/s"))
def ridge_point(peak: float, bandwidth: float) -> float:
    """Return the ridge point, the intensity at which the compute and memory limits are equal: peak / bandwidth.

    Parameters
    ----------
    peak
        Dense peak rate of one precision, FLOP/s.
    bandwidth
        Bandwidth of the memory level, byte/s.

    Returns
    -------
    Quantity
        FLOP/byte. Compare it only with intensities in the same precision.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If an argument has no unit or a wrong one, or is not positive and finite.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{ridge_point(Q_(312, 'TFLOP/s'), Q_(2039, 'GB/s')):.1f}")
    153.0 FLOP/B
    """
    return peak / bandwidth


@quantity_function("FLOP/byte", operations=positive("FLOP"), data=positive("byte"))
def arithmetic_intensity(operations: float, data: float) -> float:
    """Return the arithmetic intensity: operations per byte moved, FLOP/byte.

    Parameters
    ----------
    operations
        Work, FLOP; a quantity in MAC is converted at two FLOP each.
    data
        Bytes read from and written to the memory level.

    Returns
    -------
    Quantity
        FLOP/byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(arithmetic_intensity(Q_(50, "MMAC"), Q_(25, "MB")))
    4 FLOP/B
    """
    return operations / data


@quantity_function("FLOP/s", intensity=positive("FLOP/byte"), peak=positive("FLOP/s"), bandwidth=positive("byte/s"))
def attainable_performance(intensity: float, peak: float, bandwidth: float) -> float:
    r"""Return the attainable performance, :math:`\min(R, BW \cdot I)`.

    Parameters
    ----------
    intensity
        Arithmetic intensity *I*, FLOP/byte; ``.bare`` takes arrays of any shape.
    peak
        Peak rate *R*, FLOP/s.
    bandwidth
        Bandwidth *BW*, byte/s.

    Returns
    -------
    Quantity
        FLOP/s, in the broadcast shape of the arguments.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> roof = attainable_performance(Q_(10, "FLOP/byte"), Q_(312, "TFLOP/s"), Q_(2039, "GB/s"))
    >>> print(f"{roof.to('TFLOP/s'):.2f}")
    20.39 TFLOP/s
    """
    return np.minimum(peak, bandwidth * intensity)  # type: ignore[no-any-return]


@quantity_function("", intensity=positive("FLOP/byte"), ridge=positive("FLOP/byte"))
def utilisation_ceiling(intensity: float, ridge: float) -> float:
    r"""Return the upper bound of utilisation, as a fraction of the peak, :math:`\min(1, I/I_{ridge})`.

    Parameters
    ----------
    intensity
        Arithmetic intensity of the work, FLOP/byte.
    ridge
        Ridge point of the machine in the same precision, FLOP/byte.

    Returns
    -------
    Quantity
        Pure number, above 0 and up to 1.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{utilisation_ceiling(Q_(31, 'FLOP/byte'), Q_(153, 'FLOP/byte')):.3f}")
    0.203
    """
    return np.minimum(1.0, intensity / ridge)  # type: ignore[no-any-return]


@quantity_function(
    "s",
    operations=nonnegative("FLOP"),
    data=nonnegative("byte"),
    peak=positive("FLOP/s"),
    bandwidth=positive("byte/s"),
)
def roofline_time(operations: float, data: float, peak: float, bandwidth: float) -> float:
    """Return the lower bound on time: the maximum of compute time and data-movement time.

    Parameters
    ----------
    operations
        Work, FLOP.
    data
        Bytes moved.
    peak
        Peak rate, FLOP/s.
    bandwidth
        Bandwidth, byte/s.

    Returns
    -------
    Quantity
        Seconds.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> t = roofline_time(Q_(268.4, "MFLOP"), Q_(8.651, "MB"), Q_(312, "TFLOP/s"), Q_(2039, "GB/s"))
    >>> print(f"{t.to('us'):.2f}")
    4.24 µs
    """
    return np.maximum(operations / peak, data / bandwidth)  # type: ignore[no-any-return]
