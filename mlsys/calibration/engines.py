"""The part of a machine that a measurement kept at work: number format, threads and their clock."""

from collections.abc import Callable
from dataclasses import replace

from mlsys.hardware import Device, Hardware, view
from mlsys.models.estimate import Snapshot, snapshot
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.thread_scaling import sharing_layers
from mlsys.provenance import as_recorded, comparing, remembered

# What one core draws from the main memory, byte/s: its misses in flight over the latency, 16 × 64 B / 80 ns.
ONE_CORE = 12.8e9

# Part of a peak in FP32 that one fast core has at the clock of all of them: 5.4 GHz × 32 FLOP of 2,483 GFLOP/s.
FAST_CORE = {"Core_i9_13900K": 5.4e9 * 32 / 2.483e12}


@remembered
def _snapshot(name: str, precision: str, vector_unit: bool) -> Snapshot:
    return snapshot(view(Hardware[name], precision, unit="vector" if vector_unit else None))


def engine_for(twin: Device, precision: str, *, vector_unit: bool = False) -> Snapshot:
    """Return what the calibrated model reads of a twin of the catalogue, kept by its name and the what-ifs."""
    # Matrix units that keep all bits of FP32 multiply it: CDNA's, by hipBLAS and its kin, and the tensor engines of
    # Trainium (AWS Neuron, NeuronCore-v2 architecture: FP32 among the types of its tensor engine).
    products_in_fp32 = twin.vendor in ("AMD", "AWS") and twin.has_peak("fp32", unit="matrix")
    if twin.architecture == "Da Vinci" and precision == "fp32":
        # The cubes of an Ascend have no FP32, and its compiler narrows products for them where it trains
        # (CANN, ``precision_mode``: ``allow_fp32_to_fp16``).
        return _snapshot(twin.id, "fp16", False)
    return _snapshot(twin.id, precision, vector_unit and not products_in_fp32)


def summing_in_half(engine: Snapshot, twin: Device) -> Snapshot:
    """Return the engine as programs use it that add products of FP16 in FP16, not in FP32.

    GeForce cards add to sums of 32 bits at half the rate of their matrix units, which multiply 8-bit integers four
    times as fast and FP16 into FP16 twice; other cards do both at one rate.

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
    """Return how far above the clock of all cores some of them run.

    One core alone runs at the boost clock, and each that joins takes its share of the power: the clock
    falls in a line to that of all cores.

    Parameters
    ----------
    twin
        A processor; without a boost clock on record all cores keep their one clock.
    used
        Cores at work, 1 to all.

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
    with as_recorded():  # the rates on record are at the clock on record
        base = machine.require("clock")
    alone = machine.require("boost") / base
    return alone - (alone - 1.0) * (used - 1) / max(cores - 1, 1.0)


def on_threads(engine: Snapshot, twin: Device, threads: int, samples: int = 1) -> Snapshot:
    """Return the part of a processor that some threads keep at work, at the clock that it then has.

    Parameters
    ----------
    engine
        All cores that a program may use, of ``twin``.
    twin
        Whose clocks count.
    threads
        At least 1; those beyond one for each core are idle.
    samples
        That are worked on side by side; each has its part of the threads, which wait for each other.
    """
    used = min(float(threads), engine.units)
    part = used / engine.units
    part = FAST_CORE.get(twin.id, part) if threads == 1 else part
    # Half of the cores already draw all that the memory gives, and one draws a good deal, whatever it could give.
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
    """Return the machine that moves data and hardly computes: in the format that its vector rate is read in anyway."""
    return engine_for(twin, "fp32" if "fp32" in twin.precisions else twin.headline, vector_unit=True)


# With this part of its operations in convolutions a network is one of convolutions: what is left is its last layer.
MOST_CONVOLUTIONS = 0.9


def tf32_gain(device: Device) -> float:
    """Return how many times as fast matrix units multiply TF32 as vector units multiply FP32."""
    return engine_for(device, "tf32").matmul / engine_for(device, "fp32", vector_unit=True).matmul


def with_narrow_convolutions(fmt: Format, device: Device, part: Callable[[], float]) -> Format:
    """Return the format of a network in FP32 whose convolutions may be computed in TF32.

    GeForce cards multiply TF32 no faster than FP32: nothing is told apart there.

    Parameters
    ----------
    fmt, device
        FP32, and a GPU with matrix units for TF32.
    part
        Returns the part of the operations that convolutions have.
    """
    faster = tf32_gain(device)
    if faster <= MATRIX_UNITS:
        return fmt
    of_convolutions = part()
    if of_convolutions >= MOST_CONVOLUTIONS:
        return Format("tf32", 4, 4)
    return replace(fmt, convolutions=faster) if of_convolutions > 0 else fmt
