"""Pictures of a network layer by layer hold what the network and the model say."""

import matplotlib as mpl
import pytest

from mlsys import Hardware, viz
from mlsys.errors import ArgumentError
from mlsys.models import Result, roofline
from mlsys.workloads import Workload, load

mpl.use("Agg")


@pytest.fixture(scope="module")
def network() -> tuple[Workload, Result]:
    captured = load("small-cnn", batch=8, precision="fp16")
    return captured, roofline(Hardware.Cloud.A100, captured)


def test_each_bar_is_the_whole(network: tuple[Workload, Result]) -> None:
    figure, ax, _, plt = viz.setup_plot()
    viz.shares_by_kind(ax, *network)
    widths: dict[float, float] = {}
    for bar in ax.patches:
        widths[bar.get_y()] = widths.get(bar.get_y(), 0.0) + bar.get_width()
    assert len(widths) == 3
    assert all(width == pytest.approx(100) for width in widths.values())
    plt.close(figure)


def test_the_roof_holds_every_operator_that_computes(network: tuple[Workload, Result]) -> None:
    figure, ax, _, plt = viz.setup_plot()
    viz.layers_under_roof(ax, Hardware.Cloud.A100, *network)
    listed = [text.get_text().rpartition(": ")[2] for text in ax.get_legend().get_texts()]
    assert sum(map(int, listed)) == sum(operator.flops.magnitude > 0 for operator in network[0])
    peak, bandwidth = 312.0, 2.039
    for dots in ax.collections:
        for intensity, rate in dots.get_offsets():
            assert rate <= min(peak, bandwidth * intensity) * 1.05
    plt.close(figure)


def test_the_strip_is_as_long_as_the_time(network: tuple[Workload, Result]) -> None:
    figure, ax, _, plt = viz.setup_plot()
    viz.time_strip(ax, [network[1], network[1]])
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(200)
    figure = viz.layer_panels(figure, Hardware.Cloud.A100, [network, network])
    assert [panel.get_title(loc="left") or panel.get_title() for panel in figure.axes] == [
        "Two convolutions and a classifier"
    ] * 2
    plt.close(figure)


def test_a_result_of_another_network_is_refused(network: tuple[Workload, Result]) -> None:
    other = load("mlp", precision="fp16")
    figure, ax, _, plt = viz.setup_plot()
    with pytest.raises(ArgumentError, match=r"shares_by_kind\(\): `result` must have one child for each of the 3"):
        viz.shares_by_kind(ax, other, network[1])
    plt.close(figure)
