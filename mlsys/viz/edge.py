"""Figures of model compression: memory and work by layer, and the trade-off of each variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.formulas import duty_cycled_power
from mlsys.units import Q_, Quantity
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, MARKERS, apply_style, setup_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mlsys.edge.clock import ClockLaw
    from mlsys.edge.layers import LayerRow
    from mlsys.edge.points import EdgePoint


@drawn
def layer_memory(ax: Axes, rows: Sequence[LayerRow]) -> Axes:
    """Draw the memory of each layer's output and weights, as marks on a logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw into.
    rows
        Layers in execution order.
    """
    ax.set_yscale("log")
    for name, color, marker, aside in (("makes", "BlueLine", "o", -0.12), ("keeps", "OrangeLine", "s", 0.12)):
        sizes = [row.activation_bytes if name == "makes" else row.parameter_bytes for row in rows]
        held = [(index + aside, size) for index, size in enumerate(sizes) if size]
        ax.plot(
            [x for x, _ in held], [size for _, size in held], marker, color=COLORS[color],
            markersize=9, markeredgecolor="white", label=name,
        )  # fmt: skip
        for x, size in held if len(rows) <= 6 else ():
            side = -1 if aside < 0 else 1
            ax.annotate(
                _bytes_text(size), (x, size), xytext=(8 * side, 0), textcoords="offset points",
                ha="right" if side < 0 else "left", va="center", fontsize=9,
            )  # fmt: skip
    ax.yaxis.set_major_formatter(lambda size, _: _bytes_text(size))
    ax.set_xlim(-0.6, max(len(rows), 1) - 0.4)
    ax.legend()
    return _by_layer(ax, rows, "memory")


def _bytes_text(size: float) -> str:
    """Return an amount of memory as text in a suitable decimal unit.

    Examples
    --------
    >>> _bytes_text(640), _bytes_text(18_560), _bytes_text(3.2e6)
    ('640 B', '18.6 kB', '3.2 MB')
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:g} B"


@drawn
def mac_bars(ax: Axes, rows: Sequence[LayerRow]) -> Axes:
    """Draw the multiply-accumulates of each layer, in millions.

    Parameters
    ----------
    ax
        Axes to draw into.
    rows
        Layers in execution order.
    """
    places = range(len(rows))
    bars = ax.bar(list(places), [row.macs / 1e6 for row in rows], 0.6, color=COLORS["GreenLine"])
    if len(rows) <= 12:
        ax.bar_label(bars, [f"{row.macs / 1e6:.3g}" for row in rows], fontsize=9)
    return _by_layer(ax, rows, "multiply-accumulates, millions")


def _by_layer(ax: Axes, rows: Sequence[LayerRow], label: str) -> Axes:
    """Label the layers below the bars, slanted if there are many."""
    many = len(rows) > 6
    ax.set_xticks(range(len(rows)), [row.layer for row in rows], rotation=30 * many, ha="right" if many else "center")
    ax.set_ylabel(label)
    return apply_style(ax)


