"""Figures of servers: waits and latency against load, distributions of latency, goodput, and requests over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.formulas import md1_wait, mm1_wait
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS, HALO, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.models.serving import ServingResult

_KNEE = 2.0
"""The knee is where a latency is this many times that of the lightest load."""
_LINES = (("p50", 50, "BlueLine", "-"), ("p90", 90, "OrangeLine", "--"), ("p99", 99, "RedLine", "-."))


@drawn
def latency_by_load(
    ax: Axes, results: Sequence[ServingResult], latency: str = "latency", limit: float | None = None
) -> Axes:
    """Draw percentiles of a latency against the offered load, and mark the knee of the 99th percentile.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        One service at several loads; see :func:`mlsys.serve_sim`.
    latency
        ``"latency"``, ``"ttft"``, ``"tpot"`` or ``"queue"``.
    limit
        Latency to meet, s; drawn as a line.

    Returns
    -------
    Axes
        On a logarithmic axis of latency. The knee is the lightest load at which the 99th percentile is twice that of
        the lightest load.

    Raises
    ------
    ArgumentError
        If there are fewer than two results.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    ordered = sorted(results, key=lambda one: one.run.requests.rate)
    if len(ordered) < 2:
        raise ArgumentError("latency_by_load(): give results at two loads or more, such as [serve_sim(…, rate=…), …]")
    loads = [one.run.requests.rate for one in ordered]
    for (name, share, color, dash), marker in zip(_LINES, MARKERS, strict=False):
        values = [float(one.percentile(latency, share).m_as("s")) for one in ordered]
        ax.plot(loads, values, dash, color=COLORS[color], marker=marker, markeredgecolor="white", label=name)
    tail = [float(one.percentile(latency, 99).m_as("s")) for one in ordered]
    knee = next((index for index, value in enumerate(tail) if value > _KNEE * tail[0]), None)
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    if knee is not None:
        ax.axvline(loads[knee], color=COLORS["axis"], linestyle=":", linewidth=1.2)
        ax.annotate(
            f"knee: {loads[knee]:.3g}/s", (loads[knee], 1), (-4, -4), xycoords=("data", "axes fraction"),
            textcoords="offset points", fontsize=9, color=COLORS["note"], ha="right", va="top", bbox=HALO,
        )  # fmt: skip
    if limit is not None:
        ax.axhline(limit, color=COLORS["GreenLine"], linewidth=1.2)
        ax.annotate(
            f"limit {limit:g} s", (0, limit), (4, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
            fontsize=9, color=COLORS["GreenLine"], bbox=HALO,
        )  # fmt: skip
    titles = {"latency": "End-to-end latency", "ttft": "Time to first token", "tpot": "Time per output token",
              "queue": "Time in the queue"}  # fmt: skip
    ax.set_xlabel("offered load, requests/s")
    ax.set_ylabel("latency, s")
    ax.set_title(f"{titles[latency]} against load: {ordered[0].model}")
    ax.legend(loc="upper left", title="percentile")
    return ax


@drawn
def waits_by_load(
    ax: Axes,
    exponential: Mapping[float, tuple[float, float]],
    equal: Mapping[float, tuple[float, float]],
    highest: float = 0.96,
) -> Axes:
    """Draw the mean waits of M/M/1 and M/D/1 against utilisation, and simulated ones as points.

    Parameters
    ----------
    ax
        Axes to draw into.
    exponential, equal
        Simulated mean waits and their standard errors by utilisation, both over the service time, with exponential and
        with equal service times.
    highest
        Highest utilisation of the curves.

    Returns
    -------
    Axes
        Waits in service times. Error bars are three standard errors.
    """
    loads = np.linspace(0, highest, 300)
    for name, wait, points, color, dash, marker in (
        ("M/M/1: exponential service times", mm1_wait, exponential, "BlueLine", "-", MARKERS[0]),
        ("M/D/1: equal service times", md1_wait, equal, "OrangeLine", "--", MARKERS[1]),
    ):
        ax.plot(loads, wait.bare(1.0, loads), dash, color=COLORS[color])
        means = [points[load][0] for load in points]
        errors = [3 * points[load][1] for load in points]
        ax.errorbar(
            list(points), means, errors, fmt=marker, color=COLORS[color], markeredgecolor="white", markersize=7,
            elinewidth=1.2, capsize=2, label=name,
        )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, float(mm1_wait.bare(1.0, highest))), xlabel="utilisation of the server",
           ylabel="mean wait, service times")  # fmt: skip
    ax.legend(loc="upper left", title="lines: closed forms; points: simulated", alignment="left")
    ax.xaxis.set_major_formatter("{x:.0%}")
    return ax


