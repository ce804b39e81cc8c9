"""Single kernels: reductions, element-wise work, attention, recurrences."""

import re
from dataclasses import replace

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for, summing_in_half
from mlsys.calibration.rows import Row
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Device
from mlsys.hardware.view import view
from mlsys.models.estimate import CALLED, MATMUL, QUEUED, RING_REDUCE, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.reductions import few_rows, norm_reads
from mlsys.provenance import comparing
from mlsys.workloads import LAYER_NORM_OPERATIONS, SOFTMAX_OPERATIONS
from mlsys_evidence.ingest.eager_launch_overhead import A_CALL
from mlsys_evidence.ingest.reading import (
    batch_of,
    number_format,
    numbers_in,
    operations_a_second,
    twin_of,
    whole_number,
)
from mlsys_evidence.ingest.software import by_processor, cuda_of

GELU_OPERATIONS = 9  # the tanh form: 3 multiply-adds, tanh, an addition and 2 multiplications
CALLS = ("softmax", "layer norm", "gelu", "element-wise")
ELEMENT_WISE = {"GELU": ("gelu", GELU_OPERATIONS), "ReLU": ("element-wise", 1), "tanh": ("element-wise", 4)}


def product(
    m: float, n: float, k: float, fmt: Format, batch: float = 1, count: float = 1, weights: bool = False
) -> Kernel:
    """Return the kernel of ``batch`` products (m × k) by (k × n)."""
    second = batch * k * n * fmt.weight
    return Kernel(
        MATMUL,
        flops=2.0 * batch * m * n * k,
        moved=batch * (m * k + m * n) * fmt.value + second,
        weights=second if weights else 0.0,
        m=m,
        n=n,
        k=k,
        batch=batch,
        count=count,
    )


def vector(
    elements: float, operations: float, fmt: Format, reads: float = 1, writes: float = 1, count: float = 1
) -> Kernel:
    """Return the kernel of element-wise work on tensors of ``elements``."""
    return Kernel(VECTOR, flops=elements * operations, moved=elements * (reads + writes) * fmt.value, count=count)


# What a call takes beside that of `torch.tanh`, as parts of it: the functions about ReLU, GELU and softmax, and the
# module about a normalisation with the three tensors that it makes. Alike within a twelfth on T4, V100 and A100.
# KernelBench has a module about each function.
ABOUT_A_FUNCTION, ABOUT_A_NORM = 0.25, 0.85
_MODULES = "KernelBench"


# Where each call from Python was timed alone: NeuSight and KernelBench record events about it, LLMCompass waits for
# the machine.
_ALONE = r"NeuSight|KernelBench|LLMCompass|\bwaited for|fastest of"


def cleared(row: Row) -> bool:
    """Tell whether calls queue before the machine and its caches are cleared in between: `triton.testing.do_bench`."""
    return "do_bench" in row.note


def queued(row: Row) -> bool:
    """Tell whether calls from Python queue before the machine, as where one is repeated and the last is waited for.

    So `torch.utils.benchmark.Timer` and `torch.profiler` have it; who times each call alone says so.
    """
    alone = re.search(_ALONE, f"{row.source} {row.note}")
    return cleared(row) or ("GPU" in row.device_class and alone is None)


def calling(row: Row) -> float:
    """Return the seconds in which a host calls what is repeated, that no shorter kernel can hide."""
    return 0.0 if cleared(row) or not queued(row) or "PyTorch" not in row.software else A_CALL


def _called(row: Row, kind: str, kernel: Kernel) -> tuple[str, Work]:
    """Return the software, and the work, of one kernel that is called from Python and timed alone.

    LLMCompass times each call by the host's clock, `torch.cuda.synchronize` in it (software_model/layernorm.py), so
    that nothing passes beside the kernel; its normalisation and GELU are compiled by `torch.compile`, whose guards
    run before each call, its softmax is not. Others record events of the machine about the call. Softmax of ROCm has
    no more than one sweep of either, which agree as they are.
    """
    software = kind_of_software(row)
    if software not in ("eager", "compiled") or (kind == "softmax" and "ROCm" in row.software):
        return software, Work.of([kernel])
    if "LLMCompass" in row.source:
        return ("eager" if kind == "softmax" else "compiled"), Work.of([kernel])
    if queued(row):
        return software, Work.of([replace(kernel, ranks=QUEUED)])
    if software == "compiled":
        return software, Work.of([kernel])
    module = kind == "layer norm" or _MODULES in row.source
    about = ABOUT_A_NORM if module else 0.0 if "tanh" in row.workload else ABOUT_A_FUNCTION
    return software, Work.of([replace(kernel, ranks=CALLED), Kernel(VECTOR, flops=0.0, moved=0.0, count=about)])


