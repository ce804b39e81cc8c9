"""How fast a lab follows its slider, beside a figure drawn anew each time.

    pytest benchmarks/test_redraw.py --benchmark-only
    python benchmarks/test_redraw.py                   the ratio, and what the handler spends its time on

Both ways compute the same numbers and end with a PNG of the same size. The naive way is
what a notebook does without help: ``plt.subplots``, draw, save, close.
"""

import io
import itertools
import statistics
import time

import pytest

from mlsys.viz.views.view import DPI
from mlsys.widgets import AmdahlLab, RooflineLab

LABS = {"amdahl": (AmdahlLab, 50, "speedup"), "roofline": (RooflineLab, "32", "batch")}


def stepper(name):
    """Return a function that moves a lab's slider one step: computing, drawing, encoding, words."""
    make, guess, control = LABS[name]
    lab = make()
    lab.predict(guess)
    widget = lab.controls[control].widget
    values = itertools.cycle([value for _, value in widget.options])

    def step():
        before = widget.value
        widget.value = next(values)
        if widget.value == before:  # the first of the cycle: a move that is none draws nothing
            widget.value = next(values)
        return lab.picture.value

    return step


def naive(name):
    """Return a function that draws the same state with a new pyplot figure."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from mlsys import Hardware
    from mlsys.formulas import amdahl_speedup
    from mlsys.models import roofline
    from mlsys.viz.amdahl import time_bars
    from mlsys.viz.views import layer

    values = itertools.cycle([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])

    def amdahl():
        speedup = next(values)
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.9), dpi=DPI, layout="constrained")
        axis = [10 ** (step / 30) for step in range(91)]
        left.loglog(axis, [amdahl_speedup.bare(0.95, s) for s in axis])
        left.plot([speedup], [amdahl_speedup.bare(0.95, speedup)], "o")
        time_bars(right, parallel_fraction=0.95, speedups=[1, speedup])
        return figure

    def roofs():
        figure, ax = plt.subplots(figsize=(8.4, 4.2), dpi=DPI, layout="constrained")
        result = roofline(Hardware.Cloud.A100, layer("dense", next(values), 2048))
        ax.loglog([0.1, 153, 1e5], [0.2, 312, 312])
        ax.plot([result.figures["intensity"].magnitude], [result.figures["attained"].magnitude], "o")
        return figure

    def draw():
        figure = {"amdahl": amdahl, "roofline": roofs}[name]()
        file = io.BytesIO()
        figure.savefig(file, format="png")
        plt.close(figure)
        return file.getvalue()

    return draw


@pytest.mark.parametrize("name", LABS)
@pytest.mark.parametrize("way", ["handler", "naive"])
def test_redraw(benchmark, name, way):
    benchmark.group = f"{name}: one slider step"
    step = stepper(name) if way == "handler" else naive(name)
    step()
    assert benchmark.pedantic(step, rounds=30, iterations=1)


def median(step, rounds=40):
    """Return the median seconds of one call."""
    step()
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def main():
    print(f"{'one slider step, median':<26}{'handler':>10}{'naive':>10}{'ratio':>8}")
    for name in LABS:
        ours, theirs = median(stepper(name)), median(naive(name))
        print(f"{name:<26}{ours * 1e3:>7.1f} ms{theirs * 1e3:>7.1f} ms{theirs / ours:>7.1f}×")


if __name__ == "__main__":
    main()
