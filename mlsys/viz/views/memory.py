"""View of Little's law: bandwidth over bytes in flight, and the useful part at a stride."""

from __future__ import annotations

from typing import TypedDict

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes

from mlsys.formulas import bytes_in_flight, latency_bound_bandwidth
from mlsys.hardware.device import Device
from mlsys.models.access import strided_access
from mlsys.precision import element_size
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity
from mlsys.viz.memory import InFlight
from mlsys.viz.style import COLORS, CYCLE, MARKERS, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import device_name, number, percent, times

_LEFT, _RIGHT = 1.0, 1e5  # edges of the picture, kB


class MemoryValues(TypedDict):
    """Values computed by :class:`MemoryScene` for the main device."""

    bound_by: str
    useful: Quantity
    moved: Quantity
    in_flight: Quantity
    efficiency: float
    sectors: int


class _Machine(InFlight):
    """Artists of a device, its useful bandwidth, and its operating point."""

    def __init__(self, ax: Axes, index: int) -> None:
        super().__init__(ax, index)
        color = CYCLE[index]
        (self.useful,) = ax.plot([1], [1], ":", linewidth=2.2, color=color, zorder=4)
        (self.point,) = ax.plot(
            [1], [1], MARKERS[index], markersize=11, color=color, markeredgecolor="white", zorder=7 - index,
            clip_on=False,
        )  # fmt: skip
        self.artists = (*self.artists, self.useful, self.point)

    def put(self, state: MemoryState) -> None:
        """Update the operating point: bandwidth moved and used."""
        x, y = np.asarray(self.moved.get_data(), float)
        self.useful.set_data(x, y * state.efficiency)
        self.useful.set_visible(state.efficiency < 1)
        self.point.set_data([min(max(state.in_flight.m_as("kB"), _LEFT), _RIGHT)], [state.useful.m_as("GB/s")])


class MemoryState:
    """State of one device for given warps, stride and precision."""

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
    """Figure that is created once and updated by :meth:`update`."""

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
            self._back, self._front = _Machine(ax, 1), _Machine(ax, 0)
            self.guess = Guess(ax, "x", place=0.2)
        self.moving = (*self._back.artists, *self._front.artists, *self.guess.artists)

    def update(
        self,
        device: Device,
        warps: int = 16,
        stride: int = 1,
        precision: str = "fp32",
        other: Device | None = None,
    ) -> View[MemoryValues]:
        """Return the view of the main memory bandwidth attained by warps with loads in flight.

        Parameters
        ----------
        device
            A GPU with recorded main memory latency and number of units.
        warps
            Warps per unit, each with one load in flight.
        stride
            Elements between neighbouring lanes.
        precision
            Number format of the elements.
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
        >>> MemoryScene().update(Hardware.Cloud.A100, warps=16).values["bound_by"]
        'latency'
        """
        warps = checked_count("MemoryScene", "warps", warps)
        state = MemoryState(device, warps, stride, precision)
        second = None
        if other is not None and other is not device:
            second = MemoryState(other, warps, stride, precision)
            self._back.show(other, upper=other.memory_bw > device.memory_bw)
            self._back.put(second)
        else:
            self._back.hide()
        self._front.show(device, upper=second is None or other is None or device.memory_bw >= other.memory_bw)
        self._front.put(state)
        summary = _summary(device, state, warps, stride, precision)
        if second is not None and other is not None:
            ratio = (second.useful / state.useful).m_as("")
            summary += f" {device_name(other)} delivers {number(second.useful)} GB/s, {times(ratio)} as much."
        return View(
            figure=self.figure,
            summary=summary,
            alt="Bandwidth over bytes in flight on two logarithmic axes: a slope set by the latency that turns flat at "
            f"the peak bandwidth. {summary}",
            values={"bound_by": state.bound_by, "useful": state.useful, "moved": state.moved,
                    "in_flight": state.in_flight, "efficiency": state.efficiency, "sectors": state.sectors},
        )  # fmt: skip


def _summary(device: Device, state: MemoryState, warps: int, stride: int, precision: str) -> str:
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
