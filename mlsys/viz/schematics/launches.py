"""Schematic of asynchronous kernel launches: host and device on one time line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlsys.models.launches import launch_timeline
from mlsys.units import Quantity
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 4.6


@drawn
def launches(ax: Axes, launch: Quantity, kernels: Mapping[str, Quantity], count: int = 4) -> Axes:
    """Draw kernels launched asynchronously by a host, and when the device runs them.

    Parameters
    ----------
    ax
        Axes to draw into.
    launch
        Host time of one launch.
    kernels
        Kernel time by name of the case, one band each.
    count
        Kernels per band.

    Returns
    -------
    Axes
        Time runs to the right, in the unit of ``launch``. Boxes of the host are launches, boxes of the device
        kernels, and an arrow leads from a launch to its kernel.
    """
    unit = launch.units
    right = 0.0
    for band, (title, length) in enumerate(kernels.items()):
        floor = -band * _STEP
        line = launch_timeline(launch, [length] * count)
        step, total = launch.m_as(unit), line.time.m_as(unit)
        note(ax, 0, floor + 3.1, _title(title, line.busy.m_as(unit) / total), color=COLORS["primary"])
        for index, (launched, started, ended) in enumerate(
            zip(line.launched, line.started, line.ended, strict=True), start=1
        ):
            launched, start, stop = (at.m_as(unit) for at in (launched, started, ended))
            box(ax, (launched - step, floor + 1.6), (step, 0.9), str(index), "Orange", hatch="///", role="launch")
            box(ax, (start, floor), (stop - start, 0.9), str(index), "Blue", role="kernel")
            arrow(ax, (launched, floor + 1.6), (start, floor + 0.92), COLORS["primary"], head=7)
        right = max(right, total)
        note(ax, 0, floor + 2.05, "host  ", ha="right")
        note(ax, 0, floor + 0.45, "device  ", ha="right")
        end = line.launched[-1].m_as(unit)
        if end < total:  # where a host that does not wait believes to be done
            ax.plot([end, end], [floor - 0.35, floor + 2.7], color=COLORS["RedLine"], linestyle="--", linewidth=1.3)
            if total - end > right / 4:
                note(ax, end, floor + 2.05, "  the host goes on", color=COLORS["RedLine"])
    ax.set(xlim=(-0.24 * right, 1.01 * right), ylim=(-(len(kernels) - 1) * _STEP - 0.5, 3.6))
    ax.set_axis_off()
    return ax


def _title(title: str, share: float) -> str:
    return f"{title}: the device works {share:.0%} of the time"
