"""View of a network on a device: its kernels under the roof, and its time after one change."""

from functools import cache
from typing import TypedDict

import matplotlib.style
import numpy as np
from matplotlib.patches import Rectangle

from mlsys.hardware import Hardware
from mlsys.sweep.layers import CAUSES, LayerTimes, layer_times
from mlsys.viz.style import COLORS, HALO, MARKERS, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure, number, percent, times
from mlsys.viz.words import device_name

__all__ = ["BATCHES", "NETWORKS", "SOFTWARE", "NetworkScene", "NetworkValues", "gpus", "reading"]

NETWORKS = {
    "resnet50": "ResNet-50",
    "mobilenet_v2": "MobileNetV2",
    "vgg16": "VGG-16",
    "yolov8n": "YOLOv8n",
    "vit-b-16": "ViT-B/16",
    "bert-base": "BERT-base",
}
"""Names of the networks that the figure offers, by name in the catalogue."""
BATCHES = (1, 2, 4, 8, 11, 16, 22, 36, 44, 72, 88, 136, 176, 264)
SOFTWARE = {"compiled": "compiled, operators fused", "eager": "eager, one operator at a time"}
_COLORS = {"compute": "BlueLine", "memory": "GreenLine", "launch": "RedLine"}
_WORDS = {"compute": "limited by compute", "memory": "limited by memory", "launch": "limited by launch"}
_ROWS = 5
_LEFT, _RIGHT, _FLOOR, _TOP = -1, 4, -3, 4  # decades: FLOP/byte, TFLOP/s
_AREA = 1500.0  # square points of a kernel that takes all of the time


@cache
def gpus() -> tuple[str, ...]:
    """Return the ids of the GPUs on record that have FP16.

    Examples
    --------
    >>> "A100_80GB" in gpus(), "P40" in gpus()
    (True, False)
    """
    return tuple(sorted(each.id for each in Hardware.Cloud if each.kind == "GPU" and "fp16" in each.precisions))


def reading(
    network: str, device: str, batch: int = 1, precision: str = "fp16", software: str = "compiled"
) -> LayerTimes:
    """Return the kernels of a network on a GPU with their times.

    Parameters
    ----------
    network, device, batch, precision
        As in :func:`mlsys.sweep.layers.layer_times`.
    software
        ``"compiled"`` or ``"eager"``.

    Examples
    --------
    >>> times = reading("resnet50", "A100_80GB", 32)
    >>> round(1e3 * times.total, 2), times.groups[0].limited_by
    (1.7, 'compute')
    """
    batches = BATCHES if batch in BATCHES else (*BATCHES, batch)
    return layer_times(network, device, batch, precision, f"{software} network on GPU", batches)


class NetworkValues(TypedDict):
    """Values of :class:`NetworkScene`: the kernels with their times."""

    times: LayerTimes


class NetworkScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = (
        "An empty chart of attained performance over arithmetic intensity, on two logarithmic axes, above an empty "
        "chart with room for five bars."
    )

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 6.2)
            roof = self.figure.add_axes((0.08, 0.50, 0.88, 0.45))
            decades(roof, "x", _LEFT, _RIGHT)
            decades(roof, "y", _FLOOR, _TOP)
            roof.set_xlabel("Arithmetic intensity (FLOP/byte)", fontsize=10, color=COLORS["primary"])
            roof.set_title(
                "Attained performance (TFLOP/s); area: share of the time",
                loc="left", fontsize=11, weight="bold", color=COLORS["primary"],
            )  # fmt: skip
            (self._roof,) = roof.plot([1, 1, 1], [1, 1, 1], color=COLORS["primary"], linewidth=1.8, zorder=3)
            self._dots = {}
            for cause, marker in zip(CAUSES, MARKERS, strict=False):
                self._dots[cause] = roof.scatter(
                    [1], [1], s=[0], color=COLORS[_COLORS[cause]], marker=marker, edgecolor="white", linewidth=0.8,
                    alpha=0.8, zorder=5, label=_WORDS[cause],
                )  # fmt: skip
            (self._mean,) = roof.plot([], [], color=COLORS["primary"], linestyle=":", linewidth=1.4, zorder=4)
            self._mean_text = roof.text(
                0.005, 0, "average", transform=roof.get_yaxis_transform(), fontsize=9, va="bottom", bbox=HALO,
                color=COLORS["primary"], zorder=6,
            )  # fmt: skip
            self.guess = Guess(roof, "y", place=0.6)
            legend = roof.legend(loc="lower right", fontsize=9, frameon=False, markerscale=1.0)
            for handle in legend.legend_handles:
                handle.set_sizes([50.0])  # type: ignore[union-attr]
            bars = self.figure.add_axes((0.08, 0.02, 0.88, 0.34))
            bars.set(xlim=(0, 1.0), ylim=(_ROWS - 0.35, -0.75))
            bars.set_title(
                "Time after one change, against the time now",
                loc="left", fontsize=11, weight="bold", color=COLORS["primary"],
            )  # fmt: skip
            bars.set_xticks([])
            bars.set_yticks([])
            for side in ("top", "right", "bottom"):
                bars.spines[side].set_visible(False)
            self._bars, self._texts = [], []
            for row in range(_ROWS):
                fill = COLORS["BlueLine"] if row == 0 else COLORS["grid"]
                bar = Rectangle((0, row), 0, 0.3, facecolor=fill, edgecolor=COLORS["axis"], zorder=3)
                bars.add_patch(bar)
                self._bars.append(bar)
                text = bars.text(0.006, row - 0.1, "", fontsize=9.5, va="bottom", color=COLORS["primary"], zorder=4)
                text.set_verticalalignment("center_baseline")
                text.set_y(row - 0.22)
                self._texts.append(text)
        self.moving = (
            self._roof, self._mean, self._mean_text, *self._dots.values(), *self._bars, *self._texts,
            *self.guess.artists,
        )  # fmt: skip

    def update(
        self,
        network: str = "resnet50",
        device: str = "A100_80GB",
        batch: int = 1,
        precision: str = "fp16",
        software: str = "compiled",
    ) -> View[NetworkValues]:
        """Return the view of a network on a GPU.

        Parameters
        ----------
        network, device, batch, precision, software
            As in :func:`reading`.

        Raises
        ------
        UnknownNameError
            If the device lacks the precision.

        Examples
        --------
        >>> print(NetworkScene().update("resnet50", batch=22).summary)
        ResNet-50 at batch 22 on the A100 in FP16, compiled: 1.41 ms, 64.0 µs per sample, 41.2% of the peak ...
        """
        times_ = reading(network, device, batch, precision, software)
        peak, ridge = times_.peak / 1e12, times_.ridge
        low = 10.0**_LEFT
        self._roof.set_data([low, ridge, 10.0**_RIGHT], [low * times_.bandwidth / 1e12, peak, peak])
        mean = times_.utilisation * peak
        self._mean.set_data([low, 10.0**_RIGHT], [mean, mean])
        self._mean_text.set_y(mean)
        x = np.clip(times_.flops / times_.moved, low, 10.0**_RIGHT)
        y = np.clip(times_.flops / times_.seconds / 1e12, 10.0**_FLOOR, 10.0**_TOP)
        area = np.maximum(12.0, _AREA * times_.count * times_.seconds / times_.total)
        causes = np.array(times_.causes)
        for cause, dots in self._dots.items():
            here = causes == cause
            dots.set_visible(bool(here.any()))
            dots.set_offsets(np.column_stack([x[here], y[here]]))
            dots.set_sizes(area[here])
        total = times_.total
        rows = [("as it is", total), *sorted(times_.changes.items(), key=lambda change: change[1])][:_ROWS]
        for row, (bar, text) in enumerate(zip(self._bars, self._texts, strict=True)):
            shown = row < len(rows)
            bar.set_visible(shown)
            text.set_visible(shown)
            if shown:
                words, after = rows[row]
                bar.set_width(min(1.0, after / total))
                text.set_text(f"{words}: {_time(after)}" + (f", {times(total / after)}" if row else ""))
        summary = _summary(times_, NETWORKS.get(network, network), device_name(Hardware[device]), software)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Kernels of a network as points under the roof of a device, with a line at their average, on two "
            "logarithmic axes, and bars of its "
            f"time now and after each of up to four changes. {summary}",
            values={"times": times_},
        )


def _summary(layers: LayerTimes, name: str, device: str, software: str) -> str:
    shares = ", ".join(f"{cause} {percent(layers.share(cause))}" for cause in CAUSES)
    first = layers.groups[0]
    changed = min(layers.changes, key=lambda change: layers.changes[change])
    return (
        f"{name} at batch {layers.batch} on the {device} in {layers.precision.upper()}, {software}: "
        f"{_time(layers.total)}, {_time(layers.total / layers.batch)} per sample, {percent(layers.utilisation)} of the "
        f"peak and {times(layers.total / layers.least)} the least time by the roofline. Limited by {shares} of the "
        f"time. The largest group: {first.label}, {percent(first.seconds / layers.total)} of the time. The change that "
        f"gains most: {changed}, {times(layers.total / layers.changes[changed])}."
    )


def _time(seconds: float) -> str:
    return f"{number(1e3 * seconds)} ms" if seconds >= 1e-3 else f"{number(1e6 * seconds)} µs"
