"""Little's law as a picture: bandwidth over bytes in flight, and what a stride leaves of it."""

from __future__ import annotations

from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from mlsys.door import checked_number, count
from mlsys.formulas import bytes_in_flight, latency_bound_bandwidth
from mlsys.hardware.device import Device
from mlsys.models.access import strided_access
from mlsys.precision import element_size
from mlsys.units import Quantity
from mlsys.viz.style import COLORS
from mlsys.viz.views.roofline import device_name
from mlsys.viz.views.view import HALO, Scene, View, decades, new_figure, number, percent, times

__all__ = ["MemoryScene", "memory_view"]

_LEFT, _RIGHT, _FLOOR = 1.0, 1e5, 1.0  # edges of the picture: kB, kB, GB/s


class _Machine:
    """The artists of one device."""

    def __init__(self, ax: Axes, color: str, line: str, front: int) -> None:
        look: dict[str, Any] = {"color": color, "zorder": 3 + front}
        (self.moved,) = ax.plot([1], [1], linestyle=line, linewidth=2.4 if front else 1.8, **look)
        (self.useful,) = ax.plot([1], [1], linestyle=":", linewidth=2.2, **look)
        (self.knee,) = ax.plot([1], [1], marker="|", markersize=14, markeredgewidth=2, linestyle="", **look)
        (self.point,) = ax.plot(
            [1], [1], marker="o" if front else "s", markersize=11, color=color, markeredgecolor="white",
            zorder=6 + front, clip_on=False,
        )  # fmt: skip
        label: dict[str, Any] = {"fontsize": 9, "color": color, "bbox": HALO, "zorder": 5 + front}
        self.name = ax.text(1, 1, "", ha="right", weight="bold", **label)
        self.needed = ax.text(1, 1, "", ha="center", **label)
        self.artists: tuple[Artist, ...] = (
            self.moved, self.useful, self.knee, self.point, self.name, self.needed
        )  # fmt: skip

    def hide(self) -> None:
        for artist in self.artists:
            artist.set_visible(False)

    def move(self, device: Device, state: _State, upper: bool) -> None:
        for artist in self.artists:
            artist.set_visible(True)
        peak = device.memory_bw.m_as("GB/s")
        knee = state.needed.m_as("kB")
        corners, rates = [_LEFT, knee, _RIGHT], [peak * _LEFT / knee, peak, peak]
        self.moved.set_data(corners, rates)
        self.useful.set_data(corners, [rate * state.efficiency for rate in rates])
        self.useful.set_visible(state.efficiency < 1)
        self.knee.set_data([knee], [peak])
        self.point.set_data([min(max(state.in_flight.m_as("kB"), _LEFT), _RIGHT)], [state.useful.m_as("GB/s")])
        self.name.set_position((_RIGHT / 1.25, peak * (1.25 if upper else 1 / 1.25)))
        self.name.set_verticalalignment("bottom" if upper else "top")
        self.name.set_text(
            f"{device_name(device)}: {number(peak)} GB/s after {number(device.level().latency.to('ns'))} ns"
        )
        self.needed.set_position((knee, _FLOOR * (1.5 if upper else 3.5)))
        self.needed.set_text(f"{number(knee)} kB needed")


class _State:
    """What one device does with so many loads of so many lanes."""

    def __init__(self, device: Device, warps: int, stride: int, precision: str) -> None:
        load = strided_access(stride, element_size(precision))
        level = device.level()
        self.sectors = load.sectors
        self.efficiency = float(load.efficiency.m_as(""))
        self.in_flight: Quantity = (load.moved * warps * device.chip("units").m_as("")).to("kB")
        self.needed = bytes_in_flight(level.bandwidth, level.latency).to("kB")
        drawn = latency_bound_bandwidth(self.in_flight, level.latency).to("GB/s")
        self.moved: Quantity = min(drawn, level.bandwidth.to("GB/s"))
        self.useful: Quantity = self.moved * self.efficiency
        self.bound_by = "latency" if drawn < level.bandwidth else "bandwidth"


