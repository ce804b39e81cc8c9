"""Memory of a network on a microcontroller: estimated arena and flash, and published records to compare with."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from mlsys.units import Quantity, ureg

if TYPE_CHECKING:
    from mlsys.workloads.operator import Operator
    from mlsys.workloads.workload import Workload

_BYTE = ureg.Unit("byte")
# Memory that TensorFlow Lite for Microcontrollers needs in addition to tensors, byte: fitted to its records of four
# networks of MLPerf Tiny on a 64-bit host. Structures with pointers are about half as large on a 32-bit core.
_FIXED, _PER_TENSOR, _PER_OPERATOR, _PER_CHANNEL = 707, 33.4, 136, 8
# In a .tflite file: a scale (4) and a zero point (8) per channel, a bias (4); and per tensor its name, shape and
# offsets, fitted to the same four files.
_SCALE, _BIAS, _ENTRY = 12, 4, 500


@dataclass(frozen=True)
class ArenaEstimate:
    """Memory of an INT8 network on a microcontroller.

    Attributes
    ----------
    network
        Its name.
    activations
        Block of inputs and activations, placed by the runtime's greedy planner.
    least
        The smallest block found for the same tensors.
    persistent
        The runtime's persistent data: structures of tensors and operators, and per-channel constants.
    weights
        Weights, one byte each, and biases, four.
    flash
        The model file: weights, biases, scales, and an entry per tensor.
    """

    network: str
    activations: Quantity
    least: Quantity
    persistent: Quantity
    weights: Quantity
    flash: Quantity

    @property
    def total(self) -> Quantity:
        """Bytes of RAM: the block and the persistent data."""
        total: Quantity = self.activations + self.persistent
        return total


def weighted(operator: Operator) -> tuple[int, int] | None:
    """Return the numbers of weights and output channels of a product; None for an operator without weights.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> [weighted(operator) for operator in load("ds-cnn")][:3]
    [(2560, 64), None, None]
    """
    shape = operator.shape
    if operator.kind == "conv2d":
        taps = shape["kernel_height"] * shape["kernel_width"]
        return shape["out_channels"] * shape["in_channels"] // shape["groups"] * taps, shape["out_channels"]
    if operator.kind == "gemm":
        return shape["n"] * shape["k"], shape["n"]
    return None


def arena(work: Workload) -> ArenaEstimate:
    """Return the memory of a captured network in INT8, with normalisation folded and activations fused.

    Parameters
    ----------
    work
        A captured network, at the deployed batch; any number format.

    Raises
    ------
    ArgumentError
        If the network was built by hand and has no graph.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> memory = arena(load("ds-cnn"))
    >>> print(memory.activations, memory.weights)
    16000 B 24368 B
    """
    from mlsys.mapping.fusion import fuse
    from mlsys.planner.memory import plan_memory
    from mlsys.units import Q_

    fused = fuse(work.stored_as("int8"))
    grain = Q_(16, "byte")
    greedy = plan_memory(fused, inputs=True, strategy="breadth", alignment=grain)
    least = plan_memory(fused, inputs=True, alignment=grain)
    products = [sizes for operator in work.operators if (sizes := weighted(operator)) is not None]
    convolved = sum(operator.shape["out_channels"] for operator in work.operators if operator.kind == "conv2d")
    others = sum(_is_step(operator) for operator in work.operators)
    tensors, operators = 1 + 3 * len(products) + others, len(products) + others
    weights = sum(count + _BIAS * channels for count, channels in products)
    channels = sum(out for _, out in products)
    persistent = _FIXED + _PER_TENSOR * tensors + _PER_OPERATOR * operators + _PER_CHANNEL * convolved
    return ArenaEstimate(
        work.name,
        greedy.peak,
        least.peak,
        ureg.Quantity(round(persistent), _BYTE),
        ureg.Quantity(weights, _BYTE),
        ureg.Quantity(weights + _SCALE * channels + _ENTRY * tensors, _BYTE),
    )


def _is_step(operator: Operator) -> bool:
    """Return whether an operator without weights remains a separate operator once activations are fused."""
    return operator.kind in ("pooling", "elementwise", "softmax")


@dataclass(frozen=True)
class ArenaRecord:
    """Published values of one reference network, bytes and cycles; None if unknown.

    Attributes
    ----------
    network
        Name in our catalogue, or a factory.
    file, file_bytes
        The INT8 model in mlcommons/tiny at commit 1afd2c9, and its size.
    declared_arena
        Arena declared by the reference submission, a round number above the need.
    head, tail
        Block of activations, and persistent data, recorded by tflite-micro 0.dev20261023182759 on a 64-bit host.
    cycles, sram
        By the number of multipliers: total cycles of Arm's compiler Vela 5.2.0 for an Ethos-U55 in its High-End
        Embedded system with shared SRAM, and the SRAM that it plans.
    weight_ratio
        Weight bytes fetched according to Vela, relative to one byte per weight: compression depends on the trained
        weights.
    """

    network: str
    file: str
    file_bytes: int
    declared_arena: int | None
    head: int
    tail: int
    cycles: dict[int, int]
    sram: dict[int, int]
    weight_ratio: float


@functools.lru_cache(maxsize=1)
def recorded() -> tuple[ArenaRecord, ...]:
    """Return the six reference networks of MLPerf Tiny with their published values.

    Examples
    --------
    >>> [record.network.rpartition(":")[2] for record in recorded()][:4]
    ['ad-autoencoder', 'ds-cnn', 'resnet8', 'vww-mobilenet-v1']
    """
    networks = []
    with files("mlsys.edge").joinpath("data/tiny.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            networks.append(
                ArenaRecord(
                    row["network"],
                    row["file"],
                    int(row["file_bytes"]),
                    int(row["declared_arena_bytes"]) if row["declared_arena_bytes"] else None,
                    int(row["tflm_head_bytes"]),
                    int(row["tflm_tail_bytes"]),
                    {macs: int(row[f"vela_u55_{macs}_cycles"]) for macs in (128, 256)},
                    {macs: int(row[f"vela_u55_{macs}_sram_bytes"]) for macs in (128, 256)},
                    float(row["vela_weight_ratio"]),
                )
            )
    return tuple(networks)
