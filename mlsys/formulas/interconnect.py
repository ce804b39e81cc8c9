r"""Time of messages and of collective operations: the :math:`\alpha`-:math:`\beta`-:math:`\gamma` model.

A message of *n* bytes takes :math:`\alpha + n\beta`: a latency and the bytes over the bandwidth of one direction. A
reduction adds :math:`\gamma` seconds per byte. For an all-gather and a reduce-scatter, *n* is the whole array, of
which each rank has a *p*-th. Each rank sends one message and receives one at a time.

References
----------
R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005.
The costs are those in the comments of MPICH, src/mpi/coll.
"""

from typing import cast

import numpy as np

from mlsys.unit_checks import count, nonnegative, positive, quantity_function

_SIZE, _LATENCY, _RATE, _RANKS = nonnegative("byte"), nonnegative("s"), positive("byte/s"), count()
_REDUCTION = nonnegative("s/byte")


def _exponent(number: float) -> float:
    """Return the exponent of the smallest power of two above a whole number, or above each of an array."""
    return cast(float, np.frexp(np.asarray(number, np.float64))[1][()])


def _rounds(ranks: float) -> float:
    """Return the number of rounds in which a message reaches all ranks if its holders double: log2, rounded up."""
    return _exponent(ranks - 1)


def _halvings(ranks: float) -> float:
    """Return how often ranks can be halved until one is left: log2, rounded down."""
    return _exponent(ranks) - 1


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
    r"""Return the message that attains half of the bandwidth, :math:`n_{1/2} = \alpha/\beta`.

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


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def ring_all_gather_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-gather around a ring, :math:`(p-1)\alpha + \frac{p-1}{p}n\beta`.

    Parameters
    ----------
    message
        Bytes *n* of the whole array.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message to the next rank: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(ring_all_gather_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    43.75 µs
    """
    return (ranks - 1) * latency + (ranks - 1) / ranks * message / bandwidth


