"""Cutting a matrix product into folds that fit in an array, and when each fold starts.

A product of an (M × K) by a (K × N) matrix becomes a grid of folds. In every dataflow
one index is mapped to the rows of the array, one to its columns, and one is streamed:

================  ==============  =================  ========
dataflow          along the rows  along the columns  streamed
================  ==============  =================  ========
``ws`` (weight)   K               N                  M
``is`` (input)    K               M                  N
``os`` (output)   M               N                  K
================  ==============  =================  ========

The left operand is called *ifmap* and the right one *filter*, as in a convolution layer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.choices import Convention, FoldOverlap, Stationary
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_choice, checked_number, count

__all__ = [
    "CONVENTIONS",
    "DATAFLOWS",
    "OVERLAPS",
    "Convention",
    "FoldOverlap",
    "Folds",
    "Stationary",
    "ceil_div",
    "choose",
    "exact_count",
    "folds",
    "larger",
]

DATAFLOWS: dict[Stationary, str] = {"ws": "weight-stationary", "os": "output-stationary", "is": "input-stationary"}
CONVENTIONS: dict[Convention, str] = {
    "physical": "every cycle from the first word loaded to the last word drained",
    "scalesim": "as SCALE-Sim 3.0.0 reports",
}
OVERLAPS: dict[FoldOverlap, str] = {
    "none": "a fold starts when the previous one has left the array",
    "load": "stationary words are loaded, or finished sums drained, while another fold streams",
    "full": "as load, and a fold streams in directly behind the previous one",
}
_LARGEST = 0.99 * 2.0**63


def exact_count(where: str, name: str, value: Any) -> Any:
    """Return a size as an exact integer, or an array of them.

    Raises
    ------
    ArgumentError
        If a size is zero, negative, fractional, not a number, or True or False.

    Examples
    --------
    >>> exact_count("systolic", "m", 2.0), exact_count("systolic", "m", np.array([1, 3]))
    (2, array([1, 3]))
    """
    number = checked_number(where, name, value, count(), {})
    if isinstance(number, np.ndarray) and number.ndim:
        if isinstance(value, np.ndarray) and value.dtype.kind == "i":
            return value.astype(np.int64)
        if number.dtype.kind == "f" and (number > 2**53).any():
            raise ArgumentError(f"{where}(): `{name}` must be exact, got floats above 2**53. Give whole numbers")
        return number.astype(np.int64)
    return int(number)


def ceil_div(a: Any, b: Any) -> Any:
    """Return a / b rounded up, exact for integers and arrays of them."""
    return -(-a // b)


def larger(a: Any, b: Any) -> Any:
    """Return the maximum of two integers, or the element-wise maximum of arrays."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where the condition holds, else ``no``, for scalars or arrays."""
    if isinstance(condition, (bool, np.bool_)):
        return yes if condition else no
    return np.where(condition, yes, no)


@dataclass(frozen=True)
class Folds:
    """A matrix product cut for an array; every number may be a NumPy array of cases.

    Attributes
    ----------
    m, n, k
        Rows and columns of the output, and length of the reduction.
    array_rows, array_columns
        Rows and columns of the array.
    dataflow
        ``"ws"``, ``"os"`` or ``"is"``.
    along_rows, along_columns, streamed
        The three sizes in the order of the table above.
    row_folds, column_folds
        Folds along the rows and the columns; row folds are the inner loop.
    copies
        Number of equal products: the groups of a convolution, the heads of attention.
    """

    m: Any
    n: Any
    k: Any
    array_rows: Any
    array_columns: Any
    dataflow: Stationary
    along_rows: Any
    along_columns: Any
    streamed: Any
    row_folds: Any
    column_folds: Any
    copies: Any = 1

    @property
    def count(self) -> Any:
        """Total number of folds."""
        return self.row_folds * self.column_folds * self.copies

    @property
    def macs(self) -> Any:
        """Useful multiply-accumulates of all copies."""
        return self.m * self.n * self.k * self.copies

    @property
    def fold_cycles(self) -> Any:
        """Cycles of a single fold (load or drain, fill, stream): T + 2R + C - 2."""
        return self.streamed + 2 * self.array_rows + self.array_columns - 2

    def step(self, fold_overlap: FoldOverlap) -> Any:
        """Return the cycles between the starts of consecutive folds."""
        if fold_overlap == "none":
            return self.fold_cycles
        if fold_overlap == "load":
            return self.fold_cycles - self.array_rows
        return larger(self.streamed, self.array_rows)


def folds(m: Any, n: Any, k: Any, rows: Any, columns: Any, dataflow: Stationary = "ws", where: str = "folds") -> Folds:
    """Cut an (m × k) by (k × n) product for an array of ``rows`` × ``columns``.

    Parameters
    ----------
    m, n, k, rows, columns
        Positive integers, or arrays of them that broadcast.
    dataflow
        ``"ws"``, ``"os"`` or ``"is"``.
    where
        Function name for error messages.

    Raises
    ------
    ArgumentError, UnknownNameError
        If a size is not a positive integer, or the dataflow is unknown.

    Notes
    -----
    Scalars are Python integers and exact at any size. Arrays are 64-bit; if a count could
    overflow, they become arrays of Python integers, which are slower but exact.

    Examples
    --------
    >>> cut = folds(100, 100, 100, 8, 8)
    >>> cut.row_folds, cut.column_folds, cut.fold_cycles
    (13, 13, 122)
    """
    checked_choice(where, "dataflow", dataflow, DATAFLOWS)
    sizes = [
        exact_count(where, name, value)
        for name, value in (("m", m), ("n", n), ("k", k), ("rows", rows), ("columns", columns))
    ]
    if any(isinstance(size, np.ndarray) for size in sizes):
        # Upper bound of all cycles and counts: a few times the product of the three sizes, each padded to the array.
        high = [float(np.max(size)) for size in sizes]
        pad = high[3] + high[4]
        if (high[0] + pad) * (high[1] + pad) * (high[2] + 2 * pad) * 4 > _LARGEST:
            sizes = [np.asarray(size, dtype=object) for size in sizes]
        sizes = list(np.broadcast_arrays(*sizes))
    m, n, k, rows, columns = sizes
    along_rows, along_columns, streamed = {"ws": (k, n, m), "is": (k, m, n), "os": (m, n, k)}[dataflow]
    return Folds(
        m, n, k, rows, columns, dataflow, along_rows, along_columns, streamed,
        ceil_div(along_rows, rows), ceil_div(along_columns, columns),
    )  # fmt: skip
