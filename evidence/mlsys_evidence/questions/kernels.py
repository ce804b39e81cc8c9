"""Single kernels: reductions, element-wise work, attention, recurrences."""

from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for, summing_in_half
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Device
from mlsys.hardware.view import view
from mlsys.models.estimate import CALLED, MATMUL, QUEUED, RING_REDUCE, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.reductions import few_rows, norm_reads
from mlsys.provenance import comparing
from mlsys.workloads import LAYER_NORM_OPERATIONS, SOFTMAX_OPERATIONS
from mlsys_evidence.questions.eager_launch_overhead import A_CALL
from mlsys_evidence.questions.values import operations_a_second
from mlsys_evidence.typed_rows import TypedRow

GELU_OPERATIONS = 9  # the tanh form: 3 multiply-adds, tanh, an addition and 2 multiplications
CALLS = ("softmax", "layer norm", "gelu", "element-wise")
ELEMENT_WISE = {"gelu": ("gelu", GELU_OPERATIONS), "relu": ("element-wise", 1), "tanh": ("element-wise", 4)}


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


# Time of a call beyond that of `torch.tanh`, as parts of it: of the functions around ReLU, GELU and softmax, and of the
# module around a normalization with the three tensors that it makes. Equal within a twelfth on T4, V100 and A100.
ABOUT_A_FUNCTION, ABOUT_A_NORM = 0.25, 0.85


def clears_caches(row: TypedRow) -> bool:
    """Return whether calls queue and the caches are cleared between them: `triton.testing.do_bench`."""
    return row.launch_mode == "cache cleared"


def is_queued(row: TypedRow) -> bool:
    """Return whether calls from Python queue: one call is repeated, and only the last is waited for.

    `torch.utils.benchmark.Timer` and `torch.profiler` do so.
    """
    return row.launch_mode in ("cache cleared", "queued")


def calling(row: TypedRow) -> float:
    """Return the seconds that a host takes for a repeated call, which no shorter kernel can hide."""
    return A_CALL if row.launch_mode == "queued" and row.has("PyTorch") else 0.0


def _called(row: TypedRow, kind: str, kernel: Kernel) -> tuple[str, Work]:
    """Return the software and the work of one kernel that is called from Python and timed alone.

    Where the host's clock times a call and its synchronization, nothing runs beside the kernel; where events of the
    device do, the call is part of the time. Softmax on ROCm has one sweep of each kind, and they agree.
    """
    software = row.software
    if software not in ("eager", "compiled") or (kind == "softmax" and row.has("ROCm")):
        return software, Work.of([kernel])
    if row.launch_mode == "timed by host":
        return software, Work.of([kernel])
    if is_queued(row):
        return software, Work.of([replace(kernel, ranks=QUEUED)])
    if software == "compiled":
        return software, Work.of([kernel])
    about = ABOUT_A_NORM if row.has("module") else 0.0 if row.operation == "tanh" else ABOUT_A_FUNCTION
    return software, Work.of([replace(kernel, ranks=CALLED), Kernel(VECTOR, flops=0.0, moved=0.0, count=about)])


def case_of(row: TypedRow, kind: str, software: str, work: Work, fmt: Format, units_of_output: float = 1.0) -> Case:
    """Return the case of one kernel on one machine."""
    twin, share = row.machine, row.share
    engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
    if fmt.computes == "int8" and row.has("cuBLAS"):
        engine = dot_product_engine(engine)
    if fmt.computes == "fp16" and fmt.vector_unit:
        engine = half_engine(engine)
    if row.has("FP16 sums"):
        engine = summing_in_half(engine, twin)
    if share < 1:
        engine = engine.share(share, share)
    rate = operations_a_second(row.row)
    if rate:
        seconds, inverse = work.flops / rate, True
    elif row.row.unit == "Gelements/s":
        seconds, inverse = units_of_output / (row.row.value * 1e9), True
    else:
        seconds, inverse = seconds_each(row.row, units_of_output)
    return Case(row.row, kind, _setting(software, kind, twin, engine), twin.id, engine, work, seconds, inverse)


def _setting(software: str, kind: str, twin: Device, engine: Snapshot) -> str:
    """Return the setting: matrix and vector units run different kernels, and ROCm is not CUDA."""
    if software in ("eager", "eager batched", "compiled") and twin.vendor == "AMD":
        first, _, rest = software.partition(" ")
        software = f"{first} ROCm {rest}".rstrip()
    if kind in CALLS and twin.kind == "GPU" and not software.endswith("library"):
        # a loop over memory each, called alike; but what ROCm compiles, and its softmax, run at rates of their own
        one_rate = software != "compiled ROCm" and (software, kind) != ("eager ROCm", "softmax")
        return f"{software} {'call' if one_rate else kind} on {twin.kind}"
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


# Versions are numbers that grow: 8.0.88 is 8.088, cuBLAS with the second patch of CUDA 8, NVIDIA's "cublas performance
# update" of June 2017.
CUDA_8, CUDA_8_PATCHED, CUDA_9 = 8.0, 8.088, 9.0
# Columns of the narrowest tile of FP32 that cuBLAS 7.5 takes, and cuBLAS 8 for products of at most ``NARROW`` columns:
# on one M40 16 and 32 columns take the same 540 µs, and on one P100 16 take 109 µs where 32 take 37.
NARROWEST_TILE, NARROW = 64.0, 16.0


