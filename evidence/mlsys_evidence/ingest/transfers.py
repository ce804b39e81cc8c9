"""Moving data: streams, caches, latencies, sweeps of intensity, collectives."""

import re

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for, moving_engine
from mlsys.calibration.rows import Row
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
from mlsys_evidence.ingest.reading import number_format, twin_of
from mlsys_evidence.ingest.software import serving_stack

# A block waits for its loads, and about half as long again for its stores and for its successor.
TURN_OVER = 1.5
# Launches vanish in so many bytes.
READ_OFTEN = 1e12


def message(size: float, peers: float, count: float = 1, pattern: int = ALL_REDUCE) -> Kernel:
    """Return the kernel of a collective of ``size`` bytes among ``peers``, by default an all-reduce."""
    return Kernel(COLLECTIVE, flops=0.0, moved=size, k=pattern, ranks=peers, count=count)


def stream(row: Row) -> Case:
    """Return the case of a copy, scale, triad or stencil over arrays far larger than the caches.

    Sockets move even shares of them, each from and to its own memory. At part occupancy the bytes in flight fall short
    of bandwidth times latency; the rate is then in proportion, by Little's law.
    """
    twin, share = twin_of(row.device, several=True)
    engine, sockets = moving_engine(twin), max(1.0, share)
    if share < 1:
        engine = engine.share(share, share)
    moved = 2.1e9
    if re.search(r"(^|[\s=])-\s?[\d.]+ (GB|MB)", row.seq_or_shape):
        raise Inexpressible(f"arrays below nothing: {row.seq_or_shape}")
    size = re.search(r"([\d.]+) (GB|MB)", row.seq_or_shape)
    if size:
        moved = float(size.group(1)) * (1e9 if size.group(2) == "GB" else 1e6)
    arrays = 4 if "3 loads" in row.workload else 3 if re.search("Triad|Add", row.workload) else 2
    if re.search("init|read", row.workload):
        arrays = 1
    moved *= arrays / sockets
    work = Work.of([Kernel(VECTOR, flops=moved / 16, moved=moved)])
    occupied = re.search(r"occupancy=([\d.]+)%", row.seq_or_shape)
    waiting = 0.0
    if occupied and "Little" in row.workload:
        waiting = moved / _in_flight_rate(engine, twin, float(occupied.group(1)) / 100)
    setting = f"stream on {twin.kind}"
    seconds = moved * sockets / bytes_a_second(row)
    return Case(row, "copy and stream", setting, twin.id, engine, work, seconds, True, cached=False, at_least=waiting)


def _in_flight_rate(engine: Snapshot, twin: Device, occupancy: float) -> float:
    """Return the rate that so few threads sustain, byte/s, by Little's law.

    Each thread has one 8-byte load in flight, then one store, before its block gives way
    to the next: 16 bytes for each latency and the turn-over of blocks.
    """
    latency = view(twin).main.latency
    if latency is None:
        raise Inexpressible(f"no latency of the main memory of {twin.name} on record")
    threads = engine.units * occupancy * (1536 if re.search("GA10|Ada", twin.architecture) else 2048)
    return 16 * threads / (TURN_OVER * latency)


def beyond_cache(row: Row) -> Case:
    """Return the case of reading a data set that no cache holds, again and again."""
    twin, _ = twin_of(row.device)
    engine = moving_engine(twin)
    work = Work.of([Kernel(VECTOR, flops=READ_OFTEN / 16, moved=READ_OFTEN)])
    seconds = READ_OFTEN / bytes_a_second(row)
    return Case(row, "copy and stream", f"stream on {twin.kind}", twin.id, engine, work, seconds, True, cached=False)


def intensity_sweep(row: Row) -> Case:
    """Return the case of a synthetic kernel of stated arithmetic intensity: multiply-adds of what it has loaded."""
    intensity = re.search(r"intensity ([\d.]+)", row.seq_or_shape)
    if not intensity:
        raise Inexpressible("arithmetic intensity not stated")
    twin, _ = twin_of(row.device)
    fmt = number_format(row.precision)
    engine = engine_for(twin, fmt.computes, vector_unit=True)
    moved = 4e9
    flops = moved * float(intensity.group(1))
    scale = {"GFLOP/s": 1e9, "TFLOP/s": 1e12}.get(row.unit)
    if scale is None:
        raise Inexpressible(f"{row.metric} in {row.unit} is not a rate of arithmetic")
    work = Work.of([Kernel(VECTOR, flops=flops, moved=moved)])
    seconds = flops / (row.value * scale)
    setting = f"multiply-adds on {twin.kind}"
    return Case(row, "intensity sweep", setting, twin.id, engine, work, seconds, True, cached=False)


# What a rank sends, as parts of the message among p ranks, decides the time.
_PATTERNS = (("all-reduce", ALL_REDUCE), ("all-to-all", ALL_TO_ALL), ("all-gather|reduce-scatter", ALL_GATHER))


def collective(row: Row) -> Case:
    """Return the case of a collective within one node: all-reduce, all-gather, reduce-scatter, all-to-all."""
    if re.search(r"inter-node|\bnodes of \d", row.workload):
        raise Inexpressible("all-reduce between nodes: the network of the cluster is not stated")
    twin, _ = twin_of(row.device)
    engine = engine_for(twin, twin.headline)
    if engine.link <= 0:
        raise Inexpressible(f"no link of {twin.name} on record")
    size = _message_size(row.seq_or_shape)
    peers = row.n_devices
    if peers < 2:
        raise Inexpressible("number of peers not stated")
    pattern = next(code for words, code in _PATTERNS if re.search(words, row.workload))
    if row.unit == "GB/s":  # bus bandwidth as nccl-tests defines it: 2(p−1)/p · size / time
        share = (2 if pattern == ALL_REDUCE else 1) * (peers - 1) / peers
        seconds, inverse = share * size / (row.value * 1e9), True
    elif row.unit in ("us", "ms"):
        seconds, inverse = row.value * (1e-6 if row.unit == "us" else 1e-3), False
    else:
        raise Inexpressible(f"{row.metric} in {row.unit} is not a time or a bandwidth")
    by_nccl = pattern == ALL_REDUCE and not serving_stack(row.software)
    work = Work.of([message(size, peers, pattern=RING_REDUCE if by_nccl else pattern)])
    kind = "all-reduce" if pattern == ALL_REDUCE else "all-gather and its kin"
    return Case(row, kind, _collective_setting(row, pattern, twin), twin.id, engine, work, seconds, inverse)


def _collective_setting(row: Row, pattern: int, twin: Device) -> str:
    """Return the setting: the stacks that serve models have short ways of their own, inside and outside a graph."""
    stack = serving_stack(row.software)
    if stack:
        eager = " eager" if "eager" in row.software else ""
        return f"{stack}{eager} collective on {twin.kind}"
    if pattern == ALL_TO_ALL:
        return f"collective all-to-all on {twin.kind}"
    if pattern == ALL_GATHER:
        return f"collective all-gather on {twin.kind}"
    if "PCIe" in row.workload:
        return f"collective over PCIe on {twin.kind}"
    return f"collective on {twin.kind}"


def _message_size(text: str) -> float:
    match = re.search(r"([\d.]+) ?(bytes|B|[KMG]i?B)", text)
    if not match:
        raise Inexpressible("size of the message not stated")
    unit = {"bytes": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    return float(match.group(1)) * unit[match.group(2)]
