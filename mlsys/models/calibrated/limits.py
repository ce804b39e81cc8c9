"""What no program goes below, and which rate of a machine holds a case back."""

import numpy as np
from numpy.typing import NDArray

from mlsys.models.calibrated.laws import element_rate, issuing_seconds, power_ceiling, unpacking_seconds
from mlsys.models.calibrated.model import KernelTimes, kernel_times
from mlsys.models.calibrated.parameters import Parameters
from mlsys.models.calibrated.stack import Stack
from mlsys.models.calibrated.work import ATTENTION, COLLECTIVE, MATMUL, VECTOR

Array = NDArray[np.float64]

A_LITTLE = 1 + 1e-6
"""Times as much of a rate: what moves with it leans on it here, and what does not only compares it."""


def bound(stack: Stack) -> tuple[Array, Array]:
    """Return two lower bounds of each case's time: dense arithmetic, and compulsory traffic.

    Arithmetic: FLOP over the dense peak of the unit that does them; of a product, those that its
    shape has, which are fewer than a convolution's where an algorithm such as Winograd's saves
    multiplications. Traffic: parameters and the largest other tensor of any kernel, once, over
    the peak bandwidth: what lies between kernels may stay on the chip. What the case says is
    found in the cache does not come from the main memory.

    Returns
    -------
    tuple of array
        Seconds, of shape (cases,) each.
    """
    kernels, engines = stack.kernels, stack.engines
    best = np.maximum(engines["matmul"], engines["vector"])
    local = np.where(kernels["kind"] == COLLECTIVE, 0.0, 1.0)
    shaped = 2 * kernels["m"] * kernels["n"] * kernels["k"] * kernels["batch"]
    flops = np.where(kernels["kind"] == MATMUL, np.minimum(kernels["flops"], shaped), kernels["flops"])
    arithmetic = stack.total(local * flops / best)
    parameters = np.minimum(stack.main, kernels["weights"])
    weights = stack.total(local * parameters / engines["bandwidth"])
    largest = np.zeros(stack.cases)
    np.maximum.at(largest, stack.case, local * (stack.main - parameters) / engines["bandwidth"])
    return arithmetic, weights + largest


def holding(stack: Stack, parameters: Array, times: KernelTimes | None = None) -> dict[str, NDArray[np.bool_]]:
    """Return, by rate, the cases whose time comes from it: a kernel of theirs is held by it.

    Parameters
    ----------
    stack, parameters
        As for :func:`calibrated_times`.
    times
        What :func:`kernel_times` returns of them, where it is known.
    """
    times = times or kernel_times(stack, parameters)
    engines, kind = stack.engines, stack.kernels["kind"]
    rows = np.broadcast_to(np.asarray(parameters, dtype=float), (stack.cases, len(Parameters.names())))
    own = dict(zip(Parameters.names(), rows[stack.case].T, strict=True))
    working = times.working > times.moving
    multiplies = kind == MATMUL
    unpacks, issues = np.zeros(len(kind), dtype=bool), issuing_seconds(stack.kernels, engines, own) > 0
    if multiplies.any():
        unpacks[multiplies] = unpacking_seconds(stack.kernels, engines, own, times.moving, multiplies) > 0
    near = own["reuse"] * engines["cache_bandwidth"] > own["bandwidth"] * engines["bandwidth"]
    product = working & ((kind == MATMUL) | (kind == ATTENTION))
    elements = kind == VECTOR
    beside = working & elements & (element_rate(engines) > engines["vector"])  # on vectors of bytes
    computes = (product & ~times.fed & ~times.chained) | beside
    limited = computes & ~beside & (power_ceiling(engines, own) < own["compute"] * engines["matmul"])
    waits = product & times.fed
    held = {
        "matmul": computes & ~limited,
        "units": product | (working & issues),
        "clock": (product & times.chained) | (engines["controller"] > 0),
        "power": limited,
        "node": limited & np.isfinite(engines["power"]),
        "vector": (working & ((elements & ~beside) | (kind == ATTENTION))) | (~working & unpacks),
        "link": working & (kind == COLLECTIVE),
        "bandwidth": (~working & (stack.main > 0)) | (~near & (waits | (~working & (stack.near > 0)))),
        "cache_bandwidth": near & (waits | (~working & (stack.near > 0))),
    }
    return {name: np.bincount(stack.case, here, stack.cases) > 0 for name, here in held.items()}
