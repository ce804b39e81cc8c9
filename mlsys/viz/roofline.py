"""Figures of the roofline: roofs, operators below them, and intensity by batch size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.formulas import attainable_performance, gemm_intensity
from mlsys.hardware.device import Device
from mlsys.models.result import Result
from mlsys.precision import element_size
from mlsys.units import Quantity
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS
from mlsys.viz.words import device_name, number
from mlsys.workloads.operator import Operator

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


class Roof:
    """The roof of one device (line, ridge and labels); drawn once and updated often.

    Parameters
    ----------
    ax
        Axes with both scales logarithmic and their limits set.
    index
        0 for the main device; others have a colour and a dash of their own.
    bandwidth
        Whether the label includes the bandwidth.
    """

    def __init__(self, ax: Axes, index: int = 0, bandwidth: bool = False) -> None:
        self.index, color = index, CYCLE[index % len(CYCLE)]
        self._axes, self._with_bandwidth = ax, bandwidth
        depth = 4 - 0.1 * index
        (self.line,) = ax.plot(
            [1], [1], color=color, linestyle=DASHES[index % len(DASHES)], linewidth=1.8 if index else 2.4, zorder=depth
        )
        (self.ridge,) = ax.plot([1], [1], "|", markersize=13, markeredgewidth=2, color=color, zorder=depth + 1)
        (self.drop,) = ax.plot([1, 1], [0, 1], ":", color=color, linewidth=1, zorder=2.5)
        self.name = ax.text(1, 1, "", color=color, fontsize=9, weight="bold", ha="right", bbox=HALO, zorder=depth + 1)
        self.called = ax.text(
            1, 0.04 + 0.075 * index, "", color=color, fontsize=9, ha="center", bbox=HALO, zorder=depth + 1,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
        self.artists: tuple[Artist, ...] = (self.line, self.ridge, self.drop, self.name, self.called)

    def hide(self) -> None:
        """Hide the roof."""
        for artist in self.artists:
            artist.set_visible(False)

    def show(self, device: Device, precision: str, upper: bool = True) -> None:
        """Update the roof for a device; ``upper`` puts its name above the line."""
        for artist in self.artists:
            artist.set_visible(True)
        peak, bandwidth = device.peak(precision).m_as("TFLOP/s"), device.memory_bw.m_as("TB/s")
        ridge, (left, right) = peak / bandwidth, self._axes.get_xlim()
        # Straight between these on two logarithmic axes: the edges and the ridge.
        self.line.set_data([left, ridge, right], [bandwidth * left, peak, peak])
        self.ridge.set_data([ridge], [peak])
        self.drop.set_data([ridge, ridge], [1e-9 * peak, peak])  # below whatever is shown
        self.name.set_position((right / (right / left) ** 0.015, peak * (1.2 if upper else 1 / 1.2)))
        self.name.set_verticalalignment("bottom" if upper else "top")
        unit = "TOP/s" if precision.startswith("int") else "TFLOP/s"
        speed = f", {number(1000 * bandwidth)} GB/s" if self._with_bandwidth else ""
        self.name.set_text(f"{device_name(device)}: {number(peak)} {unit}{speed}")
        text, margin = f"ridge {number(ridge)}", 0.06
        whole = self._axes.get_figure(root=True)
        inches = self._axes.get_position().width * (whole.get_figwidth() if whole is not None else 0)
        if self.index == 0 and inches > 4:  # a narrow panel has no room for more
            text, margin = f"memory-bound  ←  {text}  →  compute-bound", 0.25
        width = right / left
        self.called.set_x(min(max(ridge, left * width**margin), right / width**margin))
        self.called.set_text(text)


@chart
def roofs(
    ax: Axes,
    devices: Sequence[Device],
    operators: Iterable[Operator] = (),
    precision: str = "fp16",
    intensities: tuple[float, float] = (0.1, 10_000),
) -> Axes:
    """Draw the roof of each device and, on the first, the attainable rate of each operator.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices with a peak in ``precision``.
    operators
        Operators counted in ``precision``, placed by intensity.
    precision
        Precision of the peaks.
    intensities
        Range of the horizontal axis, FLOP/byte.
    """
    peaks = [device.peak(precision).m_as("TFLOP/s") for device in devices]
    lowest = min(device.memory_bw.m_as("TB/s") for device in devices) * intensities[0]
    ax.set(xscale="log", yscale="log", xlim=intensities, ylim=(lowest / 3, 3 * max(peaks)))
    for index, device in enumerate(devices):
        Roof(ax, index).show(device, precision)
    bandwidth = devices[0].memory_bw.m_as("TB/s")
    for operator, marker in zip(operators, MARKERS, strict=False):
        _same_precision(operator, precision)
        intensity = operator.intensity.m_as("FLOP/byte")
        ax.plot(
            intensity,
            attainable_performance.bare(intensity, peaks[0], bandwidth),
            marker,
            color=COLORS["primary"],
            markersize=8,
            markeredgecolor="white",
            label=operator.name,
            zorder=6,
        )
    ax.set(xlabel="arithmetic intensity, FLOP/byte", ylabel=f"attainable, TFLOP/s ({precision}, dense)")
    if ax.get_legend_handles_labels()[1]:
        plate = {"frameon": True, "facecolor": "white", "edgecolor": "none"}  # ridges pass behind it
        ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.42), fontsize=9, **plate)
    return ax


@chart
def roof_ceilings(
    ax: Axes, device: Device, rates: Mapping[str, Quantity], bandwidths: Mapping[str, Quantity],
    precision: str = "fp16", intensities: tuple[float, float] = (0.1, 10_000),
) -> Axes:  # fmt: skip
    """Draw the roof of a device, and lower ones for programs that leave something out.

    Parameters
    ----------
    ax
        Axes to draw into.
    device
        Device with a peak in ``precision``.
    rates
        Peaks below the roof's, by what the program does without.
    bandwidths
        Bandwidths below the roof's, by what the program does without.
    precision
        Precision of the roof.
    intensities
        Range of the horizontal axis, FLOP/byte.

    Returns
    -------
    Axes
        Horizontal ceilings are dashed, sloping ones dotted, up to the lowest of the others; each carries its name.
    """
    left, right = intensities
    peak, fastest = device.peak(precision).m_as("TFLOP/s"), device.memory_bw.m_as("TB/s")
    slopes = {name: each.m_as("TB/s") for name, each in bandwidths.items()}
    lowest = min((rate.m_as("TFLOP/s") for rate in rates.values()), default=peak)
    ax.set(
        xscale="log", yscale="log", xlim=intensities, ylim=(min(slopes.values(), default=fastest) * left / 2, 4 * peak)
    )
    Roof(ax).show(device, precision)
    for index, (name, rate) in enumerate(rates.items(), start=1):
        height, color = rate.m_as("TFLOP/s"), CYCLE[index % len(CYCLE)]
        ax.plot([height / fastest, right], [height, height], color=color, linestyle="--", linewidth=1.6)
        ax.text(right / 1.1, height / 1.12, f"{name}: {number(height)} TFLOP/s", color=color, fontsize=9, ha="right",
                va="top")  # fmt: skip
    for index, (name, slope) in enumerate(slopes.items(), start=1 + len(rates)):
        color, at = CYCLE[index % len(CYCLE)], left * 3
        ax.plot([left, lowest / slope], [slope * left, lowest], color=color, linestyle=":", linewidth=1.8)
        ax.annotate(f"{name}: {number(1000 * slope)} GB/s", (at * 2, slope * at * 2), xytext=(8, -4),
                    textcoords="offset points", color=color, fontsize=9, va="top")  # fmt: skip
    ax.set(xlabel="arithmetic intensity, FLOP/byte", ylabel=f"attainable, TFLOP/s ({precision}, dense)")
    return ax


def _same_precision(operator: Operator, precision: str) -> None:
    if operator.precision != precision:
        raise ValueError(
            f"roofs(): operator {operator.name!r} is counted in {operator.precision}, the roofs are {precision}. "
            f"Make it with precision={precision!r}"
        )


@chart
def intensity_by_batch(
    ax: Axes, width: int, devices: Sequence[Device], precision: str = "fp16", largest_batch: int = 4096
) -> Axes:
    """Draw the intensity of a square dense layer over batch, with the ridge of each device.

    Parameters
    ----------
    ax
        Axes to draw into.
    width
        Input and output features of the layer.
    devices
        Devices whose ridge in ``precision`` is drawn as a horizontal line.
    precision
        Precision of data and peaks.
    largest_batch
        Largest batch size.
    """
    batches = 2 ** np.arange(int(np.log2(largest_batch)) + 1)
    size = element_size(precision).m_as("byte")
    ax.plot(
        batches,
        gemm_intensity.bare(batches.astype(float), width, width, size),
        marker="o",
        color=COLORS["primary"],
        label=f"dense {width}→{width}",
    )
    for device, color, dash in zip(devices, CYCLE, DASHES, strict=False):
        ridge = device.ridge_point(precision).m_as("FLOP/byte")
        ax.axhline(ridge, color=color, linestyle=dash, label=f"ridge of {device.name}")
    ax.set(xscale="log", yscale="log", xlabel="batch (rows of the input)", ylabel="arithmetic intensity, FLOP/byte")
    ax.set_xscale("log", base=2)
    ax.legend(loc="lower right", fontsize=9)
    return ax


@chart
def layer_scatter(ax: Axes, result: Result, ridge: float) -> Axes:
    """Draw every operator of a network by intensity and by its share of the time.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Result of a model on a network, with children.
    ridge
        Ridge point of the device, FLOP/byte.
    """
    total = result.time.m_as("s")
    for bound, marker, color in (("memory", "o", COLORS["OrangeLine"]), ("compute", "^", COLORS["BlueLine"])):
        children = [child for child in result.children if child.bound_by == bound]
        ax.scatter(
            [child.figures["intensity"].m_as("FLOP/byte") for child in children],
            [child.time.m_as("s") / total * 100 for child in children],
            marker=marker,
            s=42,
            color=color,
            edgecolor="white",
            label=f"bound by {bound}: {len(children)} of {len(result.children)}",
        )
    ax.set_ylim(0, 1.3 * ax.get_ylim()[1])
    ax.axvline(ridge, color=COLORS["primary"], linestyle="--", linewidth=1.2)
    ax.annotate(
        f"ridge {ridge:.0f}", (ridge, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points", fontsize=9
    )
    ax.set(xscale="log", xlabel="arithmetic intensity, FLOP/byte", ylabel="share of the time, %")
    ax.legend(loc="upper left", fontsize=9)
    return ax


@chart
def device_map(ax: Axes, devices: Iterable[Device], labels: Collection[str] = ()) -> Axes:
    """Draw devices by the bandwidth of their main memory and their headline dense peak.

    Parameters
    ----------
    ax
        Axes to draw into.
    devices
        Devices; those without a recorded bandwidth are left out.
    labels
        Ids of the devices to label.

    Returns
    -------
    Axes
        With dotted lines of equal ridge point, one per power of ten.
    """
    by_kind: dict[str, list[Device]] = {}
    for device in devices:
        if device.glance()["bandwidth"] is not None:
            by_kind.setdefault(device.kind, []).append(device)
    palette = (*CYCLE, COLORS["primary"])
    for (kind, members), color, marker in zip(sorted(by_kind.items()), palette, MARKERS, strict=False):
        points = [(_in(device, "bandwidth", "GB/s"), _in(device, "peak", "TFLOP/s")) for device in members]
        xs, ys = ([point[axis] for point in points] for axis in (0, 1))
        ax.scatter(xs, ys, s=45, marker=marker, color=color, edgecolor="white", label=kind, zorder=3)
        for device, (x, y) in zip(members, points, strict=True):
            if device.id in labels:
                ax.annotate(device.id, (x, y), xytext=(6, -4), textcoords="offset points", fontsize=9)
    ax.set(xscale="log", yscale="log")
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    for ridge in 10.0 ** np.arange(-1, 5):
        ends = np.array([left, right])
        ax.plot(ends, ridge * ends / 1000, ":", color=COLORS["axis"], linewidth=1, zorder=1)
        edge = min(right, top * 1000 / ridge)
        if left < edge and ridge * edge / 1000 > bottom:
            corner = (edge * 0.92, ridge * edge * 0.92 / 1000)
            ax.annotate(f"{ridge:,g}", corner, fontsize=9, color=COLORS["note"], ha="right", va="top")
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.set(xlabel="bandwidth of the main memory, GB/s", ylabel="dense peak, headline precision, TFLOP/s")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9)
    return ax


def _in(device: Device, figure: str, unit: str) -> float:
    value = device.glance()[figure]
    assert value is not None
    return float(value.m_as(unit))
