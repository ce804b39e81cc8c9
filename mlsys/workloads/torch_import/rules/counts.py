"""The counts of one operator, in plain numbers."""

from typing import NamedTuple


class Counts(NamedTuple):
    """Work and traffic of one operator.

    Attributes
    ----------
    kind
        ``"gemm"``, ``"conv2d"``, …; ``"view"`` for what moves nothing, ``"unknown"`` for what has no rule.
    macs, elementwise
        Multiply-accumulates of products; FLOP beside them.
    read, written, weights
        Bytes read (weights among them), written, and of weights alone.
    made
        Bytes of new tensors; nothing for a view or for work in place.
    parameters
        Parameters it holds, which may be more than it reads.
    known
        Whether a rule was there.
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
