"""A processor on which some threads work: cores, their clock, what they draw from memory, and their joins."""

import re
from dataclasses import replace
from functools import lru_cache

from mlsys.calibration.rows import Row
from mlsys.hardware import Device
from mlsys.models.estimate import Snapshot
from mlsys.models.estimate.thread_scaling import sharing_layers
from mlsys.provenance import as_recorded
from mlsys_evidence.ingest.software import network_software

# What ncnn's runs on a GPU have no kernels for there, they do on the processor, with the threads that the command of
# the run names: one, save on these (Tencent/ncnn, benchmark/README.md@a4d2ea1, num_threads above gpu_device = 0).
BESIDE_GPU = {"NVIDIA Jetson Nano": 4, "NVIDIA Jetson Orin Nano": 6, "Apple M1": 8, "Apple M3": 8}


# TensorFlow Lite takes one thread where a program sets none (recalled), and cTuning's new one sets none: its FP32 runs
# at up to nine tenths of what one core can, and time falls with the FLOP down to the smallest networks. Versions that
# rows of MLPerf name have the threads of their system.
ALONE = r"TFLite CPU|TensorFlow ?Lite(?! for)"
# Where nobody knows what a program set, all cores may be at work: rows of the second examination, so noted, are beyond
# the peak of one.
_OPEN = "threads not stated"
# Programs that set four: ``interpreter->SetNumThreads(4)`` in the source of each (MobileNetV1.cpp and its kin).
SETS_FOUR = r"^Qengineering/TensorFlow_Lite"
# Programs whose pool has a thread for each core where nobody asks for fewer, and that share out the layers of one
# sample: documentation of ONNX Runtime (intra-op threads: the physical cores), of PyTorch (torch.get_num_threads), of
# TensorFlow (intra_op_parallelism_threads) and of OpenVINO (a stream of all cores where latency is wanted). TensorFlow
# Lite takes one, or what its caller says.
ON_ALL_CORES = ("processor runtime", "eager", "torch.compile", "TensorFlow")


def threads_of(row: Row, cores: float = 0.0) -> int:
    """Return how many threads of a processor a row states, or its program takes unasked; 0 if neither says.

    Parameters
    ----------
    row
        Whose workload states them, or whose note.
    cores
        What a program has that takes them all; 0 where that does not matter.
    """
    stated = re.search(r"CPU (\d+) thread", row.workload) or re.search(r"\b(\d+) (?:threads?|CPU)\b", row.note)
    if stated:
        return int(stated.group(1))
    if re.search(SETS_FOUR, row.source):
        return 4
    if network_software(row.software) in ON_ALL_CORES:
        return max(1, round(cores)) if cores else 0
    return int(_OPEN not in row.note and bool(re.search(ALONE, row.software)))


def instances_of(row: Row) -> tuple[int, int]:
    """Return how many programs of their own a row says share a processor, and the cores of each; (1, 0) for one of all.

    Each has weights and samples of its own, and a published rate is that of all together.
    """
    return _instances(row.note)


@lru_cache(maxsize=4096)
def _instances(note: str) -> tuple[int, int]:
    number = re.search(r"\b(\d+) instances?\b", note)
    cores = re.search(r"\b(\d+) cores?(?:/| per | an | each)", note) or re.search(r"of (\d+) cores?\b", note)
    return (int(number[1]), int(cores[1])) if number and cores else (1, 0)


def instance(engine: Snapshot, number: int, cores: int, samples: float = 1.0) -> Snapshot:
    """Return what one of several equal programs has of a processor on which all of them are at work.

    Parameters
    ----------
    engine
        All cores, at the clock of all.
    number
        Of programs, which divide bandwidth and cache among them.
    cores
        Of each, with a thread on each.
    samples
        That one works on side by side.
    """
    part = engine.share(1 / number, 1 / number).changed(cache=lambda: engine.cache / number)
    return sharing_layers(part, cores, samples)


def beside_gpu(row: Row) -> Row:
    """Return a run of an integer network on a GPU as what ncnn makes of it: a run on the processor.

    Its times are those of the processor's sections to a few percent.
    """
    threads = BESIDE_GPU.get(row.device, 1)
    return replace(row, workload=f"CNN inference on CPU {threads} thread" + ("s" if threads > 1 else ""))


def rented(row: Row, cores: float) -> float:
    """Return the part of a processor that a rented machine has, 1 where the row names none.

    A virtual processor of Amazon's machines is one of the two threads of a core, and an ``xlarge`` has four.

    Parameters
    ----------
    row
        Whose note may name the machine, such as ``aws-g4dn.4xlarge``.
    cores
        Of the whole processor.
    """
    named = re.search(r"aws-\w+\.(\d+)xlarge", row.note)
    return min(1.0, 2 * int(named.group(1)) / cores) if named else 1.0


# The clock of all cores where it is not the one on record, as the heading of ncnn's section has it (benchmark/README.md
# @a4d2ea1: "Raspberry Pi 4 ... (1.8GHz x 4)", which newer boards reach, and "FT-2000/4 (FTC663 ... 2.2GHz x 4)").
NCNN_CLOCK = {"RaspberryPi4": 1.8e9, "FT2000_4": 2.2e9}


def stated_clock(row: Row, twin: Device, cores: float) -> float:
    """Return the clock of all cores, Hz, at which a row says that it ran, 0 where it says none or that of some cores.

    Of Arm's cores alone, which all reach it: what is told of the cores of x86 is the boost of one.

    Parameters
    ----------
    row
        Whose note may have it, such as ``Cortex-A53 1.2GHZ x 4`` or ``overclocked to 1925 MHz``.
    twin, cores
        Of the whole processor.
    """
    if twin.vendor in ("Intel", "AMD"):
        return 0.0
    told = re.findall(r"(\d+(?:\.\d+)?) ?GHz\)? x ?(\d+)", row.note, re.IGNORECASE)
    if len(told) == 1 and int(told[0][1]) == cores:
        return float(told[0][0]) * 1e9
    beyond = re.search(r"overclocked to (\d+) ?MHz", row.note)
    if beyond:
        return float(beyond.group(1)) * 1e6
    return NCNN_CLOCK.get(twin.id, 0.0) if "ncnn" in row.software else 0.0


def clocked(engine: Snapshot, clock: float, *, memory: bool = False) -> Snapshot:
    """Return a machine at another clock than the one on record.

    Parameters
    ----------
    engine
        Whose rates go with the clock that they are on record at.
    clock
        Hz.
    memory
        Whether its main memory lies on the chip and goes with the clock, too, as a microcontroller's does.
    """
    with as_recorded():
        ratio = clock / engine.clock
    other = engine.changed(
        matmul=lambda: engine.matmul * ratio,
        vector=lambda: engine.vector * ratio,
        cache_bandwidth=lambda: engine.cache_bandwidth * ratio,
        clock=clock,
    )
    return other.changed(bandwidth=lambda: engine.bandwidth * ratio) if memory else other
