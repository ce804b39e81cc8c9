"""Figures of validation: measured against predicted times, bounds and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlsys.files import together
from mlsys.models.training.result import FASTER, SLOWER
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, MARKERS, save_figure, setup_plot

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mlsys_evidence import Examined, Prediction, Score, Validation
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


@drawn
def validation_panels(validation: Validation, kinds: Sequence[str], columns: int = 3) -> Figure:
    """Return a figure with one panel of measured against predicted time per kind, and one of all other kinds.

    Parameters
    ----------
    validation
        All predictions.
    kinds
        Kinds of workload, such as ``"gemm"``, in the order to draw them.
    columns
        Panels per row.
    """
    done = [each for each in validation.predictions if each.case is not None]
    panels = {kind: [each for each in done if each.kind == kind] for kind in kinds}
    panels["other kinds"] = [each for each in done if each.kind not in kinds]
    panels = {kind: chosen for kind, chosen in panels.items() if chosen}
    rows = -(-len(panels) // columns)
    fig, first, _, _ = setup_plot(figsize=(2.75 * columns, 2.8 * rows))
    first.remove()
    axes = fig.subplots(rows, columns, squeeze=False)
    handles: dict[str, Artist] = {}
    for ax, (kind, chosen) in zip(axes.flat, panels.items(), strict=False):
        measured_against_predicted(ax, chosen, legend=False)
        ax.set_title(f"{kind} ({len(chosen):,})")
        handles.update(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    for ax in list(axes.flat)[len(panels) :]:
        ax.remove()
    fig.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=11, markerscale=1.6)
    return fig


@chart
def bounds_by_kind(ax: Axes, predictions: Sequence[Prediction]) -> Axes:
    """Draw the ratio of lower bound to measured time of each row, one strip per kind of workload, with medians.

    Parameters
    ----------
    ax
        Axes to draw into.
    predictions
        Predictions; rows that are not expressible, or have no bound, are left out.
    """
    shares: dict[str, list[float]] = {}
    for each in predictions:
        if each.case is not None and each.bound > 0:
            shares.setdefault(each.kind, []).append(each.bound / each.case.seconds)
    names = sorted(shares, key=lambda name: float(np.median(shares[name])))
    xs = [share for name in names for share in shares[name]]
    ys = [index for index, name in enumerate(names) for _ in shares[name]]
    ax.scatter(xs, ys, s=14, marker="|", linewidth=0.6, color=COLORS["BlueLine"], alpha=0.6, zorder=2)
    middles = [float(np.median(shares[name])) for name in names]
    ax.scatter(middles, range(len(names)), s=42, marker="D", color=COLORS["OrangeLine"], edgecolor="white", zorder=4)
    ax.axvline(1, color=COLORS["primary"], linewidth=1.2, zorder=3)
    ax.set(xscale="log", xlabel="lower bound over measured time")
    ax.set_yticks(range(len(names)), names)
    ax.grid(False, axis="y")
    return ax


@chart
def error_bars(ax: Axes, seen: Mapping[str, Score], unseen: Mapping[str, Score]) -> Axes:
    """Draw the median error of each group, as fitted and on held-out devices.

    Parameters
    ----------
    ax
        Axes to draw into.
    seen, unseen
        Scores by group name; only groups in both are drawn.
    """
    names = [name for name in seen if name in unseen and unseen[name].median_ape is not None]
    names.sort(key=lambda name: -(unseen[name].median_ape or 0))
    places = np.arange(len(names))
    for shift, scores, color, label, hatch in (
        (0.2, seen, COLORS["BlueLine"], "in the fit", ""),
        (-0.2, unseen, COLORS["OrangeLine"], "device left out", "///"),
    ):
        widths = [scores[name].median_ape or 0 for name in names]
        ax.barh(places + shift, widths, height=0.38, color=color, label=label, hatch=hatch, edgecolor="white")
    ax.set_yticks(places, names)
    ax.set(xlabel="median absolute error of the published value, %")
    ax.grid(False, axis="y")
    ax.legend(loc="upper right", fontsize=9)
    return ax


def _part(error: float | None) -> float:
    return float("nan") if error is None else error / 100


@chart
def examination_dots(ax: Axes, groups: Sequence[Examined], own: Mapping[str, float]) -> Axes:
    """Draw the median error of each group of held-out sources: at first, now, and of our own held-out sweeps.

    Parameters
    ----------
    ax
        Axes to draw into; errors on a logarithmic scale.
    groups
        Graded twice; those without an answer today are left out. Where first answers stand, they are drawn once.
    own
        By the name of the group, the median error of rows of the fit whose sweep was left out, as a part.
    """
    shown = sorted((each for each in groups if each.now.expressible), key=lambda each: _part(each.now.median_ape))
    levels = np.arange(len(shown))
    first, now = ([_part(getattr(each, when).median_ape) for each in shown] for when in ("first", "now"))
    for *ends, level in zip(first, now, levels, strict=True):
        ax.plot(ends, [level, level], color=COLORS["grid"], lw=2, zorder=1)
    ours = [own.get(each.group, float("nan")) for each in shown]
    series = [("|", "our sources, sweep left out", COLORS["BlueLine"], True, ours)]
    if np.allclose(first, now, rtol=1e-3):
        series += [("o", "examination", COLORS["OrangeLine"], True, now)]
    else:
        series += [
            ("o", "examination, first answer", COLORS["OrangeLine"], False, first),
            ("o", "examination, today", COLORS["OrangeLine"], True, now),
        ]
    for marker, label, color, filled, errors in series:
        there = [(error, level) for error, level in zip(errors, levels, strict=True) if error]
        xs, ys = zip(*there, strict=True)
        if marker == "|":
            ax.scatter(xs, ys, marker=marker, s=120, color=color, lw=2, label=label, zorder=2)
        else:
            face = color if filled else "white"
            ax.scatter(xs, ys, s=45, facecolors=face, edgecolors=color, lw=2, label=label, zorder=2)
    ax.set_yticks(levels, [f"{each.group} ({each.now.expressible})" for each in shown])
    ax.set(xscale="log", xlabel="median absolute error of the published value")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.grid(False, axis="y")
    ax.legend(loc="lower right", fontsize=9)
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