class MemoryScene(Scene):
    """The figure of :func:`memory_view`, made once and moved often."""

    blank = "An empty chart of bandwidth over bytes in flight, on two logarithmic axes."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.2)
            ax = self.figure.add_axes((0.08, 0.125, 0.88, 0.79))
            decades(ax, "x", 0, 5)
            decades(ax, "y", 0, 4)
            ax.set_xlabel("Bytes in flight on the whole machine (kB)", fontsize=10, color=COLORS["primary"])
            ax.set_title("Bandwidth from main memory (GB/s): moved, and dotted what is used of it", loc="left",
                         fontsize=11, weight="bold", color=COLORS["primary"])  # fmt: skip
            self._back = _Machine(ax, COLORS["OrangeLine"], "--", 0)
            self._front = _Machine(ax, COLORS["BlueLine"], "-", 1)
        self.moving = (*self._back.artists, *self._front.artists)

    def update(
        self,
        *,
        device: Device,
        warps: int = 16,
        stride: int = 1,
        precision: str = "fp32",
        other: Device | None = None,
    ) -> View:
        """Show one access pattern on one or two devices; see :func:`memory_view`."""
        warps = int(checked_number("memory_view", "warps", warps, count(), {}))
        state = _State(device, warps, stride, precision)
        second = None
        if other is not None and other is not device:
            second = _State(other, warps, stride, precision)
            self._back.move(other, second, upper=other.memory_bw > device.memory_bw)
        else:
            self._back.hide()
        self._front.move(device, state, upper=second is None or other is None or device.memory_bw >= other.memory_bw)
        summary = _summary(device, state, warps, stride, precision)
        if second is not None and other is not None:
            ratio = (second.useful / state.useful).m_as("")
            summary += f" {device_name(other)} delivers {number(second.useful)} GB/s, {times(ratio)} as much."
        return View(
            figure=self.figure,
            summary=summary,
            alt="Bandwidth over bytes in flight on two logarithmic axes: a slope set by the latency that turns flat at "
            f"the peak bandwidth. {summary}",
            values={"bound by": state.bound_by, "useful": state.useful, "moved": state.moved,
                    "in flight": state.in_flight, "efficiency": state.efficiency, "sectors": state.sectors},
        )  # fmt: skip


def _summary(device: Device, state: _State, warps: int, stride: int, precision: str) -> str:
    loads = f"{warps} warp load{'s' if warps > 1 else ''} on each unit"
    text = (
        f"With {loads} of {precision.upper()} at stride {stride}, {number(state.in_flight)} kB are in flight on the "
        f"{device_name(device)}, which needs {number(state.needed)} kB: "
    )
    text += "bound by bandwidth" if state.bound_by == "bandwidth" else "bound by latency"
    text += f", {number(state.moved)} GB/s are moved."
    sectors = f"{state.sectors} sector{'s' if state.sectors > 1 else ''}"
    if state.efficiency < 1:
        text += (
            f" Each load touches {sectors}, of which {percent(state.efficiency)} is used: {number(state.useful)} GB/s."
        )
    return text


def memory_view(
    device: Device, warps: int = 16, stride: int = 1, precision: str = "fp32", other: Device | None = None
) -> View:
    """Return the bandwidth that warps with loads in flight draw from a device's main memory.

    Parameters
    ----------
    device
        A GPU with a recorded latency of its main memory, and units.
    warps
        Loads in flight on each unit, one a warp.
    stride
        Elements between neighbouring lanes.
    precision
        Of the elements.
    other
        A device to compare with.

    Returns
    -------
    View
        Figure, summary, text alternative, and the numbers under ``values``.

    Raises
    ------
    UnknownNameError
        If a device lacks the latency or the number of units.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> memory_view(Hardware.Cloud.A100, warps=16).values["bound by"]
    'latency'
    """
    return MemoryScene().update(device=device, warps=warps, stride=stride, precision=precision, other=other)
