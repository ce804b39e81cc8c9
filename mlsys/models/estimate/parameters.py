"""What is fitted: how much of each rate one kind of software attains on one class of machine, and what it adds."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Parameters:
    """What is fitted, for one kind of software on one class of machine.

    Attributes
    ----------
    compute
        Attained part of the dense peak inside a full tile.
    vector
        Attained part of the vector peak in element-wise work and depthwise convolutions.
    bandwidth
        Attained part of the peak bandwidth of the main memory.
    reuse
        Attained part of the bandwidth of the cache that feeds the tiles.
    launch
        Seconds that each kernel costs, however small.
    ramp
        What starting and ending a block costs, as steps of the reduction that it would pay
        for: the pipeline's fill, the epilogue, requantising each output.
    link
        Attained part of a link's rate, one direction.
    hop
        Seconds of latency for each step of a collective.
    energy
        Joules that the whole board spends on one 16-bit operation at 7 nm: with the design
        power, a ceiling on the sustained rate. In proportion to the bits of the format,
        and to the square root of the node.
    splits
        Parts that a kernel splits the reduction of a product into at most: 1 for one that never does.
    chain
        How many times as long as one instruction after the other a step of a block's reduction takes at least:
        above 1 where loads, or sums of scaled blocks, stand between them.
    """

    compute: float = 0.8
    vector: float = 0.5
    bandwidth: float = 0.85
    reuse: float = 0.5
    launch: float = 5e-6
    ramp: float = 64.0
    link: float = 0.7
    hop: float = 2e-6
    energy: float = 1.3e-12
    splits: float = 32.0
    chain: float = 1.0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in order."""
        return _NAMES

    def vectorised(self) -> NDArray[np.float64]:
        """Return the parameters as one row."""
        return np.array([getattr(self, name) for name in _NAMES])


_NAMES = tuple(entry.name for entry in fields(Parameters))