@quantity_function(
    "s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE, reduction_time_per_byte=_REDUCTION
)
def ring_reduce_scatter_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of a reduce-scatter around a ring, :math:`(p-1)\alpha + \frac{p-1}{p}n(\beta+\gamma)`.

    Parameters
    ----------
    message
        Bytes *n* of the whole array.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message to the next rank: s, and byte/s in one direction.
    reduction_time_per_byte
        Time :math:`\gamma` of adding up one byte, s/byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(ring_reduce_scatter_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    43.75 µs
    """
    share = (ranks - 1) / ranks * message
    return (ranks - 1) * latency + share / bandwidth + share * reduction_time_per_byte


@quantity_function(
    "s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE, reduction_time_per_byte=_REDUCTION
)
def ring_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of an all-reduce around a ring.

    .. math:: 2(p-1)\alpha + 2\frac{p-1}{p}n\beta + \frac{p-1}{p}n\gamma

    It is a reduce-scatter and an all-gather; each rank sends less than twice the array, however many there are.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message to the next rank: s, and byte/s in one direction.
    reduction_time_per_byte
        Time :math:`\gamma` of adding up one byte, s/byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{ring_all_reduce_time(Q_(1, 'GB'), 8, Q_(0, 's'), Q_(300, 'GB/s')).to('ms'):.2f}")
    5.83 ms
    """
    share = (ranks - 1) / ranks * message
    return 2 * (ranks - 1) * latency + 2 * share / bandwidth + share * reduction_time_per_byte


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def recursive_doubling_all_gather_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-gather in :math:`\lceil\log_2 p\rceil` rounds.

    .. math:: \lceil\log_2 p\rceil\alpha + \frac{p-1}{p}n\beta

    In each round a rank sends all that it has: by recursive doubling for powers of two, by Bruck's algorithm else.

    Parameters
    ----------
    message
        Bytes *n* of the whole array.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(recursive_doubling_all_gather_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    23.75 µs
    """
    return _rounds(ranks) * latency + (ranks - 1) / ranks * message / bandwidth


@quantity_function(
    "s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE, reduction_time_per_byte=_REDUCTION
)
def recursive_doubling_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of an all-reduce by recursive doubling, :math:`\log_2 p\,(\alpha + n\beta + n\gamma)`.

    In each round pairs exchange their whole arrays. If *p* is not a power of two, the ranks beyond the largest one hand
    their arrays over first and receive the sum last: two more messages and one more addition.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.
    reduction_time_per_byte
        Time :math:`\gamma` of adding up one byte, s/byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(recursive_doubling_all_reduce_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    45 µs
    """
    rounds = _halvings(ranks)
    power: float = 2.0**rounds
    left = ranks > power
    exchanges, additions = rounds + 2 * left, rounds + 1 * left
    return exchanges * (latency + message / bandwidth) + additions * message * reduction_time_per_byte


@quantity_function(
    "s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE, reduction_time_per_byte=_REDUCTION
)
def rabenseifner_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of Rabenseifner's all-reduce.

    .. math:: 2\log_2 p\,\alpha + 2\frac{p-1}{p}n\beta + \frac{p-1}{p}n\gamma

    A reduce-scatter by recursive halving, then an all-gather by recursive doubling. If *p* is not a power of two, *p*
    in the equation is the largest one below, and the other ranks hand their arrays over first and receive the sum
    last: :math:`2\alpha + 2n\beta + n\gamma` more.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.
    reduction_time_per_byte
        Time :math:`\gamma` of adding up one byte, s/byte.

    References
    ----------
    R. Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(rabenseifner_all_reduce_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    47.5 µs
    """
    rounds = _halvings(ranks)
    power: float = 2.0**rounds
    left = 1 * (ranks > power)
    share = (power - 1) / power * message
    exchanges = 2 * rounds + 2 * left
    sent, added = 2 * share + 2 * left * message, share + left * message
    return exchanges * latency + sent / bandwidth + added * reduction_time_per_byte


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def tree_broadcast_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of a broadcast down a binomial tree, :math:`\lceil\log_2 p\rceil(\alpha + n\beta)`.

    Parameters
    ----------
    message
        Bytes *n*.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(tree_broadcast_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    45 µs
    """
    return _rounds(ranks) * (latency + message / bandwidth)


@quantity_function(
    "s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE, reduction_time_per_byte=_REDUCTION
)
def tree_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of a reduction up a binomial tree and a broadcast down it.

    .. math:: 2\lceil\log_2 p\rceil(\alpha + n\beta) + \lceil\log_2 p\rceil n\gamma

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.
    reduction_time_per_byte
        Time :math:`\gamma` of adding up one byte, s/byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(tree_all_reduce_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    90 µs
    """
    rounds = _rounds(ranks)
    return 2 * rounds * (latency + message / bandwidth) + rounds * message * reduction_time_per_byte


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def ring_broadcast_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of a broadcast that scatters the array and gathers it around a ring.

    .. math:: (\lceil\log_2 p\rceil + p - 1)\alpha + 2\frac{p-1}{p}n\beta

    Parameters
    ----------
    message
        Bytes *n*.
    ranks
        Number of ranks *p*, a power of two; for others the scatter, whose halves are unequal, takes a little longer.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(ring_broadcast_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    67.5 µs
    """
    return (_rounds(ranks) + ranks - 1) * latency + 2 * (ranks - 1) / ranks * message / bandwidth


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def pairwise_all_to_all_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-to-all by messages to each peer in turn, :math:`(p-1)(\alpha + \frac{n}{p}\beta)`.

    Parameters
    ----------
    message
        Bytes *n* that each rank holds, a *p*-th of it for each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(pairwise_all_to_all_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    43.75 µs
    """
    return (ranks - 1) * (latency + message / ranks / bandwidth)


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def direct_exchange_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time in which each rank sends a *p*-th to every peer at once, :math:`\alpha + \frac{p-1}{p}n\beta`.

    The messages share the bandwidth of a rank, and their latencies pass together. It is an all-to-all, an all-gather
    or a reduce-scatter in one shot; two of them are an all-reduce.

    Parameters
    ----------
    message
        Bytes *n* of the whole array, or those that each rank holds in an all-to-all.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s of a rank in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(direct_exchange_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    13.75 µs
    """
    return (ranks > 1) * latency + (ranks - 1) / ranks * message / bandwidth


@quantity_function("s", message=_SIZE, ranks=_RANKS, latency=_LATENCY, bandwidth=_RATE)
def bruck_all_to_all_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of Bruck's all-to-all, :math:`\log_2 p\,(\alpha + \frac{n}{2}\beta)` for a power of two.

    In round *i* a rank sends the blocks whose number has bit *i*: fewer messages, but bytes travel several times.

    Parameters
    ----------
    message
        Bytes *n* that each rank holds, a *p*-th of it for each rank.
    ranks
        Number of ranks *p*.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(bruck_all_to_all_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    30 µs
    """
    bits = [2.0**bit for bit in range(int(np.max(_rounds(ranks))))]
    blocks: float = sum(ranks // (2 * bit) * bit + np.maximum(ranks % (2 * bit) - bit, 0) for bit in bits)
    return _rounds(ranks) * latency + blocks / ranks * message / bandwidth


@quantity_function(
    "s",
    message=_SIZE,
    ranks_per_node=_RANKS,
    nodes=_RANKS,
    latency_inside=_LATENCY,
    bandwidth_inside=_RATE,
    latency_between=_LATENCY,
    bandwidth_between=_RATE,
)
def hierarchical_all_reduce_time(
    message: float,
    ranks_per_node: float,
    nodes: float,
    latency_inside: float,
    bandwidth_inside: float,
    latency_between: float,
    bandwidth_between: float,
) -> float:
    r"""Return the time of an all-reduce in three parts: inside nodes, between them, inside again.

    A reduce-scatter around the ring of each node, an all-reduce of each *g*-th of the array between nodes, an
    all-gather inside: :math:`2\frac{g-1}{g}n\beta_i + 2\frac{k-1}{k}\frac{n}{g}\beta_o` and its latencies.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks_per_node, nodes
        Numbers *g* and *k*.
    latency_inside, bandwidth_inside
        Of one message inside a node: s, and byte/s in one direction.
    latency_between, bandwidth_between
        Of one message between nodes: s, and byte/s of each rank in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> inside, between = (Q_(0, "s"), Q_(450, "GB/s")), (Q_(0, "s"), Q_(50, "GB/s"))
    >>> print(f"{hierarchical_all_reduce_time(Q_(1, 'GB'), 8, 2, *inside, *between).to('ms'):.2f}")
    6.39 ms
    """
    within = 2 * ring_all_gather_time.bare(message, ranks_per_node, latency_inside, bandwidth_inside)
    part = message / ranks_per_node
    between = ring_all_reduce_time.bare(part, nodes, latency_between, bandwidth_between)
    return cast(float, within + between)


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
