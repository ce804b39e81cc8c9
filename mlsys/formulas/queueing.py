"""Queues: Little's law, utilisation, waiting times of M/M/1, M/D/1, M/G/1 and M/M/c, filling and padding of batches.

References
----------
L. Kleinrock, Queueing Systems, volume 1, Wiley, 1975.
J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9(3), 1961.
"""

from collections.abc import Iterable

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.unit_checks import Argument, checked_count, count, nonnegative, positive, quantity_function


def _load() -> Argument:
    """Return the spec of the utilisation of a queue in steady state: 0 up to, but not including, 1."""
    return Argument("", low=0, high=1, high_is_allowed=False)


def _proper_fraction() -> Argument:
    """Return the spec of a fraction between 0 and 1, both excluded."""
    return Argument("", low=0, low_is_allowed=False, high=1, high_is_allowed=False)


@quantity_function("", arrival_rate=nonnegative("1/s"), time_in_system=nonnegative("s"))
def requests_in_system(arrival_rate: float, time_in_system: float) -> float:
    r"""Return the mean number of requests in a system by Little's law, :math:`L = \lambda W`.

    It holds for every queue in steady state, whatever its order of service or its distributions.

    Parameters
    ----------
    arrival_rate
        Mean arrival rate, 1/s.
    time_in_system
        Mean time that a request spends in the system, s; for the time in the queue, the mean number that waits.

    Returns
    -------
    Quantity
        Pure number.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{requests_in_system(Q_(2.49, '1/s'), Q_(25.58, 's')):.1f}")
    63.7
    """
    return arrival_rate * time_in_system


@quantity_function("s", service_time=positive("s"), utilisation=_load())
def mm1_wait(service_time: float, utilisation: float) -> float:
    r"""Return the mean time in the queue of M/M/1, :math:`S \rho / (1 - \rho)`.

    Arrivals are Poisson, service times exponential, and there is one server.

    Parameters
    ----------
    service_time
        Mean service time *S*, s.
    utilisation
        Utilisation of the server.

    Returns
    -------
    Quantity
        Seconds, without the service itself.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the utilisation is 1 or more, where the queue has no steady state, or an argument has a wrong unit.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(mm1_wait(Q_(1, "s"), 0.9).round(6))
    9 s
    """
    return service_time * utilisation / (1 - utilisation)


@quantity_function("s", service_time=positive("s"), utilisation=_load())
def md1_wait(service_time: float, utilisation: float) -> float:
    r"""Return the mean time in the queue of M/D/1, :math:`S \rho / (2 (1 - \rho))`: half that of M/M/1.

    Arrivals are Poisson, all service times are equal, and there is one server.

    Parameters
    ----------
    service_time
        Service time *S*, s.
    utilisation
        Utilisation of the server.

    Returns
    -------
    Quantity
        Seconds, without the service itself.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(md1_wait(Q_(1, "s"), 0.8).round(6))
    2 s
    """
    return service_time * utilisation / (2 * (1 - utilisation))


@quantity_function("", servers=count(), utilisation=_load())
def erlang_c(servers: int, utilisation: float) -> float:
    r"""Return the probability that a request waits in M/M/c, by Erlang's C formula.

    It is computed from Erlang's B by :math:`B_n = A B_{n-1} / (n + A B_{n-1})` with :math:`A = c\rho`, which does
    not overflow for many servers, and :math:`C = B / (1 - \rho (1 - B))`.

    Parameters
    ----------
    servers
        Number *c* of parallel servers.
    utilisation
        Utilisation of each.

    Returns
    -------
    Quantity
        Pure number from 0 to 1.

    Examples
    --------
    >>> print(f"{erlang_c(8, 0.9):.6f}")
    0.701533
    """
    traffic, blocked = servers * utilisation, 1.0
    for server in range(1, int(np.max(servers)) + 1):
        more = traffic * blocked / (server + traffic * blocked)
        exists = server <= servers  # of an array of server counts, some end before
        blocked = more * exists + blocked * (1 - exists)
    return blocked / (1 - utilisation * (1 - blocked))


