"""Rows of single convolutions: which algorithm ran, in which software."""

from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for
from mlsys.models.estimate import VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.blocks import batched_tiles
from mlsys.models.estimate.lowering import WINOGRAD_SAVING
from mlsys_evidence.questions.cudnn import Convolution, quickest
from mlsys_evidence.questions.kernels import CUDA_8, case_of, cuda_version
from mlsys_evidence.questions.stacks import as_ampere
from mlsys_evidence.questions.tf32 import multiplied_in
from mlsys_evidence.typed_rows import TypedRow

__all__ = ["convolution"]

# Versions of cuDNN that ran with CUDA 7.5, and not with 8.
OF_CUDA_7 = 5.0
# Launches that the call costs beside those of its kernels: Python, PyTorch's dispatch, cuDNN's plan, its workspace.
CALLS = 6.0


def convolution(row: TypedRow) -> Case:
    """Return the case of one convolution."""
    shape, fmt, software = Convolution.of(row.numbers), row.format, row.software
    twin = row.machine
    fmt = multiplied_in(row, fmt, twin, lambda: 1.0)
    if row.has("cuDNN") and row.has("FP16 stored"):
        # DeepBench asks cuDNN 6 to compute in the format of the values, half, whatever its sheet is called
        # (code/nvidia/cudnn_helper.h, ConvolutionDescriptor): its P100 does 11 TFLOP/s so, of 9.3 in FP32.
        fmt = replace(fmt, computes="fp16")
    unrolled = row.algorithm == "unrolled"
    if cuda_version(row) < CUDA_8 or row.get("cudnn", float("inf")) <= OF_CUDA_7 or unrolled:
        software = "CUDA 7 library"
    if unrolled:
        kernels = shape.unrolled(fmt)
    elif twin.kind == "GPU" and (row.has("cuDNN") or software == "eager"):
        engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
        kernels = _of_cudnn(row.algorithm, shape.algorithms(fmt, batched_tiles(twin)), shape.implicit(fmt), engine)
    else:
        kernels = [shape.as_product(fmt, WINOGRAD_SAVING if row.algorithm.startswith("Winograd") else 1.0)]
    if twin.kind == "GPU" and software == "eager":
        kernels.insert(0, Kernel(VECTOR, flops=0.0, moved=0.0, count=CALLS * row.get("call_growth", 1.0)))
    # A rate that a source states counts the sums as they are written, whatever the algorithm left of them.
    written = case_of(row, "convolution", software, Work.of([shape.as_product(fmt)]), fmt)
    written = replace(written, work=Work.of(kernels))
    by_matrix = twin.kind == "GPU" and not fmt.vector_unit
    # Loads that Hopper's and Blackwell's own instructions wait for take strides of 16 bytes (CUDA Driver API,
    # ``cuTensorMapEncodeTiled``), which few channels do not make.
    return written.slower_on(as_ampere(written.engine)) if by_matrix and shape.channels * fmt.value % 16 else written


def _of_cudnn(named: str, algorithms: dict[str, list[Kernel]], plain: Kernel, engine: Snapshot) -> list[Kernel]:
    """Return the kernels of the algorithm that is named, or of the quickest."""
    if named == "direct":
        return [plain]
    if named in algorithms:
        return algorithms[named]
    if named == "FFT":
        algorithms = {name: kernels for name, kernels in algorithms.items() if "FFT" in name} or algorithms
    return algorithms["product"] if named == "implicit" else quickest(algorithms, engine)
