"""Matrix products in stacks that serve language models: what each quantises in the time, and which kernels it runs."""

import math
from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.models.estimate import OVERLAPPED, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.questions.kernels import case_of
from mlsys_evidence.typed_rows import TypedRow


def in_a_stack(row: TypedRow, stack: str, kernel: Kernel, fmt: Format) -> Case:
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
        kernels = kernels[1:] if row.has("timed in an engine") or row.has("DeepGEMM") else kernels
    scheme = row.scheme
    if row.has("scales of blocks") or row.has("DeepGEMM"):
        scheme += f" blocks{_generation(row, stack)}"
    if stack == "vLLM" and fmt.computes == "fp8":  # the kernel that quantises changed
        stack = "vLLM 0.14" if row.has("vLLM 0.14") else stack
    setting = f"{stack} {scheme}" if narrow or fmt.weight < fmt.value else "serving"
    if setting == "serving" and row.machine.architecture.startswith("Blackwell"):
        kernels = [replace(kernel, ranks=OVERLAPPED)]  # cuBLAS's, alike in three stacks; kernels of their own do not
    case = case_of(row, "gemm", setting, Work.of(kernels), fmt)
    if stack == "TensorRT-LLM" and row.scheme.startswith("w8a8"):
        # Its ``int8_gemm_template.h`` (23bc5b7c4) takes ``Sm80`` for 80 to 90, and gives no sum to two blocks.
        case = case.slower_on(as_ampere(case.engine))
    return replace(case, cached=_copies(row, case))


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


def _quantising(row: TypedRow, stack: str, fmt: Format) -> float:
    """Return the bytes that quantising one activation moves: a 16-bit value is read and a narrow one written.

    TensorRT-LLM finds one scale of FP8 for all activations, which it reads once more for their largest value. vLLM
    0.14 takes a step after the other of PyTorch's: absolute values (4 bytes), their largest (2), in FP32 (6) times a
    scale (8), clamped (8) and converted (5); in blocks conversion and scale are one step (6), as the
    ``forward_native`` of its ``input_quant_fp8.py`` has it.
    """
    if row.scheme.startswith("fp8"):
        blocks = row.has("scales of blocks")
        if row.has("vLLM 0.14"):
            return 4 + 2 + (6 if blocks else 6 + 8) + 8 + 5
        if stack == "TensorRT-LLM" and not blocks:
            return 2 + 2 + fmt.value
    return 2 + fmt.value


# Inputs and outputs of the layers before, whose weights are of 16 bits.
_WIDTH = 12288


def _copies(row: TypedRow, case: Case) -> float:
    """Return how many copies of the weights took turns; none where the cache is cleared before each call."""
    if row.has("timed in an engine"):
        return 1 + 2 * _WIDTH * (_WIDTH + 2 * float(case.work["k"][-1])) / case.work.weights
    copies = row.get("weight_copies")
    if row.has("copies fill the cache"):
        return min(copies, max(1.0, math.ceil(case.engine.cache / case.work.weights)))
    return copies


# Stacks whose products of blocks, each with a scale of its own, are other kernels on Blackwell: there the matrix units
# take the scales, where Hopper's kernels multiply each part of a sum on the vector units. Of vLLM there is one sweep.
_SCALED_BY_UNITS = ("SGLang", "TensorRT-LLM")


def _generation(row: TypedRow, stack: str) -> str:
    """Return the generation of a machine whose kernels for blocks of one scale are its own, or an empty string."""
    return " Blackwell" if stack in _SCALED_BY_UNITS and row.machine.architecture.startswith("Blackwell") else ""
