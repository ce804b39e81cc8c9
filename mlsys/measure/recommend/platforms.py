"""Comparison of platforms: measured rows and published rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.amounts import parsed_number
from mlsys.errors import LogFileError, UnreadableError
from mlsys.faults import by_line, short
from mlsys.inputs import csv_records
from mlsys.measure.log import Log

COLUMNS = ("platform", "latency_ms", "energy_mj", "memory_kb", "accuracy", "cost_usd")
BETTER = {"latency_ms": "less", "energy_mj": "less", "memory_kb": "less", "accuracy": "more", "cost_usd": "less"}
"""Better direction of each column, used by all figures and choices."""
_MOST = 1e9


@dataclass(frozen=True)
class Platform:
    """One way to run one network; unknown values are None.

    Attributes
    ----------
    platform
        Its name, unique in a comparison.
    latency_ms, energy_mj, memory_kb, accuracy, cost_usd
        Per inference; RAM and flash together; percent; price of the chip or board.
    source
        Source of the values.
    between_runs
        Distance of the medians of repeated runs over the median.
    """

    platform: str
    latency_ms: float | None = None
    energy_mj: float | None = None
    memory_kb: float | None = None
    accuracy: float | None = None
    cost_usd: float | None = None
    source: str = ""
    between_runs: float | None = None

    @property
    def power_mw(self) -> float | None:
        """Mean power during an inference, mW, if time and energy are known."""
        if self.energy_mj is None or self.latency_ms is None:
            return None
        return 1e3 * self.energy_mj / self.latency_ms


def platform_of(log: Log) -> Platform:
    """Return a log as a row of a comparison."""
    memory = log.memory and sum(value for value in log.memory.values() if value is not None)
    energy = sum(log.energies) / len(log.energies) if log.energies else None
    return Platform(
        f"{log.backend} {log.format} on {log.platform}", log.median, energy, memory or None,
        source=f"measured here, {log.day}", between_runs=log.between_runs if log.runs > 1 else None,
    )  # fmt: skip


PUBLISHED_RUNS = Path(__file__).parents[1] / "data" / "mlperf_tiny.csv"
"""Results of MLPerf Tiny, an excerpt of the measurements that the estimates are fitted to."""


@dataclass(frozen=True)
class PublishedRun:
    """One result of MLPerf Tiny.

    Attributes
    ----------
    device, network
        Names as submitted.
    latency_ms
        Latency of one inference.
    energy_mj
        Energy of one inference in the same run; None if only time was measured.
    source
        The round, the submitter, and the file.
    """

    device: str
    network: str
    latency_ms: float
    energy_mj: float | None
    source: str


@lru_cache(maxsize=1)
def published_runs() -> tuple[PublishedRun, ...]:
    """Return the shipped results of MLPerf Tiny."""
    (_, columns), *lines = csv_records(PUBLISHED_RUNS)
    records = [dict(zip(columns, cells, strict=True)) for _, cells in lines]
    return tuple(
        PublishedRun(
            each["device"], each["network"], float(each["latency_ms"]),
            float(each["energy_mj"]) if each["energy_mj"] else None, each["source"],
        )
        for each in records
    )  # fmt: skip


@lru_cache(maxsize=4)
def published(model: str = "DS-CNN") -> tuple[Platform, ...]:
    """Return microcontrollers with published energy and latency of the same run; for each, the run of least energy.

    Parameters
    ----------
    model
        Name of the network in MLPerf Tiny: ``DS-CNN``.

    Examples
    --------
    >>> rows = {row.platform.split(" ")[0]: row for row in published()}
    >>> rows["STM32H7A3"].latency_ms < rows["STM32L4R5"].latency_ms
    True
    """
    best: dict[str, PublishedRun] = {}
    for run in published_runs():
        if model not in run.network or run.energy_mj is None:
            continue
        least = best.get(run.device)
        if least is None or least.energy_mj is None or run.energy_mj < least.energy_mj:
            best[run.device] = run
    return tuple(
        Platform(device, run.latency_ms, run.energy_mj, source=run.source) for device, run in sorted(best.items())
    )


def read_platforms(path: Path) -> list[Platform]:
    """Return the rows of a CSV file with the columns of :data:`COLUMNS`; an empty cell means unknown.

    Raises
    ------
    LogFileError
        If anything is wrong; every error is listed, with its line.
    """
    try:
        records = csv_records(path)
    except UnreadableError as error:
        raise LogFileError(str(error)) from error
    columns = records[0][1] if records else []
    faults = [(1, f"the column {name} is missing") for name in COLUMNS if name not in columns]
    faults += [(1, f"unknown column {short(name)}. Known: {', '.join(COLUMNS)}, source") for name in columns
               if name not in (*COLUMNS, "source")]  # fmt: skip
    faults += [(1, f"duplicate column {name}") for name in dict.fromkeys(columns) if columns.count(name) > 1]
    rows: list[Platform] = []
    names: set[str] = set()
    for line, cells in () if faults else records[1:]:
        if len(cells) != len(columns):
            faults.append((line, f"expected {len(columns)} cells, got {len(cells)}"))
            continue
        record = dict(zip(columns, cells, strict=True))
        values: dict[str, Any] = {}
        for name in COLUMNS[1:]:
            values[name], words = _number(name, record[name].strip())
            if words:
                faults.append((line, words))
        name = record["platform"].strip()
        if not name:
            faults.append((line, "platform: must not be empty"))
        if name in names:
            faults.append((line, f"platform: duplicate {short(name)}"))
        names.add(name)
        rows.append(Platform(name, **values, source=(record.get("source") or str(path)).strip()))
    if not faults and not rows:
        faults.append((1, "there are no rows after the first line"))
    if faults:
        raise LogFileError(by_line(path, faults))
    return rows


def _number(name: str, cell: str) -> tuple[float | None, str]:
    if not cell:
        return None, ""
    try:
        value = parsed_number(cell)
    except ValueError as error:
        return None, f"{name}: must be a number or empty, got {cell[:40]!r} ({error})"
    most = 100.0 if name == "accuracy" else _MOST
    if not 0 < value <= most:
        return None, f"{name}: must be above 0 and at most {most:g}, got {cell}"
    return value, ""


def winners(rows: Sequence[Platform]) -> dict[str, str]:
    """Return the best platform for each column, among known values; columns without any value are omitted."""
    best = {}
    for name, direction in BETTER.items():
        known = [row for row in rows if getattr(row, name) is not None]
        if known:
            choose = min if direction == "less" else max
            best[name] = choose(known, key=lambda row: getattr(row, name)).platform
    return best


def normalised(rows: Iterable[Platform]) -> dict[str, dict[str, float | None]]:
    """Return every column of every platform from 0 to 1, where 1 is the best of the comparison: best over value.

    Parameters
    ----------
    rows
        At least one platform. Where more is better, the result is value over best. Mean power is included.

    Examples
    --------
    >>> normalised([Platform("a", 10.0, accuracy=90.0), Platform("b", 40.0, accuracy=45.0)])["b"]
    {'latency_ms': 0.25, 'accuracy': 0.5}
    """
    rows = list(rows)
    by_platform: dict[str, dict[str, float | None]] = {row.platform: {} for row in rows}
    for name, direction in {**BETTER, "power_mw": "less"}.items():
        known = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        if not known:
            continue
        best = min(known) if direction == "less" else max(known)
        for row in rows:
            value = getattr(row, name)
            share = None if value is None else best / value if direction == "less" else value / best
            by_platform[row.platform][name] = share
    return by_platform
