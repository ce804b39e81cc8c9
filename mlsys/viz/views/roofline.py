"""View of the roofline: roofs of one or two devices, and one layer below them."""

from typing import Literal, TypedDict, get_args

import matplotlib.style
from matplotlib.axes import Axes

from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.models import Result, roofline
from mlsys.unit_checks import checked_choice, plain_arguments
from mlsys.units import Q_, Quantity
from mlsys.viz.roofline import Roof
from mlsys.viz.style import COLORS, CYCLE, HALO, MARKERS, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import device_name, number, percent, times
from mlsys.workloads import Operator, conv2d, decode_step, dense, layer_norm

__all__ = ["IMAGE_SIZE", "KINDS", "RooflineScene", "device_name", "layer"]

LayerKind = Literal["dense", "conv", "layernorm", "decode"]
KINDS: FrozenDict[LayerKind, str] = FrozenDict(
    {
        "dense": "dense layer",
        "conv": "3×3 convolution",
        "layernorm": "layer normalisation",
        "decode": "decoding step",
    }
)
IMAGE_SIZE = 14
"""Height and width of the input of the convolution."""

_LEFT, _RIGHT, _FLOOR, _TOP = 0.1, 1e5, 1e-2, 1e4  # edges of the picture: FLOP/byte, TFLOP/s


@plain_arguments
def layer(kind: LayerKind, batch: int, width: int, precision: str = "fp16") -> Operator:
    """Return one layer of the roofline lab.

    Parameters
    ----------
    kind
        ``"dense"``: batch rows, width → width. ``"conv"``: batch images, width → width
        channels. ``"layernorm"``: batch rows of width values. ``"decode"``: one step of
        one transformer block of that width, whose four attention and two feed-forward
        matrices hold 12 · width² parameters, for batch sequences.
    batch, width
        Positive whole numbers.
    precision
        Number format of the data.

    Raises
    ------
    UnknownNameError
        If there is no such kind.

    Examples
    --------
    >>> print(f"{layer('dense', 32, 2048).intensity:.2f}, {layer('decode', 1, 2048).intensity:.2f}")
    31.03 FLOP/B, 1.00 FLOP/B
    """
    checked_choice("layer", "kind", kind, get_args(LayerKind))
    if kind == "dense":
        return dense(batch, width, width, precision)
    if kind == "conv":
        return conv2d(batch, width, width, IMAGE_SIZE, kernel=3, precision=precision)
    if kind == "layernorm":
        return layer_norm(batch, width, precision)
    return decode_step(Q_(12 * width**2, "param"), batch, precision)


class RooflineValues(TypedDict):
    """Values of :class:`RooflineScene`: the results on the device and on the other one."""

    result: Result
    other: Result | None


class _Machine(Roof):
    """Artists of a roof and the layer below it."""

    def __init__(self, ax: Axes, index: int) -> None:
        super().__init__(ax, index, bandwidth=True)
        color, self._marker = CYCLE[index], MARKERS[index]
        (self.gap,) = ax.plot([1, 1], [1, 1], color=color, linewidth=1.4, zorder=5)
        (self.point,) = ax.plot(
            [1], [1], markersize=9 if index else 11, color=color, markeredgecolor="white", zorder=7 - index,
            clip_on=False,
        )  # fmt: skip
        self.artists = (*self.artists, self.gap, self.point)

    def put(self, result: Result) -> None:
        """Move the layer to the position of a result, with a line up to the roof."""
        x, y = _inside(result)
        self.point.set_marker("v" if y == _FLOOR else self._marker)
        self.gap.set_data([x, x], [y, max(y, result.figures["roof"].m_as("TFLOP/s"))])
        self.point.set_data([x], [y])


def _inside(result: Result) -> tuple[float, float]:
    """Return the position of the point, clipped to the edges of the axes."""
    x, y = result.figures["intensity"].m_as("FLOP/byte"), result.figures["attained"].m_as("TFLOP/s")
    return min(max(x, _LEFT), _RIGHT), min(max(y, _FLOOR), _TOP)


class RooflineScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty chart of attainable performance over arithmetic intensity, on two logarithmic axes."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.2)
            ax = self.figure.add_axes((0.08, 0.125, 0.88, 0.79))
            decades(ax, "x", -1, 5)
            decades(ax, "y", -2, 4)
            ax.set_xlabel("Arithmetic intensity (FLOP/byte)", fontsize=10, color=COLORS["primary"])
            ax.set_title(
                "Attainable performance (TFLOP/s)", loc="left", fontsize=11, weight="bold", color=COLORS["primary"]
            )
            self._back, self._front = _Machine(ax, 1), _Machine(ax, 0)
            self._label = ax.text(
                1, 1, "", fontsize=11, weight="bold", color=COLORS["BlueLine"], bbox=HALO, va="top", zorder=8
            )
            self.guess = Guess(ax, "x", place=0.2)
        self.moving = (*self._back.artists, *self._front.artists, self._label, *self.guess.artists)

    def update(
        self,
        device: Device,
        kind: LayerKind = "dense",
        batch: int = 32,
        width: int = 2048,
        precision: str = "fp16",
        overlap: bool = True,
        launch_overhead: Quantity | None = None,
        other: Device | None = None,
    ) -> View[RooflineValues]:
        """Return the roofline view of one or two devices with one layer.

        Parameters
        ----------
        device
            The main device.
        kind, batch, width, precision
            The layer; see :func:`layer`.
        overlap
            Whether data moves while units compute.
        launch_overhead
            Time added per operator, s; by default none.
        other
            A device to compare with. It is left out, and the summary says so, if it lacks
            the precision.

        Returns
        -------
        View
            Figure, summary, text alternative, and under ``values`` the results of the model.

        Raises
        ------
        UnknownNameError
            If there is no such kind, or ``device`` does not have the precision.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> print(RooflineScene().update(Hardware.Cloud.A100).summary)
        A dense layer of width 2,048 at batch 32 in FP16 does 31.0 FLOP per byte, below the A100's ridge of 153: \
    memory-bound. It reaches 63.3 TFLOP/s, 20.3% of the peak, and takes 4.24 µs.
        """
        work, how = layer(kind, batch, width, precision), Mapping(overlap=overlap)
        result = roofline(device, work, how, launch_overhead=launch_overhead)
        peak = device.peak(precision)
        unit = _unit(precision)
        second = None
        if other is not None and other is not device and precision in other.precisions:
            second = roofline(other, work, how, launch_overhead=launch_overhead)
            self._back.show(other, precision, upper=other.peak(precision) > peak)
            self._back.put(second)
        else:
            self._back.hide()
        upper = second is None or other is None or peak >= other.peak(precision)
        self._front.show(device, precision, upper)
        self._front.put(result)
        x, y = _inside(result)
        right = x > 3000
        self._label.set_position((x / 1.25 if right else x * 1.25, y / 1.5 if y > 30 * _FLOOR else y * 20))
        self._label.set_horizontalalignment("right" if right else "left")
        beyond = " (below the picture)" if result.figures["attained"].m_as("TFLOP/s") < _FLOOR else ""
        self._label.set_text(f"{percent(result.figures['utilisation'])} of peak{beyond}")
        what = f"{KINDS[kind]} of width {width:,} at batch {batch:,} in {precision.upper()}"
        summary = _summary(result, device, what, unit)
        if second is not None and other is not None:
            summary += _comparison(result, second, other)
        elif other is not None and other is not device:
            summary += f" {device_name(other)} has no {precision.upper()} rate and is left out."
        return View(
            figure=self.figure,
            summary=summary,
            alt="Roofline on two logarithmic axes: performance over arithmetic intensity, a slope set by memory "
            f"bandwidth that meets a flat roof set by the peak rate. {summary}",
            values={"result": result, "other": second},
        )


def _unit(precision: str) -> str:
    """Return the name of an operation, which is not FLOP for integers."""
    return "OP" if precision.startswith("int") else "FLOP"


def _summary(result: Result, device: Device, what: str, unit: str) -> str:
    figures = result.figures
    intensity, ridge = figures["intensity"].m_as("FLOP/byte"), figures["ridge"].m_as("FLOP/byte")
    side = "above" if intensity > ridge else "below" if intensity < ridge else "at"
    attained: Quantity = figures["attained"].to_compact()  # type: ignore[assignment]
    rate = f"{number(attained)} {attained.units:~P}".replace("FLOP", unit)
    bound = {
        "memory": "memory-bound",
        "compute": "compute-bound",
        "launch": "bound by launch overhead, whatever the roof allows",
    }[result.bound_by]
    text = (
        f"A {what} does {number(intensity)} {unit} per byte, {side} the {device_name(device)}'s ridge of "
        f"{number(ridge)}: {bound}. It reaches {rate}, {percent(figures['utilisation'])} of the peak, "
        f"and takes {_time(result.time)}."
    )
    under = (figures["attained"] / figures["roof"]).m_as("")
    if under < 0.995:
        text += f" That is {percent(under)} of what the roof allows here."
    return text


def _comparison(result: Result, second: Result, other: Device) -> str:
    ratio = (result.time / second.time).m_as("")
    how = f"{times(ratio)} as fast" if ratio >= 1 else f"{times(1 / ratio)} slower"
    return f" On {device_name(other)} it takes {_time(second.time)}, {how}, {second.bound_by}-bound."


def _time(time: Quantity) -> str:
    compact: Quantity = time.to_compact()  # type: ignore[assignment]
    return f"{number(compact)} {compact.units:~P}"
