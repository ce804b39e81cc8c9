"""Figures of memory: energy per access, ridge points over the years, latency and bandwidth by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.errors import UnknownNameError
from mlsys.formulas import bytes_in_flight
from mlsys.hardware.device import Device
from mlsys.hardware.parts import MemoryLevel
from mlsys.hardware.view import view
from mlsys.units import Quantity
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS
from mlsys.viz.words import device_name, number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


@chart
def access_energies(ax: Axes, energies: Mapping[str, Quantity], reference: str) -> Axes:
    """Draw energies as bars on a logarithmic axis, each with its ratio to a reference.

    Parameters
    ----------
    ax
        Axes to draw into.
    energies
        Energy by the name to show, in any order.
    reference
        Name of the reference.
    """
    ranked = sorted(energies.items(), key=lambda item: item[1].m_as("pJ"))
    values = [energy.m_as("pJ") for _, energy in ranked]
    base = energies[reference].m_as("pJ")
    memory = [any(word in name for word in ("DRAM", "SRAM", "cache", "register")) for name, _ in ranked]
    colors = [COLORS["OrangeLine"] if is_memory else COLORS["BlueLine"] for is_memory in memory]
    hatches = ["//" if is_memory else "" for is_memory in memory]
    ax.barh(range(len(ranked)), values, color=colors, hatch=hatches, edgecolor="white", height=0.72)
    for row, value in enumerate(values):
        share = value / base
        text = f"{value:g} pJ" + ("" if ranked[row][0] == reference else f" · {share:,.3g}×")
        ax.annotate(text, (value, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(ranked)), [name for name, _ in ranked])
    ax.set(xscale="log", xlabel=f"energy, pJ (× against {reference})")
    ax.set_xlim(min(values) / 2, max(values) * 20)
    ax.grid(False, axis="y")
    return ax


@chart
def ridge_by_year(ax: Axes, devices: Sequence[Device], precisions: Sequence[str] = ("fp32", "fp16", "fp8")) -> Axes:
    """Draw the dense ridge point of devices over their release years, one line per precision.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices in any order; each is left out of the lines of precisions that it lacks.
    precisions
        Precisions of peaks and data.
    """
    ordered = sorted(devices, key=lambda device: device.release_year)
    for precision, color, marker, dash in zip(precisions, CYCLE, MARKERS, DASHES, strict=False):
        members = [device for device in ordered if precision in device.precisions]
        years = [device.release_year for device in members]
        ridges = [device.ridge_point(precision).m_as("FLOP/byte") for device in members]
        ax.plot(years, ridges, marker=marker, linestyle=dash, color=color, label=precision.upper())
        for x, y in zip(years, ridges, strict=True):
            ax.annotate(
                f"{y:.0f}", (x, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=9, color=color
            )
    low = ax.get_ylim()[0]
    ax.set(yscale="log", ylabel="dense ridge, FLOP/byte")
    ax.set_ylim(max(low, 1) / 1.4, ax.get_ylim()[1] * 1.7)
    years = [device.release_year for device in ordered]
    ax.set_xticks(years, [f"{device_name(device)}\n{device.release_year}" for device in ordered])
    ax.legend(loc="upper left", fontsize=9, ncols=len(precisions))
    return ax


def _level_label(level: MemoryLevel) -> str:
    """Return the name of a level, with its size if recorded."""
    if not level.has_capacity:
        return level.name
    size = level.capacity_total.m_as("MB")
    return f"{level.name}, {size / 1000:.0f} GB" if size >= 1000 else f"{level.name}, {size:.3g} MB"


@chart
def level_map(ax: Axes, devices: Sequence[Device]) -> Axes:
    """Draw the memory levels of devices by latency and total bandwidth, with capacities.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices; levels without recorded latency or bandwidth are left out.

    Raises
    ------
    UnknownNameError
        If a device has no level with both.
    """
    for index, (device, color, marker) in enumerate(zip(devices, CYCLE, MARKERS, strict=False)):
        offset = 5 if index else -13
        machine = view(device)
        recorded = [each for each in (*machine.outer, *machine.levels) if each.has("latency") and each.has("bandwidth")]
        levels = [each.level for each in recorded]
        if not levels:
            raise UnknownNameError(f"level_map(): {device.name} has no memory level with both latency and bandwidth")
        xs = [level.latency.m_as("ns") for level in levels]
        ys = [level.bandwidth_total.m_as("TB/s") for level in levels]
        ax.plot(xs, ys, marker=marker, markersize=9, color=color, markeredgecolor="white", label=device_name(device))
        for level, x, y in zip(levels, xs, ys, strict=True):
            ax.annotate(
                _level_label(level), (x, y), xytext=(8, offset), textcoords="offset points", fontsize=9,
                color=color, bbox=HALO, zorder=5,
            )  # fmt: skip
    ax.set(
        xscale="log", yscale="log", xlabel="latency from load to use, ns", ylabel="bandwidth of the whole level, TB/s"
    )
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    ax.set(xlim=(left / 1.1, right * 2.2), ylim=(bottom / 1.25, top * 1.1))  # labels stay inside
    ax.legend(loc="upper right", fontsize=9)
    return ax


class InFlight:
    """Curve of main memory bandwidth over bytes in flight for one device; drawn once and updated often.

    Parameters
    ----------
    ax
        Axes with both scales logarithmic, kB and GB/s, and their limits set.
    index
        0 for the main device; others have a colour and a dash of their own.
    """

    def __init__(self, ax: Axes, index: int = 0) -> None:
        color, self._axes = CYCLE[index % len(CYCLE)], ax
        depth = 4 - 0.1 * index
        (self.moved,) = ax.plot(
            [1], [1], color=color, linestyle=DASHES[index % len(DASHES)], linewidth=1.8 if index else 2.4, zorder=depth
        )
        (self.knee,) = ax.plot([1], [1], "|", markersize=14, markeredgewidth=2, color=color, zorder=depth)
        (self.drop,) = ax.plot([1, 1], [1, 1], ":", color=color, linewidth=1, zorder=2.5)
        self.name = ax.text(1, 1, "", ha="right", weight="bold", fontsize=9, color=color, bbox=HALO, zorder=depth + 1)
        self.needed = ax.text(
            1, 0.04 + 0.075 * index, "", ha="center", fontsize=9, color=color, bbox=HALO, zorder=depth + 1,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
        self.artists: tuple[Artist, ...] = (self.moved, self.knee, self.drop, self.name, self.needed)

    def hide(self) -> None:
        """Hide the device."""
        for artist in self.artists:
            artist.set_visible(False)

    def show(self, device: Device, upper: bool = True) -> None:
        """Update the latency-bound slope and the flat roof; ``upper`` puts the name above it."""
        for artist in self.artists:
            artist.set_visible(True)
        level, (left, right), floor = device.level(), self._axes.get_xlim(), self._axes.get_ylim()[0]
        peak, knee = level.bandwidth.m_as("GB/s"), bytes_in_flight(level.bandwidth, level.latency).m_as("kB")
        self.moved.set_data([left, knee, right], [peak * left / knee, peak, peak])
        self.knee.set_data([knee], [peak])
        self.drop.set_data([knee, knee], [floor, peak])
        self.name.set_position((right / (right / left) ** 0.015, peak * (1.2 if upper else 1 / 1.2)))
        self.name.set_verticalalignment("bottom" if upper else "top")
        self.name.set_text(f"{device_name(device)}: {number(peak)} GB/s after {number(level.latency.to('ns'))} ns")
        self.needed.set_x(knee)
        self.needed.set_text(f"{number(knee)} kB needed")


@chart
def bandwidth_by_bytes_in_flight(ax: Axes, devices: Sequence[Device]) -> Axes:
    """Draw the main memory bandwidth attainable with bytes in flight (Little's law), up to the peak.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices with a recorded latency of their main memory.

    Raises
    ------
    UnknownNameError
        If a device has no latency recorded for its main memory.
    """
    ax.set(xscale="log", yscale="log", xlim=(10, 1e5), ylim=(30, 1e4))
    for index, device in enumerate(devices):
        InFlight(ax, index).show(device)
    ax.set(xlabel="bytes in flight, kB", ylabel="bandwidth, GB/s")
    return ax
