"""Figures of a sweep: rates by network, speed ratios by batch, Pareto fronts, sizings by latency and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.formatting import natural
from mlsys.hardware.device import Device
from mlsys.sweep.sizing_table import SizingRow, SizingTable
from mlsys.sweep.table import Cost, SweepRow, SweepTable, costs, label
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, MARKERS, draw_cells, setup_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DEVICES = 24
_MOST_MODELS = 6


@drawn
def rate_map(ax: Axes, table: SweepTable, devices: Sequence[str] | None = None) -> Axes:
    """Draw a heat map of the highest rate of every network on every device.

    Parameters
    ----------
    ax
        Axes to draw into.
    table
        A sweep; points that do not fit or have no result are left out.
    devices
        Devices from top to bottom; by default those with the highest rates, at most 24.

    Returns
    -------
    Axes
        Each cell shows samples/s; colours compare devices within a network, on a
        logarithmic scale. A cross marks a device that runs no point of the network.
    """
    best: dict[tuple[str, str], float] = {}
    for row in table:
        if row.error is None and row.fits is not False and row.samples_per_second is not None:
            key = (row.device, row.model)
            best[key] = max(best.get(key, 0.0), row.samples_per_second)
    models = table.models
    named = tuple(devices) if devices is not None else _fastest(best, models)
    rates = np.array([[best.get((device, model), np.nan) for model in models] for device in named])
    rates = rates.reshape(len(named), len(models))
    highest = np.fmax.reduce(rates, axis=0, initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shade = np.log10(rates / highest)
    draw_cells(ax, shade, cmap="cividis", vmin=-3, vmax=0)
    ax.invert_yaxis()
    for cell in np.ndindex(rates.shape):
        rate = rates[cell]
        known = not np.isnan(rate)
        dark = known and shade[cell] < -1.2
        color = "white" if dark else COLORS["primary"]
        ax.text(cell[1], cell[0], natural(float(rate)) if known else "×", ha="center", va="center", fontsize=9,
                color=color if known else COLORS["RedLine"])  # fmt: skip
    ax.set_xticks(range(len(models)), models, rotation=25, ha="right", fontsize=9)
    ax.set_yticks(range(len(named)), named, fontsize=9)
    ax.set_title("Samples/s at the best point; yellow: near the best device, blue: far from it")
    return ax


def _fastest(best: dict[tuple[str, str], float], models: Sequence[str]) -> tuple[str, ...]:
    """Return the devices ranked by the geometric mean of their rates relative to the highest."""
    top = {model: max((rate for (_, name), rate in best.items() if name == model), default=1.0) for model in models}
    shares: dict[str, list[float]] = {}
    for (device, model), rate in best.items():
        shares.setdefault(device, []).append(float(np.log(rate / top[model])))
    order = sorted(shares, key=lambda device: (-len(shares[device]), -float(np.mean(shares[device]))))
    return tuple(order[:_MOST_DEVICES])


@chart
def cost_front(ax: Axes, table: SweepTable, model: str, against: Cost = "energy", labels: int = 6) -> Axes:
    """Draw the points of a network by time and cost, with their Pareto front.

    Parameters
    ----------
    ax
        Axes to draw into.
    table
        A sweep.
    model
        One of its networks.
    against
        ``"energy"`` per sample at the design power, or ``"price"`` of the device.
    labels
        Number of points of the front to label.
    """
    front = table.pareto(model, against)
    ids = {row.id for row in front}
    other = [row for row in table if row.model == model and row.error is None and row.fits is not False]
    _scatter(ax, [row for row in other if row.id not in ids], against, COLORS["grid"], "o", "beaten in both")
    for row in front:
        (_, cost), ends = costs(row, against), (row.low_seconds, row.high_seconds)
        if cost is not None and None not in ends:
            low, high = (float(end or 0.0) / row.batch for end in ends)
            ax.hlines(cost, low, high, color=CYCLE[0], linewidth=1, zorder=2.5)
    _scatter(
        ax,
        list(front),
        against,
        CYCLE[0],
        MARKERS[1],
        f"front: {len(front)} point{'s' * (len(front) != 1)}, with 80 % ranges",
    )
    line = [costs(row, against) for row in front]
    if line:
        ax.step(*zip(*line, strict=True), where="post", color=CYCLE[0], linewidth=1.2, zorder=2)
    chosen = sorted({round(index) for index in np.linspace(0, len(front) - 1, min(labels, len(front)))})
    for index in chosen:
        row = front[index]
        offset: Any = {"xytext": (-7, -9), "textcoords": "offset points", "ha": "right"}
        ax.annotate(f"{row.device}, {label(row)}", costs(row, against), fontsize=9, **offset)
    unit = "energy at the design power, J/sample" if against == "energy" else "price of the device, USD"
    ax.set(xscale="log", yscale="log", xlabel="estimated time for each sample, s", ylabel=unit)
    ax.set_title(f"{model}: time against {against}")
    ax.margins(x=0.3, y=0.12)
    ax.legend(loc="best", fontsize=9)
    return ax


def _scatter(ax: Axes, rows: Sequence[SweepRow], against: Cost, color: str, marker: str, name: str) -> None:
    points = [costs(row, against) for row in rows]
    known = np.array([point for point in points if None not in point], dtype=float).reshape(-1, 2)
    if len(known):
        edge = "white" if color != COLORS["grid"] else COLORS["axis"]
        ax.scatter(known[:, 0], known[:, 1], s=26, color=color, marker=marker, edgecolor=edge, linewidth=0.5,
                   label=name, zorder=3)  # fmt: skip


@chart
def speed_ratio_by_batch(
    ax: Axes, table: SweepTable, fast: Device, slow: Device, models: Sequence[str], precision: str = "fp16"
) -> Axes:
    """Draw the speed of one device relative to another over the batch size.

    Parameters
    ----------
    ax
        Axes to draw into.
    table
        A sweep with at least two batches.
    fast, slow
        Two of its devices.
    models
        Some of its networks, one line for each.
    precision
        One of its number formats.

    Returns
    -------
    Axes
        With dotted lines at the ratios of the dense peaks and of the memory bandwidths.

    Raises
    ------
    ArgumentError
        If a network has no batch at which both devices have an estimate.
    """
    ends = []
    for index, model in enumerate(models):
        times: dict[str, dict[int, float]] = {device.id: {} for device in (fast, slow)}
        for row in table.answered:
            if (row.model, row.precision) == (model, precision) and row.device in times and row.estimate_seconds:
                times[row.device][row.batch] = row.estimate_seconds
        batches = sorted(set(times[fast.id]) & set(times[slow.id]))
        if not batches:
            raise ArgumentError(
                f"speed_ratio_by_batch(): `models` has {model!r}, which the sweep does not estimate in {precision} on "
                f"both {fast.id} and {slow.id}. The sweep has: {', '.join(table.models)}"
            )
        ratios = [times[slow.id][batch] / times[fast.id][batch] for batch in batches]
        color, marker = CYCLE[index % len(CYCLE)], MARKERS[index % len(MARKERS)]
        ax.plot(batches, ratios, marker=marker, color=color, label=model)
        ends.append(batches)
    left, right = min(batches[0] for batches in ends), max(batches[-1] for batches in ends)
    marks = {
        "ratio of peaks": fast.peak(precision) / slow.peak(precision),
        "ratio of bandwidths": fast.memory_bw / slow.memory_bw,
    }
    for name, ratio in marks.items():
        level = float(ratio.m_as(""))
        ax.axhline(level, color=COLORS["axis"], linewidth=1, linestyle=":", zorder=1)
        ax.text(left, level, f"{name}: {level:.3g}×", va="bottom", fontsize=10, color=COLORS["note"])
    ax.set(xscale="log", yscale="log", xlabel="batch", ylabel=f"speed of {fast.id} over {slow.id}")
    ax.set_xlim(left / 1.3, right * 1.3)
    ax.set_ylim(0.9, 1.5 * max(float(ratio.m_as("")) for ratio in marks.values()))
    ax.set_xticks(sorted({batch for batches in ends for batch in batches}))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ticks = (1, 2, 5, 10, 20)
    ax.set_yticks(ticks, [f"{tick}×" for tick in ticks])
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=10)
    return ax


@drawn
def sweep_figure(table: SweepTable) -> Figure:
    """Return a figure of the rates of all networks and the first one's Pareto front.

    Parameters
    ----------
    table
        A sweep with at least one result.
    """
    devices = min(_MOST_DEVICES, len({row.device for row in table if row.error is None}))
    figure, whole, _, plt = setup_plot(figsize=(max(7.2, 1.1 * len(table.models) + 2), 5.4 + 0.26 * devices))
    whole.remove()
    upper, lower = figure.subplots(2, 1, height_ratios=(1.2 + 0.26 * devices, 4.2))
    rate_map(upper, table)
    cost_front(lower, table, table.models[0], "energy")
    plt.close(figure)
    return figure


@chart
def sizing_front(ax: Axes, table: SizingTable, model: str, labels: int = 5) -> Axes:
    """Draw the sizings of a model by time between tokens and cost, with their Pareto front.

    Parameters
    ----------
    ax
        Axes to draw into.
    table
        A sweep of sizings.
    model
        One of its models.
    labels
        Number of points of the front to label.

    Returns
    -------
    Axes
        Systems differ by colour and marker; where no rent is recorded the cost is the number of chips.
    """
    rows = [row for row in table if row.model == model and row.fits and row.tpot_seconds is not None]
    priced = any(row.usd_per_million_tokens is not None for row in rows)

    def cost_of(row: SizingRow) -> float | None:
        return row.usd_per_million_tokens if priced else row.chips

    systems = list(dict.fromkeys(row.system for row in rows))
    for index, system in enumerate(systems):
        points = [
            (1e3 * row.tpot_seconds, cost)
            for row in rows
            if row.system == system and row.tpot_seconds is not None
            for cost in [cost_of(row)]
            if cost is not None
        ]
        if points:
            color, marker = CYCLE[index % len(CYCLE)], MARKERS[index % len(MARKERS)]
            times, costs_of = zip(*points, strict=True)
            ax.scatter(times, costs_of, s=26, color=color, marker=marker, edgecolor="white", linewidth=0.5,
                       label=system, zorder=3)  # fmt: skip
    front = [row for row in table.pareto(model, "cost" if priced else "chips") if row.tpot_seconds is not None]
    line = [(1e3 * (row.tpot_seconds or 0.0), cost_of(row) or 0.0) for row in front]
    if line:
        ax.step(*zip(*line, strict=True), where="post", color=COLORS["axis"], linewidth=1.2, zorder=2)
    chosen = sorted({round(index) for index in np.linspace(0, len(front) - 1, min(labels, len(front)))})
    for index in chosen:
        row = front[index]
        text = row.layout if row.replicas == 1 else f"{row.replicas} × ({row.layout})"
        offset: Any = {"xytext": (-6, -11), "textcoords": "offset points", "ha": "right"}
        ax.annotate(f"{text}, batch {row.batch}", line[index], fontsize=9, **offset)
    ax.set(xscale="log", yscale="log", xlabel="time between tokens, ms",
           ylabel="USD per million tokens" if priced else "chips")  # fmt: skip
    ax.set_title(f"{model}: latency against {'cost' if priced else 'chips'}")
    ax.margins(x=0.25, y=0.15)
    without = list(dict.fromkeys(row.system for row in rows if cost_of(row) is None))
    if without:
        ax.text(0.99, 0.02, f"no rent on record: {', '.join(without)}", transform=ax.transAxes, ha="right", fontsize=9)
    if systems:
        ax.legend(loc="best", fontsize=9)
    return ax


@drawn
def figure_of(table: SweepTable | SizingTable) -> Figure:
    """Return the figure of a sweep: of devices its rates and Pareto front, of sizings the front of each model.

    Parameters
    ----------
    table
        A sweep with at least one result.
    """
    if isinstance(table, SweepTable):
        return sweep_figure(table)
    models = table.models[:_MOST_MODELS]
    figure, whole, _, plt = setup_plot(figsize=(7.2, 4.4 * len(models)))
    whole.remove()
    for ax, model in zip(np.atleast_1d(figure.subplots(len(models))), models, strict=True):
        sizing_front(ax, table, model)
    plt.close(figure)
    return figure
