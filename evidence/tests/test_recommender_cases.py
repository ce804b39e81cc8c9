"""Recommenders of MLPerf: pairs of a sample, rows looked up, and what is refused."""

import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.models.estimate import MATMUL
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

ROWS = [row for row in shipped_rows() if row.model.startswith("DLRM")]
# Look-ups of a pair in its 26 tables: multi_hot_sizes of MLPerf Training, recommendation_v2.
LOOK_UPS, TABLES, WIDTH = 214, 26, 128


@pytest.mark.parametrize("device", ["NVIDIA H200 SXM", "NVIDIA L40S"])
def test_every_pair_looks_up_rows_of_its_own(device: str) -> None:
    row = next(row for row in ROWS if row.device == device)
    case = interpret(row)
    work = case.work
    # A sample is 270 pairs: 20 equal parts of 100, 100, twelve of 200, 300, 300, 400, 500, 600 and 700.
    mean = (2 * 100 + 12 * 200 + 2 * 300 + 400 + 500 + 600 + 700) / 20
    pairs = row.value / row.n_devices * mean * case.seconds
    gathered = (work["moved"] * work["count"])[work["kind"] != MATMUL].sum()
    # The last layer, of one output, runs beside the matrix units, too.
    assert gathered == pytest.approx(pairs * WIDTH * (LOOK_UPS + TABLES), rel=0.01)
    # 15.3 MMAC of a pair: cross network 3 x 2 x 3456 x 512, top 3456 x 1024 first, bottom 13 x 512 first.
    widths = [(13, 512), (512, 256), (256, 128), (3456, 1024), (1024, 1024), (1024, 512), (512, 256), (256, 1)]
    macs = sum(a * b for a, b in widths) + 3 * 2 * 3456 * 512
    products = (work["flops"] * work["count"]).sum()
    assert products == pytest.approx(2 * macs * pairs, rel=0.01)


def test_what_does_not_say_how_many_pairs_run_at_a_time_is_refused() -> None:
    refused = [row for row in ROWS if row.device in ("NVIDIA L4", "NVIDIA H100 PCIe", "Intel Xeon 6980P")]
    assert len(refused) == 3
    for row in refused:
        with pytest.raises(Inexpressible, match="pairs run at a time"):
            interpret(row)
