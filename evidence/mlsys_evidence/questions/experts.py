"""Layers of experts: each token goes through a few of many products, so that each product is small."""

from functools import lru_cache

import numpy as np

from mlsys.calibration.case import Case, Inexpressible
from mlsys.models.estimate import MATMUL, Kernel, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.questions.kernels import case_of, vector
from mlsys_evidence.typed_rows import TypedRow


def experts(row: TypedRow) -> Case:
    """Return the case of the grouped products of one machine's share of a layer of experts.

    The experts that some token reaches read their weights, and share out the rows evenly. An expert has
    a gate beside its first product, unless the kernel's name says that it has none. Kernels of blocks of so many rows
    fill up the last block of each expert.
    """
    tokens, hidden, inner = row.number("tokens"), row.number("hidden"), row.number("ffn")
    count, top = row.number("experts"), row.number("experts_of_a_token")
    if top > count:
        raise Inexpressible(f"a token is sent to {top} experts of {count}")
    tensor, parallel, fmt = row.number("tensor_parallel"), row.number("expert_parallel"), row.format
    inner = max(1, inner // tensor)
    skew = row.get("routing_skew")
    block_rows, block_columns = _least_block(row, fmt, tokens, top, count / parallel)
    reached, rows, blocks = _busiest(tokens, count, top, parallel, skew, max(1, block_rows))
    each, products = (block_rows, blocks) if block_rows else (max(1.0, rows / reached), reached)
    gates = 1 if row.has("no gates") else 2

    def grouped(n: float, k: float) -> Kernel:
        weights = reached * n * k * fmt.weight
        moved = rows * (n + k) * fmt.value + weights
        return Kernel(
            MATMUL, flops=2.0 * rows * n * k, moved=moved, weights=weights, m=each, n=n, k=k, batch=products,
            block_rows=block_rows, block_columns=block_columns,
        )  # fmt: skip

    kernels = [
        vector(rows * hidden, 2, fmt),
        grouped(gates * inner, hidden),
        vector(rows * inner, 8, fmt, gates, 1),
        grouped(hidden, inner),
        vector(rows * hidden, 2, fmt),
    ]
    return case_of(row, "experts", f"expert layer {_kernels(row, fmt)}", Work.of(kernels), fmt)


def _kernels(row: TypedRow, fmt: Format) -> str:
    """Return the name of the kernels: Triton's of vLLM and SGLang, or the makers'."""
    if row.has("not tuned"):
        return "SGLang 0.5.6"
    if _in_triton(row, fmt):
        return "Triton"
    wide = fmt.computes in ("fp16", "bf16")
    return "of narrow weights" if wide and fmt.weight < fmt.value else fmt.computes if wide else "of narrow numbers"


def _in_triton(row: TypedRow, fmt: Format) -> bool:
    return row.kernels in ("vLLM", "SGLang") and fmt.weight == fmt.value and fmt.computes != "fp4"


MARLIN_ROWS, MARLIN_COLUMNS = (8, 16, 32, 48, 64), 128


def _least_block(row: TypedRow, fmt: Format, tokens: int, top: int, experts_here: float) -> tuple[int, int]:
    """Return rows and columns of the smallest blocks of the output that a kernel computes; zeros where not known.

    Of Triton's they are the defaults of vLLM and SGLang (``get_default_config`` of vllm/model_executor/layers/
    fused_moe/fused_moe.py, and of fused_moe_triton_config.py in SGLang 0.5.9), for few tokens and for many; tuned ones
    are on record for few shapes. Marlin's rows follow from those that an expert has on average (the same function); its
    columns are the fewest of ``small_batch_thread_configs`` (vLLM, csrc/moe/marlin_moe_wna16/ops.cu).
    """
    if _in_triton(row, fmt):
        if fmt.computes == "fp8" and row.has("scales of blocks"):
            return 64, 128
        few = tokens <= experts_here
        if fmt.computes == "fp8" and row.kernels == "SGLang":
            return (64, 128) if few else (128, 256)
        return (16, 32) if few else (64, 64)
    if row.has("Marlin"):
        each = tokens * top / experts_here
        return next((rows for rows in MARLIN_ROWS if each < 0.9 * rows), MARLIN_ROWS[-1]), MARLIN_COLUMNS
    return 0, 0


# Draws of the popularity of experts that are averaged.
DRAWS = 16


@lru_cache(maxsize=512)
def _busiest(tokens: int, count: int, top: int, parallel: int, skew: float, block: int) -> tuple[float, float, float]:
    """Return how many experts of the busiest machine are reached, how many rows they get, in how many blocks of rows.

    Without a skew each of T tokens goes to any ``top`` of E experts, and reaches ``E (1 − (1 − top/E)^T)``
    of them on average. With one the loads of the experts follow a power law of that exponent, as the collector of
    the measurements draws them (`ai-dynamo/aiconfigurator`, collector/helper.py): from 1 to 0.8 of the tokens, or,
    where there are fewer rows than experts, from 0.01 to 2; what rounding leaves over goes to the largest.
    """
    if not skew:
        here = max(1.0, count / parallel)
        reached, rows = max(1.0, here * (1 - (1 - top / count) ** tokens)), max(1.0, tokens * top / parallel)
        return reached, rows, reached * float(np.ceil(rows / reached / block))
    low, high = (1.0, max(0.8 * tokens, 1.0 + 1e-6)) if tokens * top > count else (0.01, 2.0)
    drawn = np.random.default_rng(0).random((DRAWS, count))
    if skew == 1:
        loads = low * (high / low) ** drawn
    else:
        loads = ((high ** (1 - skew) - low ** (1 - skew)) * drawn + low ** (1 - skew)) ** (1 / (1 - skew))
    loads = loads / loads.sum(axis=1, keepdims=True) * tokens * top
    whole = np.minimum(np.round(loads), tokens)
    missing = tokens * top - whole.sum(axis=1, keepdims=True)
    whole += np.argsort(np.argsort(-loads, axis=1), axis=1) < missing
    ranks = whole.reshape(DRAWS, parallel, -1) if count % parallel == 0 else whole[:, None, :]
    busiest = ranks[np.arange(DRAWS), ranks.sum(axis=2).argmax(axis=1)]
    counted = ((busiest > 0), busiest, np.ceil(busiest / block))
    reached, rows, blocks = (max(1.0, float(each.sum(axis=1).mean())) for each in counted)
    return reached, rows, blocks
