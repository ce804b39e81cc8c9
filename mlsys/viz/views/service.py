"""View of a service: the time between tokens by batch, what each limit leaves, and what a token costs."""

from typing import Any, TypedDict

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mlsys.models.serving.copies import LOAD, TTFT, Service, copy_of, service_of
from mlsys.viz.style import COLORS, HALO, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure, number, percent

__all__ = ["BATCHES", "MODELS", "REGIONS", "SYSTEMS", "ServiceScene", "ServiceValues"]

MODELS = {"llama-3-8b": "Llama 3 8B", "llama-3-70b": "Llama 3 70B", "mixtral-8x7b": "Mixtral 8x7B"}
"""Names of the models that the figure offers, by name in the catalogue."""
SYSTEMS = {
    "Server_8x_L40S": "L40S, PCIe",
    "Server_8x_A100_PCIe": "A100, PCIe",
    "DGX_A100": "A100, NVLink",
    "DGX_H100": "H100, NVLink",
}
"""Servers of eight chips that the figure offers, by id."""
REGIONS = ("World", "Germany", "Norway", "Spain", "Japan", "Australia")
BATCHES = (8, 16, 32, 56, 88, 136, 216)
_LEFT, _RIGHT = 0, 3
_TOP = 160.0  # ms
_ROWS = ("memory of a chip", "time to first token", "time between tokens", "load")


class ServiceValues(TypedDict):
    """Values of :class:`ServiceScene`: the service."""

    service: Service


class ServiceScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = (
        "An empty chart of the time between tokens over the batch, beside an empty chart with room for four bars, "
        "each for one limit."
    )

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.4)
            steps = self.figure.add_axes((0.08, 0.13, 0.40, 0.72))
            decades(steps, "x", _LEFT, _RIGHT)
            steps.set_ylim(0, _TOP)
            steps.set_xlabel("Batch: sequences of one copy", fontsize=10, color=COLORS["primary"])
            self._title(steps, "Time between tokens (ms)")
            steps.grid(True, axis="y", alpha=0.4)
            steps.set_axisbelow(True)
            steps.tick_params(labelsize=9.5, colors=COLORS["primary"])
            style: dict[str, Any] = {"color": COLORS["RedLine"], "linestyle": "--", "linewidth": 1.4}
            (self._curve,) = steps.plot([1], [1], color=COLORS["BlueLine"], linewidth=1.8, marker="o", markersize=4)
            (self._limit,) = steps.plot([1, 1000], [1, 1], zorder=2, **style)
            (self._full,) = steps.plot([1, 1], [0, _TOP], color=COLORS["axis"], linestyle=":", linewidth=1.6)
            (self._point,) = steps.plot(
                [1],
                [1],
                color=COLORS["BlueLine"],
                marker="o",
                markersize=11,
                markeredgecolor="white",
                zorder=6,
                clip_on=False,
            )
            text: dict[str, Any] = {"fontsize": 9.5, "bbox": HALO, "zorder": 7}
            self._limit_label = steps.text(1.2, 1, "", color=COLORS["RedLine"], va="bottom", **text)
            self._fits = steps.text(1, 0.97 * _TOP, "", color=COLORS["primary"], va="top", ha="right", **text)
            bars = self.figure.add_axes((0.53, 0.13, 0.43, 0.72))
            bars.set(xlim=(0, 1.5), ylim=(len(_ROWS) - 0.35, -0.7))
            self._title(bars, "Used of each limit")
            bars.set_xticks([0, 0.5, 1, 1.5], ["0", "50%", "100%", "150%"], fontsize=9.5, color=COLORS["primary"])
            bars.set_yticks([])
            for side in ("top", "right"):
                bars.spines[side].set_visible(False)
            bars.plot([1, 1], [-0.7, len(_ROWS)], zorder=5, **style)
            self._bars, self._texts = [], []
            for row in range(len(_ROWS)):
                bar = Rectangle((0, row), 0, 0.32, edgecolor=COLORS["axis"], zorder=3)
                bars.add_patch(bar)
                self._bars.append(bar)
                self._texts.append(
                    bars.text(
                        0.02, row - 0.2, "", fontsize=9.5, va="center", color=COLORS["primary"], bbox=HALO, zorder=6
                    )
                )
            self.guess = Guess(bars, "x", place=0.19, span=(0.02, 0.26))
            self._money = self.figure.text(0.08, 0.95, "", fontsize=10.5, weight="bold", color=COLORS["primary"])
        self.moving = (
            self._curve, self._limit, self._full, self._point, self._limit_label, self._fits, *self._bars, *self._texts,
            self._money, *self.guess.artists,
        )  # fmt: skip

    @staticmethod
    def _title(ax: Axes, words: str) -> None:
        ax.set_title(words, loc="left", fontsize=11, weight="bold", color=COLORS["primary"])

    def update(
        self,
        model: str = "llama-3-8b",
        system: str = "DGX_H100",
        tp: int = 1,
        replicas: int = 1,
        batch: int = 32,
        rate: float = 9,
        limit: float = 45,
        region: str = "World",
    ) -> View[ServiceValues]:
        """Return the view of a service.

        Parameters
        ----------
        model, system, tp, replicas, batch, rate, limit, region
            As in :func:`mlsys.models.serving.service_of`.

        Raises
        ------
        ArgumentError
            If the number of copies or the rate is not above zero.

        Examples
        --------
        >>> print(ServiceScene().update().summary)
        1 copy of Llama 3 8B, on 1 chip (H100, NVLink), batch limit 32: ...
        """
        service = service_of(model, system, tp, replicas, batch, rate, limit, region)
        copy = service.copy
        steps = [1e3 * copy_of(model, system, tp, size).step for size in BATCHES]
        self._curve.set_data(BATCHES, [min(step, 1.05 * _TOP) for step in steps])
        self._point.set_data([batch], [min(1e3 * copy.step, _TOP)])
        self._limit.set_ydata([limit, limit])
        self._limit_label.set_text(f"limit {limit:g} ms")
        self._limit_label.set_y(limit)
        most = min(max(copy.most, 1), 1000)
        self._full.set_xdata([most, most])
        self._fits.set_x(most if most > 30 else 30)
        self._fits.set_text("weights do not fit" if copy.most < 1 else f"memory: {copy.most}")
        ttft = 9.0 if service.ttft is None else service.ttft
        rows = (
            (copy.needed / copy.room, f"{number(copy.needed / 1e9)} of {number(copy.room / 1e9)} GB"),
            (ttft / TTFT, "the queue grows" if service.ttft is None else f"{number(1e3 * ttft)} of {1e3 * TTFT:g} ms"),
            (1e3 * copy.step / limit, f"{number(1e3 * copy.step)} of {limit:g} ms"),
            (service.load / LOAD, f"{percent(service.load)} of {percent(LOAD)}"),
        )
        for bar, text, name, (used, words) in zip(self._bars, self._texts, _ROWS, rows, strict=True):
            bar.set_width(min(used, 1.5))
            bar.set_facecolor(COLORS["BlueLine"] if used <= 1 else COLORS["RedLine"])
            text.set_text(f"{name}: {words}")
        cost = f"{number(service.dollars)} USD, {number(service.grams)} g CO2e a million tokens served"
        if batch > copy.most:
            cost = "the batch does not fit" if copy.most else "the weights do not fit"
        self._money.set_text(f"{service.chips} chip{'' if service.chips == 1 else 's'} · {cost}")
        summary = _summary(service, MODELS.get(model, model), system, tp, replicas, batch, rate, limit)
        return View(
            figure=self.figure,
            summary=summary,
            alt="A curve of the time between tokens over the batch with two limits, and four bars of how much of each "
            f"limit is used. {summary}",
            values={"service": service},
        )


def _summary(
    service: Service, model: str, system: str, tp: int, replicas: int, batch: int, rate: float, limit: float
) -> str:
    copy = service.copy
    copies = f"{replicas} cop{'y' if replicas == 1 else 'ies'}"
    chips = f"{tp} chip{'' if tp == 1 else 's'}"
    each = "" if replicas == 1 else "each "
    first = "never comes at this load" if service.ttft is None else f"comes after {number(1e3 * service.ttft)} ms"
    verdict = f"It breaks a limit: {service.fault}" if service.fault else "It keeps every limit."
    return (
        f"{copies} of {model}, {each}on {chips} ({SYSTEMS.get(system, system)}), batch limit {batch}: a chip holds "
        f"{number(copy.weights / 1e9)} GB of weights and has room for {copy.most} sequences; a step takes "
        f"{number(1e3 * copy.step)} ms, and the first token {first}. One copy answers {number(copy.requests)} "
        f"requests/s, and {rate:g} arrive: the load is {percent(service.load)}. A million tokens served cost "
        f"{number(service.dollars)} USD, {number(service.kilowatt_hours)} kWh and {number(service.grams)} g CO2e. "
        f"{verdict}"
    )
