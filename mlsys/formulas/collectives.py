r"""Times of collective operations by algorithm: the :math:`\alpha`-:math:`\beta`-:math:`\gamma` model.

A message of *n* bytes takes :math:`\alpha + n\beta` (:func:`mlsys.formulas.message_time`), and a reduction adds
:math:`\gamma` seconds per byte. For an all-gather and a reduce-scatter, *n* is the whole array, of which each rank has
a *p*-th. Each rank sends one message and receives one at a time.

References
----------
R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005.
The costs are those in the comments of MPICH, src/mpi/coll.
"""

from typing import cast

import numpy as np

from mlsys.unit_checks import count, nonnegative, positive, quantity_function

_SIZE, _LATENCY, _RATE, _RANKS = nonnegative("byte"), nonnegative("s"), positive("byte/s"), count()
_MOVES = {"message": _SIZE, "ranks": _RANKS, "latency": _LATENCY, "bandwidth": _RATE}
_REDUCES = _MOVES | {"reduction_time_per_byte": nonnegative("s/byte")}


def _exponent(number: float) -> float:
    """Return the exponent of the smallest power of two above a whole number, or above each of an array."""
    return cast(float, np.frexp(np.asarray(number, np.float64))[1][()])


def _rounds(ranks: float) -> float:
    """Return the number of rounds in which a message reaches all ranks if its holders double: log2, rounded up."""
    return _exponent(ranks - 1)


def _halvings(ranks: float) -> float:
    """Return how often ranks can be halved until one is left: log2, rounded down."""
    return _exponent(ranks) - 1


@quantity_function("s", **_MOVES)
def ring_all_gather_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-gather around a ring, :math:`(p-1)\alpha + \frac{p-1}{p}n\beta`.

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
    >>> print(ring_all_gather_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    43.75 µs
    """
    return (ranks - 1) * latency + (ranks - 1) / ranks * message / bandwidth


@quantity_function("s", **_REDUCES)
def ring_reduce_scatter_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of a reduce-scatter around a ring, :math:`(p-1)\alpha + \frac{p-1}{p}n(\beta+\gamma)`.

    Parameters
    ----------
    message
        Bytes *n* of the whole array.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.
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


@quantity_function("s", **_REDUCES)
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
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.
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


@quantity_function("s", **_MOVES)
def recursive_doubling_all_gather_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-gather in :math:`\lceil\log_2 p\rceil` rounds.

    .. math:: \lceil\log_2 p\rceil\alpha + \frac{p-1}{p}n\beta

    In each round a rank sends all that it has: by recursive doubling for powers of two, otherwise by Bruck's algorithm.

    Parameters
    ----------
    message
        Bytes *n* of the whole array.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(recursive_doubling_all_gather_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    23.75 µs
    """
    return _rounds(ranks) * latency + (ranks - 1) / ranks * message / bandwidth


@quantity_function("s", **_REDUCES)
def recursive_doubling_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of an all-reduce by recursive doubling, :math:`\log_2 p\,(\alpha + n\beta + n\gamma)`.

    In each round pairs exchange their whole arrays. If *p* is not a power of two, the ranks beyond the largest power of
    two below it first send their arrays to a partner and finally receive the sum: two more messages and one more
    addition.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.
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


@quantity_function("s", **_REDUCES)
def rabenseifner_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of Rabenseifner's all-reduce.

    .. math:: 2\log_2 p\,\alpha + 2\frac{p-1}{p}n\beta + \frac{p-1}{p}n\gamma

    A reduce-scatter by recursive halving, then an all-gather by recursive doubling. If *p* is not a power of two, *p*
    in the equation is the largest power of two below it, and the other ranks first send their arrays to a partner and
    finally receive the sum: :math:`2\alpha + 2n\beta + n\gamma` more.

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.
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


@quantity_function("s", **_MOVES)
def tree_broadcast_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of a broadcast down a binomial tree, :math:`\lceil\log_2 p\rceil(\alpha + n\beta)`.

    Parameters
    ----------
    message
        Bytes *n*.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(tree_broadcast_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    45 µs
    """
    return _rounds(ranks) * (latency + message / bandwidth)


@quantity_function("s", **_REDUCES)
def tree_all_reduce_time(
    message: float, ranks: float, latency: float, bandwidth: float, reduction_time_per_byte: float = 0.0
) -> float:
    r"""Return the time of an all-reduce by a reduction up a binomial tree and a broadcast down it.

    .. math:: 2\lceil\log_2 p\rceil(\alpha + n\beta) + \lceil\log_2 p\rceil n\gamma

    Parameters
    ----------
    message
        Bytes *n* of the array of each rank.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.
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


@quantity_function("s", **_MOVES)
def ring_broadcast_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of a broadcast that scatters the array and gathers it around a ring.

    .. math:: (\lceil\log_2 p\rceil + p - 1)\alpha + 2\frac{p-1}{p}n\beta

    Parameters
    ----------
    message
        Bytes *n*.
    ranks
        Number of ranks *p*, a power of two; otherwise the scatter, whose halves are unequal, takes a little longer.
    latency, bandwidth
        Of one message: s, and byte/s in one direction.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(ring_broadcast_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    67.5 µs
    """
    return (_rounds(ranks) + ranks - 1) * latency + 2 * (ranks - 1) / ranks * message / bandwidth


@quantity_function("s", **_MOVES)
def pairwise_all_to_all_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an all-to-all by messages to each peer in turn, :math:`(p-1)(\alpha + \frac{n}{p}\beta)`.

    Parameters
    ----------
    message
        Bytes *n* that each rank holds, a *p*-th of it for each rank.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(pairwise_all_to_all_time(Q_(1, "MB"), 8, Q_(5, "us"), Q_(100, "GB/s")).to("us"))
    43.75 µs
    """
    return (ranks - 1) * (latency + message / ranks / bandwidth)


@quantity_function("s", **_MOVES)
def direct_exchange_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of an exchange with all peers at once, :math:`\alpha + \frac{p-1}{p}n\beta`.

    Each rank sends a *p*-th of the array to every peer. The messages share the bandwidth of a rank, and their latencies
    overlap. This is an all-to-all, an all-gather or a reduce-scatter in one shot; two of them make an all-reduce.

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


@quantity_function("s", **_MOVES)
def bruck_all_to_all_time(message: float, ranks: float, latency: float, bandwidth: float) -> float:
    r"""Return the time of Bruck's all-to-all, :math:`\log_2 p\,(\alpha + \frac{n}{2}\beta)` for a power of two.

    In round *i* a rank sends the blocks whose number has bit *i*: fewer messages, but bytes travel several times.

    Parameters
    ----------
    message
        Bytes *n* that each rank holds, a *p*-th of it for each rank.
    ranks, latency, bandwidth
        As for :func:`ring_all_gather_time`.

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
    "s", message=_SIZE, ranks_per_node=_RANKS, nodes=_RANKS, latency_inside=_LATENCY, bandwidth_inside=_RATE,
    latency_between=_LATENCY, bandwidth_between=_RATE,
)  # fmt: skip
def hierarchical_all_reduce_time(
    message: float,
    ranks_per_node: float,
    nodes: float,
    latency_inside: float,
    bandwidth_inside: float,
    latency_between: float,
    bandwidth_between: float,
) -> float:
    r"""Return the time of a hierarchical all-reduce: inside nodes, between them, inside again.

    A reduce-scatter around the ring of each node, an all-reduce of each *g*-th of the array between nodes, an
    all-gather inside: :math:`2\frac{g-1}{g}n\beta_i + 2\frac{k-1}{k}\frac{n}{g}\beta_o` plus the latencies.

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
