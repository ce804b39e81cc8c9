"""NCCL's rings: steps decide small messages, the link large ones, and no message beats its link."""

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.hardware import view
from mlsys.models.estimate import (
    ALL_GATHER,
    ALL_REDUCE,
    COLLECTIVE,
    RING_REDUCE,
    CaseBatch,
    Kernel,
    Parameters,
    Work,
    calibrated_times,
)
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

A100 = view(Hardware["A100_80GB"], "fp16")
LINK = 300e9
NCCL = Parameters(link=0.9, launch=6.6e-6, hop=1e-6)


def seconds(size: float, ranks: int, pattern: int = RING_REDUCE, parameters: Parameters = NCCL) -> float:
    work = Work.of([Kernel(COLLECTIVE, 0.0, size, k=pattern, ranks=ranks)])
    return float(calibrated_times(CaseBatch.of([(A100, work, False)]), parameters.vectorised())[0])


def test_small_messages_take_as_long_as_their_steps() -> None:
    """An all-reduce among p takes 2(p − 1) steps, an all-gather half as many."""
    two, four, eight = (seconds(8.0, ranks) for ranks in (2, 4, 8))
    assert (eight - four) / (four - two) == pytest.approx(8 / 4, rel=1e-3)
    for ranks in (2, 4, 8):
        gathered, reduced = (seconds(8.0, ranks, pattern) - NCCL.launch for pattern in (ALL_GATHER, RING_REDUCE))
        assert reduced == pytest.approx(2 * gathered, rel=1e-3)


def test_measured_messages_follow_their_steps() -> None:
    """Of 512 bytes among 2, 4 and 8 A100s: 10.0, 14.5 and 22.6 µs by NCCL 2.27.3; eight further steps after four."""
    rows = [row for row in shipped_rows() if row.workload.startswith("NCCL all-reduce") and "2.27.3" in row.software]
    rows = [row for row in rows if "A100" in row.device and row.seq_or_shape.startswith("512 b")]
    small = {row.n_devices: interpret(row).seconds for row in rows}
    assert (small[8] - small[4]) / (small[4] - small[2]) == pytest.approx(8 / 4, abs=0.3)


@pytest.mark.parametrize("pattern", [ALL_GATHER, RING_REDUCE, ALL_REDUCE])
def test_no_message_is_faster_than_its_link_nor_than_a_shorter_one(pattern: int) -> None:
    sizes = np.geomspace(1e2, 1e11, 60)
    for ranks in (2, 3, 4, 8):
        times = np.array([seconds(size, ranks, pattern) for size in sizes])
        assert (np.diff(times) > 0).all()
        sent = sizes * (ranks - 1) / ranks * (1 if pattern == ALL_GATHER else 2)
        assert (times > sent / LINK).all()


def test_the_bus_is_used_better_among_more_machines_and_by_larger_messages() -> None:
    """On A100s NCCL moves 199 GB/s among two, 228 among four and 234 among eight at best; the link is the same."""
    size = 4e9
    rates = [2 * (ranks - 1) / ranks * size / seconds(size, ranks) for ranks in (2, 4, 8)]
    assert rates == sorted(rates)
    assert [rate / rates[-1] for rate in rates[:2]] == pytest.approx([199 / 234, 228 / 234], abs=0.05)
    middle = 2 * 7 / 8 * 1e6 / seconds(1e6, 8)
    assert middle < rates[-1] / 2


def test_a_slower_step_or_link_never_shortens_a_message() -> None:
    for size in np.geomspace(1e3, 1e9, 12):
        usual = seconds(size, 8)
        assert seconds(size, 8, parameters=Parameters(link=0.9, launch=6.6e-6, hop=2e-6)) > usual
        assert seconds(size, 8, parameters=Parameters(link=0.45, launch=6.6e-6, hop=1e-6)) > usual


def _gathered(twin: str, size: float, ranks: int) -> float:
    work = Work.of([Kernel(COLLECTIVE, 0.0, size, k=ALL_GATHER, ranks=ranks)])
    return float(calibrated_times(CaseBatch.of([(view(Hardware[twin], "fp16"), work, False)]), NCCL.vectorised())[0])


def test_a_bridge_joins_two_cards_and_no_third() -> None:
    """NVIDIA: an NVLink bridge joins two A100 PCIe at 300 GB/s one way; four of them have PCIe 4.0 among all."""
    size = 1e9
    assert size / 2 / _gathered("A100_80GB_PCIe", size, 2) > 2 * 31.5e9
    assert size * 3 / 4 / _gathered("A100_80GB_PCIe", size, 4) < 31.5e9


def test_eight_cards_on_pcie_share_what_joins_two_sockets() -> None:
    """NCCL's src/graph/topo.h rates it at 6 to 24 GB/s one way beside PCIe 4: eight cards gather no faster."""
    size = 1e9
    four, eight = (size * (ranks - 1) / ranks / _gathered("L40S", size, ranks) for ranks in (4, 8))
    assert 6e9 < eight < 24e9
    assert four > 1.5 * eight
