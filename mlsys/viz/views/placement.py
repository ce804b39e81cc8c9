"""View of a placed pipeline: its schedule compared with two simple placement rules."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import matplotlib.style
from matplotlib.patches import Rectangle

from mlsys.errors import UnknownNameError
from mlsys.planner.placement import Scenario, example, plan
from mlsys.planner.placement.costs import Placed, price
from mlsys.unit_checks import checked_number, count, positive
from mlsys.viz.style import COLORS, CYCLE, HALO
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import times

DEVICES = ("cpu", "gpu", "npu")
MEMORY = 3072
"""Memory of the NPU in the example, MB."""
_STAGES = tuple(stage["name"] for stage in example()["stages"])
_NAMES = ("best plan", "fastest device each", "all on the GPU")
_SPAN = 64.0
Goal = Literal["latency", "efficiency"]


@dataclass(frozen=True)
class Pipeline:
    """The mobile vision pipeline, placed in three ways.

    Attributes
    ----------
    best
        The optimal feasible placement.
    fastest
        Each stage on the device that runs it fastest, ignoring transfers.
    gpu
        Every stage on the GPU.
    memory
        Memory of the NPU, MB.
    """

    best: Placed
    fastest: Placed
    gpu: Placed
    memory: int

    @property
    def fits(self) -> bool:
        """Whether the second placement fits in the memory of the NPU."""
        return float(self.fastest.memory.get("npu", 0)) <= self.memory


@functools.lru_cache(maxsize=512)
def pipeline_of(link: float = 1.0, memory: int = MEMORY, npu: float = 1.0, goal: Goal = "latency") -> Pipeline:
    """Return three placements of the mobile vision pipeline.

    Parameters
    ----------
    link
        Bandwidth of every link, as a multiple of the example's.
    memory
        Memory of the NPU, MB.
    npu
        Speed of the NPU, as a multiple of the example's.
    goal
        ``"latency"`` minimises time, ``"efficiency"`` energy.

    Raises
    ------
    ArgumentError
        If a multiple is not above zero, or the memory is not a whole number of at least 1.
    UnknownNameError
        If there is no such goal.

    Examples
    --------
    >>> placed = pipeline_of(link=1 / 32)
    >>> float(placed.best.latency), float(placed.fastest.latency)
    (43.3, 60.52)
    """
    if goal not in ("latency", "efficiency"):
        raise UnknownNameError(f"pipeline_of(): `goal` must be latency or efficiency, got {goal!r}")
    memory = int(checked_number("pipeline_of", "memory", memory, count(), {}))
    link, npu = (
        float(checked_number("pipeline_of", name, value, positive(), {}))
        for name, value in (("link", link), ("npu", npu))
    )
    scenario = scenario_of(link, memory, npu)
    every = [stage.choices for stage in scenario.stages]
    fastest = price(scenario, [min(choices, key=lambda choice: choice.latency) for choices in every])
    gpu = price(scenario, [next(choice for choice in choices if choice.device == "gpu") for choices in every])
    assert fastest is not None  # every link of the example is there
    assert gpu is not None
    return Pipeline(plan(scenario, goal).best, fastest, gpu, memory)


@functools.lru_cache(maxsize=64)
def scenario_of(link: float = 1.0, memory: int = MEMORY, npu: float = 1.0) -> Scenario:
    """Return the mobile vision pipeline with other links, another memory and another speed of the NPU."""
    data = example()
    data.pop("constraints", None)  # the lab has sliders of its own
    for joined in data["links"]:
        joined["bandwidth_gb_s"] *= link
    for device in data["devices"]:
        if device["name"] == "npu":
            device["memory_mb"] = memory
    for stage in data["stages"]:
        if "npu" in stage["profiles"]:
            stage["profiles"]["npu"]["latency_ms"] /= npu
    return Scenario(data)


class PlacementValues(TypedDict):
    """Values of :class:`PlacementScene`: three placements; time (ms), energy (mJ) and device changes of the best."""

    pipeline: Pipeline
    latency: float
    energy: float
    switches: int


class PlacementScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty time line with a row for each of three devices, above an empty chart with room for three bars."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.8)
            line = self.figure.add_axes((0.2, 0.50, 0.77, 0.36))
            bars = self.figure.add_axes((0.2, 0.11, 0.77, 0.25))
            for ax, names in ((line, [name.upper() for name in DEVICES]), (bars, _NAMES)):
                ax.set_yticks(range(len(names)), names)
                ax.set_ylim(len(names) - 0.45, -0.6)
                ax.set_xlim(0, _SPAN)
                ax.tick_params(labelsize=9.5, colors=COLORS["primary"])
                ax.grid(True, axis="x", alpha=0.4)
                ax.set_axisbelow(True)
                for side in ("top", "right"):
                    ax.spines[side].set_visible(False)
            bars.set_xlabel("time of one run, ms", fontsize=10, color=COLORS["primary"])
            listed = "   ".join(f"{number} {name}" for number, name in enumerate(_STAGES, start=1))
            self.figure.text(0.2, 0.93, listed, fontsize=9, color=COLORS["primary"])
            self.figure.text(0.2, 0.885, "hatched: the data on their way", fontsize=9, color=COLORS["RedLine"])
            self._moves: list[Rectangle] = []
            self._runs: list[Rectangle] = []
            self._numbers = []
            for number in range(1, len(_STAGES) + 1):
                way = Rectangle((0, 0), 0, 0.5, hatch="////", facecolor="white", edgecolor=COLORS["RedLine"], zorder=3)
                run = Rectangle((0, 0), 0, 0.5, edgecolor="white", linewidth=1.0, zorder=3)
                for patch, kept in ((way, self._moves), (run, self._runs)):
                    line.add_patch(patch)
                    kept.append(patch)
                label = line.text(0, 0, str(number), fontsize=9, ha="center", va="center", zorder=4, bbox=HALO)
                self._numbers.append(label)
            self._bars, self._labels = [], []
            for at in range(len(_NAMES)):
                fill = CYCLE[0] if at == 0 else COLORS["grid"]
                bar = Rectangle((0, at - 0.3), 0, 0.6, facecolor=fill, edgecolor=COLORS["axis"], zorder=3)
                bars.add_patch(bar)
                self._bars.append(bar)
                text = bars.text(0, at, "", fontsize=9.5, va="center", color=COLORS["primary"], zorder=4, bbox=HALO)
                self._labels.append(text)
            self.guess = Guess(bars, "x", place=1.13, span=(0.66, 0.97), over=True)
        self.moving = (*self._moves, *self._runs, *self._numbers, *self._bars, *self._labels, *self.guess.artists)

    def update(
        self, link: float = 1.0, memory: int = MEMORY, npu: float = 1.0, goal: Goal = "latency"
    ) -> View[PlacementValues]:
        """Return the view of the mobile vision pipeline, placed for a goal.

        Parameters
        ----------
        link, memory, npu, goal
            As in :func:`pipeline_of`.

        Raises
        ------
        ArgumentError
            If a multiple is not above zero, or the memory is not a whole number of at least 1.
        UnknownNameError
            If there is no such goal.

        Examples
        --------
        >>> print(PlacementScene().update(npu=0.5).summary)
        Least time: GPU runs decode to overlay. That takes 43.3 ms and 85.3 mJ, changes device 0 times ...
        """
        placed = pipeline_of(link, memory, npu, goal)
        now = 0.0
        for way, run, label, stage in zip(self._moves, self._runs, self._numbers, placed.best.stages, strict=True):
            row = DEVICES.index(stage.choice.device)
            wait, took = float(stage.transfer_latency), float(stage.choice.latency)
            way.set_visible(wait > 0)  # an invisible hatch costs as much as a visible one
            way.set_bounds(now, row - 0.25, wait, 0.5)
            run.set_bounds(now + wait, row - 0.25, took, 0.5)
            run.set_facecolor(CYCLE[row % len(CYCLE)])
            label.set_position((now + wait + took / 2, row - 0.42))
            now += wait + took
        ways = (placed.best, placed.fastest, placed.gpu)
        for bar, text, way_, fits in zip(self._bars, self._labels, ways, (True, placed.fits, True), strict=True):
            bar.set_width(min(float(way_.latency), _SPAN))
            bar.set_hatch("" if fits else "xx")
            text.set_x(min(float(way_.latency), _SPAN) + 0.5)
            text.set_text(_label(way_) + ("" if fits else ", does not fit"))
            text.set_horizontalalignment("left" if float(way_.latency) < 0.7 * _SPAN else "right")
        summary = _summary(placed, goal)
        return View(
            figure=self.figure,
            summary=summary,
            alt="A time line of seven stages on CPU, GPU and NPU, and bars of the time of three placements. " + summary,
            values={
                "pipeline": placed,
                "latency": float(placed.best.latency),
                "energy": float(placed.best.energy),
                "switches": placed.best.switches,
            },
        )


def _label(placed: Placed) -> str:
    return f"{float(placed.latency):.4g} ms, {float(placed.energy):.4g} mJ"


def _runs(placed: Placed) -> Sequence[tuple[str, str]]:
    runs: list[list[str]] = []
    for stage in placed.stages:
        if runs and runs[-1][0] == stage.choice.device:
            runs[-1].append(stage.stage)
        else:
            runs.append([stage.choice.device, stage.stage])
    return [(device.upper(), " to ".join(dict.fromkeys((stages[0], stages[-1])))) for device, *stages in runs]


def _summary(placed: Pipeline, goal: Goal) -> str:
    best = placed.best
    listed = "; ".join(f"{device} runs {stages}" for device, stages in _runs(best))
    wanted = "least time" if goal == "latency" else "least energy"
    fewer = times(float(placed.gpu.latency / best.latency))
    rule = f"the fastest device for each stage takes {float(placed.fastest.latency):.4g} ms"
    return (
        f"{wanted.capitalize()}: {listed}. That takes {float(best.latency):.4g} ms and {float(best.energy):.4g} mJ, "
        f"changes device {best.switches} times and is {fewer} as fast as the GPU alone; "
        f"{rule}{'' if placed.fits else ' and does not fit into the NPU'}."
    )
