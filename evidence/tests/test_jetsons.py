"""NVIDIA's boards: what the DLAs take beside the GPU, and which board a row is of."""

from dataclasses import replace

import pytest

from mlsys.calibration.rows import Row
from mlsys_evidence.ingest.jetsons import as_submitted, part_of_the_gpu
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

BOARDS = [row for row in shipped_rows() if "submitter NVIDIA" in row.note and "Jetson" in row.device]
OFFLINE = [
    row for row in BOARDS if "Offline" in row.workload and row.unit == "samples/s" and not row.model.startswith("GPT-J")
]
# Layers that a DLA has no kernels for, or a network that NVIDIA gives the GPU alone.
GPU_ALONE = ("BERT", "RNN-T", "3D-UNet", "3d-unet", "SDXL")


def row_of(device: str, source: str, model: str, scenario: str) -> Row:
    found = [row for row in BOARDS if as_submitted(row).device == device and source in row.source]
    return next(row for row in found if row.model.startswith(model) and scenario in row.workload)


def test_rows_are_of_the_system_that_was_submitted() -> None:
    renamed = [row for row in BOARDS if as_submitted(row).device != row.device]
    assert {row.source[-4:] for row in renamed} == {"v1.1", "v2.0"}
    assert all("Xavier_NX" in row.note and interpret(row).twin == "JetsonXavierNX" for row in renamed)
    assert all("Xavier_NX" not in row.note for row in BOARDS if "AGX" in as_submitted(row).device)


@pytest.mark.parametrize("model", ["ResNet-50", "SSD-MobileNet", "SSD-ResNet34"])
def test_the_renamed_rows_are_as_fast_as_those_that_the_round_before_calls_by_their_name(model: str) -> None:
    """One sample at a time: within 10 % of v1.0's Xavier NX, and never within 20 % of v1.1's AGX Xavier."""
    nx, agx = "NVIDIA Jetson Xavier NX", "NVIDIA Jetson AGX Xavier"
    before, renamed, other = (
        row_of(device, source, model, "SingleStream").value
        for device, source in ((nx, "v1.0"), (nx, "v1.1"), (agx, "v1.1"))
    )
    assert renamed == pytest.approx(before, rel=0.1)
    assert renamed > 1.2 * other


@pytest.mark.parametrize("row", OFFLINE, ids=lambda row: row.id)
def test_dlas_take_part_in_what_is_all_convolutions(row: Row) -> None:
    part = part_of_the_gpu(row, interpret(row).twin)
    assert (part == 1.0) == row.model.startswith(GPU_ALONE)
    assert 0.6 < part <= 1.0


@pytest.mark.parametrize(
    ("source", "device", "model", "alone"),
    [
        # What NVIDIA expects of the GPU alone (mlcommons/inference_results_v2.0, closed/NVIDIA/configs).
        ("v0.5", "NVIDIA Jetson AGX Xavier", "ResNet-50", 1478.33),
        ("v1.1", "NVIDIA Jetson AGX Xavier", "ResNet-50", 1478.33),
        ("v1.1", "NVIDIA Jetson AGX Xavier", "SSD-ResNet34", 35.1243),
        ("v1.1", "NVIDIA Jetson AGX Xavier", "SSD-MobileNet", 2250.0),
        ("v0.5", "NVIDIA Jetson AGX Xavier", "MobileNet", 5635.33),
        ("v2.0", "NVIDIA Jetson AGX Orin", "ResNet-50", 4500.0),
        ("v2.0", "NVIDIA Jetson AGX Orin", "SSD-MobileNet", 5500.0),
    ],
)
def test_what_is_left_to_the_gpu_is_what_its_maker_expects_of_it(
    source: str, device: str, model: str, alone: float
) -> None:
    row = row_of(device, source, model, "Offline")
    case = interpret(row)
    assert case.inverse
    assert row.value * part_of_the_gpu(row, case.twin) == pytest.approx(alone, rel=0.1)
    whole = interpret(replace(row, note=row.note.replace("submitter NVIDIA", "submitter Somebody")))
    assert case.seconds * part_of_the_gpu(row, case.twin) == pytest.approx(whole.seconds)


def test_others_and_single_samples_are_the_gpus_alone() -> None:
    row = row_of("NVIDIA Jetson AGX Orin", "v2.0", "ResNet-50", "Offline")
    assert part_of_the_gpu(replace(row, note="submitter Somebody"), "JetsonAGXOrin") == 1.0
    assert part_of_the_gpu(row, "JetsonOrinNano") == 1.0
    assert part_of_the_gpu(row_of("NVIDIA Jetson AGX Orin", "v2.0", "ResNet-50", "SingleStream"), "JetsonAGXOrin") == 1