def case_of(row: Row, kind: str, software: str, work: Work, fmt: Format, units_of_output: float = 1.0) -> Case:
    """Return the case of one kernel on one machine."""
    twin, share = twin_of(row.device, cpu=by_processor(row.device, row.software))
    engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
    if fmt.computes == "int8" and "cuBLAS" in row.software:
        engine = dot_product_engine(engine)
    if fmt.computes == "fp16" and fmt.vector_unit:
        engine = half_engine(engine)
    if "FP16 all through" in row.note:  # sums, too
        engine = summing_in_half(engine, twin)
    if share < 1:
        engine = engine.share(share, share)
    if row.metric == "achieved throughput":
        rate = operations_a_second(row)
        if not rate:
            raise Inexpressible(f"{row.metric} in {row.unit} is not a rate of arithmetic")
        seconds, inverse = work.flops / rate, True
    elif row.unit == "Gelements/s":
        seconds, inverse = units_of_output / (row.value * 1e9), True
    else:
        seconds, inverse = seconds_each(row, units_of_output)
    return Case(row, kind, _setting(software, kind, twin, engine), twin.id, engine, work, seconds, inverse)


def _setting(software: str, kind: str, twin: Device, engine: Snapshot) -> str:
    """Return the setting: matrix and vector units run different kernels, and ROCm is not CUDA."""
    if software in ("eager", "eager batched", "compiled") and twin.vendor == "AMD":
        software = re.sub(r"^\w+", r"\g<0> ROCm", software)
    if kind in CALLS and twin.kind == "GPU" and not software.endswith("library"):
        # a loop over memory each, called alike; but what ROCm compiles, and its softmax, run at rates of their own
        alike = software != "compiled ROCm" and (software, kind) != ("eager ROCm", "softmax")
        return f"{software} {'call' if alike else kind} on {twin.kind}"
    # FP16 of GeForce cards is twice as fast as FP32 by their matrix units, and a P100's by its vector units.
    by_matrix = engine.over_vector > MATRIX_UNITS and twin.has_peak(engine.computes_in, unit="matrix")
    units = "matrix units" if by_matrix else "vector units"
    if (software.endswith("library") or (software, kind) == ("eager", "convolution")) and twin.kind == "GPU":
        return f"{software} {kind}, {units} on {twin.kind}"
    return f"{software} {kind} on {twin.kind}"


def dot_product_engine(engine: Snapshot) -> Snapshot:
    """Return the engine without its integer matrix units: four 8-bit products a vector lane.

    cuBLAS before version 11 reaches the integer tensor cores only through layouts of their
    own; plain row- and column-major operands run on the DP4A instruction.
    """
    return engine.changed(
        matmul=lambda: min(engine.matmul, 4 * engine.vector),
        computes_in="int8",
        bits=8.0,
        vector=lambda: 4 * engine.vector,
    ).designed()


def half_engine(engine: Snapshot) -> Snapshot:
    """Return the engine as one whose vector units do two operations in half precision for one of FP32."""
    return engine.changed(vector=lambda: engine.matmul).designed()


def kind_of_software(row: Row) -> str:
    """Return the kind of software: the makers' own libraries, AMD's apart, one for phones, PyTorch or its compiler."""
    if "PyTorch" in row.software:
        return "compiled" if "torch.compile" in row.software else "eager"
    if row.software.startswith("Triton"):
        return "Triton"
    if "rocBLAS" in row.software:
        return "ROCm library"
    return "gemmlowp" if "gemmlowp" in row.software else "library"


# Versions are numbers that grow: 8.0.88 is 8.088, cuBLAS with the second patch of CUDA 8, NVIDIA's "cublas performance
# update" of June 2017.
CUDA_8, CUDA_8_PATCHED, CUDA_9 = 8.0, 8.088, 9.0
# Columns of the narrowest tile of FP32 that cuBLAS 7.5 takes, and cuBLAS 8 for products of at most ``NARROW`` columns:
# on one M40 16 and 32 columns take the same 540 µs, and on one P100 16 take 109 µs where 32 take 37.
NARROWEST_TILE, NARROW = 64.0, 16.0


