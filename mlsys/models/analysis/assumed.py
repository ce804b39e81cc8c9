"""What an estimate takes for granted."""

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
    """Return what software does beside a network's operators, and what it saves of them."""
    words = []
    if running.winograd > 1:
        words.append(
            f"3 × 3 convolutions of stride 1 by Winograd's algorithms, {running.winograd:.3g} times fewer "
            "multiplications: no others are counted"
        )
    if running.copies == PLANES:
        words.append("estimate: convolutions' inputs and results are copied from planes to pixels and back")
    if running.copies == BLOCKS:
        words.append("estimate: convolutions' weights are copied into blocks before each pass")
    return tuple(words)


def unfused_operators(network: Network, way: str) -> tuple[str, ...]:
    """Return a note that every operator is a kernel of its own, where the software would fuse some of them."""
    if not isinstance(network, Workload) or way == "one by one" or not network.is_unfused:
        return ()
    return (
        f"not fused: each of the {len(network)} operators is a kernel of its own, as was asked for; by default the "
        "software fuses them",
    )


def counted_as(network: Network) -> tuple[str, ...]:
    """Return how the work of a captured network is counted where several counts are in use."""
    return network.remarks() if isinstance(network, Workload) else ()


def left_in_fp32(network: Network, device: Device, precision: str) -> tuple[str, ...]:
    """Return what frameworks do to FP32 of their own accord, on a machine that multiplies TF32 much faster."""
    if precision != "fp32" or not device.has_peak("tf32", unit="matrix"):
        return ()
    with comparing():
        wide, narrow = (fastest_rate(view(device, name)) for name in ("fp32", "tf32"))
    if narrow <= MATRIX_UNITS * wide:
        return ()
    convolutions = "PyTorch's convolutions and " if has_convolutions(network) else ""
    return (
        f"no TF32: {convolutions}all products of TensorFlow and TensorRT take it unless told not to (ask for tf32)",
    )


def effects_in_words(setting: str, device: str, network: str) -> tuple[str, ...]:
    """Return what measurements of like things change in the estimate."""
    own = calibrated(setting, device) is not None
    effect = effect_of(setting, device, network, machine=not own)
    if not effect.parts:
        return ()
    parts = "; ".join(f"{words}, {factor:.2f} times" for words, factor in effect.parts)
    return (f"estimate: {effect.factor:.2f} times the setting's time, as measurements of like things say ({parts})",)


def waiting_threads(engine: Snapshot) -> tuple[str, ...]:
    """Return how long the threads of a processor wait for each other; nothing where none does."""
    if engine.team == 1.0:
        return ()
    return (f"estimate: a thread on each core; {engine.team:.0f} share a sample and wait for each other",)


def kept_on_chip(held: Residence | None) -> tuple[str, ...]:
    """Return what a chip without a memory of its own is sent."""
    if held is None:
        return ()
    sent = f"no memory of its own: all between layers stays on the chip, weights are sent {held.times:.2g} times a pass"
    return (sent, "it holds all layers at once: the time is that of a sample in a stream") if held.streams else (sent,)


def whole_buckets(setting: str) -> tuple[str, ...]:
    """Return what a compiler of fixed shapes reads beyond the network; nothing of others."""
    if not setting.startswith("NeuronX llm decode"):
        return ()
    return ("Transformers NeuronX reads keys and values of 128, 256, 512, … positions, masked beyond the context: "
            "for its time ask for the next of these contexts",)  # fmt: skip


def ground_rules(
    result: Result, recurrent: bool, precision: str | None, setting: str, calibration: str, stays: bool
) -> tuple[str, ...]:
    """Return what the bound and the estimate of any network take for granted."""
    held = "what fits stays in the last cache" if stays else "all data go to the main memory"
    assumptions = [
        f"bound: {result.assumptions[0]}, main memory at its peak; each operator reads its inputs and writes "
        "its outputs once",
        "kernels run one after the other, in the order of the network",
        f"estimate: {held}; no operator is faster than its bound",
        "gains are at most those: each what-if changes one thing and keeps all else",
    ]
    if recurrent:
        assumptions.append("recurrent layers are timed on the vector units: their products are not told apart")
    if precision is not None:
        assumptions.append(f"every value is stored in {precision_name(precision)}")
    if not calibration.startswith(setting):
        assumptions.append(f"no measurements of {setting}: the parameters are those of {calibration}")
    return tuple(assumptions)
