"""Execution of a network by a kind of software: fusion, algorithms and layout copies."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from mlsys.hardware import Hardware
from mlsys.hardware.device import Device
from mlsys.mapping.fusion import has_convolutions
from mlsys.models.estimate.blocks import in_blocks
from mlsys.models.estimate.eager import Ran, ran_apart, ran_as_listed, run_as, scores_of
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.layouts import copied_beside, layout_copies
from mlsys.models.estimate.lowering import (
    LARGER_WINOGRAD,
    WINOGRAD_SAVING,
    Format,
    concatenated,
    expert_by_expert,
    fewer_multiplications,
)
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.processors import integer_winograd
from mlsys.models.estimate.reductions import rows_read_again
from mlsys.models.estimate.work import MATMUL, Work
from mlsys.precision import element_size
from mlsys.workloads import Network, Operator

# Speed-up of 3 × 3 convolutions of stride 1 on vector units by Winograd's algorithms and FFTs: large FP32 convolutions
# of DeepBench reach 1.35 times the peak in the median, large plain products by the same libraries 0.80 of it.
# Transforms use up the rest of the 2.25 or 4 multiplications that are saved.
SAVED_ON_GPU = 1.7


@dataclass(frozen=True)
class Running:
    """Way in which a kind of software runs a network.

    Attributes
    ----------
    way
        ``"kernels"`` fused with the operators between products, ``"loops"`` between products, all ``"one by one"``, or
        ``"with convolutions"`` as :func:`mlsys.models.estimate.eager.run_as` defines it.
    written_out
        Whether attention scores are written to memory where operators run one by one or in loops.
    winograd
        As for :func:`mlsys.models.estimate.lowering.kernels_of`.
    copies
        Copies around convolutions, as :func:`mlsys.models.estimate.layouts.copied_beside` names them.
    machine
        Id of the device whose library's blocks are used for FP32 products, of attention with scores in memory; else
        empty.
    grouped
        Whether a step of decoding reads a key once for all heads of queries that share it, which are then rows of one
        product, as FlashDecoding, FlashInfer and XQA of TensorRT-LLM do.
    """

    way: str = "kernels"
    written_out: bool = False
    winograd: float = 1.0
    copies: str = ""
    machine: str = ""
    grouped: bool = field(default=False, repr=False)

    def of(self, network: Network) -> str:
        """Return how the operators of a network run: ``way``, decided by its convolutions where it depends on them."""
        if self.way != "with convolutions":
            return self.way
        return "kernels" if has_convolutions(network) else "one by one"


def usual_running(setting: str, device: Device, engine: Snapshot) -> Running:
    """Return how the newest software of a setting runs a network on a machine.

    PyTorch has run attention in one kernel since version 2; TensorFlow, and the older code for training and inference
    in FP32, write the scores to memory.

    Parameters
    ----------
    setting, engine
        As for :func:`mlsys.models.estimate.layouts.copied_beside`.
    device
        The machine.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate import snapshot
    >>> a100 = snapshot(view(Hardware.Cloud.A100, "fp16"))
    >>> usual_running("eager network on GPU", Hardware.Cloud.A100, a100)
    Running(way='one by one', written_out=False, winograd=1.0, copies='planes', machine='')
    """
    way = run_as(setting)
    written_out = way != "kernels" and re.match("TensorFlow|eager small units", setting) is not None
    machine = device.id if written_out and engine.computes_in == "fp32" else ""
    grouped = way == "kernels" and setting.endswith((" on GPU", " on NPU", " on TPU"))
    winograd, copies = _winograd(setting, device, engine), copied_beside(setting, engine)
    return Running(way, written_out, winograd, copies, machine, grouped)


def saved_on(engine: Snapshot) -> float:
    """Return the speed-up of 3 × 3 convolutions of stride 1 on a GPU whose library has Winograd's algorithms.

    Only in floating point on vector units: on matrix units, Winograd's transforms save nothing.
    """
    return SAVED_ON_GPU if engine.over_vector <= MATRIX_UNITS and engine.bits > 8 else 1.0


def _winograd(setting: str, device: Device, engine: Snapshot) -> float:
    """Return the factor by which the usual program of a setting reduces multiplications."""
    if setting.startswith("vulkan "):
        return WINOGRAD_SAVING
    if setting.endswith(" on GPU"):
        return saved_on(engine)
    if re.match(r"ncnn int8\b.* on CPU", setting):
        return integer_winograd(engine, device)
    return LARGER_WINOGRAD if re.match(r"(ncnn|Paddle-Lite)( 1 thread)? network on CPU", setting) else 1.0


def as_counted(network: Network, running: Running) -> Network:
    """Return a network with the bytes and operations that are indispensable when it runs in this way.

    Fused attention keeps its scores on the chip, and Winograd's algorithms multiply less: a lower bound for such
    software counts neither.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> vgg = zoo.network("vgg16")
    >>> f"{vgg.flops / as_counted(vgg, Running(winograd=4.0)).flops:.1f}"
    '3.8'
    """
    if running.of(network) != "kernels" and not running.written_out:
        network = _changed(network, _without_scores)
    return fewer_multiplications(network, running.winograd)


def kernels_run(network: Network, running: Running, fmt: Format | None = None) -> Ran:
    """Return the kernels that software runs for a network, and the operator that each belongs to.

    Parameters
    ----------
    network
        Grouped into kernels by :func:`mlsys.mapping.fusion.as_run`.
    running
        How it runs.
    fmt
        As for :func:`mlsys.models.estimate.lowering.kernels_of`.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network = zoo.network("resnet50", precision="fp16", fused=False)
    >>> ran = kernels_run(network, Running("one by one", copies="planes"))
    >>> int(ran.work["count"].sum()) - len(network)  # two copies for each convolution that sees more than one pixel
    34
    """
    way = running.of(network)
    own = ran_apart if way == "one by one" else ran_as_listed
    ran = own(network, fmt, running.written_out or way == "kernels", running.winograd)
    work = heads_together(ran, network) if running.grouped else ran.work
    if running.winograd <= 1:  # which leaves products that are fewer than their weights
        work = expert_by_expert(work, fmt.weight if fmt else element_size(network.precision).m_as("byte"))
    if running.machine:
        machine = Hardware[running.machine]
        work = in_blocks(rows_read_again(work, machine, element_size("fp32").m_as("byte")), machine, "fp32")
    copies = layout_copies(running.copies, network, fmt)
    return Ran(concatenated(work, copies.work), np.concatenate([ran.owner, copies.owner]))


def heads_together(ran: Ran, network: Network) -> Work:
    """Return the kernels of a network, with the query heads that share a key as rows of one product in decoding.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> step = language_model("llama-3-8b").decode(8, 2048)
    >>> ran = ran_as_listed(step, None, True)
    >>> [float(heads_together(ran, step)[name][2]) for name in ("m", "n", "k", "batch")]
    [4.0, 2048.0, 128.0, 128.0]
    """
    work = ran.work
    groups = np.array([_queries_per_key(operator) for operator in network.distinct], dtype=float)[ran.owner]
    here = (groups > 1) & (work["kind"] == MATMUL) & (work["m"] == 1)
    if not here.any():
        return work
    rows = np.where(here, groups, 1.0)
    return work.changed(m=work["m"] * rows, batch=work["batch"] / rows)


def _queries_per_key(operator: Operator) -> float:
    """Return the number of query heads that share a key-value head of attention; 1 for other operators."""
    if operator.kind != "attention" or "kv_heads" not in operator.shape:
        return 1.0
    return operator.shape["heads"] / operator.shape["kv_heads"]


def _changed(network: Network, change: Callable[[Operator], Operator]) -> Network:
    changed = {id(operator): change(operator) for operator in network.operators}
    return Network(network.name, tuple(changed[id(operator)] for operator in network.operators), network.kind)


def _without_scores(operator: Operator) -> Operator:
    scores = scores_of(operator) if operator.kind == "attention" else 0.0
    if not scores:
        return operator
    return replace(operator, data=operator.data - 4 * scores * element_size(operator.precision))
