"""Pictures of the architecture models show what the models say."""

from typing import Any

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.models.architecture import ArchitectureResult, architecture, strategy_for
from mlsys.units import Q_
from mlsys.viz import architecture as pictures
from mlsys.workloads import gemm, zoo

DEVICES = tuple(Hardware.Generic)


@pytest.fixture(scope="module")
def pairs() -> list[list[tuple[ArchitectureResult, ArchitectureResult]]]:
    def both(device: Any, name: str) -> tuple[ArchitectureResult, ArchitectureResult]:
        first, second = (
            architecture(device, zoo.network(name, precision=device.headline, fused=fused)) for fused in (False, True)
        )
        return first, second

    return [[both(device, name) for name in ("resnet18", "bert_base")] for device in DEVICES]


def test_an_arrow_for_each_network_from_apart_to_fused(ax: Any, pairs: list) -> None:
    pictures.latency_energy(ax, pairs)
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == sum(map(len, pairs))
    before, after = pairs[0][0]
    assert arrows[0].xy == (after.time.m_as("ms"), after.spent.m_as("mJ"))
    assert arrows[0].xyann == (before.time.m_as("ms"), before.spent.m_as("mJ"))
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {device.name for device in DEVICES} < set(named)


def test_shares_of_the_energy_fill_each_bar(ax: Any, pairs: list) -> None:
    groups = [[row[column][1] for row in pairs] for column in (0, 1)]
    pictures.energy_split(ax, groups)
    tops = np.zeros(sum(map(len, groups)))
    for bars in ax.containers:
        tops += [bar.get_height() for bar in bars]
    assert tops == pytest.approx(100)


def test_points_of_energy_lie_on_the_line_of_their_machine(ax: Any, pairs: list) -> None:
    results = [row[0][1] for row in pairs]
    pictures.energy_by_intensity(ax, results)
    lines = {line.get_label(): line for line in ax.lines if len(line.get_xdata()) > 1}
    assert set(lines) == {"CPU and KPU", "GPU", "TPU"}, "CPU and KPU pay the same prices"
    single, double = lines["GPU"].get_ydata()[[0, -1]]
    assert double < single, "the more operations share a byte, the less each costs"
    points = {
        (text.get_text(), text.xy) for text in ax.texts
    }  # each name stands at the intensity and the energy of its pass
    for result in results:
        flops = result.figures["intensity"] * result.figures["moved"]
        spent = (result.energy["compute"] + result.energy["off-chip"]) / flops
        at = next(xy for name, xy in points if name == result.device.rpartition(" ")[2])
        assert at == pytest.approx((result.figures["intensity"].m_as("FLOP/byte"), spent.m_as("pJ/FLOP")))


def test_each_level_has_its_bytes(ax: Any, pairs: list) -> None:
    results = [row[0][0] for row in pairs]
    pictures.bytes_by_level(ax, results)
    for line, result in zip(ax.lines, results, strict=True):
        assert list(line.get_ydata()) == [amount.m_as("MB") for amount in result.moved.values()]


def test_more_memory_lowers_the_line(ax: Any) -> None:
    sizes = [1.0, 4.0, 16.0]
    kpu = Hardware.Generic.KPU
    row = [architecture(kpu.with_onchip(Q_(size, "MiB")), gemm(2048, 2048, 2048, "fp32")) for size in sizes]
    pictures.bytes_by_onchip(ax, sizes, [row])
    heights = list(ax.lines[0].get_ydata())
    assert heights == sorted(heights, reverse=True)
    assert ax.get_legend().get_texts()[0].get_text().endswith("Generic KPU")


def test_tiles_are_those_of_the_plans(ax: Any) -> None:
    strategies = [strategy_for(device) for device in DEVICES]
    squares = [[gemm(edge, edge, edge, device.headline) for edge in (64, 256, 1024)] for device in DEVICES]
    pictures.tiles_by_footprint(ax, strategies, squares)
    for line, strategy, members in zip(ax.lines, strategies, squares, strict=True):
        assert list(line.get_ydata()) == [strategy.plan(operator).count for operator in members]