def cuda_version(row: Row) -> float:
    """Return the version of CUDA whose libraries ran a row, or infinity where it is not known."""
    return cuda_of(row.software, twin_of(row.device, cpu=by_processor(row.device, row.software))[0].id)


def reduction(row: Row) -> Case:
    """Return the case of a softmax or a layer normalisation over the rows of an M × N matrix."""
    s = numbers_in(row.seq_or_shape)
    if not {"M", "N"} <= s.keys():
        raise Inexpressible("shape of the matrix not stated")
    fmt = number_format(row.precision)
    kind = "softmax" if "softmax" in row.workload.lower() else "layer norm"
    operations = sum((SOFTMAX_OPERATIONS if kind == "softmax" else LAYER_NORM_OPERATIONS).values())
    elements = s["M"] * s["N"]
    reads = _passes(row, kind, s["N"], fmt)
    software, work = _called(row, kind, vector(elements, operations, fmt, reads))
    case = case_of(row, kind, software, work, fmt, elements)
    waits = calling(row)
    if kind == "layer norm" and software == "eager":
        waits = max(waits, few_rows(twin_of(row.device)[0], s["M"], elements * (reads + 1) * fmt.value))
    # Read once and written once is all that must be: what its program reads again is no part of the bound.
    return replace(case, cached=not cleared(row), compulsory=2 / (1 + reads), at_least=waits)


# PyTorch's softmax keeps a row in registers up to so many elements, and in shared memory since 2.1, where a unit
# must hold four blocks to stay busy; on AMD's its normalisation runs sixteen blocks, each of which reads its row twice.
IN_REGISTERS, SOFTMAX_BLOCKS, NORM_BLOCKS = 1024, 4, 16
# It does so only with rows of whole vectors, of so many bytes, and within what a block has without asking for more
# (aten/src/ATen/native/cuda/SoftMax.cu, `can_use_smem`); AMD's do not show it. Other rows
# are read for the largest value, for the sum and for the result; two that fit a unit's cache are found there again.
VECTOR_LOAD, BLOCK_MEMORY, READING_AGAIN = 16, 48 * 1024, 2


def _passes(row: Row, kind: str, length: float, fmt: Format) -> float:
    """Return how often a reduction reads its rows from the main memory: once where its unit can hold them."""
    twin, _ = twin_of(row.device, cpu=by_processor(row.device, row.software))
    if "PyTorch" not in row.software or "torch.compile" in row.software or twin.kind != "GPU":
        return 1.0  # what Inductor reads again it keeps in the last cache (``evict_last`` of its loads)
    stated = re.search(r"PyTorch (\d+)\.(\d+)", row.software)
    shared = stated is not None and (int(stated[1]), int(stated[2])) >= (2, 1)
    if kind == "softmax" and (not shared or length <= IN_REGISTERS):
        return 1.0 if length <= IN_REGISTERS else 2.0
    if kind != "softmax" and twin.vendor == "NVIDIA":
        return norm_reads(twin, length * fmt.value)
    with comparing():
        levels = [level for level in view(twin, fmt.computes).levels if level.name in ("L1", "LDS", "Shared")]
        room = max((level.usable or level.capacity or 0.0 for level in levels), default=0.0)
    size = length * fmt.value
    if kind != "softmax" or twin.vendor != "NVIDIA":
        return 1.0 if (SOFTMAX_BLOCKS if kind == "softmax" else NORM_BLOCKS) * size <= room else 2.0
    if size % VECTOR_LOAD == 0 and size < BLOCK_MEMORY and SOFTMAX_BLOCKS * size <= room:
        return 1.0
    return 2.0 if READING_AGAIN * size <= room else 3.0


def element_wise(row: Row) -> Case:
    """Return the case of a GELU, a ReLU or a hyperbolic tangent of so many elements."""
    elements = whole_number(r"(\d+) elements", row.seq_or_shape, "number of elements")
    fmt = number_format(row.precision)
    kind, operations = next(entry for word, entry in ELEMENT_WISE.items() if word in row.workload)
    software, work = _called(row, kind, vector(elements, operations, fmt))
    case = case_of(row, kind, software, work, fmt, elements)
    return replace(case, cached=not cleared(row), at_least=calling(row))


# Instructions that multiply values stored in FP16 and widened one by one, as on a P100, over those of values stored in
# FP32: of a tile of 8 × 8 a thread widens 16 for 64 multiplications, at a quarter of their rate.
WIDENING = 2.0