@drawn
def latency_distribution(
    ax: Axes, results: Sequence[ServingResult], latency: str = "ttft", limit: float | None = None
) -> Axes:
    """Draw the share of requests that a latency does not exceed, a curve for each load.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        One service at several loads; see :func:`mlsys.serve_sim`.
    latency
        ``"latency"``, ``"ttft"``, ``"tpot"`` or ``"queue"``.
    limit
        Latency to meet, s; drawn as a line.

    Returns
    -------
    Axes
        Cumulative distributions over a logarithmic axis, with marks at the 50th and 99th percentile.
    """
    hues = ("GreenLine", "BlueLine", "OrangeLine", "RedLine", "VioletLine")
    for index, one in enumerate(sorted(results, key=lambda each: each.run.requests.rate)):
        shares = np.concatenate([np.linspace(1, 99, 99), np.linspace(99.1, 99.9, 9)])
        values = [float(one.percentile(latency, share).m_as("ms")) for share in shares]
        color, marker = COLORS[hues[index % len(hues)]], MARKERS[index % len(MARKERS)]
        ax.plot(values, shares, color=color, label=f"{one.run.requests.rate:.0f} requests/s")
        marks = [float(one.percentile(latency, share).m_as("ms")) for share in (50, 99)]
        ax.plot(marks, (50, 99), linestyle="none", marker=marker, color=color, markeredgecolor="white")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    if limit is not None:
        ax.axvline(1e3 * limit, color=COLORS["note"], linestyle="--", linewidth=1.2)
        ax.annotate(f"limit {1e3 * limit:g} ms", (1e3 * limit, 4), (-5, 0), textcoords="offset points", fontsize=9,
                    color=COLORS["note"], ha="right", bbox=HALO)  # fmt: skip
    titles = {"latency": "end-to-end latency", "ttft": "time to first token", "tpot": "time per output token",
              "queue": "time in the queue"}  # fmt: skip
    ax.set(xlabel=f"{titles[latency]}, ms", ylabel="requests at most so late, %", ylim=(0, 101))
    ax.legend(loc="lower right", fontsize=9)
    return ax


@drawn
def goodput_by_load(ax: Axes, results: Sequence[ServingResult]) -> Axes:
    """Draw the rate of requests that end, and of those that meet their objectives, against the offered load.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        One service with objectives, at several loads; see :func:`mlsys.serve_sim`.

    Returns
    -------
    Axes
        A mark stands at the load with the highest goodput.

    Raises
    ------
    ArgumentError
        If a result has no objectives.
    """
    ordered = sorted(results, key=lambda one: one.run.requests.rate)
    if not ordered or any(one.good is None for one in ordered):
        raise ArgumentError("goodput_by_load(): give results with objectives, such as serve_sim(…, slo='TTFT<1 s')")
    loads = [one.run.requests.rate for one in ordered]
    served = [len(one.run.end) / one.run.span for one in ordered]
    good = [float(one.good or 0.0) * rate for one, rate in zip(ordered, served, strict=True)]
    ax.plot(loads, loads, color=COLORS["axis"], linewidth=1.2, linestyle=":", label="offered")
    ax.plot(loads, served, "--", color=COLORS["OrangeLine"], marker=MARKERS[1], markeredgecolor="white", label="served")
    ax.plot(
        loads,
        good,
        color=COLORS["GreenLine"],
        marker=MARKERS[0],
        markeredgecolor="white",
        label="good: within the limits",
    )
    best = int(np.argmax(good))
    ax.annotate(
        f"best: {good[best]:.3g}/s", (loads[best], good[best]), (14, -3), textcoords="offset points", fontsize=10,
        color=COLORS["GreenLine"], va="center",
    )  # fmt: skip
    ax.set(xlabel="offered load, requests/s", ylabel="requests/s", ylim=(0, None), xlim=(0, None))
    ax.legend(loc="upper left", fontsize=9)
    return ax


@drawn
def speedup_by_draft(ax: Axes, drafted: Sequence[int], speedups: Mapping[str, Sequence[float]]) -> Axes:
    """Draw the speedup of speculative decoding against the number of drafted tokens.

    Parameters
    ----------
    ax
        Axes to draw into.
    drafted
        Tokens that are drafted for one verification.
    speedups
        For each setting, by its name, the speedup at each of them; see
        :class:`mlsys.models.inference.SpeculativeStep`.

    Returns
    -------
    Axes
        With a line at one, below which decoding without drafts is faster.

    Raises
    ------
    ArgumentError
        If a setting has more or fewer values than there are numbers of tokens.
    """
    hues = ("GreenLine", "BlueLine", "OrangeLine", "RedLine", "VioletLine")
    for index, (name, values) in enumerate(speedups.items()):
        if len(values) != len(drafted):
            raise ArgumentError(
                f"speedup_by_draft(): {name!r} has {len(values)} speedups for {len(drafted)} numbers of drafted tokens"
            )
        ax.plot(
            drafted, values, color=COLORS[hues[index % len(hues)]], marker=MARKERS[index % len(MARKERS)],
            markeredgecolor="white", label=name,
        )  # fmt: skip
    ax.axhline(1, color=COLORS["axis"], linestyle=":", linewidth=1.2)
    highest = max((max(values) for values in speedups.values()), default=1.0)
    ax.set(xlabel="drafted tokens", ylabel="speedup", ylim=(0, 1.25 * highest), xlim=(0, None))
    ax.legend(loc="upper left", ncols=2, fontsize=9)
    return ax
