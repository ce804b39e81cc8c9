"""Pictures of measurements: where the time went, layer by layer and cause by cause, and platforms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.explain.attribution import CAUSES, Attribution, Cause, LayerShare
from mlsys.explain.log import Log
from mlsys.explain.platforms import BETTER, Platform, normalised
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, HALO, MARKERS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[Cause, tuple[str, str, str]] = {
    "compute": ("BlueLine", "", "arithmetic"),
    "memory": ("OrangeLine", "//", "bytes"),
    "launch": ("VioletLine", "..", "entering kernels"),
    "residual": ("RedLine", "xx", "not explained"),
}
"""Colour, hatch and words of each cause, the same in every picture."""
_HELD_BY = (
    ("compute", MARKERS[0], "BlueLine"),
    ("memory", MARKERS[1], "OrangeLine"),
    ("overhead", MARKERS[2], "RedLine"),
)
_TITLES = {
    "latency_ms": "latency, ms", "energy_mj": "energy, mJ", "memory_kb": "memory, kB", "accuracy": "accuracy, %",
    "cost_usd": "price, $", "power_mw": "mean power, mW",
}  # fmt: skip


def _fill(cause: Cause) -> dict[str, Any]:
    color, hatch, _ = LOOKS[cause]
    return {"facecolor": COLORS[color], "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}


@chart
def layer_waterfall(ax: Axes, attribution: Attribution) -> Axes:
    """Draw every layer's time where it begins, after all before it, divided by cause; last what no layer took.

    Parameters
    ----------
    ax
        Axes to draw into.
    attribution
        Where the time went.
    """
    names, left = [layer.name for layer in attribution.layers], 0.0
    rows = [layer.parts for layer in attribution.layers]
    rest: dict[Cause, float] = {"launch": attribution.entry, "residual": attribution.between}
    if sum(rest.values()) > 0:
        names, rows = [*names, "outside layers"], [*rows, {cause: rest.get(cause, 0.0) for cause in CAUSES}]
    for index, parts in enumerate(rows):
        for cause in CAUSES:
            if parts[cause] > 0:
                ax.barh(index, parts[cause], left=left, height=0.72, **_fill(cause))
                left += parts[cause]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, max(left, attribution.total) * 1.02)
    ax.set_xlabel("time from the start of the inference, ms")
    ax.grid(False, axis="y")
    _cause_legend(ax, attribution.shares)
    return ax


def _cause_legend(ax: Axes, shares: Mapping[Cause, float], at: tuple[float, float] = (1.0, 1.0)) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(**_fill(cause), label=f"{LOOKS[cause][2]}: {shares[cause]:.0f} %") for cause in CAUSES]
    ax.legend(handles=handles, fontsize=10, loc="upper right", bbox_to_anchor=at)


@drawn
def sunburst(ax: Axes, attribution: Attribution) -> Axes:
    """Draw two rings: inside the causes, outside what each layer has of them.

    Parameters
    ----------
    ax
        Axes to draw into; its frame is switched off.
    attribution
        Where the time went.
    """
    shares = attribution.shares
    causes = [cause for cause in CAUSES if shares[cause] > 0.05]
    ax.pie(
        [shares[cause] for cause in causes], radius=0.62, startangle=90, counterclock=False,
        labels=[f"{LOOKS[cause][2]}\n{shares[cause]:.0f} %" if shares[cause] >= 22 else "" for cause in causes],
        labeldistance=0.45,
        textprops={"fontsize": 8, "ha": "center", "va": "center", "color": "white", "weight": "bold"},
        wedgeprops={"edgecolor": "white", "linewidth": 1.2}, colors=[COLORS[LOOKS[cause][0]] for cause in causes],
    )  # fmt: skip
    sizes, labels, colors = [], [], []
    for cause in causes:
        parts = [(layer.name, layer.parts[cause]) for layer in attribution.layers]
        outside = attribution.entry if cause == "launch" else attribution.between if cause == "residual" else 0.0
        for name, size in [*sorted(parts, key=lambda part: -part[1]), ("outside layers", outside)]:
            if size > 0:
                sizes.append(size)
                labels.append(name if size / attribution.total > 0.03 else "")
                colors.append(COLORS[LOOKS[cause][0].replace("Line", "L")])
    ax.pie(
        sizes, radius=1.0, startangle=90, counterclock=False, labels=labels, labeldistance=1.04, colors=colors,
        textprops={"fontsize": 8}, wedgeprops={"width": 0.36, "edgecolor": "white", "linewidth": 0.8},
    )  # fmt: skip
    ax.set(aspect="equal")
    _cause_legend(ax, shares, (1.28, 1.05))
    return ax


@chart
def layer_roofline(ax: Axes, attribution: Attribution) -> Axes:
    """Draw the rate that each layer attained, under the roof by which it is judged.

    Bytes that fit into a cache move faster than those of the main memory, and the attribution takes each layer's
    bandwidth at its own size. So the slanted roof is a band, from the main memory to the fastest bandwidth that a
    layer was judged by, and a bar above each layer is its own roof.

    Parameters
    ----------
    ax
        Axes to draw into; both become logarithmic.
    attribution
        Where the time went; layers without arithmetic have no place.
    """
    placed = [layer for layer in attribution.layers if layer.rate > 0 and layer.intensity > 0]
    _slanted_roofs(ax, attribution, placed)
    for bound, marker, color in _HELD_BY:
        here = [layer for layer in placed if layer.bound == bound]
        if here:
            at, rates = [layer.intensity for layer in here], [layer.rate / 1e9 for layer in here]
            own = [attribution.roof(layer) / 1e9 for layer in here]
            ax.vlines(at, rates, own, color=COLORS[color], linewidth=0.9, alpha=0.7, zorder=2)
            ax.plot(at, own, "_", color=COLORS[color], markersize=15, markeredgewidth=2.2, zorder=4)
            areas = [20 + 500 * layer.time / attribution.total for layer in here]
            edges = [COLORS["primary"] if layer.beats else "white" for layer in here]
            above = sum(layer.beats for layer in here)
            said = f"held by {bound}: {len(here)}" + (f", {above} of them faster than their roof" if above else "")
            ax.scatter(at, rates, areas, COLORS[color], marker=marker, edgecolors=edges, label=said, zorder=3)
    spots: dict[tuple[int, int], list[LayerShare]] = {}
    for layer in placed:
        spot = round(8 * np.log10(layer.intensity)), round(5 * np.log10(layer.rate))
        spots.setdefault(spot, []).append(layer)
    for alike in spots.values():
        names = [layer.name for layer in alike]
        words = ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]}"
        at_here = alike[0].intensity, alike[0].rate / 1e9
        ax.annotate(words, at_here, xytext=(8, -14), textcoords="offset points", fontsize=10, bbox=HALO)
    ax.set(xscale="log", yscale="log", xlabel="operations for each byte", ylabel="operations a second, G")
    ax.plot([], [], "_", color=COLORS["primary"], markersize=15, markeredgewidth=2.2, label="bar: a layer's own roof")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 1.8)  # room for the name of the lowest
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    return ax


def _slanted_roofs(ax: Axes, attribution: Attribution, placed: Sequence[LayerShare]) -> None:
    """Draw the roof of the main memory, and that of the fastest bandwidth that a layer was judged by."""
    at = [layer.intensity for layer in placed] or [attribution.ridge]
    span = np.geomspace(min(*at, attribution.ridge) / 3, max(*at, attribution.ridge) * 3, 200)

    def under(bandwidth: float) -> np.ndarray:
        return np.minimum(attribution.ops_per_s, bandwidth * span) / 1e9

    slowest, color = attribution.bytes_per_s, COLORS["primary"]
    fastest = max((layer.bandwidth for layer in placed), default=slowest)
    cached = fastest > 1.02 * slowest
    where = "if bytes come from main memory" if cached else "whatever the bytes"
    ax.plot(span, under(slowest), color=color, linewidth=2, label=f"roof {where}: {slowest / 1e9:.3g} GB/s", zorder=2)
    if cached:
        label = f"roof if they fit into a cache: {fastest / 1e9:.3g} GB/s"
        ax.plot(span, under(fastest), "--", color=color, linewidth=1.4, label=label, zorder=2)
        ax.fill_between(span, under(slowest), under(fastest), color=COLORS["grid"], alpha=0.5, zorder=1)


@chart
def miss_rates(ax: Axes, log: Log, cache_kb: float = 32.0) -> Axes:
    """Draw the share of accesses that missed, layer by layer, with the line of 10 %, and the working set below a name.

    Parameters
    ----------
    ax
        Axes to draw into.
    log
        With counters ``misses`` and ``accesses`` of layers; a layer without accesses has no bar.
    cache_kb
        Size that the working set is compared with, kB.

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
    ax.set_xticks(range(len(names)), words, fontsize=8)
    ax.set_ylabel(f"accesses that missed, % (hatched: above {cache_kb:g} kB)")
    return ax


