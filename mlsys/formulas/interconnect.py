r"""Messages between chips and their bandwidths: the :math:`\alpha`-:math:`\beta` model, and what nccl-tests reports.

A message of *n* bytes takes :math:`\alpha + n\beta`: a latency and the bytes over the bandwidth of one direction. The
times of collective operations are in :mod:`mlsys.formulas.collectives`.
"""

from mlsys.unit_checks import count, nonnegative, positive, quantity_function

_SIZE, _LATENCY, _RATE, _RANKS = nonnegative("byte"), nonnegative("s"), positive("byte/s"), count()


@quantity_function("s", message=_SIZE, latency=_LATENCY, bandwidth=_RATE)
def message_time(message: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of one message, :math:`\alpha + n\beta`.

    Parameters
    ----------
    message
        Bytes *n*.
    latency
        Time :math:`\alpha` of the smallest message, s.
    bandwidth
        Bandwidth :math:`1/\beta` in one direction, byte/s.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(message_time(Q_(1, "MB"), Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    15 µs
    """
    return latency + message / bandwidth


@quantity_function("byte", latency=_LATENCY, bandwidth=_RATE)
def half_performance_size(latency: float, bandwidth: float) -> float:
    r"""Return the message size that attains half of the bandwidth, :math:`n_{1/2} = \alpha/\beta`.

    Parameters
    ----------
    latency
        Time of the smallest message, s.
    bandwidth
        Bandwidth in one direction, byte/s.

    References
    ----------
    R. W. Hockney, Parallel Computing 20(3), 1994.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(half_performance_size(Q_(5, "us"), Q_(100, "GB/s")).to("kB"))
    500 kB
    """
    return latency * bandwidth


@quantity_function("byte/s", bandwidth=_RATE, flows=_RANKS)
def shared_bandwidth(bandwidth: float, flows: float) -> float:
    """Return the bandwidth of each of several flows that share one link in one direction.

    Parameters
    ----------
    bandwidth
        Of the link in one direction, byte/s.
    flows
        Number of flows in that direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(shared_bandwidth(Q_(31.5, "GB/s"), 2).to("GB/s"))
    15.75 GB/s
    """
    return bandwidth / flows


@quantity_function("byte/s", message=positive("byte"), time=positive("s"))
def algorithm_bandwidth(message: float, time: float) -> float:
    """Return the bytes of the array over the time of the operation; see the traffic factors for the bus bandwidth.

    Parameters
    ----------
    message
        Bytes of the array; for an all-gather and a reduce-scatter those of the whole array.
    time
        Time of the operation, s.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> rate = algorithm_bandwidth(Q_(1, "GB"), Q_(5, "ms"))
    >>> print(rate.to("GB/s"), (rate * all_gather_traffic_factor(8)).to("GB/s"))
    200 GB/s 175 GB/s
    """
    return message / time


@quantity_function("", ranks=_RANKS)
def all_reduce_traffic_factor(ranks: float) -> float:
    r"""Return the bytes that each rank must send in an all-reduce, over the bytes of the array, :math:`2(p-1)/p`.

    Times the algorithm bandwidth (bytes of the array over the time) it is the bus bandwidth of nccl-tests.

    Parameters
    ----------
    ranks
        Number of ranks *p*.

    References
    ----------
    NVIDIA/nccl-tests, doc/PERFORMANCE.md.

    Examples
    --------
    >>> print(all_reduce_traffic_factor(8))
    1.75
    """
    return 2 * (ranks - 1) / ranks


@quantity_function("", ranks=_RANKS)
def all_gather_traffic_factor(ranks: float) -> float:
    r"""Return the bytes that each rank must receive in an all-gather, over those of the whole array, :math:`(p-1)/p`.

    The same holds for a reduce-scatter and an all-to-all. Times the algorithm bandwidth (bytes of the whole array over
    the time) it is the bus bandwidth of nccl-tests.

    Parameters
    ----------
    ranks
        Number of ranks *p*.

    References
    ----------
    NVIDIA/nccl-tests, doc/PERFORMANCE.md.

    Examples
    --------
    >>> print(all_gather_traffic_factor(8))
    0.875
    """
    return (ranks - 1) / ranks
