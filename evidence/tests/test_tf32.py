"""FP32 in TF32: torch.backends' flags, TensorFlow's RFC 287 and TensorRT's builder flags say who narrows what."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.rows import Row
from mlsys.models.analysis.model import analyze
from mlsys.models.estimate import MATMUL
from mlsys.workloads import zoo
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

# NVIDIA, A100 datasheet: 156 TFLOP/s in TF32, 19.5 in FP32.
TF32, FP32 = 156e12, 19.5e12


def _row(model: str, software: str, device: str = "NVIDIA A100 40GB SXM", note: str = "") -> Row:
    like = next(row for row in shipped_rows() if row.model == "BERT-Large" and row.unit == "ms" and row.n_devices == 1)
    return replace(
        like, model=model, software=software, device=device, note=note, precision="fp32", batch="8", seq_or_shape="",
        workload="inference", source_path="", source="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "software", "rate"),
    [
        ("ResNet-50", "PyTorch 2.1 eager", TF32),
        ("ResNet-50", "PyTorch 1.6 eager", FP32),
        ("BERT-Large", "PyTorch 2.1 eager", FP32),
        ("BERT-Large", "PyTorch 1.10 eager", TF32),
        ("BERT-Large", "TensorFlow 2.4", TF32),
        ("ResNet-50", "TensorRT 8.6", TF32),
        ("ResNet-50", "TensorRT 6.0", FP32),
    ],
)
def test_frameworks_narrow_what_their_manuals_say(model: str, software: str, rate: float) -> None:
    assert interpret(_row(model, software)).engine.matmul == pytest.approx(rate, rel=0.01)


def test_nobody_narrows_where_told_not_to_or_where_nothing_is_gained() -> None:
    software = "PyTorch 2.1 eager"
    assert interpret(_row("ResNet-50", software, note="TF32 off")).engine.matmul == pytest.approx(FP32, rel=0.01)
    for device in ("NVIDIA V100 SXM2 16GB", "NVIDIA GeForce RTX 3090"):
        assert interpret(_row("ResNet-50", software, device)).engine.computes_in == "fp32"


def test_convolutions_alone_are_narrowed_among_other_products() -> None:
    """A U-Net's other products keep their depth, half of its arithmetic takes an eighth of it: 156 over 19.5."""
    left = []
    for note in ("", "TF32 off"):
        row = replace(_row("SD 1.4 512x512", "PyTorch 2.1 eager", note=note), unit="iterations/s")
        case = interpret(replace(row, workload="diffusion UNet (classifier-free guidance, UNet batch 2)"))
        assert case.engine.matmul == pytest.approx(FP32, rel=0.01)
        shape = [case.work[name] for name in ("m", "n", "k", "batch", "count")]
        left.append(float((np.prod(shape, axis=0) * (case.work["kind"] == MATMUL)).sum()))
        assert case.work.flops > 1.3e12
    assert 0.4 < left[0] / left[1] < 0.7


def test_shipped_rows_that_say_fp32_ran_in_fp32() -> None:
    """NeuSight turned TF32 off; the others' cards have none, or their networks have no convolutions."""
    rows = [row for row in shipped_rows() if row.precision == "fp32" and re.search(r"A100|H100", row.device)]
    rows = [row for row in rows if re.search("NeuSight|DeepLearningExamples", row.source) and row.model]
    rows = [row for row in rows if "inference" in row.workload]
    assert len(rows) > 15
    assert {interpret(row).engine.computes_in for row in rows} == {"fp32"}


def test_analyses_say_who_would_not_multiply_in_fp32() -> None:
    resnet = zoo.network("resnet50", precision="fp32")
    for device, message in (("A100_40GB", True), ("V100", False), ("RTX_3090", False)):
        words = " ".join(analyze(Hardware[device], resnet).assumptions)
        assert ("TF32" in words) == message
