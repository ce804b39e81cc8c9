"""Assumptions of an estimate, in words."""

from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.mapping.fusion import has_convolutions
from mlsys.models.analysis.changes import fastest_rate
from mlsys.models.estimate.effects import effect_of
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.layouts import BLOCKS, PLANES
from mlsys.models.estimate.library import calibrated
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.running import Running
from mlsys.models.estimate.weight_residency import Residence
from mlsys.models.result import Result
from mlsys.precision import precision_name
from mlsys.provenance import comparing
from mlsys.workloads.operator import Network
from mlsys.workloads.workload import Workload


def beside_operators(running: Running) -> tuple[str, ...]:
    """Return the assumptions about layout copies and algorithms of the software."""
    words = []
    if running.winograd > 1:
        words.append(
            f"3 × 3 convolutions of stride 1 use Winograd's algorithms, with {running.winograd:.3g} times fewer "
            "multiplications; only these are counted"
        )
    if running.copies == PLANES:
        words.append("estimate: inputs and outputs of convolutions are copied from NCHW to NHWC and back")
    if running.copies == BLOCKS:
        words.append("estimate: weights of convolutions are copied into blocks before each pass")
    return tuple(words)


def unfused_operators(network: Network, way: str) -> tuple[str, ...]:
    """Return a note that every operator is a separate kernel where the software would fuse some of them."""
    if not isinstance(network, Workload) or way == "one by one" or not network.is_unfused:
        return ()
    return (
        f"not fused: each of the {len(network)} operators is a separate kernel, as requested; by default the "
        "software fuses them",
    )


def counted_as(network: Network) -> tuple[str, ...]:
    """Return which count of a captured network is used, where several are common."""
    return network.remarks() if isinstance(network, Workload) else ()


def left_in_fp32(network: Network, device: Device, precision: str) -> tuple[str, ...]:
    """Return a note on FP32 work that frameworks run in TF32 by default, on machines where TF32 is much faster."""
    if precision != "fp32" or not device.has_peak("tf32", unit="matrix"):
        return ()
    with comparing():
        wide, narrow = (fastest_rate(view(device, name)) for name in ("fp32", "tf32"))
    if narrow <= MATRIX_UNITS * wide:
        return ()
    convolutions = "PyTorch's convolutions and " if has_convolutions(network) else ""
    return (f"no TF32: {convolutions}all products of TensorFlow and TensorRT use it by default (request tf32 for it)",)


def effects_in_words(setting: str, device: str, network: str) -> tuple[str, ...]:
    """Return the change in the estimate that similar measurements cause."""
    own = calibrated(setting, device) is not None
    effect = effect_of(setting, device, network, machine=not own)
    if not effect.parts:
        return ()
    parts = "; ".join(f"{words}, {factor:.2f} times" for words, factor in effect.parts)
    return (f"estimate: {effect.factor:.2f} times the software's typical time, from similar measurements ({parts})",)


def waiting_threads(engine: Snapshot) -> tuple[str, ...]:
    """Return a note on CPU threads that wait for each other; empty if none do."""
    if engine.team == 1.0:
        return ()
    return (f"estimate: one thread per core; {engine.team:.0f} share a sample and wait for each other",)


def kept_on_chip(held: Residence | None) -> tuple[str, ...]:
    """Return the weight traffic of a chip without external memory."""
    if held is None:
        return ()
    sent = f"no external memory: activations stay on the chip, weights are sent {held.times:.2g} times per pass"
    return (sent, "the chip holds all layers at once: the time is per sample of a stream") if held.streams else (sent,)


def whole_buckets(setting: str) -> tuple[str, ...]:
    """Return a note on what a compiler of fixed shapes reads in excess of the network; empty for others."""
    if not setting.startswith("NeuronX llm decode"):
        return ()
    return ("Transformers NeuronX reads keys and values of 128, 256, 512, … positions, masked beyond the context: "
            "for its time, request the next larger of these contexts",)  # fmt: skip


def ground_rules(
    result: Result, recurrent: bool, precision: str | None, setting: str, calibration: str, cached: bool
) -> tuple[str, ...]:
    """Return the assumptions of the bound and the estimate that hold for every network."""
    held = "data that fit stay in the last-level cache" if cached else "all data go to the main memory"
    assumptions = [
        f"bound: {result.assumptions[0]}, main memory at its peak; each operator reads its inputs and writes "
        "its outputs once",
        "kernels run one after the other, in the order of the network",
        f"estimate: {held}; no operator is faster than its bound",
        "gains are upper bounds: each what-if changes one factor and holds the others fixed",
    ]
    if recurrent:
        assumptions.append("recurrent layers are timed on the vector units: their products are not separated")
    if precision is not None:
        assumptions.append(f"every value is stored in {precision_name(precision)}")
    if not calibration.startswith(setting):
        assumptions.append(f"no measurements of {setting}: the parameters are those of {calibration}")
    return tuple(assumptions)
