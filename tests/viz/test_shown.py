"""A picture says what it leans on, wherever the function that draws it is imported from."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib

from mlsys import Hardware, viz
from mlsys.provenance.shown import PageExhibit, hear
from sampled import over_all

matplotlib.use("Agg")

# How marks look, not what they show.
STYLE = {"mlsys.viz.style", "mlsys.viz.narrow", "mlsys.viz.schematics.shapes"}
# A lab draws by itself and shows its numbers beside the picture.
LABS = "mlsys.viz.views"


def drawing() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function below ``mlsys.viz`` that gives back axes or figures."""
    for listed in pkgutil.walk_packages(viz.__path__, "mlsys.viz."):
        if listed.name in STYLE or listed.name.startswith(LABS):
            continue
        module = importlib.import_module(listed.name)
        for name in [name for name in vars(module) if not name.startswith("_")]:
            value = getattr(module, name)
            if inspect.isfunction(value) and value.__module__ == listed.name:
                answer = str(inspect.signature(value).return_annotation)
                if "Axes" in answer or "Figure" in answer:
                    yield f"{listed.name}.{name}", value


PUBLIC = dict(drawing())


def test_the_drawings_were_found() -> None:
    assert len(PUBLIC) > 50 and "mlsys.viz.placement.gantt" in PUBLIC


@over_all(PUBLIC)
def test_every_drawing_is_heard_of(name: str) -> None:
    """By the frames of its code: the function that the module offers is the one that announces."""
    assert inspect.unwrap(PUBLIC[name]) is not PUBLIC[name]
    assert PUBLIC[name].__code__.co_filename.endswith("shown.py")


def test_a_picture_from_its_own_module_names_its_facts() -> None:
    from mlsys.viz.memory import bandwidth_by_bytes_in_flight

    heard: list[PageExhibit] = []
    stop = hear(heard.append)
    try:
        figure, ax, _, plt = viz.setup_plot()
        bandwidth_by_bytes_in_flight(ax, [Hardware.Cloud.A100])
        plt.close(figure)
    finally:
        stop()
    assert [shown.name for shown in heard] == ["bandwidth_by_bytes_in_flight"]
    assert "A100_80GB/memory/HBM/bandwidth" in heard[0].facts


def test_a_picture_made_of_pictures_is_announced_once() -> None:
    from mlsys.models.analysis import analyze
    from mlsys.viz.analysis import analysis_figure
    from mlsys.workloads import load

    analysis = analyze(Hardware.Cloud.A100, load("lenet5"))
    heard: list[PageExhibit] = []
    stop = hear(heard.append)
    try:
        analysis_figure(analysis, Hardware.Cloud.A100)
    finally:
        stop()
    assert [shown.name for shown in heard] == ["analysis_figure"]
