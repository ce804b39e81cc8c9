"""The part of a machine that a measurement used: number format, threads and their clock."""

from collections.abc import Callable
from dataclasses import replace

from mlsys.hardware import Device, Hardware, view
from mlsys.models.estimate import Snapshot, snapshot
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.thread_scaling import sharing_layers
from mlsys.provenance import as_recorded, comparing, remembered

# Bandwidth of one core, byte/s: its misses in flight over the latency, 16 × 64 B / 80 ns.
ONE_CORE = 12.8e9

# Fraction of an FP32 peak that one fast core has at the all-core clock: 5.4 GHz × 32 FLOP of 2,483 GFLOP/s.
FAST_CORE = {"Core_i9_13900K": 5.4e9 * 32 / 2.483e12}


@remembered
def _snapshot(name: str, precision: str, vector_unit: bool) -> Snapshot:
    return snapshot(view(Hardware[name], precision, unit="vector" if vector_unit else None))


def engine_for(twin: Device, precision: str, *, vector_unit: bool = False) -> Snapshot:
    """Return the calibrated model's snapshot of a device, cached by its name and the what-ifs."""
    # Matrix units with full FP32 precision are used for FP32: CDNA's, by hipBLAS and similar libraries, and the tensor
    # engines of Trainium (AWS Neuron, NeuronCore-v2 architecture: FP32 among the types of its tensor engine).
    products_in_fp32 = twin.vendor in ("AMD", "AWS") and twin.has_peak("fp32", unit="matrix")
    if twin.architecture == "Da Vinci" and precision == "fp32":
        # An Ascend's cubes have no FP32, and its compiler narrows products for them in training
        # (CANN, ``precision_mode``: ``allow_fp32_to_fp16``).
        return _snapshot(twin.id, "fp16", False)
    return _snapshot(twin.id, precision, vector_unit and not products_in_fp32)


def summing_in_half(engine: Snapshot, twin: Device) -> Snapshot:
    """Return the engine for programs that accumulate FP16 products in FP16, not in FP32.

    GeForce cards accumulate in FP32 at half the rate of their matrix units, which multiply 8-bit integers four times as
    fast and FP16 with FP16 accumulation twice as fast; other cards do both at one rate.

    Examples
    --------
    >>> card = Hardware["RTX_3090"]
    >>> f"{summing_in_half(engine_for(card, 'fp16'), card).matmul / 1e12:.0f} TFLOP/s"
    '142 TFLOP/s'
    """
    if engine.computes_in != "fp16" or twin.kind != "GPU" or not twin.has_peak("int8", unit="matrix"):
        return engine
    return engine.changed(matmul=lambda: max(engine.matmul, engine_for(twin, "int8").matmul / 2))


def clock_ratio(twin: Device, used: float) -> float:
    """Return the clock of some active cores relative to the clock with all cores active.

    A single core runs at the boost clock, and each additional core takes its share of the power: the clock falls
    linearly to the all-core clock.

    Parameters
    ----------
    twin
        A CPU; without a boost clock on record all cores run at one clock.
    used
        Active cores, 1 to all.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> rome = Hardware["EPYC_7742"]
    >>> [round(clock_ratio(rome, cores) * 2.25, 2) for cores in (1, 8, 64)]
    [3.4, 3.27, 2.25]
    """
    machine = view(twin)
    if not (machine.has("boost") and machine.has("clock") and machine.has("units")):
        return 1.0
    cores = machine.require("units")
    if used >= cores:
        return 1.0
    with as_recorded():  # the recorded rates are at the recorded clock
        base = machine.require("clock")
    alone = machine.require("boost") / base
    return alone - (alone - 1.0) * (used - 1) / max(cores - 1, 1.0)


def on_threads(engine: Snapshot, twin: Device, threads: int, samples: int = 1) -> Snapshot:
    """Return the part of a CPU that some threads use, at its clock under that load.

    Parameters
    ----------
    engine
        All cores of ``twin`` that a program may use.
    twin
        The device whose clocks apply.
    threads
        At least 1; threads beyond one per core are idle.
    samples
        Samples processed in parallel; each has its share of the threads, which wait for each other.
    """
    used = min(float(threads), engine.units)
    part = used / engine.units
    part = FAST_CORE.get(twin.id, part) if threads == 1 else part
    # Half of the cores already saturate the memory, and one core draws a good deal.
    with comparing():
        alone = ONE_CORE / engine.bandwidth
    some = sharing_layers(engine, used, samples, threads).share(part, min(1.0, max(2 * part, alone)))
    if 2 * part < alone < 1:
        some = some.changed(bandwidth=ONE_CORE)
    if not view(twin).has("boost"):
        return some
    return some.changed(
        matmul=lambda: some.matmul * clock_ratio(twin, used),
        vector=lambda: some.vector * clock_ratio(twin, used),
        cache_bandwidth=lambda: some.cache_bandwidth * clock_ratio(twin, used),
        clock=lambda: some.clock * clock_ratio(twin, used),
    )


def moving_engine(twin: Device) -> Snapshot:
    """Return the machine for data movement with little computation: in the format of its recorded vector rate."""
    return engine_for(twin, "fp32" if "fp32" in twin.precisions else twin.headline, vector_unit=True)


# Fraction of operations in convolutions above which a network counts as convolutional: the rest is its last layer.
MOST_CONVOLUTIONS = 0.9


def tf32_gain(device: Device) -> float:
    """Return the rate of TF32 on matrix units relative to FP32 on vector units."""
    return engine_for(device, "tf32").matmul / engine_for(device, "fp32", vector_unit=True).matmul


def with_narrow_convolutions(fmt: Format, device: Device, part: Callable[[], float]) -> Format:
    """Return the format of an FP32 network whose convolutions may be computed in TF32.

    On GeForce cards TF32 is no faster than FP32: the format is returned unchanged.

    Parameters
    ----------
    fmt, device
        FP32, and a GPU with matrix units for TF32.
    part
        Function that returns the fraction of the operations in convolutions.
    """
    faster = tf32_gain(device)
    if faster <= MATRIX_UNITS:
        return fmt
    of_convolutions = part()
    if of_convolutions >= MOST_CONVOLUTIONS:
        return Format("tf32", 4, 4)
    return replace(fmt, convolutions=faster) if of_convolutions > 0 else fmt
