"""Parser of a benchmark board's output: messages of MLPerf Tiny's runner, and rows of a trace.

A row is ``i,layer,start,end,misses,accesses,ms,mJ``: the inference, the layer or ``total``, a 32-bit counter before and
after, the board's counts, and its own milliseconds, by which the row is checked. Empty cells mean not counted.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsys.errors import LogFileError
from mlsys.faults import by_line
from mlsys.measure.counters import unwrapped
from mlsys.measure.log import Sample

_BOARD = ("board", "clock", "counter", "build", "profile")
COLUMNS = ("i", "layer", "start", "end", "misses", "accesses", "ms", "mJ")
_MESSAGE = re.compile(r"(?P<kind>[me])-(?P<text>.*)")
_VALUE = re.compile(r"(?P<name>[a-z-]+?)-?\[(?P<value>[^\]]*)\]")
_RATE = re.compile(r"rate-(?P<name>macs|bytes|launches)-(?P<amount>[0-9]{1,18})-(?P<ticks>[0-9]{1,18})")
_DONE = re.compile(r"trace-done-(?P<rows>[0-9]{1,18})")
_REAL, _COUNT = "[0-9]{1,15}([.][0-9]{1,15})?", "[0-9]{1,15}"
_TURN = 1 << 32
_CLOSE = 1.001e-3  # ms: the board prints whole microseconds, rounded down


@dataclass(frozen=True)
class _Row:
    line: int
    iteration: int
    layer: str
    start: int
    end: int
    misses: float | None
    accesses: float | None
    energy: float | None


@dataclass
class Capture:
    """Contents of the output.

    Attributes
    ----------
    facts
        Values by name, such as ``clock``; the last one for ``layer``.
    layers
        Names of layers, in order.
    rates
        Amount and ticks by ``macs``, ``bytes``, ``launches``.
    rows
        Rows of the trace.
    faults
        Errors with their line numbers.
    complaints
        Error messages of the board.
    ready, expected
        Number of ready messages, and of rows announced; None before the end of a trace.
    """

    facts: dict[str, str] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    rates: dict[str, tuple[int, int]] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    ready: int = 0
    expected: int | None = None
    lines: int = 0

    @property
    def clock(self) -> float:
        """Ticks per second of its counter; 0 if not reported."""
        text = self.facts.get("clock", "")
        return float(text) if re.fullmatch("[0-9]{1,12}", text) else 0.0

    @property
    def environment(self) -> dict[str, Any]:
        """Board, clock, counter and build, as reported by the board, and a warning of a debug build."""
        facts = {name: self.facts[name] for name in _BOARD if name in self.facts}
        return {"backend": facts, "debug": ["the firmware is a debug build"] if facts.get("build") == "debug" else []}

    def rates_per_second(self, clock: float) -> dict[str, float] | None:
        """Return operations and bytes per second of the board's loops, and seconds of a launch; None if missing.

        Parameters
        ----------
        clock
            Ticks per second.
        """
        if set(self.rates) != {"macs", "bytes", "launches"} or not all(map(all, self.rates.values())):
            return None
        speed = {name: amount * clock / ticks for name, (amount, ticks) in self.rates.items()}
        return {"ops_per_s": 2 * speed["macs"], "bytes_per_s": speed["bytes"], "launch_s": 1 / speed["launches"]}

    def take(self, text: str) -> None:
        """Parse one more line."""
        self.lines += 1
        line = text.strip("\r\n")
        message = _MESSAGE.fullmatch(line)
        if not line or line == ",".join(COLUMNS):
            return
        if message is None:
            self._row(line)
        elif message["kind"] == "e":
            self.complaints.append(message["text"].strip("[]"))
        elif message["text"] == "ready":
            self.ready += 1
        elif rate := _RATE.fullmatch(message["text"]):
            self.rates[rate["name"]] = int(rate["amount"]), int(rate["ticks"])
        elif done := _DONE.fullmatch(message["text"]):
            self.expected = int(done["rows"])
        elif value := _VALUE.fullmatch(message["text"]):
            self.facts[value["name"]] = value["value"]
            if value["name"] == "layer":
                self.layers.append(value["value"])

    def _row(self, line: str) -> None:
        cells = [cell.strip() for cell in line.split(",")]
        faults: list[str] = []
        if len(cells) != len(COLUMNS):
            self.faults.append((self.lines, f"expected {len(COLUMNS)} cells, got {len(cells)}: {line[:60]!r}"))
            return
        numbers: dict[str, float | None] = {}
        for name, cell in zip(COLUMNS, cells, strict=True):
            if name == "layer":
                continue
            if not cell and name in ("misses", "accesses", "mJ"):
                numbers[name] = None
            elif not re.fullmatch(_REAL if name in ("ms", "mJ") else _COUNT, cell):
                faults.append(f"{name}: must be a number >= 0, got {cell[:40]!r}")
            else:
                numbers[name] = float(cell) if name in ("ms", "mJ") else int(cell)
        for name in ("start", "end"):
            if (numbers.get(name) or 0) >= _TURN:
                faults.append(f"{name}: must fit into 32 bits, got {numbers[name]}")
        if not cells[1]:
            faults.append("layer: must not be empty")
        if not faults and self.clock:
            reported_ms, ticks = numbers["ms"] or 0.0, ((numbers["end"] or 0) - (numbers["start"] or 0)) % _TURN
            if abs(1e3 * ticks / self.clock - reported_ms) > _CLOSE:
                faults.append(f"ms: {reported_ms:g} does not match the {ticks:.0f} ticks between start and end")
        misses, accesses = numbers.get("misses"), numbers.get("accesses")
        if misses is not None and accesses is not None and misses > accesses:
            faults.append(f"misses: {misses:g} exceed {accesses:g} accesses")
        if faults:
            self.faults += [(self.lines, words) for words in faults]
            return
        self.rows.append(
            _Row(
                self.lines, int(numbers["i"] or 0), cells[1], int(numbers["start"] or 0), int(numbers["end"] or 0),
                misses, accesses, numbers["mJ"],
            )
        )  # fmt: skip


def read_capture(lines: Iterable[str], where: str = "capture", *, skip_malformed: bool = False) -> Capture:
    """Return the parsed output of a board.

    Parameters
    ----------
    lines
        The output, line by line.
    where
        Name used in errors.
    skip_malformed
        Whether to skip rows that cannot be read, keeping them in ``faults``, instead of refusing all.

    Raises
    ------
    LogFileError
        If rows cannot be read or are missing, or there is none; every error is listed, with its line.

    Examples
    --------
    >>> capture = read_capture(["m-clock-[1000000]", "0,total,10,2010,,,2.000,"])
    >>> capture.rows[0].end - capture.rows[0].start
    2000
    >>> read_capture(["m-clock-[1000000]", "0,total,10,20O0,,,2.000,"])
    Traceback (most recent call last):
        ...
    mlsys.errors.LogFileError: capture, line 2: end: must be a number >= 0, got '20O0'
    capture, line 2: there are no rows of an inference
    """
    capture = Capture()
    for line in lines:
        capture.take(line)
    whole: list[tuple[int, str]] = []
    bad = len({line for line, _ in capture.faults})
    if capture.expected is not None and not len(capture.rows) <= capture.expected <= len(capture.rows) + bad:
        whole.append(
            (capture.lines, f"the board announced {capture.expected} rows, but {len(capture.rows)} can be read")
        )
    if not any(row.layer == "total" for row in capture.rows):
        whole.append((max(capture.lines, 1), "there are no rows of an inference"))
    faults = whole + ([] if skip_malformed else capture.faults)
    if faults:
        raise LogFileError(by_line(where, faults))
    return capture


def samples_of(capture: Capture, clock: float, run: int = 0) -> tuple[list[Sample], list[Sample]]:
    """Return inferences and layers of a trace, allowing for counter wrap-around.

    Parameters
    ----------
    capture
        A capture with rows in order of time: for each inference the total first, then its layers.
    clock
        Ticks per second.
    run
        The run that the samples belong to.
    """
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    times = unwrapped([row.start for row in capture.rows if row.layer == "total"])
    starts = dict(zip((row.line for row in capture.rows if row.layer == "total"), times, strict=True))
    numbers: dict[int, int] = {}
    for row in capture.rows:
        ticks = (row.end - row.start) % _TURN
        whole = row.layer == "total"
        if whole:
            numbers[row.iteration] = len(numbers)
        counters: Mapping[str, float | None] = {
            "cycles": float(ticks), "misses": row.misses, "accesses": row.accesses,
            **({"since_start": float(starts[row.line] - times[0])} if whole else {}),
        }  # fmt: skip
        if ticks == 0 and whole:
            continue
        iteration = numbers.get(row.iteration, row.iteration)
        sample = Sample(run, iteration, 1e3 * ticks / clock, row.energy, counters, None if whole else row.layer)
        samples[0 if whole else 1].append(sample)
    return samples
