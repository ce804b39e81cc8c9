"""Figures of measurement logs: all samples, cache misses, and platforms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.measure.log import Log
from mlsys.measure.recommend.platforms import BETTER, Platform, normalised
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, MARKERS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "latency_ms": "latency, ms", "energy_mj": "energy, mJ", "memory_kb": "memory, kB", "accuracy": "accuracy, %",
    "cost_usd": "price, $", "power_mw": "mean power, mW",
}  # fmt: skip


@chart
def miss_rates(ax: Axes, log: Log, cache_kb: float = 32.0) -> Axes:
    """Draw the cache miss rate of each layer, with a line at 10 % and the working set below each name.

    Parameters
    ----------
    ax
        Axes to draw into.
    log
        Log with counters ``misses`` and ``accesses`` of layers; a layer without accesses has no bar.
    cache_kb
        Cache size to compare the working set with, kB.

    Raises
    ------
    ValueError
        If no layer has these counters.
    """
    sums: dict[str, list[float]] = {}
    for sample in log.layers:
        counters = sample.counters or {}
        misses, accesses = counters.get("misses"), counters.get("accesses")
        if misses is not None and accesses:
            total = sums.setdefault(sample.layer or "", [0.0, 0.0])
            total[0] += misses
            total[1] += accesses
    if not sums:
        raise ValueError(f"miss_rates(): no layer of {log.name} has counts of accesses: {log.counters['reason']}")
    sizes = {work.name: work.data / 1e3 for work in log.works}
    names = list(sums)
    rates = [100 * misses / accesses for misses, accesses in sums.values()]
    fits = [sizes.get(name, 0.0) <= cache_kb for name in names]
    colors = [COLORS["BlueLine"] if fit else COLORS["OrangeLine"] for fit in fits]
    bars = ax.bar(range(len(names)), rates, color=colors)
    for bar, fit in zip(bars, fits, strict=True):
        bar.set_hatch("" if fit else "//")
    ax.axhline(10, color=COLORS["RedLine"], linestyle="--", linewidth=1)
    words = [f"{name}\n{sizes.get(name, 0):.3g} kB" for name in names]
    ax.set_xticks(range(len(names)), words, fontsize=9)
    ax.set_ylabel(f"accesses that missed, % (hatched: above {cache_kb:g} kB)")
    return ax


@drawn
def radar(ax: Axes, rows: Sequence[Platform]) -> Axes:
    """Draw platforms in a radar chart: 1 (outside) is the best value of a column, 0 infinitely worse.

    Parameters
    ----------
    ax
        Polar axes to draw into.
    rows
        Platforms; a column that one of them lacks is left out.
    """
    shares = normalised(rows)
    columns = [name for name in _TITLES if all(shares[row.platform].get(name) is not None for row in rows)]
    angles = np.linspace(0, 2 * np.pi, len(columns), endpoint=False)
    for index, row in enumerate(rows):
        values = [shares[row.platform][name] or 0.0 for name in columns]
        color = CYCLE[index % len(CYCLE)]
        ax.plot(
            [*angles, *angles[:1]], [*values, *values[:1]], color=color, marker=MARKERS[index % len(MARKERS)],
            linestyle=("-", "--", ":", "-.")[index % 4], label=row.platform,
        )  # fmt: skip
    ax.set_xticks(
        angles,
        [f"{_TITLES[name].split(',')[0]}\n({BETTER.get(name, 'less')} is better)" for name in columns],
        fontsize=9,
    )
    ax.set_ylim(0, 1.05)
    ax.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "best"], fontsize=9)
    ax.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    return ax


@drawn
def dashboard(axes: Sequence[Axes], rows: Sequence[Platform]) -> Sequence[Axes]:
    """Draw latency, energy, memory and run-to-run spread of platforms in four panels; unknown values stay empty.

    Parameters
    ----------
    axes
        Four Axes to draw into.
    rows
        Platforms.
    """
    panels = (*(("latency_ms", "energy_mj", "memory_kb")), "between_runs")
    for ax, name in zip(axes, panels, strict=True):
        apply_style(ax)
        for index, row in enumerate(rows):
            value = getattr(row, name)
            if value is None:
                ax.annotate("not known", (0.02, index), xycoords=("axes fraction", "data"), va="center", fontsize=9)
            else:
                ax.barh(
                    index,
                    100 * value if name == "between_runs" else value,
                    color=CYCLE[index % len(CYCLE)],
                    height=0.65,
                )
        ax.set_yticks(range(len(rows)), [row.platform for row in rows], fontsize=9)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel("between runs, % of the median" if name == "between_runs" else _TITLES[name])
        ax.grid(False, axis="y")
        values = [getattr(row, name) for row in rows if getattr(row, name)]
        if values and max(values) > 30 * min(values) and name != "between_runs":
            ax.set_xscale("log")
    return axes


@chart
def latency_timeline(ax: Axes, log: Log) -> Axes:
    """Draw all samples in measurement order, run after run, with the median of each run.

    Parameters
    ----------
    ax
        Axes to draw into.
    log
        A measurement.
    """
    at = 0
    for index, run in enumerate(sorted({sample.run for sample in log.samples})):
        values = log.of_run(run)
        here = np.arange(at, at + len(values))
        color = CYCLE[index % len(CYCLE)]
        ax.plot(here, values, ".", markersize=3.5, color=color, label=f"run {run}")
        ax.plot([here[0], here[-1]], [np.median(values)] * 2, color=color, linewidth=1.5)
        at += len(values)
    high = log.percentile(99.5) * 1.1
    above = int((log.latencies > high).sum())
    ax.set_ylim(0, high)
    ax.set_xlabel("inference" + (f" ({above} above the frame)" if above else ""))
    ax.set_ylabel("latency, ms")
    ax.legend(fontsize=9, loc="lower right", ncols=3)
    return ax


@chart
def step_timeline(ax: Axes, logs: Sequence[Log]) -> Axes:
    """Draw the median latency of one network across successive configurations, with the medians of its runs.

    Parameters
    ----------
    ax
        Axes to draw into.
    logs
        Logs in the order of the configurations.
    """
    middles = [log.median for log in logs]
    places = range(len(logs))
    ax.plot(places, middles, marker="o", color=COLORS["BlueLine"])
    for index, log in enumerate(logs):
        ax.plot([index, index], [min(log.run_medians), max(log.run_medians)], color=COLORS["RedLine"], linewidth=3)
        words = f"{log.median:.3g} ms" + (f"\n{sum(log.energies) / len(log.energies):.3g} mJ" if log.energies else "")
        ax.annotate(words, (index, log.median), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(places, [f"{log.backend}\n{log.format}" for log in logs], fontsize=9)
    ax.set_xlim(-0.5, len(logs) - 0.5)
    ax.set_ylim(0, max(middles) * 1.25)
    ax.set_ylabel("median latency, ms (thick: between runs)")
    return ax
