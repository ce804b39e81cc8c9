"""Figures of validation: errors by class of device, what is held out, measured against predicted times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle

from mlsys.files import together
from mlsys.models.training.result import FASTER, SLOWER
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, MARKERS, save_figure, setup_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys_evidence import Prediction, Validation
    from mlsys_evidence.evaluate.training_runs import Run

CLASSES = ("datacenter GPU", "consumer GPU", "edge SoC", "CPU", "NPU", "TPU-like", "MCU")


@chart
def measured_against_predicted(ax: Axes, predictions: Sequence[Prediction], legend: bool = True) -> Axes:
    """Draw predicted against measured time, one point per expressible row.

    Parameters
    ----------
    ax
        Axes to draw into.
    predictions
        Predictions of one or several kinds of workload; rows that are not expressible are left out.
    legend
        Whether to draw the legend of machine classes.

    Returns
    -------
    Axes
        With the line of no error and the band of a factor of two.
    """
    done = [each for each in predictions if each.case is not None]
    for name in sorted({each.row.device_class for each in done}):
        color, marker = _look(name)
        points = [(each.case.seconds, each.seconds) for each in done if each.case and each.row.device_class == name]
        xs, ys = zip(*points, strict=True)
        ax.scatter(xs, ys, s=20, marker=marker, color=color, edgecolor="white", linewidth=0.4, label=name, zorder=3)
    ax.set(xscale="log", yscale="log")
    ends = np.array([min(ax.get_xlim()[0], ax.get_ylim()[0]), max(ax.get_xlim()[1], ax.get_ylim()[1])])
    ax.fill_between(ends, ends / 2, ends * 2, color=COLORS["GreenL"], alpha=0.6, zorder=1, linewidth=0)
    ax.plot(ends, ends, color=COLORS["primary"], linewidth=1, zorder=2)
    ax.set(xlim=ends, ylim=ends, xlabel="measured time, s", ylabel="predicted time, s")
    if legend:
        ax.legend(loc="upper left", fontsize=9, handletextpad=0.2)
    return ax


def _look(device_class: str) -> tuple[str, str]:
    """Return colour and marker of a class, the same in every figure."""
    palette = (*CYCLE, COLORS["primary"], COLORS["axis"])
    index = CLASSES.index(device_class) if device_class in CLASSES else len(CLASSES)
    return palette[index % len(palette)], MARKERS[index % len(MARKERS)]


SEEN = {
    "in the fit": ("BlueLine", "o"),
    "device held out": ("OrangeLine", "s"),
    "unseen source": ("VioletLine", "D"),
}
"""Colour and marker for each part of :func:`mlsys_evidence.evaluate.answers.class_errors`."""


@chart
def errors_by_class(ax: Axes, errors: Mapping[str, Mapping[str, Sequence[float]]], fewest: int = 8) -> Axes:
    """Draw the median error and the middle half of all errors, by class of device and by what the fit had seen.

    Parameters
    ----------
    ax
        Axes to draw into.
    errors
        By class and part, as :func:`mlsys_evidence.evaluate.answers.class_errors` returns them.
    fewest
        Parts with fewer errors are not drawn.

    Returns
    -------
    Axes
        On a logarithmic scale: a line from the 25th to the 75th percentile, a marker at the median, labelled.
    """
    for row, (name, parts) in enumerate(errors.items()):
        if row % 2:
            ax.axhspan(row - 0.5, row + 0.5, color=COLORS["grid"], alpha=0.3, linewidth=0, zorder=0)
        for place, (part, (color, marker)) in enumerate(SEEN.items()):
            own = parts[part]
            if len(own) < fewest:
                continue
            low, middle, high = (float(np.quantile(own, share)) for share in (0.25, 0.5, 0.75))
            level = row + 0.27 * (place - 1)
            ax.plot([low, high], [level, level], color=COLORS[color], linewidth=3, solid_capstyle="butt", zorder=2)
            ax.plot(middle, level, marker, color=COLORS[color], markersize=7, markeredgecolor="white", zorder=3)
            label = f"{middle:.0%}" if name != next(iter(errors)) else f"{middle:.0%} {part}"
            ax.annotate(label, (high, level), xytext=(5, 0), textcoords="offset points", va="center", fontsize=10,
                        color=COLORS[color])  # fmt: skip
    ax.set(xscale="log", ylim=(len(errors) - 0.5, -0.5), xlim=(0.01, 5))
    ax.set_xlabel("absolute error of the published value")
    ax.set_xticks([0.01, 0.03, 0.1, 0.3, 1, 3], ["1%", "3%", "10%", "30%", "100%", "300%"])
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.set_yticks(range(len(errors)), list(errors))
    ax.grid(False, axis="y")
    return ax


@chart
def holdouts(ax: Axes) -> Axes:
    """Draw which measurements a fit reads and which it predicts in four ways of grading it, as a schematic.

    Parameters
    ----------
    ax
        Axes to draw into.

    Returns
    -------
    Axes
        Four grids of sweeps by devices: a filled square is in the fit, a dot is predicted.
    """
    cells = [(row, column) for row in range(4) for column in range(4)]
    grids = (
        ("in the fit", (0, 0), cells, cells, "all rows fitted and predicted"),
        ("sweep held out", (7, 0), [c for c in cells if c != (1, 2)], [(1, 2)], "each sweep in turn"),
        ("device held out", (0, 7), [c for c in cells if c[1] != 2], [c for c in cells if c[1] == 2],
         "each device in turn"),
        ("unseen source", (7, 7), cells, [(4.4, 1), (4.4, 3)], "rows of new sources, predicted once"),
    )  # fmt: skip
    for title, (left, top), fitted, predicted, words in grids:
        for row, column in sorted({*cells, *predicted}):
            known = (row, column) in fitted
            ax.add_patch(Rectangle((left + column, top + row), 0.86, 0.86, linewidth=1, edgecolor=COLORS["BlueLine"],
                                   facecolor=COLORS["BlueL"] if known else "white"))  # fmt: skip
        xs, ys = zip(*((left + column + 0.43, top + row + 0.43) for row, column in predicted), strict=True)
        ax.scatter(xs, ys, s=28, color=COLORS["OrangeLine"], zorder=3)
        ax.text(left, top - 0.95, title, fontsize=10, weight="bold", va="center", color=COLORS["primary"])
        ax.text(left, top - 0.35, words, fontsize=9, va="center", color=COLORS["note"])
    ax.text(-0.4, 2, "sweeps", rotation=90, fontsize=9, ha="center", va="center", color=COLORS["note"])
    ax.text(2, 4.25, "devices", fontsize=9, ha="center", va="center", color=COLORS["note"])
    ax.set(xlim=(-0.8, 12.6), ylim=(12.6, -1.5), aspect="equal")
    ax.set_axis_off()
    return ax


def save_all(validation: Validation, folder: Path) -> list[Path]:
    """Write one figure per kind and return the paths.

    Parameters
    ----------
    validation
        All predictions.
    folder
        Folder, created if missing.
    """
    paths = []
    with together() as files:
        for kind in sorted({each.kind for each in validation.predictions if each.case is not None}):
            fig, ax, _, plt = setup_plot(figsize=(5, 5))
            measured_against_predicted(ax, [each for each in validation.predictions if each.kind == kind])
            ax.set_title(kind)
            paths.append(save_figure(fig, folder / f"{kind.replace(' ', '-')}.png", files, folders=True))
            plt.close(fig)
    return paths


SOFTWARE_NAMES = {
    "megatron 2021": "Megatron-LM, 2021",
    "bloom": "BLOOM, 2022",
    "mpt": "llm-foundry, 2023",
    "mlperf": "MLPerf Training",
    "megatron core": "Megatron-Bridge",
}
"""Titles of the kinds of :func:`mlsys_evidence.evaluate.training_runs.shipped_runs`."""


@chart
def training_run_dots(ax: Axes, runs: Sequence[Run]) -> Axes:
    """Draw predicted over measured step time of published training runs, a row for each kind of software.

    Parameters
    ----------
    ax
        Axes to draw into.
    runs
        Runs of :func:`~mlsys_evidence.evaluate.training_runs.shipped_runs`; those without an estimate are left out.

    Returns
    -------
    Axes
        The band is the range that a training step states; upright marks are medians of the ratio.
    """
    done = [run for run in runs if run.step is not None]
    kinds = [kind for kind in SOFTWARE_NAMES if any(run.kind == kind for run in done)]
    ax.axvspan(1 / SLOWER, 1 / FASTER, color=COLORS["GreenL"], alpha=0.6, zorder=1, linewidth=0)
    ax.axvline(1, color=COLORS["primary"], linewidth=1, zorder=2)
    for row, kind in enumerate(kinds):
        ratios = sorted(run.ratio for run in done if run.kind == kind)
        spread = np.linspace(-0.25, 0.25, len(ratios)) if len(ratios) > 1 else np.zeros(1)
        ax.scatter(ratios, row + spread, s=26, marker=MARKERS[row], color=CYCLE[row % len(CYCLE)], edgecolor="white",
                   linewidth=0.5, zorder=3)  # fmt: skip
        middle = float(np.median(ratios))
        ax.plot([middle, middle], [row - 0.36, row + 0.36], color=COLORS["primary"], linewidth=2.2, zorder=4)
    ax.set_yticks(range(len(kinds)), [SOFTWARE_NAMES[kind] for kind in kinds])
    ax.set(xlabel="predicted / measured time of a step", ylim=(len(kinds) - 0.5, -0.5))
    ax.grid(axis="y", visible=False)
    return ax
