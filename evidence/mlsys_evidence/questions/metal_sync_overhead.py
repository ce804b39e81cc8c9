"""Calls of an Apple GPU that the processor waits for, each of which crosses from one to the other and back."""

from dataclasses import replace

from mlsys.calibration.case import Case
from mlsys.hardware import Hardware
from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import concatenated
from mlsys.provenance import as_recorded
from mlsys_evidence.typed_rows import TypedRow

# Seconds of a crossing: a command buffer is closed and handed over, and the processor sleeps until it hears of its end.
# 101 trivial operations of MLX, each waited for by the processor before the next starts, take about 180 microseconds
# apiece on an M3 Ultra (ml-explore/mlx, issue 4438); a call of PyTorch on CUDA takes 26 to 38.
CROSSING = 180e-6


def crossing(row: TypedRow, case: Case) -> Case:
    """Return the case of one operator on an Apple GPU, with the crossing of a call that is waited for by itself.

    It is expressed as bytes that the memory would move meanwhile. Calls that queue have none, so that no bound counts
    it.
    """
    alone = row.launch_mode == "waited for" and case.setting.endswith(" on SoC")
    if not alone or Hardware[case.twin].vendor != "Apple":
        return case
    with as_recorded():
        extra = Kernel(VECTOR, flops=0.0, moved=CROSSING * case.engine.bandwidth)
    moved = float((case.work["count"] * case.work["moved"]).sum())
    share = moved / (moved + extra.moved)
    return replace(case, work=concatenated(case.work, Work.of([extra])), compulsory=case.compulsory * share)
