"""The counts of one operator, in plain numbers."""

from typing import NamedTuple


class Counts(NamedTuple):
    """Work and traffic of one operator.

    Attributes
    ----------
    kind
        ``"gemm"``, ``"conv2d"``, …; ``"view"`` if it moves no data, ``"unknown"`` without a rule.
    macs, elementwise
        Multiply-accumulates of products; all other FLOP.
    read, written, weights
        Bytes read (weights included), bytes written, and bytes of weights.
    made
        Bytes of new tensors; zero for a view or an in-place operator.
    parameters
        Parameters it holds, which may be more than it reads.
    known
        Whether there is a rule.
    shape
        Names and numbers the counts were made from.
    """

    kind: str
    macs: int
    elementwise: int
    read: int
    written: int
    weights: int
    made: int
    parameters: int
    known: bool
    shape: tuple[tuple[str, int], ...] = ()
