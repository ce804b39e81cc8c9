"""Memory that the kernel hands out anew for each result, page by page, because the program gave the last one back."""

from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.models.estimate import MATMUL, VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import concatenated
from mlsys.provenance import as_recorded
from mlsys_evidence.typed_rows import TypedRow

# The C library of Linux maps larger blocks one by one, and gives each back at once: its threshold follows what a
# program frees up to DEFAULT_MMAP_THRESHOLD_MAX (mallopt(3), glibc malloc/malloc.c: 4 · 1024² · sizeof(long)).
# PyTorch's allocator on processors is that library's (c10/core/impl/alloc_cpu.cpp: posix_memalign). A result of 31 MiB
# of `torch.sigmoid` met no page fault, one of 33 MiB as many as it has pages.
MAPPED_FROM = 32 * 2**20
OPERATORS = ("gemm", "convolution", "softmax", "layer norm", "gelu", "element-wise")
PAGE = 4096
# Seconds of one thread until it may write to a page that it touches first: the fault, and the zeroing of 4 KiB.
# ResNet-50 of PyTorch at a batch of 256 and more takes, with that library over one that keeps its memory, 22 ms a
# picture longer on one thread of a Xeon and 3 to 4 ms on eight or sixteen, for some 22,000 pages of convolutions and
# normalisations (msr-fiddle/packrat, gh-pages, resnet/cloudlab/large-batches and -tcmalloc; no row of them ships).
A_PAGE, MOST_AT_ONCE = 1e-6, 6.0


def on_fresh_pages(row: TypedRow, case: Case) -> Case:
    """Return the case of one operator of eager PyTorch on a processor, with the pages of a large result.

    They are expressed as bytes that its memory would move meanwhile. Other programs save them, so that no bound counts
    them.
    """
    if case.kind not in OPERATORS or not case.setting.endswith(" on CPU"):
        return case
    if not row.has("PyTorch") or row.has("torch.compile"):
        return case
    work = case.work
    value = work["moved"] / 2
    products = work["kind"] == MATMUL
    value[products] = (work["m"] * work["n"] * work["batch"])[products] * case.engine.bits / 8
    pages = float((work["count"] * value)[value > MAPPED_FROM].sum()) / PAGE
    if not pages:
        return case
    with as_recorded():
        seconds = pages * A_PAGE / min(MOST_AT_ONCE, case.engine.units)
        extra = Kernel(VECTOR, flops=0.0, moved=seconds * case.engine.bandwidth, count=1.0)
    moved = float((work["count"] * work["moved"]).sum())
    share = moved / (moved + extra.moved)
    return replace(case, work=concatenated(work, Work.of([extra])), compulsory=case.compulsory * share)
