"""Layers of experts: each token goes through a few of many products, so that each product is small."""

from __future__ import annotations

from mlsys.models.calibrated import MATMUL, Kernel, Work
from mlsys.validation.cases.case import Case
from mlsys.validation.cases.kernels import case_of, vector
from mlsys.validation.cases.reading import number_format, whole_number
from mlsys.validation.rows import Row

__all__ = ["experts"]


def experts(row: Row) -> Case:
    """Return the case of the grouped products of one machine's share of a layer of experts.

    Each of T tokens goes to ``top`` of E experts; the experts that some token reaches, on
    average ``E (1 − (1 − top/E)^T)``, read their weights, and the rows are shared out evenly.
    """
    text = row.seq_or_shape
    tokens = whole_number(r"tokens (\d+)", text, "tokens")
    hidden, inner = whole_number(r"hidden (\d+)", text, "hidden"), whole_number(r"expert ffn (\d+)", text, "width")
    count, top = whole_number(r"experts (\d+)", text, "experts"), whole_number(r"top (\d+)", text, "experts of a token")
    tensor = whole_number(r"tensor parallel (\d+)", text, "tensor parallel")
    parallel = whole_number(r"expert parallel (\d+)", text, "expert parallel")
    fmt = number_format(row.precision)
    inner = max(1, inner // tensor)
    here = max(1.0, count / parallel)
    reached = max(1.0, here * (1 - (1 - top / count) ** tokens))
    rows = max(1.0, tokens * top / parallel)
    each = max(1.0, rows / reached)

    def grouped(n: float, k: float) -> Kernel:
        weights = reached * n * k * fmt.weight
        moved = rows * (n + k) * fmt.value + weights
        return Kernel(MATMUL, flops=2.0 * rows * n * k, moved=moved, weights=weights, m=each, n=n, k=k, batch=reached)

    kernels = [
        vector(rows * hidden, 2, fmt),
        grouped(2 * inner, hidden),
        vector(rows * inner, 8, fmt, 2, 1),
        grouped(hidden, inner),
        vector(rows * hidden, 2, fmt),
    ]
    kind = fmt.computes if fmt.weight == fmt.value else "of narrow weights"
    return case_of(row, "experts", f"expert layer {kind}", Work.of(kernels), fmt)
