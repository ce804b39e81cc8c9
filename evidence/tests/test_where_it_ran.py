"""What ran a row and where, as its program does it and its source writes it."""

from dataclasses import replace

import pytest

from mlsys.calibration.rows import Row
from mlsys_evidence import validate
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def _row(**wanted: str) -> Row:
    return next(row for row in shipped_rows() if all(text in getattr(row, name) for name, text in wanted.items()))


def test_tensorflow_lite_runs_on_the_processor_on_one_thread_unless_told() -> None:
    """freedomtan/edge_tpu_python_scripts: MobileNet v2 in bytes takes 150 ms on the i.MX8M of a Coral Dev Board."""
    row = _row(software="TFLite v2.7.1", model="MobileNet-v2", precision="int8")
    unseen = replace(
        row, device="NXP i.MX8M (4x Cortex-A53 1.5 GHz)", workload="CNN inference", software="TFLite CPU", note="",
        seq_or_shape="224x224 image", value=150.0, unit="ms", metric="latency", id="mine",
    )  # fmt: skip
    alone, open_ = interpret(unseen), interpret(replace(unseen, note="threads not stated"))
    assert "1 thread" in alone.setting
    assert "1 thread" not in open_.setting
    assert open_.engine.matmul > 3 * alone.engine.matmul
    (result,) = validate((unseen,)).predictions
    assert 0.6 < result.ratio < 1.6


def test_a_picture_is_no_column_of_pixels() -> None:
    """Rockchip's table gives DeepLab's input as [1, 513, 513, 1]: 34 frames/s on a core of the RK3588."""
    rows = [row for row in shipped_rows() if row.seq_or_shape == "513x1 image"]
    assert rows
    for row in rows:
        assert interpret(row).work.flops == interpret(replace(row, seq_or_shape="513x513 image")).work.flops


@pytest.mark.parametrize(("batch", "rate"), [(16, 1267.0), (64, 1561.0), (256, 1559.0)])
def test_mxnets_container_asks_cudnn_layer_by_layer(batch: int, rate: float) -> None:
    """NVIDIA/DeepLearningExamples, MxNet/Classification/RN50v1.5: ResNet-50 v1.5 in mixed precision on a T4."""
    row = _row(model="ResNet-50", software="TensorFlow 1.15 NGC", metric="throughput")
    unseen = replace(
        row, device="NVIDIA T4", software="MXNet NGC", precision="amp fp16", batch=str(batch), value=rate,
        workload="image classification inference", model="ResNet-50 v1.5", unit="images/s", n_devices=1, note="",
        seq_or_shape="224x224 image", id="mine",
    )  # fmt: skip
    (result,) = validate((unseen,)).predictions
    assert result.value == pytest.approx(rate, rel=0.3)


def test_the_maker_of_stm32_writes_tuned_kernels() -> None:
    """STMicroelectronics/stm32ai-modelzoo: MobileNet v2 takes 1,107 ms on an STM32H747 under STM32Cube.AI 10.0."""
    row = _row(software="X-CUBE-AI", device="STM32H7", unit="ms")
    unseen = interpret(replace(row, software="STM32Cube.AI 10.0"))
    assert unseen.setting == interpret(row).setting == "tuned microcontroller runtime on MCU"
