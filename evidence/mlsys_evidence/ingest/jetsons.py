"""NVIDIA's boards in its own submissions: two DLAs beside the GPU, and a board that a table calls by another's name."""

import re
from dataclasses import replace

from mlsys.calibration.rows import Row
from mlsys.frozen import FrozenDict

# Rows of two rounds have every Xavier as an AGX Xavier; the system that was submitted is the name of its folder
# (mlcommons/inference_results_v1.1 and v2.0, closed/NVIDIA/results/Xavier_NX_TRT).
_SUBMITTED, _DEVICE = "system Xavier_NX_", "NVIDIA Jetson Xavier NX"

# Samples a second that NVIDIA expects offline of the GPU alone, and of it and the two DLAs beside it together
# (``_gpu_offline_expected_qps`` and ``offline_expected_qps`` of closed/NVIDIA/configs/*/Offline/__init__.py,
# mlcommons/inference_results_v2.0@e1f8956; MobileNet: closed/NVIDIA/measurements/Xavier/mobilenet/Offline/config.json,
# mlcommons/inference_results_v0.5@4191ca0). One sample at a time runs on the GPU, and so do networks without
# convolutions (configs/bert: no DLA). A Xavier NX is identified with the same chip in an AGX: what is expected of its
# own GPU, 17 pictures of SSD-ResNet34 a second, is less than the 24 that it does one by one.
_XAVIER = FrozenDict(
    {
        r"^ResNet-50": (1478.33, 2181.0),
        r"^SSD-ResNet": (35.1243, 56.0),
        r"^SSD-MobileNet": (2250.0, 2820.0),
        r"^MobileNet": (5635.33, 6542.0),
    }
)
_ORIN = FrozenDict(
    {r"^ResNet-50": (4500.0, 5700.0), r"^SSD-ResNet": (135.0, 185.0), r"^SSD-MobileNet": (5500.0, 7100.0)}
)
_EXPECTED = FrozenDict({"JetsonAGXXavier": _XAVIER, "JetsonXavierNX": _XAVIER, "JetsonAGXOrin": _ORIN})


def as_submitted(row: Row) -> Row:
    """Return a row with the device that its source submitted, where the row names another."""
    return replace(row, device=_DEVICE) if _SUBMITTED in row.note else row


def part_of_the_gpu(row: Row, twin: str) -> float:
    """Return the part of the samples that the GPU of a board takes where its DLAs take the others; 1 where it has all.

    Parameters
    ----------
    row
        As its source names the network.
    twin
        Id of the board's GPU.

    Examples
    --------
    >>> from mlsys_evidence.rows import shipped_rows
    >>> rows = [row for row in shipped_rows() if "Orin" in row.device and "Offline" in row.workload]
    >>> sorted({f"{part_of_the_gpu(row, 'JetsonAGXOrin'):.2f}" for row in rows})
    ['0.73', '0.77', '0.79', '1.00']
    """
    if "Offline" not in row.workload or "submitter NVIDIA" not in row.note:
        return 1.0
    expected = _EXPECTED.get(twin, FrozenDict({}))
    alone, together = next((rates for name, rates in expected.items() if re.search(name, row.model)), (1.0, 1.0))
    return alone / together
