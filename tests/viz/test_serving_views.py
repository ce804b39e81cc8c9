"""Figures of a server: their marks are the numbers of the simulation."""

import numpy as np
import pytest

from mlsys import viz
from mlsys.errors import ArgumentError
from mlsys.models.serving import (
    ServerSettings,
    ServingResult,
    TabulatedSteps,
    poisson_requests,
    simulate,
)
from mlsys.units import Q_

SETTINGS = ServerSettings(max_batch=4, token_budget=512, blocks=64)


def _result(rate: float) -> ServingResult:
    steps = TabulatedSteps.of(lambda p, b, c: 1e-4 * p + 1e-2 * b, 512, 4, 4096)
    run = simulate(poisson_requests(Q_(rate, "1/s"), 64, 16, count=400, seed=1), steps, SETTINGS)
    return ServingResult("model", "device", "requests", run, None, None, None, None, None, (), ())


def test_latency_by_load_draws_percentiles_in_order_of_load_and_the_knee() -> None:
    results = [_result(rate) for rate in (9.0, 0.5, 3.0)]
    _, ax, _, plt = viz.setup_plot()
    viz.latency_by_load(ax, results, limit=2.0)
    ordered = sorted(results, key=lambda one: one.run.requests.rate)
    for line, share in zip(ax.lines[:3], (50, 90, 99), strict=True):
        assert list(line.get_xdata()) == [one.run.requests.rate for one in ordered]
        assert list(line.get_ydata()) == [np.percentile(one.run.latency, share) for one in ordered]
    tail = ax.lines[2].get_ydata()
    knee = next(rate for rate, value in zip(ax.lines[2].get_xdata(), tail, strict=True) if value > 2 * tail[0])
    assert any(f"{knee:.3g}/s" in text.get_text() for text in ax.texts)
    plt.close("all")
    with pytest.raises(ArgumentError, match="two loads"):
        viz.latency_by_load(ax, results[:1])


def test_speedup_by_draft_draws_each_setting_and_a_line_at_one() -> None:
    _, ax, _, plt = viz.setup_plot()
    viz.speedup_by_draft(ax, (1, 2, 4), {"most": [1.5, 2.0, 2.6], "few": [1.2, 1.1, 0.8]})
    assert [list(line.get_ydata()) for line in ax.lines] == [[1.5, 2.0, 2.6], [1.2, 1.1, 0.8], [1, 1]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["most", "few"]
    assert ax.get_xlabel() == "drafted tokens" and ax.get_ylabel() == "speedup"
    plt.close("all")
    with pytest.raises(ArgumentError, match="'few' has 1 speedups for 2"):
        viz.speedup_by_draft(ax, (1, 2), {"few": [1.0]})
