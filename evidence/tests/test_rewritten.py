"""Networks that a source wrote for itself: what its code has, and what running in training mode adds."""

from dataclasses import replace

import pytest

from mlsys.calibration.rows import Row
from mlsys_evidence.ingest.networks import own_name
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.rewritten import rewritten
from mlsys_evidence.rows import shipped_rows


def row_of(model: str, device: str = "NVIDIA T4") -> Row:
    rows = (row for row in shipped_rows() if "KernelBench" in row.source and row.device == device)
    return next(row for row in rows if row.model == model)


# Counted in the modules of KernelBench/level3 (15_DenseNet121.py, 16_DenseNet201.py, 20_MobileNetV2.py,
# 22_EfficientNetB0.py): convolutions, shortcuts that are added, and weights of all layers.
@pytest.mark.parametrize(
    ("model", "convolutions", "shortcuts", "parameters"),
    [
        ("DenseNet-121", 1 + 58 + 3, 0, 64 * 3 * 49 + sum(288 * (start + 32 * layer) for start, layers in
         ((64, 6), (128, 12), (256, 24), (512, 16)) for layer in range(layers))
         + 256 * 128 + 512 * 256 + 1024 * 512 + 1024 * 10),
        ("MobileNet-v2", 52, 0, None),
        ("EfficientNet-B0", 1 + 13 * 3 - 1 + 1, 6, None),
    ],
)  # fmt: skip
def test_networks_have_the_layers_of_their_code(
    model: str, convolutions: int, shortcuts: int, parameters: int | None
) -> None:
    name = own_name(row_of(model))
    assert name != model
    entry = rewritten(name)
    assert entry is not None
    layers = list(entry.build(fused=False))
    assert sum(layer.kind == "conv2d" for layer in layers) == convolutions
    if parameters is not None:
        weights = sum(layer.weights.m_as("byte") for layer in layers if layer.kind in ("conv2d", "gemm")) / 4
        assert weights == parameters
    assert not any("squeeze" in layer.name for layer in layers)
    assert sum(layer.name.endswith(" add") for layer in layers) == shortcuts


def test_a_published_network_of_another_source_is_the_published_one() -> None:
    row = replace(row_of("DenseNet-121"), source="nobody/nothing")
    assert own_name(row) == "DenseNet-121"
    assert own_name(row_of("ResNet-18")) == "ResNet-18"


def test_statistics_of_a_batch_are_one_more_call_and_one_more_reading_for_each_normalisation() -> None:
    row = row_of("ResNet-18")
    training, plain = (interpret(each).work for each in (row, replace(row, note="eval")))
    assert training.launches == plain.launches + 20  # 20 convolutions, each normalised
    batch, pixels = 2, [112**2 * 64, *[56**2 * 64] * 4, *[28**2 * 128] * 5, *[14**2 * 256] * 5, *[7**2 * 512] * 5]
    added = (training["moved"] * training["count"]).sum() - (plain["moved"] * plain["count"]).sum()
    assert added == pytest.approx(4 * batch * sum(pixels))