@chart
def energy_by_cause(ax: Axes, attribution: Attribution, energy_mj: float) -> Axes:
    """Draw the energy of an inference by cause, as one bar: power is taken to be the same all the time.

    Parameters
    ----------
    ax
        Axes to draw into.
    attribution
        Where the time went.
    energy_mj
        Of one inference, mJ.
    """
    left, shares = 0.0, attribution.shares
    for cause in CAUSES:
        size = energy_mj * shares[cause] / 100
        ax.barh(0, size, left=left, height=0.5, **_fill(cause))
        left += size
    ax.set_yticks([])
    ax.set_ylim(-0.6, 1.4)
    ax.set_xlabel("energy of one inference, mJ (by time: power taken as constant)")
    _cause_legend(ax, shares)
    return ax


@drawn
def radar(ax: Axes, rows: Sequence[Platform]) -> Axes:
    """Draw platforms in a radar: 1, outside, is the best of the comparison in that column, 0 infinitely worse.

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
        fontsize=8,
    )
    ax.set_ylim(0, 1.05)
    ax.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "best"], fontsize=7)
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    return ax


@drawn
def dashboard(axes: Sequence[Axes], rows: Sequence[Platform]) -> Sequence[Axes]:
    """Draw latency, energy, memory and the spread between runs of platforms, in four panels; unknown stays empty.

    Parameters
    ----------
    axes
        Four to draw into.
    rows
        Platforms.
    """
    panels = (*(("latency_ms", "energy_mj", "memory_kb")), "between_runs")
    for ax, name in zip(axes, panels, strict=True):
        apply_style(ax)
        for index, row in enumerate(rows):
            value = getattr(row, name)
            if value is None:
                ax.annotate("not known", (0.02, index), xycoords=("axes fraction", "data"), va="center", fontsize=7.5)
            else:
                ax.barh(
                    index,
                    100 * value if name == "between_runs" else value,
                    color=CYCLE[index % len(CYCLE)],
                    height=0.65,
                )
        ax.set_yticks(range(len(rows)), [row.platform for row in rows], fontsize=7.5)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel("between runs, % of the median" if name == "between_runs" else _TITLES[name])
        ax.grid(False, axis="y")
        values = [getattr(row, name) for row in rows if getattr(row, name)]
        if values and max(values) > 30 * min(values) and name != "between_runs":
            ax.set_xscale("log")
    return axes


@chart
def latency_timeline(ax: Axes, log: Log) -> Axes:
    """Draw every sample in the order of measuring, run after run, with the median of each run.

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
    ax.legend(fontsize=8, loc="lower right", ncols=3)
    return ax


@chart
def step_timeline(ax: Axes, logs: Sequence[Log]) -> Axes:
    """Draw the medians of one network from one way of running it to the next, with the medians of its runs.

    Parameters
    ----------
    ax
        Axes to draw into.
    logs
        In the order of steps.
    """
    middles = [log.median for log in logs]
    places = range(len(logs))
    ax.plot(places, middles, marker="o", color=COLORS["BlueLine"])
    for index, log in enumerate(logs):
        ax.plot([index, index], [min(log.run_medians), max(log.run_medians)], color=COLORS["RedLine"], linewidth=3)
        words = f"{log.median:.3g} ms" + (f"\n{sum(log.energies) / len(log.energies):.3g} mJ" if log.energies else "")
        ax.annotate(words, (index, log.median), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xticks(places, [f"{log.backend}\n{log.format}" for log in logs], fontsize=8)
    ax.set_xlim(-0.5, len(logs) - 0.5)
    ax.set_ylim(0, max(middles) * 1.25)
    ax.set_ylabel("median latency, ms (thick: between runs)")
    return ax
