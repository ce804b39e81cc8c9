"""Moving data: streams, caches, latencies, sweeps of intensity, collectives."""

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for, moving_engine
from mlsys.calibration.values import bytes_a_second
from mlsys.hardware import Device, view
from mlsys.models.estimate import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE,
    RING_REDUCE,
    VECTOR,
    Kernel,
    Snapshot,
    Work,
)
from mlsys_evidence.typed_rows import TypedRow

# A block waits for its loads, and about half as long again for its stores and for its successor.
TURN_OVER = 1.5
# Launches vanish in so many bytes.
READ_OFTEN = 1e12


def message(size: float, peers: float, count: float = 1, pattern: int = ALL_REDUCE) -> Kernel:
    """Return the kernel of a collective of ``size`` bytes among ``peers``, by default an all-reduce."""
    return Kernel(COLLECTIVE, flops=0.0, moved=size, k=pattern, ranks=peers, count=count)


def stream(row: TypedRow) -> Case:
    """Return the case of a copy, scale, triad or stencil over arrays far larger than the caches.

    Sockets move even shares of them, each from and to its own memory. At part occupancy the bytes in flight fall short
    of bandwidth times latency; the rate is then in proportion, by Little's law.
    """
    twin, share = row.machine, row.share
    engine, sockets = moving_engine(twin), max(1.0, share)
    if share < 1:
        engine = engine.share(share, share)
    moved = row.get("bytes") * (row.number("arrays") / sockets)
    work = Work.of([Kernel(VECTOR, flops=moved / 16, moved=moved)])
    occupied = row.get("occupancy")
    waiting = moved / _in_flight_rate(engine, twin, occupied / 100) if occupied else 0.0
    setting = f"stream on {twin.kind}"
    seconds = moved * sockets / bytes_a_second(row.row)
    return Case(
        row.row, "copy and stream", setting, twin.id, engine, work, seconds, True, cached=False, at_least=waiting
    )


def _in_flight_rate(engine: Snapshot, twin: Device, occupancy: float) -> float:
    """Return the rate that so few threads sustain, byte/s, by Little's law.

    Each thread has one 8-byte load in flight, then one store, before its block gives way
    to the next: 16 bytes for each latency and the turn-over of blocks.
    """
    latency = view(twin).main.latency
    if latency is None:
        raise Inexpressible(f"no latency of the main memory of {twin.name} on record")
    threads = engine.units * occupancy * (1536 if "GA10" in twin.architecture or "Ada" in twin.architecture else 2048)
    return 16 * threads / (TURN_OVER * latency)


def beyond_cache(row: TypedRow) -> Case:
    """Return the case of reading a data set that no cache holds, again and again."""
    twin = row.machine
    engine = moving_engine(twin)
    work = Work.of([Kernel(VECTOR, flops=READ_OFTEN / 16, moved=READ_OFTEN)])
    seconds = READ_OFTEN / bytes_a_second(row.row)
    return Case(
        row.row, "copy and stream", f"stream on {twin.kind}", twin.id, engine, work, seconds, True, cached=False
    )


def intensity_sweep(row: TypedRow) -> Case:
    """Return the case of a synthetic kernel of stated arithmetic intensity: multiply-adds of what it has loaded."""
    twin, fmt = row.machine, row.format
    engine = engine_for(twin, fmt.computes, vector_unit=True)
    moved = 4e9
    flops = moved * row.get("intensity")
    scale = {"GFLOP/s": 1e9, "TFLOP/s": 1e12}.get(row.row.unit)
    if scale is None:
        raise Inexpressible(f"{row.row.metric} in {row.row.unit} is not a rate of arithmetic")
    work = Work.of([Kernel(VECTOR, flops=flops, moved=moved)])
    seconds = flops / (row.row.value * scale)
    setting = f"multiply-adds on {twin.kind}"
    return Case(row.row, "intensity sweep", setting, twin.id, engine, work, seconds, True, cached=False)


# What a rank sends, as parts of the message among p ranks, decides the time.
_PATTERNS = {"all-reduce": ALL_REDUCE, "all-to-all": ALL_TO_ALL, "all-gather": ALL_GATHER}


def collective(row: TypedRow) -> Case:
    """Return the case of a collective within one node: all-reduce, all-gather, reduce-scatter, all-to-all."""
    twin = row.machine
    engine = engine_for(twin, twin.headline)
    if engine.link <= 0:
        raise Inexpressible(f"no link of {twin.name} on record")
    size = row.get("bytes")
    peers = row.row.n_devices
    if peers < 2:
        raise Inexpressible("number of peers not stated")
    pattern = _PATTERNS[row.operation]
    if row.row.unit == "GB/s":  # bus bandwidth as nccl-tests defines it: 2(p−1)/p · size / time
        share = (2 if pattern == ALL_REDUCE else 1) * (peers - 1) / peers
        seconds, inverse = share * size / (row.row.value * 1e9), True
    elif row.row.unit in ("us", "ms"):
        seconds, inverse = row.row.value * (1e-6 if row.row.unit == "us" else 1e-3), False
    else:
        raise Inexpressible(f"{row.row.metric} in {row.row.unit} is not a time or a bandwidth")
    by_nccl = pattern == ALL_REDUCE and not row.kernels
    work = Work.of([message(size, peers, pattern=RING_REDUCE if by_nccl else pattern)])
    kind = "all-reduce" if pattern == ALL_REDUCE else "all-gather and its kin"
    return Case(row.row, kind, _collective_setting(row, pattern, twin), twin.id, engine, work, seconds, inverse)


def _collective_setting(row: TypedRow, pattern: int, twin: Device) -> str:
    """Return the setting: the stacks that serve models have short ways of their own, inside and outside a graph."""
    if row.kernels:
        eager = " eager" if row.has("eager") else ""
        return f"{row.kernels}{eager} collective on {twin.kind}"
    if pattern == ALL_TO_ALL:
        return f"collective all-to-all on {twin.kind}"
    if pattern == ALL_GATHER:
        return f"collective all-gather on {twin.kind}"
    if row.has("over PCIe"):
        return f"collective over PCIe on {twin.kind}"
    return f"collective on {twin.kind}"
