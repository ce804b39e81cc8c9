"""Training steps of networks whose operators run one by one: the kernels between products, forward and backward.

A compiler fuses normalisations and activations with the products before them. PyTorch starts a kernel for each, and
another for its gradient. The number of passes over the data follows from the computation: statistics of a batch are
known only after a first pass over it, and the gradient of a normalisation needs two sums over all values before any
of it can be written.
"""

import numpy as np

from mlsys.models.estimate.eager import GRADIENT_PASSES, scores_of
from mlsys.models.estimate.lowering import Format, concatenated, kernels_of
from mlsys.models.estimate.work import VECTOR, Kernel, Work
from mlsys.workloads import Network, Operator

# Runs of a product for the gradients of its two operands; and, forward and backward, of a step without activation
# recomputation.
BACKWARD = 2.0
ONCE = (1.0, BACKWARD)
# Bytes moved by forward and gradient kernels, relative to one read and one write of the tensor.
# Batch normalisation: one read for the statistics, then a read and a write. Its gradient: inputs and gradients read for
# two sums, then read again, and one write. Layer normalisation keeps a row on the chip; its gradient passes over both
# tensors once more, to sum the gradients of scale and shift.
BATCH_NORM, LAYER_NORM = (1.5, 2.5), (1.0, 2.5)
# Under automatic mixed precision, layer normalisation and softmax run in FP32, between casts (PyTorch, "CUDA Ops that
# can autocast to float32"). Bytes per value, relative to the four bytes of one read and one write in FP16: forward a
# cast of 2 and 4, the operator of 4 and 4; backward a cast of 2 and 4, the operator of 8 and 4, its sums of 8.
CAST_LAYER_NORM = (14 / 4, 26 / 4)
# Values moved per score between the products of attention, forward and for the gradient, by scale and softmax; and
# bytes with the casts around the softmax: 4 for scale, 6, 8 and 6; then 6, 12, 6 and 4.
SCORES, CAST_SCORES = (4.0, 5.0), (24.0, 28.0)
# Least operations per value of a layer normalisation; a normalisation with fewer is a batch normalisation.
OF_A_LAYER = 4.0
# Bytes that the optimiser moves per weight: SGD with momentum and decay, in FP32, one operator at a time, takes a dozen
# reads and writes.
UPDATED = 48.0


def step_kernels(
    network: Network,
    fmt: Format,
    passes: tuple[float, float] = ONCE,
    casts: bool = False,
    written_out: bool = True,
    winograd: float = 1.0,
) -> Work:
    """Return the kernels of one training step.

    Parameters
    ----------
    network
        Built in FP16, without fusion.
    fmt, written_out, winograd
        As for :func:`mlsys.models.estimate.eager.eager_kernels`.
    passes
        Runs of each product: once forward, or twice with activation recomputation, plus those for the gradients of
        its operands.
    casts
        Whether automatic mixed precision is used, so that some operators run in FP32 between casts.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network = zoo.network("resnet50", precision="fp16", fused=False)
    >>> step = step_kernels(network, Format("fp16", 2, 2), casts=True)
    >>> int(step["count"].sum()), f"{(step['moved'] * step['count']).sum() / 1e9:.2f} GB"
    (403, '1.87 GB')
    """
    plain = kernels_of(network, fmt, winograd=winograd)
    columns = plain.columns.copy()
    moved, count = Work.FIELDS.index("moved"), Work.FIELDS.index("count")
    gradients, beside = [], []
    for row, operator in enumerate(network.distinct):
        if operator.kind in ("conv2d", "gemm", "attention"):
            columns[count, row] *= sum(passes)
        else:
            forward, backward = _passes(operator, float(network.arrays.flops[row]), casts)
            gradient = plain.columns[:, row].copy()
            gradient[moved] *= backward
            gradients.append(gradient)
            columns[moved, row] *= forward
            columns[count, row] *= passes[0]
        if operator.kind == "attention":
            # Counted without fusion, they cross the memory four times: written and read by the products, and once in
            # between.
            scores, times = scores_of(operator), float(plain["count"][row])
            columns[moved, row] -= (2 if written_out else 4) * scores * fmt.value
            forward, backward = CAST_SCORES if casts else (fmt.value * each for each in SCORES)
            if written_out:
                beside.append(Kernel(VECTOR, flops=0.0, moved=forward * scores, count=passes[0] * times))
                beside.append(Kernel(VECTOR, flops=0.0, moved=backward * scores, count=times))
    weights = float((network.arrays.weights * network.arrays.repeats).sum()) / 2
    beside.append(Kernel(VECTOR, flops=weights, moved=UPDATED * weights, weights=UPDATED * weights))
    return concatenated(Work(columns), Work(np.array(gradients).reshape(-1, len(Work.FIELDS)).T), Work.of(beside))


def _passes(operator: Operator, flops: float, casts: bool) -> tuple[float, float]:
    """Return the bytes that an operator's kernels move forward and backward, relative to one read and one write."""
    if "norm" not in f"{operator.kind} {operator.name}":
        return 1.0, GRADIENT_PASSES
    if flops < OF_A_LAYER * operator.shape["elements"]:
        return BATCH_NORM
    return CAST_LAYER_NORM if casts else LAYER_NORM
