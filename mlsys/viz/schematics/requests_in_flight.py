"""Schematic of Little's law: requests over time, one after the other or several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.formulas import latency_bound_bandwidth
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity
from mlsys.viz.schematics.shapes import MUTED, arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPANS = 3
_HEIGHT = 0.55


@drawn
def requests_in_flight(ax: Axes, request: Quantity, latency: Quantity, counts: Sequence[int] = (1, 4)) -> Axes:
    """Draw a memory's requests over three latencies, one band for each number of requests in flight.

    Parameters
    ----------
    ax
        Axes to draw into.
    request
        Size of a request, byte.
    latency
        Time from a request to its response, s.
    counts
        Requests in flight at any time, one band each, from the top.

    Returns
    -------
    Axes
        A bar is a request from its start to its response; arrows mark the responses. The note of a band is
        the bandwidth that its bytes in flight sustain.
    """
    top = 0.0
    for count in (checked_count("requests_in_flight", "counts", each) for each in counts):
        rate = latency_bound_bandwidth(count * request, latency).to("GB/s")
        note(ax, 0, top, f"{count} in flight: {rate:.3g~P}", color=COLORS["primary"], fontweight="bold")
        for slot in range(count):
            floor = top - 0.6 - _HEIGHT * (slot + 1)
            for start in range(-1, _SPANS):
                left, right = (min(max(start + turn + slot / count, 0), _SPANS) for turn in (0, 1))
                if right > left:
                    box(ax, (left, floor + 0.06), (right - left, _HEIGHT - 0.12), color="Blue", role="request")
        line = top - 0.6 - _HEIGHT * count
        for response in range(1, _SPANS * count + 1):
            place = response / count
            arrow(ax, (place, line - 0.02), (place, line - 0.62), COLORS["OrangeLine"], role="response", width=1.4)
        top = line - 1.35
    for turn in range(_SPANS + 1):
        ax.plot([turn, turn], [top + 0.75, -0.45], color=MUTED, linewidth=0.7, linestyle=":", zorder=0)
    for turn in range(_SPANS):
        note(ax, turn + 0.5, top + 0.35, f"{latency:.3g~P}", ha="center")
    ax.set(xlim=(-0.05, _SPANS + 0.05), ylim=(top, 0.5))
    ax.set_axis_off()
    return ax
