"""Figures of compute primitives show what formulas and models count."""

import numpy as np

from mlsys import Hardware, viz
from mlsys.units import Q_


def roles(ax, role):
    return sum(patch.get_gid() == role for patch in ax.patches)


def test_one_instruction_of_each_kind_and_its_results(ax):
    viz.execution_models(ax, lanes=4, tile=8)
    assert roles(ax, "instruction") == 4
    assert (roles(ax, "scalar"), roles(ax, "SIMD"), roles(ax, "matrix tile")) == (1, 4, 64)
    assert roles(ax, "SIMT") + roles(ax, "masked") == 32


def test_slots_of_a_divided_warp(ax):
    viz.warp_divergence(ax, [0, 1, 1, 0], (2, 3))
    assert (roles(ax, "work"), roles(ax, "masked")) == (2 * 2 + 2 * 3, 2 * 2 + 2 * 3)


def test_counts_are_marked_at_one_length(ax):
    viz.instruction_counts(ax, (1, 8), marked=20, upto=64)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["20", "width 1", "3", "width 8"]
    assert ax.lines[2].get_ydata()[16] == 3


def test_bars_end_at_their_rates(ax):
    viz.throughput_ladder(ax, {"one": ("scalar", Q_(1, "MAC/cycle")), "block": ("tile", Q_(256, "MAC/cycle"))})
    assert [round(bar.get_x() + bar.get_width()) for bar in ax.patches] == [1, 256]


def test_error_falls_below_the_line_at_the_step_that_the_model_names(ax):
    viz.square_root_convergence(ax, np.linspace(1, 16, 300), {"bits": 4})
    steps, errors = ax.lines[0].get_data()
    assert next(step for step, error in zip(steps, errors, strict=True) if error < ax.lines[1].get_ydata()[0]) == 3


def test_ceilings_lie_below_the_roof_and_end_where_they_meet(ax):
    a100 = Hardware.Cloud.A100
    viz.roof_ceilings(ax, a100, {"half as fast": a100.peak("fp16") / 2}, {"a quarter": a100.memory_bw / 4})
    roof, flat, slope = (line.get_data() for line in (ax.lines[0], *ax.lines[-2:]))
    assert list(flat[1]) == [156, 156] and slope[1][1] == 156
    assert np.allclose(np.interp(flat[0][0], roof[0], roof[1]), 156)
    assert np.allclose(slope[0][1] / flat[0][0], 4)
