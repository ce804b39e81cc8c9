"""View of one fact read in several ways: peaks, ridge points, bandwidths and links, and a plan with four slips."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import matplotlib.style

from mlsys.errors import ArgumentError
from mlsys.hardware import Device
from mlsys.models.slips import plan_slips
from mlsys.unit_checks import checked_choice
from mlsys.viz.style import COLORS, HALO, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import device_name, number, times

__all__ = ["READINGS", "Reading", "SlipsScene", "readings"]

_MOST = 12
_GIB = 2**30 / 1e9
_BITS = 8


class Reading(NamedTuple):
    """One way to read a fact: its name, its value with the unit, and its factor over the first reading."""

    name: str
    shown: str
    factor: float


class SlipsValues(TypedDict):
    """Values of :class:`SlipsScene`: the readings, and the line of Python that computes the first one."""

    readings: tuple[Reading, ...]
    code: str


def _ratios(values: list[tuple[str, float]], unit: str) -> tuple[Reading, ...]:
    base = values[0][1]
    return tuple(Reading(name, f"{number(value)} {unit}", value / base) for name, value in values)


def _formats(device: Device, precision: str) -> list[str]:
    """Return the formats of a device, the chosen one first."""
    has = list(device.precisions)
    first = precision if precision in has else next(name for name in ("bf16", "fp16", *has) if name in has)
    return [first, *(name for name in has if name != first)]


def _by_format(
    device: Device, precision: str, value: Callable[[str, str | None], float], unit: str
) -> tuple[Reading, ...]:
    rows = []
    for name in _formats(device, precision):
        rows.append((f"{name.upper()}, dense", value(name, None)))
        if device.has_peak(name, "2:4") and (name in rows[0][0].lower() or name in ("bf16", "fp8")):
            rows.append((f"{name.upper()}, 2:4 sparse", value(name, "2:4")))
    return _ratios(rows[:_MOST], unit)


def _peaks(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    return _by_format(device, precision, lambda name, how: device.peak(name, how).m_as("TFLOP/s"), "TFLOP/s")


def _ridges(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    ridge = lambda name, how: float(device.ridge_point(name, sparsity=how).m_as("FLOP/byte"))  # noqa: E731
    return _by_format(device, precision, ridge, "FLOP/byte")


def _bandwidths(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    gb = device.memory_bw.m_as("GB/s")
    once = (device.memory_capacity / device.memory_bw).m_as("ms")
    return (
        Reading("GB/s, powers of ten", f"{number(gb)} GB/s", 1.0),
        Reading("GiB/s, powers of two", f"{number(gb / _GIB)} GiB/s", 1 / _GIB),
        Reading("bits", f"{number(_BITS * gb)} Gbit/s", float(_BITS)),
        Reading("its memory, read once", f"{number(once)} ms", 1.0),
    )


def _capacities(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    gb = device.memory_capacity.m_as("GB")
    sizes = (("FP32", 4.0), ("BF16", 2.0), ("INT8", 1.0), ("4 bits", 0.5))
    fits = (Reading(f"parameters in {name}", f"{number(gb / size)} billion", 1 / size) for name, size in sizes)
    return (
        Reading("GB, powers of ten", f"{number(gb)} GB", 1.0),
        Reading("GiB, powers of two", f"{number(gb / _GIB)} GiB", 1 / _GIB),
        Reading("bits", f"{number(_BITS * gb)} Gbit", float(_BITS)),
        *fits,
    )


def _links(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    rows: list[Reading] = []
    base = None
    for name, link in device.links.items():
        gb = link.per_direction.m_as("GB/s")
        base = base or gb
        rows += [
            Reading(f"{name}, one direction", f"{number(gb)} GB/s", gb / base),
            Reading(f"{name}, both added", f"{number(2 * gb)} GB/s", 2 * gb / base),
            Reading(f"{name}, one, in bits", f"{number(_BITS * gb)} Gbit/s", _BITS * gb / base),
        ]
    return tuple(rows)


def _plan(device: Device, precision: str, kept: float) -> tuple[Reading, ...]:
    if not (device.has_peak("fp8", "2:4") and device.has_peak("bf16")):
        return ()
    return tuple(Reading(step.name, f"{times(step.factor)} the time", step.factor) for step in plan_slips(device, kept))


READINGS: dict[str, tuple[str, Callable[[Device, str, float], tuple[Reading, ...]], str]] = {
    "peak": ("Peak rates", _peaks, "{device}.peak({precision!r}, sparsity=None)"),
    "ridge": ("Ridge points", _ridges, "{device}.ridge_point({precision!r})"),
    "bandwidth": ("Bandwidth of main memory", _bandwidths, "{device}.memory_bw"),
    "capacity": ("Size of main memory", _capacities, "{device}.memory_capacity"),
    "links": ("Links", _links, "{device}.links"),
    "plan": ("A plan, slip after slip", _plan, "plan_slips({device}, {kept:g})"),
}
"""What can be read, by name: its title, its readings, and the line of Python for the first one."""


def readings(device: Device, what: str, precision: str = "bf16", kept: float = 0.42) -> tuple[Reading, ...]:
    """Return the ways to read one kind of fact of a device, the first one as it is meant for a dense layer.

    Parameters
    ----------
    device
        The device.
    what
        One of ``READINGS``.
    precision
        Number format that comes first, of a peak or a ridge point.
    kept
        Share of the peak that the plan keeps up.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [reading.shown for reading in readings(Hardware.Cloud.H100, "links")][:2]
    ['450 GB/s', '900 GB/s']
    """
    checked_choice("readings", "what", what, READINGS)
    if not 0 < kept <= 1:
        raise ArgumentError(f"readings(): `kept` must lie above 0 and up to 1, got {kept}. Write e.g. kept=0.4")
    return READINGS[what][1](device, precision, kept)


class SlipsScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty chart of one fact read in several ways, as a factor on a logarithmic axis."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.6)
            ax = self.figure.add_axes((0.23, 0.125, 0.725, 0.755))
            decades(ax, "x", -2, 3, "×")
            ax.set(ylim=(_MOST - 0.4, -0.7), yticks=[])
            ax.set_xlabel("Factor over the first reading", fontsize=10, color=COLORS["primary"])
            ax.grid(False, axis="y")
            for factor in (2, 8):
                ax.axvline(factor, color=COLORS["axis"], linestyle=":", linewidth=1)
                ax.text(factor, -0.75, times(factor), ha="center", va="bottom", fontsize=9, color=COLORS["note"])
            ax.axvline(1, color=COLORS["axis"], linewidth=1)
            look: dict[str, Any] = {"va": "center", "fontsize": 9, "color": COLORS["primary"]}
            rows = range(_MOST)
            self._names = [
                ax.text(-0.012, row, "", transform=ax.get_yaxis_transform(), ha="right", **look) for row in rows
            ]
            self._bars = [ax.plot([], [], "-", linewidth=2, color=COLORS["BlueLine"], zorder=3)[0] for _ in rows]
            self._dots = [
                ax.plot([], [], "s" if not row else "o", markersize=8, markeredgecolor="white", zorder=4,
                        color=COLORS["GreenLine" if not row else "BlueLine"])[0]
                for row in rows
            ]  # fmt: skip
            self._values = [ax.text(1, row, "", bbox={**HALO, "pad": 0.4}, zorder=5, **look) for row in rows]
            self._title = self.figure.text(0.01, 0.955, "", fontsize=11, weight="bold", color=COLORS["primary"])
            self._none = ax.text(
                0.5, 0.5, "", transform=ax.transAxes, ha="center", fontsize=10, color=COLORS["primary"]
            )
            self.guess = Guess(ax, "x", place=0.09)
        self.moving = (
            *self._names, *self._bars, *self._dots, *self._values, self._title, self._none, *self.guess.artists,
        )  # fmt: skip

    def update(
        self, device: Device, what: str = "peak", precision: str = "bf16", kept: float = 0.42
    ) -> View[SlipsValues]:
        """Return the view of one kind of fact of a device.

        Parameters
        ----------
        device
            The device.
        what
            One of ``READINGS``.
        precision
            Number format that comes first, of a peak or a ridge point.
        kept
            Share of the peak that the plan keeps up.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> SlipsScene().update(Hardware.Cloud.H100, "links").values["readings"][1].factor
        2.0
        """
        rows = readings(device, what, precision, kept)
        title, _, line = READINGS[what]
        for row, (name, bar, dot, value) in enumerate(
            zip(self._names, self._bars, self._dots, self._values, strict=True)
        ):
            read = rows[row] if row < len(rows) else None
            name.set_text(read.name if read else "")
            value.set_text(read.shown if read else "")
            bar.set_data(*(([1, read.factor], [row, row]) if read else ([], [])))
            dot.set_data(*(([read.factor], [row]) if read else ([], [])))
            if read:
                beside = read.factor < 1
                value.set(x=read.factor * (0.86 if beside else 1.16), ha="right" if beside else "left")
        self._title.set_text(f"{title}: {device_name(device)}")
        self._none.set_text("" if rows else f"The {device_name(device)} has no sparse FP8.\nChoose another machine.")
        first = _formats(device, precision)[0]
        code = line.format(device=f"Hardware.Cloud.{device_name(device)}", precision=first, kept=kept)
        return self._view(device, title, rows, code)

    def _view(self, device: Device, title: str, rows: tuple[Reading, ...], code: str) -> View[SlipsValues]:
        if rows:
            listed = "; ".join(f"{row.name}: {row.shown}" for row in rows[:6])
            summary = f"{title} of the {device_name(device)}. {listed}. In Python: {code}."
        else:
            summary = (
                f"The {device_name(device)} has no sparse FP8 peak, so that this plan cannot be made. Choose another."
            )
        return View(
            figure=self.figure,
            summary=summary,
            alt=f"One fact read in several ways, as factors over the first on a logarithmic axis. {summary}",
            values={"readings": rows, "code": code},
        )
