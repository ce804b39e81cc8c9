"""Cycles and SRAM of an INT8 network on an Ethos-U55: output blocks, and weights fetched from flash."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.edge.arena import weighted
from mlsys.errors import ArgumentError
from mlsys.hardware import Hardware
from mlsys.hardware.view import view
from mlsys.provenance import comparing
from mlsys.unit_checks import checked_number, positive

if TYPE_CHECKING:
    from mlsys.workloads.operator import Operator
    from mlsys.workloads.workload import Workload

_DOT = 8  # multipliers per output
_BRICK = 16  # channels per group of a stored feature map
_SCALE = 10  # bytes of bias and scale per output channel
_SLICE, _ONCE = 32, 64  # channels of a weight slice; pixels that need weights to be fetched only once
_FLASH = 0.5e9  # byte/s of the off-chip flash in the High-End Embedded system of vela.ini
# Least cycles of an output block, cycles that a block adds to its dot products, cycles per element of an addition, and
# per input of a pooling; from Vela's layers of ResNet-8 and the pooling of DS-CNN alone.
_BLOCK = {128: (8.5, 5.0, 1.5, 0.675), 256: (12.0, 8.7, 0.75, 0.675)}


@dataclass(frozen=True)
class NpuStep:
    """One operator: cycles of arithmetic, of the SRAM and of the flash; the largest determines its time."""

    name: str
    compute: float
    sram: float
    flash: float

    @property
    def cycles(self) -> float:
        """Cycles of the operator."""
        return max(self.compute, self.sram, self.flash)

    @property
    def bound_by(self) -> str:
        """The limiting resource."""
        return max(("compute", "sram", "flash"), key=lambda name: getattr(self, name))


@dataclass(frozen=True)
class NpuEstimate:
    """Estimate of a network on an Ethos-U55.

    Attributes
    ----------
    network, macs
        Name, and number of multipliers of the NPU.
    steps
        Operators that run on the NPU.
    sram_bytes
        Activations at the peak operator, including the weights fetched for it.
    clock
        Cycles per second.
    """

    network: str
    macs: int
    steps: tuple[NpuStep, ...]
    sram_bytes: int
    clock: float

    @property
    def cycles(self) -> float:
        """Cycles of one inference: the sum of its operators."""
        return sum(step.cycles for step in self.steps)

    @property
    def milliseconds(self) -> float:
        """Time of one inference, ms."""
        return 1e3 * self.cycles / self.clock


def ethos_u55(work: Workload, macs: int = 128, *, weight_ratio: float = 1.0) -> NpuEstimate:
    """Return cycles and SRAM of a captured network in INT8 on an Ethos-U55.

    Parameters
    ----------
    work
        A captured network in any number format, since only shapes matter.
    macs
        128 or 256 multipliers.
    weight_ratio
        Weight bytes fetched relative to one byte per weight: below 1 for compressible weights, such as those with many
        zeros.

    Notes
    -----
    Outputs are computed in blocks of ``macs / 8``, each with a dot product of 8 per cycle, so a layer with few input
    channels leaves multipliers idle, and a depthwise layer seven of eight. Assumed: softmax runs elsewhere,
    normalisation is folded and activations are fused.

    Raises
    ------
    ArgumentError
        If there is no such version, the ratio is not positive, or the network has no graph.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> memory = ethos_u55(load("resnet8"))
    >>> 0.8 < memory.cycles / 201_747 < 1.2  # Vela 5.2.0
    True
    """
    if macs not in _BLOCK:
        raise ArgumentError(f"ethos_u55(): `macs` must be 128 or 256, got {macs!r}. Write e.g. macs=128")
    checked_number("ethos_u55", "weight_ratio", weight_ratio, positive(), {})
    machine = view(Hardware.Tiny.EthosU55_128 if macs == 128 else Hardware.Tiny.EthosU55_256, "int8")
    with comparing():
        clock, wire = machine.clock, machine.main.bandwidth
    assert clock is not None
    assert wire is not None
    steps = [
        NpuStep(
            operator.name,
            _compute(operator, macs),
            _moved(operator) / (wire / clock),
            _fetched(operator, weight_ratio) / (_FLASH / clock),
        )
        for operator in work.operators
        if operator.kind in ("conv2d", "gemm", "pooling", "elementwise")
    ]
    _ = machine.clock
    if any(step.cycles == step.sram for step in steps):  # otherwise it is only compared with the arithmetic
        _ = machine.main.bandwidth
    return NpuEstimate(work.name, macs, tuple(steps), _sram(work), clock)


def _compute(operator: Operator, macs: int) -> float:
    least, added, element, pooled = _BLOCK[macs]
    shape, outputs = operator.shape, macs // _DOT
    if operator.kind == "elementwise":
        return shape["elements"] * element
    if operator.kind == "pooling":
        return (shape["out_elements"] * shape["window"] if "window" in shape else shape["in_elements"]) * pooled
    if operator.kind == "gemm":
        blocks, depth, taps = math.ceil(shape["n"] / _DOT) * shape["m"], shape["k"], 1
    else:
        pixels = shape["batch"] * shape["out_height"] * shape["out_width"]
        blocks = math.ceil(pixels * _DOT / outputs) * math.ceil(shape["out_channels"] / _DOT)
        depth = shape["in_channels"] // shape["groups"]
        taps = shape["kernel_height"] * shape["kernel_width"]
    return blocks * max(least, taps * math.ceil(depth / _DOT) + added)


def _elements(operator: Operator) -> tuple[int, int]:
    """Return the number of values read and written."""
    shape = operator.shape
    if operator.kind == "conv2d":
        read = shape["in_channels"] * shape["in_height"] * shape["in_width"]
        written = shape["out_channels"] * shape["out_height"] * shape["out_width"]
        return shape["batch"] * read, shape["batch"] * written
    if operator.kind == "gemm":
        return shape["m"] * shape["k"], shape["m"] * shape["n"]
    if operator.kind == "pooling":
        return shape["in_elements"], shape["out_elements"]
    return 2 * shape["elements"], shape["elements"]


def _moved(operator: Operator) -> float:
    return float(sum(_elements(operator)))


def _fetched(operator: Operator, weight_ratio: float = 1.0) -> float:
    sizes = weighted(operator)
    return 0.0 if sizes is None else weight_ratio * sizes[0] + _SCALE * sizes[1]


def _staged(operator: Operator) -> float:
    """Return the weight bytes staged in SRAM: two slices of channels, if weights are used more than once."""
    shape = operator.shape
    if operator.kind != "conv2d" or shape["out_height"] * shape["out_width"] <= _ONCE:
        return 0.0
    return _fetched(operator) * min(1.0, 2 * _SLICE / shape["out_channels"])


def _sram(work: Workload) -> int:
    """Return the peak SRAM, with feature maps in bricks and staged weights.

    Weights that are used once are streamed; of others two slices are staged, one in use and one being fetched.
    """
    from mlsys.mapping.fusion import fuse

    graph = fuse(work.stored_as("int8")).graph
    staged = {operator.name: _staged(operator) for operator in work.operators}
    fullest = 0.0
    last = len(graph.operators) - 1
    for index, operator in enumerate(graph.operators):
        live = 0.0
        for value in graph.values:
            if value.role not in ("made", "input"):
                continue
            born = 0 if value.producer is None else value.producer
            dies = last if value.output else max(value.consumers, default=born)
            if born <= index <= dies:
                live += _bricks(value.bytes, value.shape)
        live += sum(staged.get(name, 0.0) for name in operator.name.split(" + "))
        fullest = max(fullest, live)
    return round(fullest)


def _bricks(size: int, shape: tuple[int, ...]) -> float:
    """Return the size of a feature map with channels (axis 1 of four) rounded up to groups; inputs are packed."""
    if len(shape) != 4 or shape[1] < _DOT:
        return float(size)
    return size / shape[1] * _BRICK * math.ceil(shape[1] / _BRICK)
