"""Figures of a language-model server: latency against offered load, and requests over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS, HALO, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.models.serving import ServingResult, ServingRun

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
def request_gantt(ax: Axes, run: ServingRun, first: int = 0, count: int = 12) -> Axes:
    """Draw requests as bars over time: in the queue, until the first token, and decoding.

    Parameters
    ----------
    ax
        Axes to draw into.
    run
        A simulated run; of a :class:`mlsys.models.serving.ServingResult`, its ``run``.
    first, count
        The first request to draw, in order of arrival from 0, and how many.

    Returns
    -------
    Axes
        One row for each request, the earliest at the top.

    Raises
    ------
    ArgumentError
        If there is no such request.
    """
    if not 0 <= first < len(run.end) or count < 1:
        raise ArgumentError(f"request_gantt(): the run has requests 0 to {len(run.end) - 1}, got {first} and {count}")
    rows = np.arange(first, min(first + count, len(run.end)))
    arrival = run.requests.arrival
    spans = (
        ("queue", arrival, run.begin, "OrangeL", "OrangeLine"),
        ("prefill", run.begin, run.first, "BlueL", "BlueLine"),
        ("decode", run.first, run.end, "GreenL", "GreenLine"),
    )
    for name, begin, end, fill, edge in spans:
        ax.barh(
            rows, (end - begin)[rows], left=begin[rows], height=0.66, color=COLORS[fill], edgecolor=COLORS[edge],
            linewidth=0.9, label=name,
        )  # fmt: skip
    again = rows[run.preemptions[rows] > 0]
    if len(again):
        ax.plot(run.end[again], again, MARKERS[0], color=COLORS["RedLine"], label="was preempted")
    ax.set_yticks(rows, [f"{row + 1}" for row in rows], fontsize=9)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set_xlabel("time, s")
    ax.set_ylabel("request")
    ax.set_title("Requests over time")
    ax.legend(loc="upper right", fontsize=9, frameon=True, framealpha=0.9, edgecolor="none")
    return ax
