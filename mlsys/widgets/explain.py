"""The lab on explaining a measurement. Every number in a question or an answer comes from the stored logs."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsys.labs import explain
from mlsys.labs.gap import runtime_gap
from mlsys.viz.views.explain import FACTORS, ExplainScene, measured, measurements
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets import parts
from mlsys.widgets.gap_box import GapBox
from mlsys.widgets.lab import Lab
from mlsys.widgets.measure import MeasureHere, this_python
from mlsys.widgets.parts import Control, choice, slider

_START_MESSAGE = "Started. Four runtimes, three times each, take some tens of seconds."
_CAUSES = (("Arithmetic", "compute"), ("Bytes", "memory"), ("Entering kernels", "launch"), ("The rest", "residual"))


class _Frames(Mapping[str, tuple[Any, ...]]):
    """Frames for the book, read lazily because reading and checking the measurements is slow."""

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return {"run": lambda: tuple(measurements()), "cause": lambda: tuple(value for _, value in _CAUSES)}[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(("run", "cause"))

    def __len__(self) -> int:
        return 2


class ExplainLab(Lab):
    """Predict, explore and check the time breakdown of a measured network, and measure on your own machine.

    Examples
    --------
    >>> lab = ExplainLab()
    >>> lab.predict(lab.prediction.listed()[0])
    >>> lab.view.values["attribution"].name
    'ds-cnn fp32 eager'
    """

    id = "lab-10-explain"
    title = "Lab 10: Why is it slow?"
    purpose = (
        "One small network was run in several ways on one core, with the same weights. Find out where the time of each "
        "went, which popular explanations the measurement refutes, and what a change could gain at most."
    )
    scene = ExplainScene
    frames = _Frames()

    predicts = ("run",)

    def _controls(self) -> tuple[Control, ...]:
        known = [(name, name) for name in measurements()]
        factors = [(f"{factor:g}×", factor) for factor in FACTORS]
        return (
            choice("run", "Workload", "Runtime and format", known, explain.SLOW, "What was measured"),
            choice("cause", "Mapping", "What becomes faster", list(_CAUSES), "memory", "One cause of the time"),
            slider("factor", "Hardware", "How many times", factors, 1.0, "How much faster that cause becomes"),
        )

    def _arguments(self) -> dict[str, Any]:
        return {"name": self.value("run"), "cause": self.value("cause"), "factor": self.value("factor")}

    def _more(self) -> tuple[Any, ...]:
        self._folder = tempfile.TemporaryDirectory(prefix="mlsys-explain-")
        self.gap = GapBox(lambda record: self.keep_measurement("gap", record))
        self.here = MeasureHere(
            self._command,
            measured_summary,
            then=self._keep_measured,
            start_message=_START_MESSAGE,
        )
        words = (
            "<p>The picture was measured on one machine. The button runs the same network on the machine of this "
            "notebook, with every runtime of four that is installed; one that is not is named. It can be stopped.</p>"
        )
        return (parts.heading("On your machine"), parts.text(words), self.here.view, self.gap.view)

    def _keep_measured(self, record: dict[str, Any]) -> None:
        """Keep the summary of each log, without its samples."""
        kept = ("name", "latency_ms", "attribution", "doubts")
        logs = [{name: log[name] for name in kept if name in log} for log in record["logs"]]
        self.measurements.pop("gap", None)
        self.keep_measurement("explain", {"logs": logs, "absent": record["absent"]})
        self._restored()
        if self.locked:
            self._redraw()

    def _restored(self) -> None:
        record = self.measurements.get("explain")
        self.gap.ask(runtime_gap(record) if record else None, self.measurements.get("gap", {}).get("explanation", ""))

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the range of times, as shares of the shown run, that a range of speedups means."""
        low, high = explain.band(given)
        if self._scene.guess is not None:
            self._scene.guess.label = f"{explain.RUNTIMES[explain.compared(self.draw)]}: your prediction"
        return 1 / high, 1 / max(low, 0.5)

    def _measured_at(self) -> float | None:
        """Return the time of the shown runtime on this machine, as a share of the stored one."""
        name, _, precision = self.value("run").partition(", ")
        for log in self.measurements.get("explain", {}).get("logs", ()):
            if log["name"].split()[1:] == [precision.lower(), name]:
                return float(log["latency_ms"]["p50"] / measured(self.value("run")).total)
        return None

    def _command(self) -> list[str]:
        folder = str(Path(self._folder.name) / "logs")
        names = "eager,onnxruntime,openvino,litert"
        return this_python("explain", "run", "ds-cnn", "--backend", names, "--out", folder, "--json")


def measured_summary(record: dict[str, Any]) -> str:
    """Return sentences that summarise the measurement on the reader's machine."""
    logs = sorted(record["logs"], key=lambda log: log["latency_ms"]["p50"])
    times_here = ", ".join(f"{log['name'].split()[-1]} {number(1e3 * log['latency_ms']['p50'])} µs" for log in logs)
    lines = [f"Here DS-CNN takes {times_here}."]
    slow, fast = logs[-1], logs[0]
    if len(logs) > 1:
        lines.append(f"The slowest takes {times(slow['latency_ms']['p50'] / fast['latency_ms']['p50'])} as long.")
    if slow["attribution"]:
        shares = slow["attribution"]
        explained = (shares["compute"] + shares["memory"]) / 100
        lines.append(f"Arithmetic and bytes explain {percent(explained, 2)} of it.")
    doubted = [f"{log['name'].split()[-1]}: {text}" for log in logs for text in log["doubts"][:1]]
    if doubted:
        lines.append(f"Doubts: {'; '.join(doubted)}.")
    if record["absent"]:
        lines.append(f"Absent: {'; '.join(name['reason'] for name in record['absent'])}.")
    return " ".join(lines)
