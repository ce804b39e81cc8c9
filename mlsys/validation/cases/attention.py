"""Attention: one kernel over a prompt, or one new token against all that came before."""

import re

from mlsys.hardware import Hardware
from mlsys.models.calibrated import ATTENTION, Kernel, Snapshot, Work
from mlsys.validation.cases.case import Case
from mlsys.validation.cases.kernels import case_of, product, vector
from mlsys.validation.cases.reading import batch_of, number_format, whole_number
from mlsys.validation.cases.software import attention_version, serving_stack
from mlsys.validation.cases.stacks import as_ampere
from mlsys.validation.rows import Row
from mlsys.workloads import SOFTMAX_OPERATIONS

# One kernel, whichever stack calls it. Its four warps take 32 rows of queries each and read every key and value from
# shared memory for themselves (``Flash_fwd_kernel_traits<128, 128, 64, 4>`` in flash_fwd_launch_template.h of
# Dao-AILab/flash-attention, seen): an operand of 2 bytes serves 32 multiply-adds. They wait for what they read.
_FLASH_2 = "FlashAttention-2"
FLOP_A_BYTE = 2 * 32 / 2
# Bytes that shared memory gives a multiprocessor each cycle: 32 banks of 32 bits (CUDA C++ Programming Guide, compute
# capability 5.0 and after).
SHARED_BYTES = 128


def _reading_each_warp(engine: Snapshot) -> Snapshot:
    """Return the engine as warps use it that multiply after they have read, and read beside no one."""

    def rate() -> float:
        read = FLOP_A_BYTE * SHARED_BYTES * engine.units * engine.clock
        return 1 / (1 / engine.matmul + 1 / read)

    return engine.changed(matmul=rate).designed()


def _heads(row: Row) -> tuple[int, int, int]:
    """Return heads of queries, heads of keys and values, and the width of each."""
    text = row.seq_or_shape
    heads = whole_number(r"(?<!kv )heads (\d+)", text, "heads")
    kv_heads = re.search(r"kv heads (\d+)", text)
    return (
        heads,
        int(kv_heads.group(1)) if kv_heads else heads,
        whole_number(r"head_dim (\d+)", text, "width of a head"),
    )


def library_of(row: Row) -> str:
    """Return the library of attention kernels and its generation, where a row names one; Triton's are its own."""
    named = f"{row.model}; {row.software}"
    generation = re.search(r"\bflash[-_ ]?att(?:n|ention)[-_ ]?v?(?:ersion )?([1-4])", named, re.IGNORECASE)
    if generation is None or re.search(r"\btriton\b", named, re.IGNORECASE):
        return ""
    return f"FlashAttention-{generation.group(1)}"


def _software(row: Row, prompt: bool = True) -> str:
    library, stack = library_of(row), serving_stack(row.software)
    if library == _FLASH_2:
        return library
    return f"{stack}{attention_version(row.software, prompt)}" if stack else library or row.model


def attention_kernel(row: Row) -> Case:
    """Return the case of one attention kernel over whole sequences, fused unless its name says otherwise."""
    length = whole_number(r"seq (\d+)", row.seq_or_shape, "sequence")
    heads, kv_heads, width = _heads(row)
    batch = batch_of(row)
    fmt = number_format(row.precision)
    half = 0.5 if re.search(r"(?<!non-)causal", row.seq_or_shape) else 1.0
    copies = batch * heads
    if "standard" in row.model.lower():
        kernels = [
            product(length, length, width, fmt, copies),
            vector(copies * length * length, sum(SOFTMAX_OPERATIONS.values()), fmt, 2, 2),
            product(length, width, length, fmt, copies),
        ]
        return case_of(row, "attention", "eager", Work.of(kernels), fmt)
    moved = 2.0 * batch * (heads + kv_heads) * length * width * fmt.value
    flops = 4.0 * copies * length * length * width * half
    kernels = [Kernel(ATTENTION, flops=flops, moved=moved, m=length, n=length, k=width, batch=copies)]
    stack = _software(row)
    if stack == "TensorRT-LLM":
        # Positions are turned and keys and values written to the cache inside the time.
        kernels.append(vector(batch * (heads + 2 * kv_heads) * length * width, 4, fmt))
    narrow = " fp8" if fmt.computes == "fp8" else ""
    vision = " of pictures" if "vision" in row.workload else ""
    case = case_of(row, "attention", f"{stack}{vision}{narrow}", Work.of(kernels), fmt)
    nvidia = Hardware[case.twin].vendor == "NVIDIA"
    return case.slower_on(_reading_each_warp(as_ampere(case))) if stack == _FLASH_2 and nvidia else case


def decode_attention(row: Row) -> Case:
    """Return the case of one new token of each sequence against its cache of keys and values.

    The heads of queries that share keys and values are the rows of one product.
    """
    context = whole_number(r"context (\d+)", row.seq_or_shape, "context")
    heads, kv_heads, width = _heads(row)
    batch = batch_of(row)
    fmt = number_format(row.precision)
    cached = 1.0 if "cache fp8" in row.precision else fmt.value
    moved = 2.0 * batch * kv_heads * context * width * cached + 2.0 * batch * heads * width * fmt.value
    flops = 4.0 * batch * heads * context * width
    kernel = Kernel(ATTENTION, flops=flops, moved=moved, m=heads / kv_heads, n=context, k=width, batch=batch * kv_heads)
    narrow = cached < fmt.value and library_of(row) != _FLASH_2
    software = f"{serving_stack(row.software)} fp8" if narrow else _software(row, prompt=False)
    return case_of(row, "decode attention", software, Work.of([kernel]), fmt)