def cuda_version(row: TypedRow) -> float:
    """Return the version of CUDA whose libraries ran a row, or infinity where it is not known."""
    return row.get("cuda", float("inf"))


def reduction(row: TypedRow) -> Case:
    """Return the case of a softmax or a layer normalisation over the rows of an M × N matrix."""
    rows, length, fmt, kind = row.number("m"), row.number("n"), row.format, row.operation
    operations = sum((SOFTMAX_OPERATIONS if kind == "softmax" else LAYER_NORM_OPERATIONS).values())
    elements = rows * length
    reads = _passes(row, kind, length, fmt)
    software, work = _called(row, kind, vector(elements, operations, fmt, reads))
    case = case_of(row, kind, software, work, fmt, elements)
    waits = calling(row)
    if kind == "layer norm" and software == "eager":
        waits = max(waits, few_rows(row.machine, rows, elements * (reads + 1) * fmt.value))
    # Read once and written once is all that must be: what its program reads again is no part of the bound.
    return replace(case, cached=not clears_caches(row), compulsory=2 / (1 + reads), at_least=waits)


# PyTorch's softmax keeps a row in registers up to so many elements, and in shared memory since 2.1, where a unit
# must hold four blocks to stay busy; on AMD's its normalisation runs sixteen blocks, each of which reads its row twice.
IN_REGISTERS, SOFTMAX_BLOCKS, NORM_BLOCKS = 1024, 4, 16
# It does so only with rows of whole vectors, of so many bytes, and within what a block has without asking for more
# (aten/src/ATen/native/cuda/SoftMax.cu, `can_use_smem`); AMD's do not show it. Other rows
# are read for the largest value, for the sum and for the result; two that fit a unit's cache are found there again.
VECTOR_LOAD, BLOCK_MEMORY, READING_AGAIN = 16, 48 * 1024, 2


def _passes(row: TypedRow, kind: str, length: float, fmt: Format) -> float:
    """Return how often a reduction reads its rows from the main memory: once where its unit can hold them."""
    twin = row.machine
    if not row.has("PyTorch") or row.has("torch.compile") or twin.kind != "GPU":
        return 1.0  # what Inductor reads again it keeps in the last cache (``evict_last`` of its loads)
    shared = row.released >= (2, 1)
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


def element_wise(row: TypedRow) -> Case:
    """Return the case of a GELU, a ReLU or a hyperbolic tangent of so many elements."""
    elements, fmt = row.number("elements"), row.format
    kind, operations = ELEMENT_WISE[row.operation]
    software, work = _called(row, kind, vector(elements, operations, fmt))
    case = case_of(row, kind, software, work, fmt, elements)
    return replace(case, cached=not clears_caches(row), at_least=calling(row))


# Instructions that multiply values stored in FP16 and widened one by one, as on a P100, over those of values stored in
# FP32: of a tile of 8 × 8 a thread widens 16 for 64 multiplications, at a quarter of their rate.
WIDENING = 2.0


# What the call of a whole layer takes before its first step, as parts of a step's start; of 0, 0.5 and 1 by the error
# left out: layers of one step take twice as long on a V100 as a further step of theirs.
A_LAYERS_CALL = 0.5


def recurrence(row: TypedRow) -> Case:
    """Return the case of a recurrent layer whose steps run one after the other, without products of its input.

    The layer takes its input as it is (`CUDNN_SKIP_INPUT`): its only products are those with the state.
    """
    gates, fmt = row.number("gates"), row.format
    hidden, batch, steps = row.number("hidden"), row.number("images"), row.number("steps")
    step = product(gates * hidden, batch, hidden, fmt, count=steps, weights=True)
    old = cuda_version(row) < CUDA_9
    if old:
        step = replace(step, n=max(batch, NARROWEST_TILE))
    if row.has("FP16 stored"):
        step = replace(step, k=WIDENING * hidden)
    # cuDNN before version 7: a step's gates are a kernel of their own, of which its start is what is felt.
    apart = Kernel(VECTOR, 0.0, 0.0, count=steps + A_LAYERS_CALL if old else A_LAYERS_CALL)
    return case_of(row, "recurrent layer", row.software, Work.of([step, apart]), fmt)


def operator_of_a_layer(row: TypedRow) -> Case:
    """Return the case of one operator of a transformer layer that is split over several GPUs."""
    fmt, kind = row.format, row.operation.removesuffix(" of a layer")
    if kind == "all-reduce":
        from mlsys_evidence.questions.transfers import message

        work = Work.of([message(row.get("bytes"), row.row.n_devices, pattern=RING_REDUCE)])
        return case_of(row, "all-reduce", "collective", work, fmt)
    if kind == "product":
        m, n, k, copies, calls = (row.number(name) for name in ("m", "n", "k", "copies", "calls"))
        kernel = product(m, n, k, fmt, max(1, copies), calls, weights=not copies)
        return case_of(row, "gemm", "eager", Work.of([kernel]), fmt)
    operations = {
        "softmax": sum(SOFTMAX_OPERATIONS.values()), "layer norm": sum(LAYER_NORM_OPERATIONS.values()),
        "gelu": GELU_OPERATIONS,
    }  # fmt: skip
    software, work = _called(row, kind, vector(row.number("elements"), operations[kind], fmt))
    return case_of(row, kind, software, work, fmt)
