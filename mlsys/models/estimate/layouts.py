"""Layout copies that a library makes in addition to the kernels of a network.

A library's convolutions want inputs, outputs and weights in an order of their own. A compiler that sees the whole
network orders them once; a framework that hands over one layer at a time has them copied at every call.
"""

import re
from collections.abc import Container

import numpy as np

from mlsys.models.estimate.eager import Ran
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.work import QUEUED, VECTOR, Work
from mlsys.precision import element_size
from mlsys.units import number_in, ureg
from mlsys.workloads import Network, Operator

_BYTE = ureg.Unit("byte")
_SIDES = ("kernel", "kernel_height", "kernel_width")


# What is copied around a convolution: tensors from NCHW to NHWC and back (also for 1 × 1 images), or weights into
# blocks, or the heads of attention.
PLANES, ALL_PLANES, BLOCKS, HEADS = "planes", "all planes", "blocks", "heads"
# From planes to pixels and back cuDNN copies itself in a pass forward, after one call from Python: 80 networks of
# KernelBench take as long for each call with such copies between as without.
# Attention tensors in token order where products write or read them, and in head order inside attention.
TURNED = 4


def copied_beside(setting: str, engine: Snapshot) -> str:
    """Return the copies around PyTorch's convolutions or TensorFlow 1's attention; empty for other settings.

    TensorFlow 1's XLA adds biases to queries, keys and values and transposes them to head order in separate kernels,
    and transposes the result back (google-research/bert, modeling.py, ``transpose_for_scores``: one ``tf.transpose``
    for each). Rows of version 2 show no such kernels.

    Parameters
    ----------
    setting
        Such as ``"eager network on GPU"``.
    engine
        Rates in the format of the network.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate import snapshot
    >>> a100 = snapshot(view(Hardware.Cloud.A100, "fp16"))
    >>> [copied_beside(f"{program} network on GPU", a100) for program in ("eager", "compiled")]
    ['planes', '']
    """
    if re.fullmatch(r"(eager|torch\.compile) network on CPU", setting):
        return BLOCKS
    if setting == "TensorFlow XLA 1 network on GPU":
        return HEADS
    if engine.over_vector <= MATRIX_UNITS or engine.array > 1:
        return ""
    return {"eager network on GPU": PLANES, "eager training on GPU": ALL_PLANES}.get(setting, "")


def layout_copies(copies: str, network: Network, fmt: Format | None = None, others: Container[str] = ()) -> Ran:
    """Return the copies around a network's convolutions or attention, and the operators that they belong to.

    Parameters
    ----------
    copies
        As returned by :func:`copied_beside`.
    network
        Without fusion, so that outputs are those of convolutions.
    fmt
        Bytes of a weight and of another value, of a network that was built in FP16; None as the network counted them.
    others
        Names of further operators implemented as convolutions.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network = zoo.network("resnet50", precision="fp16", fused=False)
    >>> int(layout_copies(PLANES, network).work["count"].sum())  # the first convolution, and one in each of 16 blocks
    34
    >>> weights = layout_copies(BLOCKS, network, Format("fp32", 4, 4)).work
    >>> f"{weights.launches:.0f} copies, {(weights['moved'] * weights['count']).sum() / 1e6:.0f} MB"
    '53 copies, 188 MB'
    """
    arrays = network.arrays
    # One operator for each row of the arrays, and the bytes that it counted a value with.
    operators = network.distinct
    sizes = {name: number_in(element_size(name), _BYTE) for name in {each.precision for each in operators}}
    counted = np.array([sizes[each.precision] for each in operators])
    moved = np.zeros((0, len(operators)))
    here = np.zeros(len(operators), dtype=bool)
    if copies == BLOCKS:
        here = np.array([each.kind == "conv2d" or each.name in others for each in operators], dtype=bool)
        moved = 2 * arrays.weights[None] * (fmt.weight / counted if fmt else 1.0)
    elif copies in (PLANES, ALL_PLANES):
        narrowest = 2 if copies == PLANES else 1
        here = np.array([_sees_pixels(each, narrowest) for each in operators], dtype=bool)
        outputs = arrays.m * arrays.n
        inputs = (arrays.data - arrays.weights) / counted - outputs
        moved = 2 * np.array([inputs, outputs]) * (fmt.value if fmt else counted)
    elif copies == HEADS:
        here = np.array([each.kind == "attention" for each in operators], dtype=bool)
        turned = arrays.m * arrays.k * arrays.copies / 2  # of its two products for each head
        moved = 2 * np.array([turned] * TURNED) * (fmt.value if fmt else counted)
    owner = np.repeat(np.flatnonzero(here), len(moved))
    columns = np.ones((len(Work.FIELDS), len(owner)))
    for name, values in (("kind", VECTOR), ("flops", 0), ("moved", moved.T[here].ravel()), ("weights", 0),
                         ("count", arrays.repeats[owner]), ("ranks", QUEUED if copies == PLANES else 1.0),
                         ("block_rows", 0), ("block_columns", 0), ("extra_steps", 0)):  # fmt: skip
        columns[Work.FIELDS.index(name)] = values
    return Ran(Work(columns), owner)


def _sees_pixels(operator: Operator, narrowest: int) -> bool:
    """Return whether an operator is a dense convolution with at least so many pixels."""
    shape = operator.shape
    dense = operator.kind == "conv2d" and shape.get("groups", 1) == 1
    return dense and max(shape.get(side, 1) for side in _SIDES) >= narrowest
