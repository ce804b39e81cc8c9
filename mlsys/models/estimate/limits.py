"""Lower bounds that no program can beat."""

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.work import COLLECTIVE, MATMUL

Array = NDArray[np.float64]


def bound(stack: CaseBatch) -> tuple[Array, Array]:
    """Return two lower bounds of each case's time: dense arithmetic, and compulsory traffic.

    Arithmetic: FLOP over the dense peak of the unit that does them. For a product, the FLOP of its shape count, which
    are fewer than the convolution's where an algorithm such as Winograd's saves multiplications. Traffic: parameters
    and the largest other tensor of any kernel, once, over the peak bandwidth; intermediate tensors may stay on the
    chip. Data that the case finds in the cache do not count as main-memory traffic.

    Returns
    -------
    tuple of array
        Seconds, of shape (cases,) each.
    """
    kernels, engines = stack.kernels, stack.engines
    best = np.maximum(engines["matmul"], engines["vector"])
    local = np.where(kernels["kind"] == COLLECTIVE, 0.0, 1.0)
    shaped = 2 * kernels["m"] * kernels["n"] * kernels["k"] * kernels["batch"] * (1 + kernels["extra_steps"])
    flops = np.where(kernels["kind"] == MATMUL, np.minimum(kernels["flops"], shaped), kernels["flops"])
    arithmetic = stack.total(local * flops / best)
    parameters = np.minimum(stack.main, kernels["weights"])
    weights = stack.total(local * parameters / engines["bandwidth"])
    largest = np.zeros(stack.cases)
    np.maximum.at(largest, stack.case, local * (stack.main - parameters) / engines["bandwidth"])
    return arithmetic, weights + largest
