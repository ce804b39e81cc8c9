"""Matrix products by libraries, called one by one or from PyTorch."""

import math
from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.hardware import Device
from mlsys.hardware.view import view
from mlsys.models.estimate import CALLED, QUEUED, VECTOR, Kernel, Work
from mlsys.models.estimate.blocks import in_blocks, layer_slower
from mlsys.models.estimate.lowering import Format
from mlsys.provenance import comparing
from mlsys_evidence.questions.kernels import (
    CUDA_8,
    CUDA_8_PATCHED,
    CUDA_9,
    NARROW,
    NARROWEST_TILE,
    calling,
    case_of,
    clears_caches,
    cuda_version,
    is_queued,
    product,
)
from mlsys_evidence.questions.stacks import in_a_stack
from mlsys_evidence.typed_rows import TypedRow

# How many times as long a step takes whose rows lie so far apart that addresses are waited for: a P100 falls from 7.3
# TFLOP/s of its other layers to between 2.1 and 3.2 where rows are longer than 15,700 values.
FAR_ROWS = 2.8
# Byte that the first translation buffer of a P100 reaches (Z. Jia et al., arXiv:1804.06826, recalled), and rows of both
# operands that two blocks of a unit read at a time.
REACHED, ROWS_READ = 32e6, 512.0
# How many times as long a step of cuBLAS before 8.0.88 takes where the first operand lies row by row along the sum,
# is read again for each block of columns and is larger than so many bytes: 0.53 to 0.73 of the rate of other large
# products on an M40 and both TITAN X, of 28 to 95 MB; none is slower of up to 8 MB, nor on a P100 or GTX 1080 Ti later.
FAR_TRANSPOSED, TRANSPOSED_BEYOND = 1.65, 16e6
# Byte after which a die of CDNA 2 comes back to the first of its 32 channels (ROCm Compute Profiler, "L2 cache (TCC)"),
# were each given a page of 4 KiB, as the rows have it: where rows lie a multiple of that apart an MI210 falls from 30
# TFLOP/s to between 9 and 18.
CHANNELS_SPAN, ONE_CHANNEL = 32 * 4096, 2.5
# Seconds at its peak below which a call from Python, timed alone, is over before a card's power is limited: the best
# such layer attains 60 % of a T4's peak in FP32, the best longer one 50 % and most 30 to 45, as its 70 W pay for.
SHORT_CALL = 3e-4
# Rows of the tile that is ``NARROWEST_TILE`` columns wide, and the part of the units that its blocks leave idle at most
# before cuBLAS 8 splits the sum of a narrow product: 20 blocks on the 56 units of a P100 are split, 24 are not.
NARROW_ROWS, SPLIT_BELOW = 128.0, 0.4
# A sum beyond this, of few columns, is another kernel's in cuBLAS since 8, which reads its operands once. Cycles that
# it takes for a step at least, whatever the rows and columns: DeepBench's sums of 500,000 take 16 to 29 on Pascal's
# cards and 41 on a T4; a V100 splits them.
DEEPEST, DEEP_STEPS = 100_000.0, {"Pascal": 22.0, "Turing": 41.0}
# Rows and columns of the one tile of cuBLAS before its patches, whose sums are not split: for products of 8 bits by
# DP4A in CUDA 8 and 10 (35 rows on a TITAN X take 82 % of the time that a whole block would at the peak), and of FP32
# in CUDA 8 before 8.0.88 (16 and 32 columns take 46 µs on that TITAN X, a block of 512 steps 43 µs at its peak).
WHOLE_TILE = 128.0
# Most columns of a product by DP4A that another kernel takes.
FEW_COLUMNS = 4.0
# That kernel takes so many cycles for each step of a sum that it never splits, and so many rows at a time on each unit:
# K = 500,000 takes 3.78 to 3.87 ms with 1 to 4 columns on a T4 and on a TITAN X; 7,680 rows take as long on a TITAN X
# as 64 rows on each unit, turn by turn, though its memory could be twice as fast.
DOT_PRODUCT_STEP, DOT_PRODUCT_ROWS = 12.0, 64.0


def gemm_kernel(row: TypedRow) -> Case:
    """Return the case of a matrix product given by M, N and K."""
    fmt = row.format
    kernel = product(row.number("m"), row.number("n"), row.number("k"), fmt, row.samples(1))
    return in_a_stack(row, row.kernels, kernel, fmt) if row.kernels else _by_a_library(row, kernel, fmt)