@chart
def tradeoff(ax: Axes, points: Sequence[EdgePoint], budget: float | None = None) -> Axes:
    """Draw the accuracy of every variant over its memory: filled if accepted, ringed if on the Pareto front.

    Parameters
    ----------
    ax
        Axes to draw into.
    points
        Feasible points; one per variant is drawn, as the others differ only in clock.
    budget
        Memory budget, MB.
    """
    made = [point for point in points if point.statistics is not None]
    variants: dict[Any, list[EdgePoint]] = {}
    for point in made:
        variants.setdefault(point.measured.variant, []).append(point)
    formats = list(dict.fromkeys(point.measured.precision for point in made))
    for variant, here in variants.items():
        which = formats.index(variant.precision)
        x, y = here[0].objectives[3] / 1e6, 100 * here[0].objectives[0]
        color, accepted = CYCLE[which % len(CYCLE)], any(point.accepted for point in here)
        style: dict[str, Any] = {
            "marker": MARKERS[which % len(MARKERS)],
            "markersize": 8,
            "linestyle": "none",
            "color": color,
        }
        ax.plot(x, y, **style, markerfacecolor=color if accepted else "white", markeredgecolor=color)
        if any(point.pareto for point in here):
            ax.plot(x, y, "o", markersize=15, markerfacecolor="none", markeredgecolor=COLORS["primary"])
    for which, name in enumerate(formats):
        marker, color = MARKERS[which % len(MARKERS)], CYCLE[which % len(CYCLE)]
        ax.plot([], [], marker=marker, linestyle="none", color=color, label=name)
    ax.plot([], [], "o", markersize=11, markerfacecolor="none", markeredgecolor=COLORS["primary"], label="on the front")
    if budget is not None:
        ax.axvline(budget, color=COLORS["RedLine"], linestyle="--", linewidth=1.4)
        ax.annotate("budget", (budget, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
                    textcoords="offset points", color=COLORS["RedLine"], fontsize=9)  # fmt: skip
    ax.set_xlabel("planned memory, MB (open: not accepted)")
    ax.set_ylabel("accuracy, %")
    ax.legend(fontsize=9)
    return ax


@drawn
def clock_curves(ax: Axes, law: ClockLaw, voltages: Mapping[str, Callable[[float], float]]) -> Axes:
    """Draw the energy of one inference over the clock, one line per voltage scaling rule.

    Parameters
    ----------
    ax
        Axes to draw into.
    law
        Time and energy of the inference as a function of the clock.
    voltages
        By label: relative voltage as a function of relative clock, both at most 1.
    """
    from mlsys.edge.clock import Clock

    scales = [0.2 + 0.01 * step for step in range(81)]
    static = [1e3 * law.plain(Clock(min(scale, 1.0)))[1] for scale in scales]
    ax.fill_between(scales, static, color=COLORS["RedL"], label="static", zorder=1)
    for index, (label, follow) in enumerate(voltages.items()):
        clocks = [Clock(min(scale, 1.0), follow(min(scale, 1.0))) for scale in scales]
        energies = [1e3 * sum(law.plain(clock)[1:]) for clock in clocks]
        color = CYCLE[index % len(CYCLE)]
        ax.plot(scales, energies, color=color, linestyle=("-", "--", ":")[index % 3], label=label)
        best = min(range(len(scales)), key=lambda at: energies[at])
        ax.plot(scales[best], energies[best], MARKERS[index], color=color, markersize=9, markeredgecolor="white")
    ax.set_xlim(scales[0], 1.02)
    ax.set_ylim(0, None)
    ax.set_xlabel("clock over the highest clock (marks: least energy)")
    ax.set_ylabel("energy of one inference, mJ")
    ax.legend(fontsize=9)
    return apply_style(ax)


@drawn
def duty_cycle(ax: Axes, energy: Quantity, time: Quantity, period: Quantity, sleep_power: Quantity) -> Axes:
    """Draw the power of work that repeats, two periods of it, and its mean.

    Parameters
    ----------
    ax
        Axes to draw into.
    energy, time
        Energy and duration of the work.
    period
        Time from one beginning to the next.
    sleep_power
        Power between.

    Returns
    -------
    Axes
        Power in mW on a logarithmic axis. Work that is shorter than a twenty-fifth of the period is drawn that wide.
    """
    work, sleep = float((energy / time).m_as("mW")), float(sleep_power.m_as("mW"))
    mean = float(duty_cycled_power(energy, time, period, sleep_power).m_as("mW"))
    span = float(period.m_as("s"))
    wide = max(float(time.m_as("s")), span / 25)
    ax.step([0, wide, span, span + wide, 2 * span], [work, sleep, work, sleep, sleep], where="post",
            color=COLORS["BlueLine"])  # fmt: skip
    ax.axhline(mean, color=COLORS["OrangeLine"], linestyle="--")
    for power, text, color, at in (
        (work, "works", "BlueLine", wide),
        (sleep, "sleeps", "BlueLine", span / 4),
        (mean, "mean", "OrangeLine", span / 2),
    ):
        ax.annotate(f"{text}: {Q_(power, 'mW').to_compact():.3g~P}", (at, power), (5, 5), textcoords="offset points",
                    color=COLORS[color])  # fmt: skip
    ax.set_yscale("log")
    ax.set(ylim=(sleep / 3, 4 * work), xlim=(-0.02 * span, 2 * span), xlabel="time, s", ylabel="power, mW")
    ax.yaxis.set_major_formatter("{x:g}")
    return ax


@drawn
def edge_figures(rows: Sequence[LayerRow], points: Sequence[EdgePoint], budget: float) -> dict[str, tuple[Figure, str]]:
    """Return the three figures of a run by file name, each with its alternative text.

    Parameters
    ----------
    rows
        Layers of the network as trained.
    points
        All points of the run.
    budget
        Memory budget, MB.
    """
    figures = {}
    fig, ax, _, plt = setup_plot((7.0, 3.6))
    layer_memory(ax, rows)
    largest = max(rows, key=lambda row: row.activation_bytes, default=None)
    message = f"Marks for the memory that each of {len(rows)} layers makes and keeps, on a logarithmic axis"
    if largest is not None:
        message += f"; {largest.layer} makes most, {largest.activation_bytes / 1e6:.4g} MB"
    figures["layerwise_activation_memory.png"] = (fig, message + ".")
    plt.close(fig)
    fig, ax, _, plt = setup_plot((7.0, 3.6))
    mac_bars(ax, rows)
    busiest = max(rows, key=lambda row: row.macs, default=None)
    message = f"Bars of the multiply-accumulates of {len(rows)} layers"
    if busiest is not None:
        message += f"; {busiest.layer} has most, {busiest.macs / 1e6:.4g} million"
    figures["layerwise_macs.png"] = (fig, message + ".")
    plt.close(fig)
    fig, ax, _, plt = setup_plot((7.0, 4.4))
    tradeoff(ax, points, budget)
    front = sum(point.pareto for point in points)
    message = f"Accuracy over planned memory; {front} of {len(points)} points are on the Pareto front"
    figures["precision_tradeoffs.png"] = (fig, message + ".")
    plt.close(fig)
    return figures
