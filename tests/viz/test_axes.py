"""Axes say what their marks show: the rules themselves, and that every drawing of a page is looked at."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes

from axesfaults import figure_faults
from mlsys import Q_, Hardware, viz
from mlsys.edge import PowerPoint, split_energy
from mlsys.edge.stored import stored_run
from mlsys.models import roofline
from mlsys.viz.edge import clock_curves, tradeoff
from mlsys.workloads import zoo
from mlsys_evidence import validate
from mlsys_evidence.evaluate import pictures
from mlsys_evidence.rows import shipped_rows
from sampled import over_all

matplotlib.use("Agg")
A100, H100 = Hardware.Cloud.A100, Hardware.Cloud.H100


def test_a_stack_on_a_logarithmic_axis_is_a_fault(ax: Axes) -> None:
    ax.barh([0, 1], [4.6, 4.6])
    ax.barh([0, 1], [600.0, 6.0], left=[4.6, 4.6])
    assert figure_faults(ax.figure) == []
    ax.set_xscale("log")
    assert figure_faults(ax.figure) == ["bars are stacked on the logarithmic x axis"]


def test_bars_beside_each_other_on_a_logarithmic_axis_are_none(ax: Axes) -> None:
    ax.bar([0.0, 1.0], [3.0, 40.0], width=0.4)
    ax.bar([0.4, 1.4], [5.0, 60.0], width=0.4)
    ax.set_yscale("log")
    assert figure_faults(ax.figure) == []


def test_a_bar_that_nobody_can_see_is_a_fault(ax: Axes) -> None:
    ax.bar([0, 1], [3.2, 0.00064])
    assert figure_faults(ax.figure) == ["a bar of 0.00064 is invisible on a linear y axis up to 3.36"]


def test_a_labelled_axis_without_numbers_is_a_fault(ax: Axes) -> None:
    ax.set_xlabel("time of one call")
    assert figure_faults(ax.figure) == []
    ax.set_xticks([])
    assert figure_faults(ax.figure) == ["the x axis is labelled 'time of one call' and has no ticks"]


def test_a_mark_below_the_roof_is_a_fault_where_heights_are_attainable(ax: Axes) -> None:
    ax.loglog([1, 10, 100], [2, 20, 20])
    ax.plot([5], [10], "o")
    ax.set_ylabel("attainable, TFLOP/s")
    assert figure_faults(ax.figure) == []
    ax.plot([5], [3], "o")
    assert figure_faults(ax.figure) == ["a mark at 5 is at 3, where 10 is attainable"]


def test_letters_that_print_shrinks_too_far_are_a_fault(ax: Axes) -> None:
    ax.annotate("ridge", (0.5, 0.5), fontsize=9)
    assert figure_faults(ax.figure) == []
    small = ax.annotate("cliff", (0.2, 0.5), fontsize=8)
    assert figure_faults(ax.figure) == ["'cliff' is printed in 6.0 points"]
    small.set_visible(False)
    ax.figure.set_figwidth(9.3)
    assert figure_faults(ax.figure)[0] == "'ridge' is printed in 6.1 points"


def test_pictures_that_only_pages_drew(ax: Axes) -> None:
    viz.intensity_by_batch(ax, width=2048, devices=[A100, H100])
    ax.clear()
    network = roofline(A100, zoo.network("resnet18", batch=8))
    viz.layer_scatter(ax, network, ridge=A100.ridge_point("fp16").m_as("FLOP/byte"))
    ax.clear()
    viz.device_map(ax, [A100, H100])
    ax.clear()
    viz.speedup_map(ax)


def test_pictures_of_a_small_network(ax: Axes) -> None:
    tradeoff(ax, stored_run().points(clocks=[1.0]), budget=0.1)
    ax.clear()
    fast, slow = (
        PowerPoint(*map(Q_, point)) for point in (("168 MHz", "145 ms", "18 mJ"), ("80 MHz", "305 ms", "24 mJ"))
    )
    law = split_energy([fast, slow]).law(Q_(168, "MHz"))
    clock_curves(ax, law, {"one voltage": lambda scale: 1.0, "voltage follows": lambda scale: 0.4 + 0.6 * scale})


def test_pictures_of_a_validation(ax: Axes) -> None:
    pictures.measured_against_predicted(ax, validate(shipped_rows()[:200]).predictions)
    ax.clear()
    few = {"in the fit": [0.1] * 8, "device held out": [0.1, 0.2, 0.4] * 3, "unseen source": [0.5]}
    pictures.errors_by_class(ax, {"CPU": few, "all": few})
    assert [text.get_text() for text in ax.texts] == ["10% in the fit", "20% device held out", "10%", "20%"]
    ax.clear()
    pictures.holdouts(ax)


HERE = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


@over_all([name for name in viz.__all__ if name[0].islower() and name != "apply_style"])
def test_every_drawing_of_the_pages_is_drawn_by_a_test_of_this_folder(name: str) -> None:
    assert f"{name}(" in HERE