@quantity_function("s", service_time=positive("s"), utilisation=_load(), servers=count())
def mmc_wait(service_time: float, utilisation: float, servers: int) -> float:
    r"""Return the mean time in the queue of M/M/c, :math:`C(c, \rho) S / (c (1 - \rho))`.

    Arrivals are Poisson, service times exponential, and *c* servers share one queue.

    Parameters
    ----------
    service_time
        Mean service time *S* of one server, s.
    utilisation
        Utilisation of each server.
    servers
        Number of servers.

    Returns
    -------
    Quantity
        Seconds, without the service itself.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{mmc_wait(Q_(1, 's'), 0.8, 4):.6f}")
    0.745541 s
    """
    waits: float = erlang_c.bare(servers, utilisation)
    return waits * service_time / (servers * (1 - utilisation))


@quantity_function("s", service_time=positive("s"), utilisation=_load(), share=_proper_fraction())
def mm1_sojourn_percentile(service_time: float, utilisation: float, share: float) -> float:
    r"""Return a percentile of the time in the system of M/M/1, :math:`-\ln(1 - q) S / (1 - \rho)`.

    The time in the system, waiting and service together, is exponential with mean :math:`S / (1 - \rho)`.

    Parameters
    ----------
    service_time
        Mean service time *S*, s.
    utilisation
        Utilisation of the server.
    share
        Share *q* of the requests that take at most this long, such as 0.99.

    Returns
    -------
    Quantity
        Seconds.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{mm1_sojourn_percentile(Q_(1, 's'), 0.8, 0.99):.2f}")
    23.03 s
    """
    means: float = -np.log1p(-share)
    return means * service_time / (1 - utilisation)


@quantity_function("s", batch=count(), arrival_rate=positive("1/s"))
def batch_fill_wait(batch: int, arrival_rate: float) -> float:
    r"""Return the mean time that requests wait for their batch to fill, :math:`(b - 1) / (2 \lambda)`.

    The first of *b* requests waits for :math:`b - 1` arrivals, the last for none. Arrivals are steady, and a server is
    free when the batch is full.

    Parameters
    ----------
    batch
        Requests *b* of a batch.
    arrival_rate
        Mean arrival rate, 1/s.

    Returns
    -------
    Quantity
        Seconds, before any wait for the server and without the service itself.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(batch_fill_wait(32, Q_(100, "1/s")).to("ms").round(6))
    155 ms
    """
    return (batch - 1) / (2 * arrival_rate)


def padding_waste(lengths: Iterable[int], buckets: Iterable[int]) -> float:
    """Return the share of the tokens of a batch that is padding, when each length is padded to the next bucket.

    Parameters
    ----------
    lengths
        Tokens of each input.
    buckets
        Sizes that inputs are padded to; each length takes the smallest that is not shorter.

    Returns
    -------
    float
        From 0 up to, but not including, 1.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If there is no length or no bucket, one is no positive whole number, or a length exceeds all buckets.

    Examples
    --------
    >>> round(padding_waste([300], [512]), 3)
    0.414
    >>> padding_waste([300, 512], [256, 512, 1024])
    0.20703125
    """
    sizes = sorted(checked_count("padding_waste", "buckets", bucket) for bucket in buckets)
    real = [checked_count("padding_waste", "lengths", length) for length in lengths]
    if not sizes or not real:
        raise ArgumentError("padding_waste(): give at least one length and one bucket, e.g. [300], [512]")
    if max(real) > sizes[-1]:
        raise ArgumentError(
            f"padding_waste(): a length of {max(real)} exceeds the largest bucket, {sizes[-1]}. Add a larger bucket"
        )
    padded = np.asarray(sizes)[np.searchsorted(sizes, real)]
    return float(1 - sum(real) / padded.sum())
