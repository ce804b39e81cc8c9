"""Priors of the parameters before any measurement, with their limits."""

from dataclasses import dataclass

from mlsys.models.estimate.parameters import EXPECTED


@dataclass(frozen=True)
class Prior:
    """Expected value of a parameter, its prior spread, and its limits."""

    centre: float
    factor: float  # one standard deviation, as a factor
    lowest: float
    highest: float
    why: str


PRIORS: dict[str, Prior] = {
    "compute": Prior(
        EXPECTED.compute, 2.0, 0.005, 1.05, "a tuned inner loop issues most cycles; 1.05 allows for boost clocks"
    ),
    "vector": Prior(EXPECTED.vector, 2.5, 0.005, 1.05, "element-wise loops rarely fill the vector unit"),
    "bandwidth": Prior(EXPECTED.bandwidth, 1.4, 0.05, 1.0, "STREAM attains 80 to 95 % of the pins' rate"),
    "reuse": Prior(
        EXPECTED.reuse, 2.0, 0.05, 30.0, "part of the shared cache's rate; above 1 where nearer levels feed the tiles"
    ),
    "launch": Prior(
        EXPECTED.launch, 4.0, 1e-8, 5e-3, "a kernel of CUDA costs microseconds; an eager operator tens of them"
    ),
    "ramp": Prior(EXPECTED.ramp, 3.0, 1.0, 4096.0, "filling and draining a block's pipeline: a few dozen steps"),
    "link": Prior(EXPECTED.link, 1.4, 0.05, 1.0, "ring all-reduce attains 70 to 90 % of its links"),
    "hop": Prior(EXPECTED.hop, 2.5, 1e-7, 1e-3, "one step of a collective: a launch and a flight"),
    "energy": Prior(
        EXPECTED.energy, 1.25, 1e-13, 1e-11, "A100: 400 W at about 300 TFLOP/s; with the design power a ceiling"
    ),
    "splits": Prior(8.0, 4.0, 1.0, 32.0, "cuBLAS splits a deep reduction among blocks, other kernels do not"),
    "chain": Prior(
        EXPECTED.chain, 1.5, 0.25, 8.0, "of the cycles of one instruction; other kernels wait for loads between them"
    ),
}
