"""Figures of feasibility: memory against the length of sequences, and time and cost of a token against the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.units import Quantity
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.models.feasibility import Feasibility

_TIMES = (
    ("bandwidth", "floor of bandwidth", "BlueLine", "--"),
    ("compute", "floor of arithmetic", "GreenLine", ":"),
    ("latency", "estimate", "OrangeLine", "-"),
)


@chart
def memory_by_sequence(ax: Axes, needed: Mapping[str, Mapping[int, Quantity]], capacity: Quantity) -> Axes:
    """Draw the memory that sequences need against their length, a line for each batch, and the capacity.

    Parameters
    ----------
    ax
        Axes to draw into.
    needed
        For each case, such as ``"4 sequences"``, the memory by number of tokens.
    capacity
        Memory of the device.

    Returns
    -------
    Axes
        The part above the capacity is shaded.
    """
    room = float(capacity.m_as("GB"))
    for index, (name, by_tokens) in enumerate(needed.items()):
        ax.plot(
            list(by_tokens), [float(each.m_as("GB")) for each in by_tokens.values()], color=CYCLE[index],
            linestyle=DASHES[index], marker=MARKERS[index], markersize=4, label=name,
        )  # fmt: skip
    longest = max(max(by_tokens) for by_tokens in needed.values())
    top = 1.5 * room
    ax.axhspan(room, top, color=COLORS["RedL"], zorder=0)
    ax.annotate(
        f"does not fit: more than {room:g} GB", (0, 1), (6, -6), xycoords="axes fraction",
        textcoords="offset points", va="top", fontsize=9, color=COLORS["RedLine"], bbox=HALO,
    )  # fmt: skip
    ax.set(xlim=(0, longest), ylim=(0, top), xlabel="tokens of each sequence", ylabel="memory, GB")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=3)
    return ax


@drawn
def step_time_by_batch(ax: Axes, verdicts: Mapping[int, Feasibility]) -> Axes:
    """Draw the time between tokens and its floors against the batch, with the limits of time, memory and cost.

    Parameters
    ----------
    ax
        Axes to draw into.
    verdicts
        For each batch the verdict on it, with limits on time between tokens and on cost; see
        :func:`mlsys.models.feasibility.feasible`.

    Returns
    -------
    Axes
        Both axes are logarithmic. Batches of the verdicts that pass all checks are shaded.

    Raises
    ------
    ArgumentError
        If there are fewer than two verdicts.
    """
    if len(verdicts) < 2:
        raise ArgumentError(
            "step_time_by_batch(): `verdicts` must have two batches or more. Write e.g. "
            "{1: feasible(…), 8: feasible(…)}"
        )
    apply_style(ax)
    batches = sorted(verdicts)
    first = verdicts[batches[0]]
    for name, label, color, dash in _TIMES:
        times = [1e3 * verdicts[batch].check(name).value for batch in batches]
        ax.plot(batches, times, dash, color=COLORS[color], marker="o", markersize=3.5, label=label)
    limit = 1e3 * first.check("latency").limit
    ax.axhline(limit, color=COLORS["RedLine"], linewidth=1.2, label=f"limit of {limit:g} ms")
    most = first.check("memory").largest_batch
    if most is not None and most <= batches[-1]:
        ax.axvline(most, color=COLORS["VioletLine"], linestyle="-.", linewidth=1.4, label=f"memory full at {most:,}")
    passing = [batch for batch in batches if verdicts[batch].feasible]
    if passing:
        ax.axvspan(passing[0], passing[-1], color=COLORS["GreenL"], zorder=0, label="drawn batches that pass all")
    ax.set(xscale="log", yscale="log", xlabel="sequences at once", ylabel="time between tokens, ms")
    ax.set_xticks(batches, [f"{batch}" for batch in batches])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=2)
    return ax
