"""The fitted parameters of one kind of software on one class of machine."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Parameters:
    """Fitted parameters of one kind of software on one class of machine.

    Attributes
    ----------
    compute
        Attained fraction of the dense peak inside a full tile.
    vector
        Attained fraction of the vector peak in element-wise work and depthwise convolutions.
    bandwidth
        Attained fraction of the main memory's peak bandwidth.
    reuse
        Attained fraction of the bandwidth of the cache that feeds the tiles.
    launch
        Fixed cost of each kernel, in seconds.
    ramp
        Cost of starting and ending a block, as an equivalent number of reduction steps: filling the pipeline, the
        epilogue, requantising each output.
    link
        Attained fraction of a link's rate, in one direction.
    hop
        Latency of each step of a collective, in seconds.
    energy
        Energy of one 16-bit operation at 7 nm, for the whole board, in joules: together with the design power, a
        ceiling on the sustained rate. It scales with the bits of the format and with the square root of the node.
    splits
        Most parts into which a kernel splits the reduction of a product: 1 for kernels that never do.
    chain
        Least time of one reduction step of a block, as a multiple of the latency of one instruction: above 1 where
        loads, or sums of scaled blocks, come between two steps.
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
# What is expected of software before any measurement: the centres of the priors. A fit ships what differs from it.
EXPECTED = Parameters(
    compute=0.7, vector=0.4, bandwidth=0.8, reuse=0.6, launch=5e-6, ramp=64.0, link=0.7, hop=2e-6, energy=1.2e-12
)
