"""Matrix products in stacks that serve language models: what each quantises in the time, and which kernels it runs."""

import math
import re
from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.models.estimate import OVERLAPPED, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.ingest.kernels import case_of
from mlsys_evidence.ingest.reading import twin_of


def in_a_stack(row: Row, stack: str, kernel: Kernel, fmt: Format) -> Case:
    """Return the case of a product in a stack that serves language models.

    It quantises the activations inside the time: one pass that reads 16-bit values and writes narrow ones.
    """
    narrow = fmt.computes in ("fp8", "int8", "fp4")
    kernel = replace(kernel, weights=kernel.batch * kernel.k * kernel.n * fmt.weight)
    kernels = [kernel]
    if narrow:
        values = kernel.m * kernel.k
        wider = kernel.batch * kernel.m * kernel.n * (2 - fmt.value)  # the product itself gives 16-bit values
        kernels = [
            Kernel(VECTOR, flops=4.0 * values, moved=values * _quantising(row, stack, fmt)),
            replace(kernel, moved=kernel.moved + wider),
        ]
        kernels = kernels[1:] if _in_an_engine(row, stack) or by_itself(row.software) else kernels
    scheme = re.sub(r"[ (].*", "", row.precision.replace("weight-only", "weights").replace(" weights", "-weights"))
    if "block" in row.precision or by_itself(row.software):
        scheme += f" blocks{_generation(row, stack)}"
    if stack == "vLLM" and fmt.computes == "fp8":  # the kernel that quantises changed
        stack = "vLLM 0.14" if "0.14" in row.software else stack
    setting = f"{stack} {scheme}" if narrow or fmt.weight < fmt.value else "serving"
    if setting == "serving" and twin_of(row.device)[0].architecture.startswith("Blackwell"):
        kernels = [replace(kernel, ranks=OVERLAPPED)]  # cuBLAS's, alike in three stacks; kernels of their own do not
    case = case_of(row, "gemm", setting, Work.of(kernels), fmt)
    if stack == "TensorRT-LLM" and row.precision.startswith("w8a8"):
        # Its ``int8_gemm_template.h`` (23bc5b7c4) takes ``Sm80`` for 80 to 90, and gives no sum to two blocks.
        case = case.slower_on(as_ampere(case.engine))
    return replace(case, cached=_copies(row, stack, case))


def by_itself(software: str) -> str:
    """Return the stack that has a library's kernels, where the library is called by itself; else an empty string.

    DeepGEMM multiplies FP8 in blocks of one scale, and SGLang leaves such products to it. Its own benchmark quantises
    the operands before, and clears the cache before each call (deepseek-ai/DeepGEMM, ``bench_kineto``).
    """
    return "SGLang" if software.startswith("DeepGEMM") else ""


def _in_an_engine(row: Row, stack: str) -> bool:
    """Tell whether a layer was timed by TensorRT's profiler, as the last of four in an engine that runs once.

    So aiconfigurator's collector/trtllm/collect_gemm_trt.py (efcae124c) measures layers that are plugins of
    TensorRT-LLM, with narrow weights alone and SmoothQuant, whatever their rows say of a CUDA graph: what quantises
    the activations is a layer of its own, outside the time, and three large layers before have filled the cache.
    """
    return stack == "TensorRT-LLM" and ("weight-only" in row.precision or row.precision.startswith("w8a8"))


# What instructions of Ampere attain of the peak of Hopper's matrix units, whose own take operands from shared memory
# (W. Luo et al., arXiv:2501.12084: 62.9 % of it on average, as a public design note quotes them); and the 16-bit FLOP
# that they do each cycle on a multiprocessor, there and on Blackwell, whose registers feed them no faster:
# FlashAttention-2 attains 350 to 380 TFLOP/s on an H100 and on a B200 (Dao-AILab/flash-attention, issue 1589;
# meta-pytorch/tritonbench, pull request 171).
AMPERE_ON_HOPPER = 0.63
AMPERE_EACH_CYCLE = AMPERE_ON_HOPPER * 4096
# TF32 over 16-bit FLOP of one instruction: 8 steps deep where the other is 16 (PTX ISA, ``mma.m16n8k8``, ``m16n8k16``).
TF32_OF_16_BITS = 0.5


def as_ampere(engine: Snapshot) -> Snapshot:
    """Return an engine as a kernel written for Ampere uses it: slower on Hopper and Blackwell's servers, else as it is.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate import snapshot
    >>> h200, b200 = (snapshot(view(Hardware[name], "bf16")) for name in ("H200_SXM", "B200"))
    >>> f"{as_ampere(h200).matmul / h200.matmul:.2f}, {as_ampere(b200).matmul / b200.matmul:.2f}"
    '0.63, 0.32'
    """
    # A rate each cycle counts 16-bit operations; one of TF32 is as many of them as its bits are.
    each_cycle = AMPERE_EACH_CYCLE * (TF32_OF_16_BITS * engine.bits / 16 if engine.computes_in == "tf32" else 1.0)
    part = each_cycle / max(engine.each_cycle, 1.0)
    return engine.changed(matmul=lambda: part * engine.matmul).designed() if part < 1 else engine


def _quantising(row: Row, stack: str, fmt: Format) -> float:
    """Return the bytes that quantising one activation moves: a 16-bit value is read and a narrow one written.

    TensorRT-LLM finds one scale of FP8 for all activations, which it reads once more for their largest value. vLLM
    0.14 takes a step after the other of PyTorch's: absolute values (4 bytes), their largest (2), in FP32 (6) times a
    scale (8), clamped (8) and converted (5); in blocks conversion and scale are one step (6), as the
    ``forward_native`` of its ``input_quant_fp8.py`` has it.
    """
    if row.precision.startswith("fp8"):
        blocks = "block" in row.precision
        if "vLLM 0.14" in row.software:
            return 4 + 2 + (6 if blocks else 6 + 8) + 8 + 5
        if stack == "TensorRT-LLM" and not blocks:
            return 2 + 2 + fmt.value
    return 2 + fmt.value


# Inputs and outputs of the layers before, whose weights are of 16 bits.
_WIDTH = 12288


def _copies(row: Row, stack: str, case: Case) -> float:
    """Return how many layers of one shape took turns, as aiconfigurator's collect_gemm.py has it for each stack.

    None where the cache is cleared. TensorRT-LLM: as many as fill the cache, at most five, or those of an engine;
    vLLM: one of blocks and of FP4; else six.
    """
    if by_itself(row.software):
        return 0.0
    if _in_an_engine(row, stack):
        return 1 + 2 * _WIDTH * (_WIDTH + 2 * float(case.work["k"][-1])) / case.work.weights
    if stack == "TensorRT-LLM":
        return min(5.0, max(1.0, math.ceil(case.engine.cache / case.work.weights)))
    return 1.0 if stack == "vLLM" and ("block" in row.precision or "fp4" in row.precision) else 6.0


# Stacks whose products of blocks, each with a scale of its own, are other kernels on Blackwell: there the matrix units
# take the scales, where Hopper's kernels multiply each part of a sum on the vector units. Of vLLM there is one sweep.
_SCALED_BY_UNITS = ("SGLang", "TensorRT-LLM")


def _generation(row: Row, stack: str) -> str:
    """Return the generation of a machine whose kernels for blocks of one scale are its own, or an empty string."""
    twin, _ = twin_of(row.device)
    return " Blackwell" if stack in _SCALED_BY_UNITS and twin.architecture.startswith("Blackwell") else ""
