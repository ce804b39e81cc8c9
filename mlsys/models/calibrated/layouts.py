"""Copies that a library makes to have numbers lie as its kernels read them, beside what a network computes.

A library's convolutions want inputs, outputs and weights in an order of their own. A compiler that sees the whole
network orders them once; a framework that hands over one layer at a time has them copied at every call.
"""

import re
from collections.abc import Container
from dataclasses import astuple

import numpy as np

from mlsys.models.calibrated.eager import Ran
from mlsys.models.calibrated.laws import MATRIX_UNITS
from mlsys.models.calibrated.lowering import Format
from mlsys.models.calibrated.machine import Snapshot
from mlsys.models.calibrated.work import VECTOR, Kernel, Work
from mlsys.precision import element_size
from mlsys.workloads import Network, Operator

_SIDES = ("kernel", "kernel_height", "kernel_width")


# What is copied beside a convolution: numbers from planes to pixels and back, of one that sees a single pixel too, or
# weights into blocks.
PLANES, ALL_PLANES, BLOCKS = "planes", "all planes", "blocks"


def copied_beside(setting: str, engine: Snapshot) -> str:
    """Return what PyTorch's library copies beside convolutions: nothing under other software, or on other units.

    Parameters
    ----------
    setting
        Such as ``"eager network on GPU"``.
    engine
        In the format of the network.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.calibrated import snapshot
    >>> a100 = snapshot(view(Hardware.Cloud.A100, "fp16"))
    >>> [copied_beside(f"{program} network on GPU", a100) for program in ("eager", "compiled")]
    ['planes', '']
    """
    if re.fullmatch(r"(eager|torch\.compile) network on CPU", setting):
        return BLOCKS
    if engine.over_vector <= MATRIX_UNITS or engine.array > 1:
        return ""
    return {"eager network on GPU": PLANES, "eager training on GPU": ALL_PLANES}.get(setting, "")


def layout_copies(copies: str, network: Network, fmt: Format | None = None, others: Container[str] = ()) -> Ran:
    """Return the copies beside the convolutions of a network, and whose they are.

    Parameters
    ----------
    copies
        As :func:`copied_beside` returns it.
    network
        With nothing fused, so that outputs are those of convolutions.
    fmt
        Bytes of a weight and of another value, of a network that was built in FP16; None as the network counted them.
    others
        Names of operators that are written as convolutions, too.

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
    kernels: list[Kernel] = []
    owner: list[int] = []
    for row, operator in dict(zip(arrays.order.tolist(), network.operators, strict=True)).items():
        counted = element_size(operator.precision).m_as("byte")
        moved: tuple[float, ...] = ()
        if copies == BLOCKS and (operator.kind == "conv2d" or operator.name in others):
            moved = (2 * float(arrays.weights[row]) * (fmt.weight / counted if fmt else 1.0),)
        elif copies in (PLANES, ALL_PLANES) and _sees_pixels(operator, 2 if copies == PLANES else 1):
            both, outputs = (
                float(arrays.data[row] - arrays.weights[row]) / counted,
                float(arrays.m[row] * arrays.n[row]),
            )
            moved = tuple(2 * values * (fmt.value if fmt else counted) for values in (both - outputs, outputs))
        kernels += [Kernel(VECTOR, 0.0, size, count=float(arrays.repeats[row])) for size in moved]
        owner += [row] * len(moved)
    columns = np.array([astuple(kernel) for kernel in kernels], dtype=float).reshape(len(kernels), len(Work.FIELDS)).T
    return Ran(Work(columns), np.array(owner, dtype=np.intp))


def _sees_pixels(operator: Operator, narrowest: int) -> bool:
    """Return whether an operator is a dense convolution of so many pixels at least."""
    shape = operator.shape
    dense = operator.kind == "conv2d" and shape.get("groups", 1) == 1
    return dense and max(shape.get(side, 1) for side in _SIDES) >= narrowest
