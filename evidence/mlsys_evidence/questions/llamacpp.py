"""Prompts under llama.cpp on an NVIDIA card: in blocks of tokens, by cuBLAS in FP16 or by integer kernels of its own.

- ggml-org/llama.cpp, ggml-cuda.cu, ``ggml_cuda_op_mul_mat_cublas``: from Volta on, a matrix of FP16 or of narrower
  weights is multiplied by cublasGemmEx, which sums in FP16: narrower weights are written out in FP16 before, inputs
  are converted from FP32, and results to FP32.
- The same, pull request 8075 (2024-06-23): narrower weights are multiplied as integers by kernels of its own ("MMQ")
  from then on.
- The same, pull request 6017 (2024-03-12): a prompt goes in blocks of 512 tokens (``n_ubatch``), and where layers are
  shared out among cards, a card takes the next block while the one behind it works on the last.
- Without ``-fa``, which was off by default until 2025, scores are written out in FP32, read and written by
  softmax, and converted to FP16 for the product with the values (``llm_build_kqv``; the formats are recalled).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.estimate import ATTENTION, MATMUL, VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format, concatenated
from mlsys_evidence.questions.decoding import HALF, multiplies_integers
from mlsys_evidence.typed_rows import TypedRow

if TYPE_CHECKING:
    from mlsys.workloads.zoo.language import LanguageModel

BLOCK = 512
WITH_FLASH = "2025"
SINGLE = 4.0


def in_blocks_of_tokens(row: TypedRow) -> bool:
    """Return whether a prompt went through llama.cpp on an NVIDIA card."""
    return row.software == "llama.cpp" and row.machine.kind == "GPU" and row.machine.vendor == "NVIDIA"


def overlapped(blocks: float, stages: int) -> float:
    """Return the part of a pipeline's time that is left where its stages work on different blocks.

    Examples
    --------
    >>> overlapped(2, 1), overlapped(2, 4), overlapped(64, 4)
    (1.0, 0.625, 0.26171875)
    """
    return (blocks + stages - 1) / (blocks * stages)


def whole_block(row: TypedRow, model: LanguageModel, work: Work, fmt: Format, batch: int, tokens: int) -> Work:
    """Return what runs between the products of a block, and converts for them, in the place of attention in one kernel.

    Parameters
    ----------
    work
        Of one block.
    batch, tokens
        Prompts side by side, and the length of each.
    """
    block, layers = batch * min(tokens, BLOCK), float(model.layers)
    products = (work["kind"] == MATMUL) & (work["weights"] > 0)
    # Norms and additions of the residual in FP32, two of each; the gate; rotated queries and keys.
    turned = (model.heads + model.kv_heads) * model.head_dim
    small = model.hidden * (2 * 4 + 2 * 3) + model.ffn * (5 if model.gated else 2) + 2 * turned
    kernels = [Kernel(VECTOR, 0.0, SINGLE * small * block / 9, count=9 * layers)]
    if not multiplies_integers(row, fmt):
        values = (work["m"] * (work["k"] + work["n"]) * work["batch"] * work["count"])[products].sum()
        calls = 2 * float(work["count"][products].sum())
        kernels.append(Kernel(VECTOR, 0.0, (SINGLE + HALF) * float(values) / calls, count=calls))
    rest = work
    if row.dated < WITH_FLASH and not row.has("attention kernel flash"):
        rest = Work(work.columns[:, work["kind"] != ATTENTION])
        kernels += _scores(model, batch, tokens, layers)
    return concatenated(rest, Work.of(kernels))


def _scores(model: LanguageModel, batch: int, tokens: int, layers: float) -> list[Kernel]:
    """Return attention of one block that is written out, with as many keys as a block sees in the mean."""
    block = min(tokens, BLOCK)
    seen = (tokens + block) / 2
    heads, scores = model.heads * batch, model.heads * batch * block * seen
    kept = HALF * model.kv_heads * batch * seen * model.head_dim
    queries = heads * block * model.head_dim
    flops = 2.0 * scores * model.head_dim
    score_bytes, value_bytes = HALF * queries + kept + SINGLE * scores, HALF * scores + kept + SINGLE * queries
    width = model.head_dim
    return [
        Kernel(MATMUL, flops, score_bytes, m=block, n=seen, k=width, batch=heads, count=layers),
        Kernel(VECTOR, 0.0, 2 * SINGLE * scores, count=layers),
        Kernel(VECTOR, 0.0, (SINGLE + HALF) * scores, count=layers),
        Kernel(MATMUL, flops, value_bytes, m=block, n=width, k=seen, batch=heads, count=layers),
    ]
