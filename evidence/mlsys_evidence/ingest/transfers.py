"""Rows of data movement: streams, sweeps of arithmetic intensity, collectives."""

import re

from mlsys.calibration.case import Inexpressible
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.software import serving_stack


def stream(draft: Draft) -> None:
    """Fill in a copy, scale, triad or stencil over arrays far larger than the caches."""
    row = draft.row
    draft.on(several=True)
    if re.search(r"(^|[\s=])-\s?[\d.]+ (GB|MB)", row.seq_or_shape):
        raise Inexpressible(f"arrays below nothing: {row.seq_or_shape}")
    size = re.search(r"([\d.]+) (GB|MB)", row.seq_or_shape)
    draft.numbers["bytes"] = float(size[1]) * (1e9 if size[2] == "GB" else 1e6) if size else 2.1e9
    draft.numbers["arrays"] = 4 if "3 loads" in row.workload else 3 if re.search("Triad|Add", row.workload) else 2
    if re.search("init|read", row.workload):
        draft.numbers["arrays"] = 1
    if "Little" in row.workload:
        draft.take("occupancy", r"occupancy=([\d.]+)%", row.seq_or_shape)
    draft.set(operation="stream")


def beyond_cache(draft: Draft) -> None:
    """Fill in reading a data set that no cache holds, again and again."""
    draft.on()
    draft.set(operation="repeated read")


def intensity_sweep(draft: Draft) -> None:
    """Fill in a synthetic kernel of stated arithmetic intensity."""
    if not draft.take("intensity", r"intensity ([\d.]+)", draft.row.seq_or_shape):
        raise Inexpressible("arithmetic intensity not stated")
    draft.on()
    draft.in_format()
    draft.set(operation="intensity sweep")


_OPERATIONS = (("all-reduce", "all-reduce"), ("all-to-all", "all-to-all"), ("all-gather|reduce-scatter", "all-gather"))
_UNITS = {"bytes": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def collective(draft: Draft) -> None:
    """Fill in a collective within one node: all-reduce, all-gather, reduce-scatter, all-to-all."""
    row = draft.row
    if re.search(r"inter-node|\bnodes of \d", row.workload):
        raise Inexpressible("all-reduce between nodes: the network of the cluster is not stated")
    draft.on()
    size = re.search(r"([\d.]+) ?(bytes|B|[KMG]i?B)", row.seq_or_shape)
    if not size:
        raise Inexpressible("size of the message not stated")
    draft.numbers["bytes"] = float(size[1]) * _UNITS[size[2]]
    operation = next(name for words, name in _OPERATIONS if re.search(words, row.workload))
    draft.set(operation=operation, kernels=serving_stack(row.software))
    draft.mark("eager", "eager", row.software)
    draft.mark("over PCIe", "PCIe", row.workload)