# What the call of a whole layer takes before its first step, as parts of a step's start; of 0, 0.5 and 1 by the error
# left out: layers of one step take twice as long on a V100 as a further step of theirs.
A_LAYERS_CALL = 0.5


def recurrence(row: Row) -> Case:
    """Return the case of a recurrent layer as DeepBench runs it, each step after the other.

    The layer takes its input as it is (`CUDNN_SKIP_INPUT`, baidu-research/DeepBench, code/nvidia/rnn_bench.cu): its
    only products are those with the state.
    """
    s = numbers_in(row.seq_or_shape)
    if not {"hidden", "batch", "timesteps"} <= s.keys():
        raise Inexpressible("shape of the recurrent layer not stated")
    gates = {"LSTM": 4, "GRU": 3}.get(row.workload.split()[-1], 1)
    fmt = number_format(row.precision)
    hidden, batch, steps = s["hidden"], s["batch"], s["timesteps"]
    step = product(gates * hidden, batch, hidden, fmt, count=steps, weights=True)
    old = cuda_version(row) < CUDA_9
    if old:
        step = replace(step, n=max(batch, NARROWEST_TILE))
    if "pseudo" in row.precision:
        step = replace(step, k=WIDENING * hidden)
    # cuDNN before version 7: a step's gates are a kernel of their own, of which its start is what is felt.
    apart = Kernel(VECTOR, 0.0, 0.0, count=steps + A_LAYERS_CALL if old else A_LAYERS_CALL)
    return case_of(row, "recurrent layer", kind_of_software(row), Work.of([step, apart]), fmt)


def layer_of_gpt3(row: Row) -> Case:
    """Return the case of one operator of a GPT-3 layer split over four GPUs, as LLMCompass timed it."""
    name = row.workload.split(": ")[1]
    prefill = "prefill" in name
    fmt = number_format(row.precision)
    batch, peers = batch_of(row), row.n_devices
    hidden = whole_number(r"d_model (\d+)", row.seq_or_shape, "width")
    heads = whole_number(r"(\d+) heads", row.seq_or_shape, "heads") // peers
    context = whole_number(r"(?:seq|input) (\d+)", row.seq_or_shape, "sequence")
    if not prefill:
        context += whole_number(r"position (\d+)", row.seq_or_shape, "position")
    tokens = batch * context if prefill else batch
    queries = context if prefill else 1
    width = hidden // (heads * peers)
    wide, part = 4 * hidden // peers, hidden // peers
    kernels = {
        "Q_K_V": lambda: [product(tokens, part, hidden, fmt, weights=True, count=3)],
        "Q_mul_K": lambda: [product(queries, context, width, fmt, batch * heads)],
        "A_mul_V": lambda: [product(queries, width, context, fmt, batch * heads)],
        "Wo_proj": lambda: [product(tokens, hidden, part, fmt, weights=True)],
        "W1_proj": lambda: [product(tokens, wide, hidden, fmt, weights=True)],
        "W2_proj": lambda: [product(tokens, hidden, wide, fmt, weights=True)],
        "Softmax": lambda: [vector(batch * heads * queries * context, sum(SOFTMAX_OPERATIONS.values()), fmt)],
        "LayerNorm_MHA": lambda: [vector(tokens * hidden, sum(LAYER_NORM_OPERATIONS.values()), fmt)],
        "LayerNorm_FFN": lambda: [vector(tokens * hidden, sum(LAYER_NORM_OPERATIONS.values()), fmt)],
        "GeLU": lambda: [vector(tokens * wide, GELU_OPERATIONS, fmt)],
    }
    key = name.split(" ")[0]
    if key.startswith("AllReduce"):
        from mlsys_evidence.ingest.transfers import message

        work = Work.of([message(tokens * hidden * fmt.value, peers, pattern=RING_REDUCE)])
        return case_of(row, "all-reduce", "collective", work, fmt)
    if key not in kernels:
        raise Inexpressible(f"operator {key} of the layer is not described")
    kind = {"Q": "gemm", "A": "gemm", "W": "gemm", "S": "softmax", "L": "layer norm", "G": "gelu"}[key[0]]
    if kind in CALLS:
        software, work = _called(row, kind, kernels[key]()[0])
        return case_of(row, kind, software, work, fmt)
    return case_of(row, kind, "eager", Work.of(kernels[key]()), fmt)
