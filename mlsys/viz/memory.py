"""Pictures of memory: what an access costs, where the ridge went, what each level offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import UnknownNameError
from mlsys.formulas import bytes_in_flight
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.units import Quantity
from mlsys.viz.style import COLORS, CYCLE, MARKERS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["access_energies", "bandwidth_by_bytes_in_flight", "level_map", "ridge_by_year"]

_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)))


def access_energies(ax: Axes, energies: Mapping[str, Quantity], reference: str) -> Axes:
    """Draw energies as bars on a logarithmic axis, each with its multiple of one of them.

    Parameters
    ----------
    ax
        Axes to draw into.
    energies
        Energy by the name to show, in any order.
    reference
        Name of the one that the others are compared with.
    """
    apply_style(ax)
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


def ridge_by_year(ax: Axes, devices: Sequence[Device], precisions: Sequence[str] = ("fp32", "fp16", "fp8")) -> Axes:
    """Draw the dense ridge of a series of devices over their years, one line for each precision.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        In any order; a device is left out of the line of a precision that it lacks.
    precisions
        Of peaks and data.
    """
    apply_style(ax)
    ordered = sorted(devices, key=lambda device: device.release_year)
    for precision, color, marker, dash in zip(precisions, CYCLE, MARKERS, _DASHES, strict=False):
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
    ax.set_xticks(years, [f"{_short(device)}\n{device.release_year}" for device in ordered])
    ax.legend(loc="upper left", fontsize=9, ncols=len(precisions))
    return ax


def _short(device: Device) -> str:
    return device.aliases[0] if device.aliases else device.id.replace("_", " ")


def level_map(ax: Axes, devices: Sequence[Device]) -> Axes:
    """Draw the levels of devices by latency and by bandwidth of all their pieces, with capacities.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices; a level is left out where latency or bandwidth is not recorded.

    Raises
    ------
    UnknownNameError
        If a device has no level with both.
    """
    apply_style(ax)
    for place, (device, color, marker) in enumerate(zip(devices, CYCLE, MARKERS, strict=False)):
        offset = 5 if place else -13
        machine = view(device)
        recorded = [each for each in (*machine.outer, *machine.levels) if each.has("latency") and each.has("bandwidth")]
        levels = [each.level for each in recorded]
        if not levels:
            raise UnknownNameError(f"level_map(): {device.name} has no memory level with both latency and bandwidth")
        xs = [level.latency.m_as("ns") for level in levels]
        ys = [level.bandwidth_total.m_as("TB/s") for level in levels]
        ax.plot(xs, ys, marker=marker, markersize=9, color=color, markeredgecolor="white", label=_short(device))
        for level, x, y in zip(levels, xs, ys, strict=True):
            size: Quantity = level.capacity_total.to("MB")
            text = f"{size.magnitude / 1000:.0f} GB" if size.magnitude >= 1000 else f"{size.magnitude:.3g} MB"
            ax.annotate(
                f"{level.name}, {text}", (x, y), xytext=(8, offset), textcoords="offset points", fontsize=8,
                color=color,                 bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
            )  # fmt: skip
    ax.set(
        xscale="log", yscale="log", xlabel="latency from load to use, ns", ylabel="bandwidth of the whole level, TB/s"
    )
    left, right = ax.get_xlim()
    ax.set_xlim(left / 1.1, right * 2.2)
    ax.legend(loc="upper right", fontsize=9)
    return ax


def bandwidth_by_bytes_in_flight(ax: Axes, devices: Sequence[Device]) -> Axes:
    """Draw the bandwidth of main memory that bytes in flight can draw: Little's law, and the roof.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices whose main memory has a latency.

    Raises
    ------
    UnknownNameError
        If a device has no latency recorded for its main memory.
    """
    apply_style(ax)
    x = np.geomspace(1e3, 1e7, 200)
    for device, color, dash in zip(devices, CYCLE, _DASHES, strict=False):
        level = device.level()
        latency, peak = level.latency.m_as("s"), level.bandwidth.m_as("byte/s")
        ax.plot(x / 1e3, np.minimum(x / latency, peak) / 1e9, linestyle=dash, color=color, label=_short(device))
        needed = bytes_in_flight(level.bandwidth, level.latency).m_as("kB")
        ax.plot(needed, peak / 1e9, "o", color=color, markersize=7, markeredgecolor="white")
        ax.annotate(f"{needed:,.0f} kB", (needed, peak / 1e9), xytext=(-4, 5), textcoords="offset points", ha="right",
                    fontsize=9, color=color)  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="bytes in flight, kB", ylabel="bandwidth, GB/s")
    ax.set_ylim(top=ax.get_ylim()[1] * 1.5)
    ax.legend(loc="lower right", fontsize=9)
    return ax
