"""Rows of single convolutions: which algorithm ran, in which software."""

import re
import statistics
from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for
from mlsys.calibration.rows import Row
from mlsys.models.estimate import VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.blocks import batched_tiles
from mlsys.models.estimate.lowering import WINOGRAD_SAVING
from mlsys_evidence.ingest.cudnn import Convolution, quickest
from mlsys_evidence.ingest.kernels import CUDA_8, case_of, kind_of_software
from mlsys_evidence.ingest.reading import number_format, twin_of
from mlsys_evidence.ingest.software import by_processor, cuda_of, cudnn_of, saves_multiplications, unrolls
from mlsys_evidence.ingest.stacks import as_ampere
from mlsys_evidence.ingest.tf32 import multiplied_in

__all__ = ["convolution"]

# Versions of cuDNN that ran with CUDA 7.5, and not with 8.
OF_CUDA_7 = 5.0
# Launches that the call costs beside those of its kernels: Python, PyTorch's dispatch, cuDNN's plan, its workspace.
CALLS = 6.0
# NeuSight's program tries cuDNN's algorithms for some 5,000 shapes in one process, and each call takes longer than the
# one before: by 0.05 to 0.15 µs, as the smallest convolutions of each file show, which take 60 to 110 µs at the head
# and 360 to 760 at the end. A clock that drifts is set right before it is believed: lines of the file after which a
# call costs twice what the first did. They are read off the floor of each file, not off our errors; of a machine that
# is not named here, the one in the middle. No other list of the program grows, and no estimate of a layer knows of it.
TWICE_AFTER = {"A100": 860.0, "P100": 380.0, "T4": 1060.0}
TWICE_AFTER_ELSEWHERE = statistics.median(TWICE_AFTER.values())


def convolution(row: Row) -> Case:
    """Return the case of a convolution given as DeepBench writes it."""
    shape, fmt, software = Convolution.of(row.seq_or_shape), number_format(row.precision), kind_of_software(row)
    twin, _ = twin_of(row.device, cpu=by_processor(row.device, row.software))
    fmt = multiplied_in(row, fmt, twin, lambda: 1.0)
    if "cuDNN" in row.software and "pseudo" in row.precision:
        # DeepBench asks cuDNN 6 to compute in the format of the values, half, whatever its sheet is called
        # (code/nvidia/cudnn_helper.h, ConvolutionDescriptor): its P100 does 11 TFLOP/s so, of 9.3 in FP32.
        fmt = replace(fmt, computes="fp16")
    if cuda_of(row.software, twin.id) < CUDA_8 or cudnn_of(row.software) <= OF_CUDA_7 or unrolls(row.software):
        software = "CUDA 7 library"
    if unrolls(row.software):
        kernels = shape.unrolled(fmt)
    elif twin.kind == "GPU" and ("cuDNN" in row.software or software == "eager"):
        engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
        kernels = _of_cudnn(row.software, shape.algorithms(fmt, batched_tiles(twin)), shape.implicit(fmt), engine)
    else:
        kernels = [shape.as_product(fmt, WINOGRAD_SAVING if "WINOGRAD" in row.software.upper() else 1.0)]
    if twin.kind == "GPU" and software == "eager":
        kernels.insert(0, Kernel(VECTOR, flops=0.0, moved=0.0, count=CALLS * _times_as_long(row)))
    # A rate that a source states counts the sums as they are written, whatever the algorithm left of them.
    written = case_of(row, "convolution", software, Work.of([shape.as_product(fmt)]), fmt)
    written = replace(written, work=Work.of(kernels))
    by_matrix = twin.kind == "GPU" and not fmt.vector_unit
    # Loads that Hopper's and Blackwell's own instructions wait for take strides of 16 bytes (CUDA Driver API,
    # ``cuTensorMapEncodeTiled``), which few channels do not make.
    return written.slower_on(as_ampere(written.engine)) if by_matrix and shape.channels * fmt.value % 16 else written


def _times_as_long(row: Row) -> float:
    """Return how many times as long as the first of its process a call of NeuSight's program takes."""
    listed = re.search(r"/collect/conv/.*/(.+)\.csv.* line (\d+)", row.source_path)
    if not listed:
        return 1.0
    words = re.split(r"[\s-]", listed[1])
    twice = next((TWICE_AFTER[word] for word in words if word in TWICE_AFTER), TWICE_AFTER_ELSEWHERE)
    return 1 + float(listed[2]) / twice


def _of_cudnn(software: str, algorithms: dict[str, list[Kernel]], plain: Kernel, engine: Snapshot) -> list[Kernel]:
    """Return the kernels of the algorithm that is named, or of the quickest."""
    if not saves_multiplications(software):
        return [plain]
    named = "apart" if "WINOGRAD_NONFUSED" in software else "fused" if "WINOGRAD" in software else ""
    if f"Winograd, {named}" in algorithms:
        return algorithms[f"Winograd, {named}"]
    if "algo FFT" in software:
        algorithms = {name: kernels for name, kernels in algorithms.items() if "FFT" in name} or algorithms
    return algorithms["product"] if "LICIT_" in software else quickest(algorithms, engine)
