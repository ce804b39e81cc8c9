"""Figures of systems and communication: what is drawn are the links, rates and times of the models."""

import numpy as np
import pytest

from mlsys import Q_, viz
from mlsys.hardware import systems
from mlsys.models.collectives import collective_seconds
from mlsys.models.overlap import overlapped_steps


@pytest.mark.parametrize("system", list(systems), ids=lambda system: system.id)
def test_a_system_is_drawn_with_its_chips_and_the_rate_of_each_link(ax, system):
    viz.system_map(ax, system)
    chips = [patch for patch in ax.patches if patch.get_gid() == "chip"]
    assert len(chips) == min(system.chips_per_node, 8)
    message = " ".join(text.get_text() for text in ax.texts)
    if system.scale_out is not None:
        assert f"{system.scale_out.bandwidth.m_as('GB/s'):,.4g} GB/s" in message
        out = [line for line in ax.lines if line.get_gid() == "scale_out"]
        assert len(out) == len(chips) + 1, "one for each chip and one in the legend"
    if system.scale_up.topology == "switch":
        assert f"{system.scale_up.bandwidth.m_as('GB/s'):,.4g} GB/s" in message
    if system.scale_up.topology == "full mesh":
        arcs = [patch for patch in ax.patches if patch.get_gid() == "scale_up"]
        assert len(arcs) == 8 * 7 // 2
    styles = {line.get_gid(): line.get_linestyle() for line in ax.lines}
    assert len(set(styles.values())) == len(styles), "told apart without colour"
    assert all(text.get_fontsize() >= 9 for text in ax.texts)


def test_bus_bandwidth_draws_the_model_and_the_points(ax):
    dgx, point = systems["DGX_H100"], (Q_(1, "GB"), Q_(4, "ms"))
    viz.bus_bandwidth(ax, dgx, chips=(8, 4), measured={8: [point]})
    curve, points = ax.lines[:2]
    sizes, rates = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert rates[-1] == pytest.approx(sizes[-1] / collective_seconds(dgx, "all-reduce", sizes[-1], 8) * 1.75 / 1e9)
    assert list(points.get_ydata()) == pytest.approx([1.75 * 250])
    assert len(ax.lines) == 4, "two curves, the points of one, and the link"


def test_the_time_line_is_that_of_the_result(ax):
    result = overlapped_steps("DGX_A100", Q_(38.5, "MB"), Q_(2, "ms"), steps=6)
    viz.copy_timeline(ax, result)
    assert len(ax.patches) == len(result.timeline) == 12
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) == pytest.approx(result.time.m_as("ms"))
    assert {bar.get_hatch() or "" for bar in ax.patches} == {"//", ""}
