"""Pictures of fusion: what is drawn equals the models."""

import numpy as np
import pytest
import torch
from torch import nn

from mlsys import Hardware, viz
from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import fuse
from mlsys.models.fusion import fusion_gain
from mlsys.workloads import Workload

A100 = Hardware.Cloud.A100


@pytest.fixture(scope="module")
def small():
    layers = [nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 1), nn.SiLU(), nn.AvgPool2d(2)]
    return fuse(Workload.from_torch(nn.Sequential(*layers).half(), torch.zeros(4, 8, 32, 32, dtype=torch.float16)))


def chain(length: int, dtype=torch.float32):
    class Chain(nn.Module):
        def forward(self, x):
            for _ in range(length):
                x = x + 1.0
            return x

    return fuse(Workload.from_torch(Chain(), torch.zeros(1024, 1024, dtype=dtype, device="meta")))


@pytest.mark.parametrize("operators", [("a",), ("a", "b"), ("scale", "add", "ReLU", "tanh")])
def test_an_arrow_for_each_pass(ax, operators):
    viz.memory_passes(ax, operators)
    words = [text.get_text() for text in ax.texts]
    assert words.count("read") == words.count("write") == len(operators) + 1
    assert (words.count("X"), words.count("Y"), words.count("X′")) == (2, 2, int(len(operators) > 1))
    assert f"one by one: {2 * len(operators)} passes" in " ".join(words)
    assert "fused: 2 passes, 1 kernel" in words


def test_the_curve_is_what_the_model_says(ax):
    viz.speedup_by_chain(ax, A100, 2**22, element_bytes=4, precision="fp32", work=(1,))
    law, curve = (line.get_ydata() for line in ax.lines)
    assert law.tolist() == list(range(1, 17))
    for length in (1, 2, 7, 16):
        assert curve[length - 1] == pytest.approx(fusion_gain(A100, chain(length)).speedup, rel=1e-9)


def test_work_ends_the_law_and_starting_bends_it(ax):
    viz.speedup_by_chain(ax, A100, 2**22, element_bytes=4, precision="fp32", work=(10, 40), launch=5e-6)
    law, ten, forty = (line.get_ydata() for line in ax.lines)
    assert (ten <= law + 1e-9).all() and (forty <= ten + 1e-9).all()
    assert (np.diff(forty) >= -1e-9).all()


def test_bars_are_bytes_as_shares(ax, small):
    viz.bytes_by_pattern(ax, [small])
    widths = {}
    for bar in ax.patches:
        widths[round(bar.get_y() + bar.get_height() / 2)] = (
            widths.get(round(bar.get_y() + bar.get_height() / 2), 0) + bar.get_width()
        )
    share = 100 * (small.data / small.unfused.data).m_as("")
    assert widths == pytest.approx({0: 100, -1: share})
    assert [text.get_text() for text in ax.texts] == ["6 kernels", "3 kernels"]
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == "unfused"


def test_arrows_go_right_by_the_ratio_of_bytes(ax, small):
    viz.intensity_shift(ax, A100, small)
    rows = [row for row in small.by_pattern() if row.pattern != "unfused"]
    marks = [
        line.get_xdata()[0] for line in ax.lines[1:] if line.get_linestyle() == "None" or len(line.get_xdata()) == 1
    ]
    assert len(marks) == 2 * len(rows) == 4
    for row, before, after in zip(rows, marks[::2], marks[1::2], strict=True):
        assert after / before == pytest.approx((row.before / row.after).m_as(""))


def test_one_picture_one_precision(ax):
    with pytest.raises(
        ArgumentError, match="intensity_shift.*is not counted in fp16. Capture it with precision='fp16'"
    ):
        viz.intensity_shift(ax, A100, chain(3))
