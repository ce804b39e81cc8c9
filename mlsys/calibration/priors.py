"""Priors of the parameters before any measurement, with their limits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Prior:
    """Expected value of a parameter, its prior spread, and its limits."""

    centre: float
    factor: float  # one standard deviation, as a factor
    lowest: float
    highest: float
    why: str


PRIORS: dict[str, Prior] = {
    "compute": Prior(0.7, 2.0, 0.005, 1.05, "a tuned inner loop issues most cycles; 1.05 allows for boost clocks"),
    "vector": Prior(0.4, 2.5, 0.005, 1.05, "element-wise loops rarely fill the vector unit"),
    "bandwidth": Prior(0.8, 1.4, 0.05, 1.0, "STREAM attains 80 to 95 % of the pins' rate"),
    "reuse": Prior(0.6, 2.0, 0.05, 30.0, "part of the shared cache's rate; above 1 where nearer levels feed the tiles"),
    "launch": Prior(5e-6, 4.0, 1e-8, 5e-3, "a kernel of CUDA costs microseconds; an eager operator tens of them"),
    "ramp": Prior(64.0, 3.0, 1.0, 4096.0, "filling and draining a block's pipeline: a few dozen steps"),
    "link": Prior(0.7, 1.4, 0.05, 1.0, "ring all-reduce attains 70 to 90 % of its links"),
    "hop": Prior(2e-6, 2.5, 1e-7, 1e-3, "one step of a collective: a launch and a flight"),
    "energy": Prior(1.2e-12, 1.25, 1e-13, 1e-11, "A100: 400 W at about 300 TFLOP/s; with the design power a ceiling"),
    "splits": Prior(8.0, 4.0, 1.0, 32.0, "cuBLAS splits a deep reduction among blocks, other kernels do not"),
    "chain": Prior(1.0, 1.5, 0.25, 8.0, "of the cycles of one instruction; other kernels wait for loads between them"),
}