def _by_a_library(row: TypedRow, kernel: Kernel, fmt: Format) -> Case:
    """Return the case of a product that a library or PyTorch computes."""
    kernels = [_tiled(row, kernel)]
    by_python = row.has("PyTorch") and not row.has("ROCm")
    if by_python and row.launch_mode != "timed by host":
        kernels = [replace(kernels[0], ranks=QUEUED if is_queued(row) else CALLED)]
    if by_python and not row.has("batched") and not is_queued(row):
        kernels.insert(0, Kernel(VECTOR, flops=0.0, moved=0.0))  # the layer about the product: a call of its own
    software = row.software
    if software == "Triton":  # timed by ``do_bench`` or inside a CUDA graph
        kernels = [replace(kernel, ranks=QUEUED) for kernel in kernels]
    if software == "eager" and row.has("batched"):
        software = "eager batched"  # another call, with kernels of its own
    if cuda_version(row) < CUDA_8:
        software = "CUDA 7 library"  # each call takes some 80 µs longer
    work = Work.of(kernels)
    if row.has("batched") and row.has("torch"):
        work = in_blocks(work, row.machine, fmt.computes)
    case = replace(case_of(row, "gemm", software, work, fmt), cached=not clears_caches(row), at_least=calling(row))
    if by_python and kernel.flops < SHORT_CALL * case.engine.matmul:
        case = replace(case, engine=case.engine.changed(power=float("inf")))  # over before its power is limited
    if _by_dot_products(row) and kernel.n <= FEW_COLUMNS:
        turns = max(1.0, kernel.m / (DOT_PRODUCT_ROWS * case.engine.units))
        return replace(case, at_least=DOT_PRODUCT_STEP * kernel.k * turns / case.engine.clock)
    if _too_deep(row, kernel):
        cycles = DEEP_STEPS.get(row.machine.architecture.split()[0], 0.0)
        return replace(case, at_least=cycles * kernel.k / case.engine.clock)
    return case


def _by_dot_products(row: TypedRow) -> bool:
    """Tell whether a product of 8 bits runs on DP4A, as in plain layouts before cuBLAS 11."""
    return row.computes == "int8" and row.has("cuBLAS")


def _too_deep(row: TypedRow, kernel: Kernel) -> bool:
    """Tell whether cuBLAS takes the kernel of its own that it has for few columns and very long sums of FP32."""
    plain = row.computes == "fp32" and row.has("cuBLAS")
    return plain and cuda_version(row) >= CUDA_8 and kernel.n <= NARROW and kernel.k > DEEPEST


def _far_rows(twin: Device, kernel: Kernel) -> float:
    """Return how many times as long a step of a layer in FP32 takes because of how far apart its rows lie."""
    if twin.architecture.startswith("Pascal") and ROWS_READ * 4 * kernel.k > REACHED:
        return FAR_ROWS
    return ONE_CHANNEL if twin.architecture.startswith("CDNA 2") and 4 * kernel.k % CHANNELS_SPAN == 0 else 1.0


def _transposed_beyond(row: TypedRow, kernel: Kernel) -> bool:
    """Tell whether a large first operand is transposed and read more than once."""
    large = 4 * kernel.m * kernel.k > TRANSPOSED_BEYOND and kernel.n > WHOLE_TILE
    return large and row.has("first operand transposed")


def _filled(kernel: Kernel, rows: float, columns: float) -> Kernel:
    """Return a product whose last blocks of so many rows and columns are filled with nothing."""
    return replace(kernel, m=math.ceil(kernel.m / rows) * rows, n=math.ceil(kernel.n / columns) * columns)


def _tiled(row: TypedRow, kernel: Kernel) -> Kernel:
    """Return a product as its library runs it: where no tile is as small, it fills the rest of one with nothing."""
    twin = row.machine
    wide = row.computes == "fp32"
    if wide and cuda_version(row) < CUDA_8_PATCHED and _transposed_beyond(row, kernel):
        return replace(kernel, k=FAR_TRANSPOSED * kernel.k)
    if wide and cuda_version(row) < CUDA_8:
        return replace(kernel, m=max(kernel.m, NARROWEST_TILE), n=max(kernel.n, NARROWEST_TILE))
    if _too_deep(row, kernel):
        return replace(kernel, kind=VECTOR)  # reads what it multiplies once, as element-wise work does
    if wide and cuda_version(row) < CUDA_8_PATCHED:
        return _by_whole_blocks(twin, kernel)
    if wide and cuda_version(row) < CUDA_9:
        by_tile = kernel.n <= NARROW or NARROWEST_TILE / 2 < kernel.n <= NARROWEST_TILE
        return _narrow(twin, kernel) if by_tile else kernel
    if _by_dot_products(row):
        few = kernel.n <= FEW_COLUMNS  # as above
        return replace(kernel, kind=VECTOR) if few else _by_whole_blocks(twin, kernel)
    if row.has("layer"):
        slower = layer_slower(twin, kernel.k) if wide else 1.0
        return replace(kernel, k=slower * _far_rows(twin, kernel) * kernel.k)
    return kernel


def _narrow(twin: Device, kernel: Kernel) -> Kernel:
    """Return a product of few columns as cuBLAS 8 runs it: split only where its blocks leave most units idle."""
    waves = math.ceil(kernel.m / NARROW_ROWS) / _units(twin)
    rows = NARROW_ROWS * _units(twin) * math.ceil(waves)
    return replace(kernel, m=rows if waves > SPLIT_BELOW else kernel.m, n=NARROWEST_TILE)


def _by_whole_blocks(twin: Device, kernel: Kernel) -> Kernel:
    """Return a product in blocks whose sums are not split, though units have none."""
    kernel = _filled(kernel, WHOLE_TILE, WHOLE_TILE)
    blocks = kernel.m * kernel.n / WHOLE_TILE**2
    return replace(kernel, m=kernel.m * max(1.0, _units(twin) / blocks))


def _units(twin: Device) -> float:
    with comparing():
        return view(twin, "fp32").require("units")
