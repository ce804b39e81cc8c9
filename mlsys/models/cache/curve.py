"""Miss curves: misses as a function of capacity, from reuse distances."""

from dataclasses import dataclass

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.cache.geometry import whole_bytes
from mlsys.models.cache.simulate import dense_lines
from mlsys.models.cache.trace import Trace
from mlsys.provenance import traced
from mlsys.unit_checks import Argument, checked_number
from mlsys.units import Quantity, ureg

_MISSES = Argument("", low=0, whole=True)


@dataclass(frozen=True, eq=False)
class MissCurve:
    """Misses of a fully associative least-recently-used cache as a function of capacity.

    Attributes
    ----------
    line
        Bytes of a line.
    misses
        Misses with 0, 1, 2, … lines, shape (distinct lines + 1,); non-increasing.
    """

    line: Quantity
    misses: np.ndarray

    def at(self, capacity: Quantity) -> int:
        """Return the misses of a cache of ``capacity``.

        Raises
        ------
        ArgumentError
            If the capacity is not a whole number of lines.
        """
        room = whole_bytes("MissCurve.at", "capacity", capacity)
        size = int(self.line.m_as("byte"))
        if room % size:
            raise ArgumentError(
                f"MissCurve.at(): `capacity` of {room} bytes must be whole lines of {size} bytes. "
                f'Write e.g. capacity=Q_({size * max(1, room // size)}, "byte")'
            )
        return int(self.misses[min(room // size, len(self.misses) - 1)])

    def smallest_capacity(self, misses: int) -> Quantity:
        """Return the smallest capacity with at most ``misses`` misses.

        Raises
        ------
        ArgumentError
            If ``misses`` is below the compulsory misses, one per line.
        """
        wanted = int(checked_number("smallest_capacity", "misses", misses, _MISSES, {}))
        if wanted < self.misses[-1]:
            raise ArgumentError(
                f"smallest_capacity(): `misses` must be at least {self.misses[-1]}, the first touch of each line, "
                f"got {wanted}. Write e.g. misses={self.misses[-1]}"
            )
        lines = int(np.argmax(self.misses <= wanted))
        capacity: Quantity = ureg.Quantity(lines * int(self.line.m_as("byte")), "byte")
        return capacity


@traced
def miss_curve(trace: Trace, line: Quantity) -> MissCurve:
    """Return the misses of a fully associative cache for every capacity, in one pass.

    An access misses if at least as many distinct other lines as the cache holds were touched
    since the last access to its line: its reuse distance decides for all capacities at once.

    Parameters
    ----------
    trace
        Accesses of the program.
    line
        Bytes of a line, a whole multiple of the element size.

    Returns
    -------
    MissCurve

    References
    ----------
    R. Mattson, J. Gecsei, D. Slutz, I. Traiger, Evaluation Techniques for Storage Hierarchies,
    IBM Systems Journal 9(2), 1970.

    Examples
    --------
    >>> from mlsys.models.cache import gemm_trace
    >>> from mlsys.units import Q_
    >>> curve = miss_curve(gemm_trace(64, 64, 64, Q_(4, "byte"), 16), Q_(4, "byte"))
    >>> curve.at(Q_(4, "KiB")), curve.at(Q_(8, "KiB"))
    (46944, 36864)
    """
    from mlsys.models.cache.kernels import reuse_distances

    size = whole_bytes("miss_curve", "line", line)
    if size % trace.element_bytes:
        raise ArgumentError(
            f"miss_curve(): `line` of {size} bytes must be a whole multiple of the element size, "
            f"{trace.element_bytes} bytes. Write e.g. line=Q_({trace.element_bytes * -(-size // trace.element_bytes)}, "
            '"byte")'
        )
    ids, numbers = dense_lines(trace.addresses, size)
    histogram = np.zeros(len(numbers), np.int64)
    reuse_distances(ids, len(numbers), histogram)
    hits = histogram.cumsum()
    distinct = len(np.unique(ids))
    misses = len(ids) - np.concatenate([[0], hits])[: distinct + 1]
    misses.setflags(write=False)
    return MissCurve(ureg.Quantity(size, "byte"), misses)
