"""Threads of a CPU that rows state, or that their programs take."""

import re

from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.software import network_software

# TensorFlow Lite takes one thread where a program sets none (recalled), and cTuning's new one sets none: its FP32 runs
# at up to nine tenths of what one core can, and time falls with the FLOP down to the smallest networks. Versions that
# rows of MLPerf name have the threads of their system.
_ALONE = r"TFLite CPU|TensorFlow ?Lite(?! for)"
# Where nobody knows what a program set, all cores may be used: rows with this note exceed the peak of one core.
_OPEN = "threads not stated"
# Programs that set four: ``interpreter->SetNumThreads(4)`` in the source of each (MobileNetV1.cpp and others).
_SETS_FOUR = r"^Qengineering/TensorFlow_Lite"
# Programs whose pool has a thread for each core by default, and that split the layers of one sample: documentation of
# ONNX Runtime (intra-op threads: the physical cores), of PyTorch (torch.get_num_threads), of TensorFlow
# (intra_op_parallelism_threads) and of OpenVINO (a stream of all cores where latency is wanted).
_ON_ALL_CORES = ("processor runtime", "eager", "torch.compile", "TensorFlow")


def threads(draft: Draft) -> None:
    """Fill in the threads that a row states or its program takes, or that it takes all cores."""
    row = draft.row
    stated = re.search(r"CPU (\d+) thread", row.workload) or re.search(r"\b(\d+) (?:threads?|CPU)\b", row.note)
    if stated:
        draft.numbers["threads"] = int(stated[1])
    elif re.search(_SETS_FOUR, row.source):
        draft.numbers["threads"] = 4
    elif network_software(row.software) in _ON_ALL_CORES:
        draft.features.add("threads of all cores")
    elif _OPEN not in row.note and re.search(_ALONE, row.software):
        draft.numbers["threads"] = 1


def instances(draft: Draft) -> None:
    """Fill in how many programs of their own share a CPU, and the cores of each, where a row states both."""
    note = draft.row.note
    number = re.search(r"\b(\d+) instances?\b", note)
    cores = re.search(r"\b(\d+) cores?(?:/| per | an | each)", note) or re.search(r"of (\d+) cores?\b", note)
    if number and cores:
        draft.numbers |= {"instances": int(number[1]), "cores_of_an_instance": int(cores[1])}


# The clock of all cores where it is not the one on record, as the heading of ncnn's section has it (benchmark/README.md
# @a4d2ea1: "Raspberry Pi 4 ... (1.8GHz x 4)", which newer boards reach, and "FT-2000/4 (FTC663 ... 2.2GHz x 4)").
_NCNN_CLOCK = {"RaspberryPi4": 1.8e9, "FT2000_4": 2.2e9}


def clock(draft: Draft, cores: float) -> None:
    """Fill in the clock of all cores, Hz, at which a row says that it ran.

    Only of Arm's cores, which all reach it: a clock stated for x86 is the boost of one core.
    """
    row, device = draft.row, draft.columns["device"]
    if Hardware[device].vendor in ("Intel", "AMD"):
        return
    stated = _stated(row, cores) or (_NCNN_CLOCK.get(device, 0.0) if "ncnn" in row.software else 0.0)
    if stated:
        draft.numbers["clock"] = stated


def _stated(row: Row, cores: float) -> float:
    all_cores = re.findall(r"(\d+(?:\.\d+)?) ?GHz\)? x ?(\d+)", row.note, re.IGNORECASE)
    if len(all_cores) == 1 and int(all_cores[0][1]) == cores:
        return float(all_cores[0][0]) * 1e9
    beyond = re.search(r"overclocked to (\d+) ?MHz", row.note)
    return float(beyond[1]) * 1e6 if beyond else 0.0
