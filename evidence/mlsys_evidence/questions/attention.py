"""Attention: one kernel over a prompt, or one new token against all that came before."""

from dataclasses import replace

import numpy as np

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for
from mlsys.hardware import Device, Hardware
from mlsys.models.estimate import ATTENTION, MATMUL, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format
from mlsys.provenance import as_recorded
from mlsys.workloads import SOFTMAX_OPERATIONS
from mlsys_evidence.questions.kernels import case_of, product, vector
from mlsys_evidence.questions.stacks import as_ampere
from mlsys_evidence.typed_rows import TypedRow

# One kernel, whichever stack calls it. Its four warps take 32 rows of queries each and read every key and value from
# shared memory for themselves (``Flash_fwd_kernel_traits<128, 128, 64, 4>`` in flash_fwd_launch_template.h of
# Dao-AILab/flash-attention, seen): an operand of 2 bytes serves 32 multiply-adds. They wait for what they read.
_FLASH_2 = "FlashAttention-2"
FLOP_A_BYTE = 2 * 32 / 2
# Bytes that shared memory gives a multiprocessor each cycle: 32 banks of 32 bits (CUDA C++ Programming Guide, compute
# capability 5.0 and after).
SHARED_BYTES = 128
# Times as long as the pass forward of fused attention that its pass backward takes: five products where that one has
# two (T. Dao 2023, arXiv:2307.08691, section 4.1).
BACKWARD_OF_ATTENTION = 2.5


def _by_flash_2(engine: Snapshot) -> Snapshot:
    """Return the engine as FlashAttention-2's warps use it: they multiply after they have read, and read for no other.

    Its instructions are Ampere's.
    """
    older = as_ampere(engine)

    def rate() -> float:
        read = FLOP_A_BYTE * SHARED_BYTES * engine.units * engine.clock
        return 1 / (1 / older.matmul + 1 / read)

    return engine.changed(matmul=rate).designed()


def _heads(row: TypedRow) -> tuple[int, int, int]:
    """Return the heads of queries, those of keys and values, and the width of each."""
    return row.number("heads"), row.number("kv_heads"), row.number("head_dim")


def attention_kernel(row: TypedRow) -> Case:
    """Return the case of one attention kernel over whole sequences, fused unless its name says otherwise."""
    length, fmt = row.number("tokens"), row.format
    heads, kv_heads, width = _heads(row)
    batch = row.samples()
    half = 0.5 if row.has("causal") else 1.0
    copies = batch * heads
    if row.has("scores written out"):
        kernels = [
            product(length, length, width, fmt, copies),
            vector(copies * length * length, sum(SOFTMAX_OPERATIONS.values()), fmt, 2, 2),
            product(length, width, length, fmt, copies),
        ]
        return case_of(row, "attention", "eager", Work.of(kernels), fmt)
    moved = 2.0 * batch * (heads + kv_heads) * length * width * fmt.value
    flops = 4.0 * copies * length * length * width * half
    kernels = [Kernel(ATTENTION, flops=flops, moved=moved, m=length, n=length, k=width, batch=copies)]
    stack = row.kernels
    if stack == "TensorRT-LLM":
        # Positions are turned and keys and values written to the cache inside the time.
        kernels.append(vector(batch * (heads + 2 * kv_heads) * length * width, 4, fmt))
    narrow = " fp8" if fmt.computes == "fp8" else ""
    vision = " of pictures" if row.has("vision") else ""
    if row.has("backward"):
        forward = 1.0 if row.has("forward") else 0.0
        kernels = [replace(kernel, count=forward + BACKWARD_OF_ATTENTION) for kernel in kernels]
    case = case_of(row, "attention", f"{stack}{vision}{narrow}", Work.of(kernels), fmt)
    nvidia = Hardware[case.twin].vendor == "NVIDIA"
    return case.slower_on(_by_flash_2(case.engine)) if stack == _FLASH_2 and nvidia else case


def decode_attention(row: TypedRow) -> Case:
    """Return the case of one new token of each sequence against its cache of keys and values.

    The heads of queries that share keys and values are the rows of one product.
    """
    context, fmt = row.number("context"), row.format
    heads, kv_heads, width = _heads(row)
    batch = row.samples()
    cached = row.get("cache_bytes", fmt.value)
    moved = 2.0 * batch * kv_heads * context * width * cached + 2.0 * batch * heads * width * fmt.value
    flops = 4.0 * batch * heads * context * width
    kernel = Kernel(ATTENTION, flops=flops, moved=moved, m=heads / kv_heads, n=context, k=width, batch=batch * kv_heads)
    return case_of(row, "decode attention", row.kernels, Work.of([kernel]), fmt)


# What products of a step attain of their peak, while FlashAttention-2 attains all of what its reads leave of it.
_OF_PRODUCTS = 0.8
# Part of all scores with fewer of which attention is causal.
_CAUSAL = 0.75


def trained_in_one_kernel(
    row: TypedRow, work: Work, fmt: Format, twin: Device, passes: tuple[float, float]
) -> tuple[Work, float]:
    """Return a training step's kernels with attention that is fused, and the part of its arithmetic that binds.

    It multiplies in 16 bits, whatever the layers beside it do: it counts as so much more arithmetic of the step's
    format as that is faster.

    Parameters
    ----------
    row
        What was trained, and by what.
    work
        Every kernel, as products.
    fmt, twin
        Number formats of the step, and the machine.
    passes
        Passes forward; and how often ``work`` counts each kernel, forward and backward.

    Returns
    -------
    Work, float
        The kernels; and the part of their arithmetic that the machine's fastest instructions would take.
    """
    with as_recorded():
        wide, own = engine_for(twin, "bf16"), engine_for(twin, fmt.computes)
        narrow = own.matmul / wide.matmul
        slower = 1.0 if row.has("attention of cuDNN") else _OF_PRODUCTS * wide.matmul / _by_flash_2(wide).matmul
    columns = work.columns.copy()
    here = (work["kind"] == MATMUL) & (work["batch"] > 1) & (work["weights"] == 0)
    index = Work.FIELDS.index
    columns[index("kind"), here] = ATTENTION
    # Keys are counted on average: half of them below a diagonal.
    keys = np.where(work["n"] < _CAUSAL * work["m"], 2 * work["n"], work["n"])[here]
    columns[index("n"), here] = np.minimum(keys, work["m"][here])
    for name in ("flops", "k"):
        columns[index(name), here] *= narrow * slower
    columns[index("count"), here] *= (passes[0] + BACKWARD_OF_ATTENTION) / passes[1]
    whole = Work(columns)
    extra = (1 - 1 / slower) * float((whole["flops"] * whole["count"])[here].sum())
    return whole, 1 - extra / whole.flops
