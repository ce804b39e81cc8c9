"""The log of a measurement: network, machine, protocol, and every raw sample."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mlsys.errors import LogFileError, UnreadableError
from mlsys.faults import by_line
from mlsys.files import write_text
from mlsys.formatting import significant
from mlsys.inputs import read_text
from mlsys.measure.schema import VERSION, line_faults, whole_faults
from mlsys.measure.timing import LEAST_FOR, Timing
from mlsys.unit_checks import plain_fields

_DIGITS = 6


@dataclass(frozen=True)
class LayerWork:
    """Work of one layer: MAC, and bytes of weights, read and written."""

    name: str
    kind: str
    macs: int
    weight_bytes: int
    read_bytes: int
    write_bytes: int

    def __post_init__(self) -> None:
        plain_fields(self)

    @property
    def data(self) -> int:
        """All bytes, each once."""
        return self.weight_bytes + self.read_bytes + self.write_bytes

    @property
    def flops(self) -> int:
        """FLOP: two per MAC."""
        return 2 * self.macs

    @property
    def intensity(self) -> float:
        """FLOP per byte; 0 if nothing is moved."""
        return self.flops / self.data if self.data else 0.0


@dataclass(frozen=True)
class Cold:
    """A cold start: loading and preparing the network, if known, and the first inference, ms."""

    run: int
    load_ms: float | None
    first_ms: float


@dataclass(frozen=True)
class Sample:
    """One inference, or one layer of it if ``layer`` is set: ms, mJ or None, counters or None."""

    run: int
    iteration: int
    latency_ms: float
    energy_mj: float | None = None
    counters: Mapping[str, float | None] | None = None
    layer: str | None = None


@dataclass(frozen=True)
class Log:
    """A measurement of one network, in one format, by one backend.

    Attributes
    ----------
    backend, model, format, platform, day
        Backend, network, number format, machine and date.
    protocol, environment
        Warm-up, iterations, runs, threads and affinity; and the description of the machine.
    works
        Work of each layer, in order.
    colds, samples, layers
        Cold starts, inferences after the warm-up, and layers.
    rates, energy, counters, layer_times
        Rates of the machine, and the sources of energy, counters and layer times; a None, or a ``source`` of None,
        comes with a reason.
    memory
        ``flash_kb`` and ``ram_kb``, if known.
    output
        Output of the network, in real numbers, for comparison.
    malformed
        Lines of the device that could not be read.
    integers
        Errors of the runtime's integer kernels on this CPU, see :class:`mlsys.measure.integer_check.IntegerCheck`; None
        for a network without integers, and in logs older than this check.

    Examples
    --------
    >>> from mlsys.measure import stored_logs
    >>> log = stored_logs()["ds-cnn fp32 eager"]
    >>> log.runs, len(log.samples) // log.runs >= 100
    (3, True)
    """

    backend: str
    model: str
    format: str
    platform: str
    day: str
    protocol: Mapping[str, Any]
    environment: Mapping[str, Any]
    works: tuple[LayerWork, ...]
    colds: tuple[Cold, ...]
    samples: tuple[Sample, ...]
    layers: tuple[Sample, ...] = ()
    rates: Mapping[str, Any] | None = None
    rates_reason: str = ""
    energy: Mapping[str, Any] = field(default_factory=lambda: {"source": None, "reason": "not requested"})
    counters: Mapping[str, Any] = field(default_factory=lambda: {"source": None, "reason": "not requested"})
    layer_times: Mapping[str, Any] = field(default_factory=lambda: {"source": None, "reason": "not requested"})
    memory: Mapping[str, Any] | None = None
    output: tuple[float, ...] | None = None
    malformed: tuple[str, ...] = ()
    integers: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Network, format and backend."""
        return f"{self.model} {self.format} {self.backend}"

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len({sample.run for sample in self.samples})

    def of_run(self, run: int) -> np.ndarray:
        """Return the latencies of one run, ms."""
        return np.array([sample.latency_ms for sample in self.samples if sample.run == run])

    @cached_property
    def latencies(self) -> np.ndarray:
        """All latencies, ms, run after run."""
        return np.array([sample.latency_ms for sample in self.samples])

    @cached_property
    def timing(self) -> Timing:
        """All samples, in seconds, with the statistics of :class:`mlsys.measure.Timing`."""
        return Timing(self.name, tuple(float(value) / 1e3 for value in self.latencies), 1, self.protocol["warmup"])

    @property
    def median(self) -> float:
        """Median latency, ms."""
        return float(np.median(self.latencies))

    def percentile(self, percent: float) -> float:
        """Return a percentile of all samples, ms."""
        return float(np.percentile(self.latencies, percent))

    @property
    def p99(self) -> float | None:
        """The 99th percentile, ms; None below 1,000 samples, which are too few."""
        return self.percentile(99) if len(self.samples) >= LEAST_FOR[99] else None

    @cached_property
    def run_medians(self) -> tuple[float, ...]:
        """The median of each run, ms."""
        return tuple(float(np.median(self.of_run(run))) for run in sorted({s.run for s in self.samples}))

    @property
    def between_runs(self) -> float:
        """Distance of the largest from the smallest run median, over the median."""
        return (max(self.run_medians) - min(self.run_medians)) / self.median

    @cached_property
    def layer_medians(self) -> dict[str, float]:
        """Median time of each layer, ms, in order; empty if layers were not timed."""
        medians: dict[str, list[float]] = {}
        for sample in self.layers:
            medians.setdefault(sample.layer or "", []).append(sample.latency_ms)
        return {work.name: float(np.median(medians[work.name])) for work in self.works if work.name in medians}

    @cached_property
    def energies(self) -> tuple[float, ...]:
        """Energies of the inferences that have one, mJ."""
        return tuple(sample.energy_mj for sample in self.samples if sample.energy_mj is not None)

    def lines(self) -> list[str]:
        """Return the log in its file format: one JSON object per line."""
        header = {
            "kind": "header", "schema": VERSION, "backend": self.backend, "model": self.model, "format": self.format,
            "platform": self.platform, "day": self.day, "protocol": dict(self.protocol),
            "environment": dict(self.environment), "rates": self.rates and dict(self.rates),
            "rates_reason": self.rates_reason, "energy": dict(self.energy), "counters": dict(self.counters),
            "layer_times": dict(self.layer_times), "layers": [asdict(work) for work in self.works],
            "memory": self.memory and dict(self.memory),
            "output": None if self.output is None else [_short(value) for value in self.output],
            "malformed": list(self.malformed), "integers": self.integers and dict(self.integers),
        }  # fmt: skip
        records: list[dict[str, Any]] = [header]
        records += [
            {"kind": "cold", "run": cold.run, "load_ms": _short(cold.load_ms), "first_ms": _short(cold.first_ms)}
            for cold in self.colds
        ]
        for sample in (*self.samples, *self.layers):
            record: dict[str, Any] = {"kind": "layer" if sample.layer else "sample", "run": sample.run}
            record["iteration"] = sample.iteration
            if sample.layer:
                record["layer"] = sample.layer
            record["latency_ms"] = _short(sample.latency_ms)
            record["energy_mj"] = _short(sample.energy_mj)
            record["counters"] = None if sample.counters is None else dict(sample.counters)
            records.append(record)
        records.append({"kind": "end", "lines": len(records) + 1})
        return [json.dumps(r, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for r in records]

    def write(self, path: Path) -> None:
        """Write the log atomically; folders are created."""
        write_text(path, "\n".join(self.lines()) + "\n", folders=True)


def _short(value: float | None) -> float | None:
    return None if value is None else significant(value, _DIGITS)


def read_log(path: Path | str) -> Log:
    """Return the log in a file.

    Raises
    ------
    LogFileError
        If anything is wrong; every error is listed, with its line.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except UnreadableError as error:
        raise LogFileError(str(error)) from error
    return parsed(text, str(path))


def parsed(text: str, where: str = "log", validate: bool = True) -> Log:
    """Return the log in a text; see :func:`read_log`. Only shipped logs, checked by tests, may skip ``validate``."""
    if not validate:
        return _made([json.loads(line) for line in text.splitlines()])
    records, faults, lines = [], [], text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        record, problems = line_faults(number, line)
        faults += problems
        if record is not None:
            records.append((number, record))
    faults += whole_faults(records, max(len(lines), 1), broken=bool(faults))
    if faults:
        raise LogFileError(by_line(where, faults))
    return _made([record for _, record in records])


def _made(records: list[dict[str, Any]]) -> Log:
    header, *rest = records
    plain = {
        key: value for key, value in header.items() if key not in ("kind", "schema", "layers", "output", "malformed")
    }
    return Log(
        **plain,
        works=tuple(LayerWork(**layer) for layer in header["layers"]),
        output=None if header.get("output") is None else tuple(header["output"]),
        malformed=tuple(header.get("malformed", ())),
        colds=tuple(Cold(each["run"], each["load_ms"], each["first_ms"]) for each in rest if each["kind"] == "cold"),
        samples=tuple(_sample(each) for each in rest if each["kind"] == "sample"),
        layers=tuple(_sample(each) for each in rest if each["kind"] == "layer"),
    )  # fmt: skip


def _sample(record: Mapping[str, Any]) -> Sample:
    return Sample(**{key: value for key, value in record.items() if key != "kind"})
