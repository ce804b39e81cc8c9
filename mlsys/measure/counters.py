"""Event counters: those of the Linux kernel for this process, counters that wrap around, and ratios of counts."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Mapping, Sequence
from types import TracebackType

from mlsys.errors import ArgumentError

_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_L1D, _LL, _READ, _ACCESS, _MISS = 0, 2, 0, 0, 1 << 16
_EVENTS: dict[str, tuple[int, int]] = {  # type and number, from linux/perf_event.h
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache-references": (_HARDWARE, 2),
    "cache-misses": (_HARDWARE, 3),
    "branches": (_HARDWARE, 4),
    "branch-misses": (_HARDWARE, 5),
    "L1-dcache-loads": (_CACHE, _L1D | _READ << 8 | _ACCESS),
    "L1-dcache-load-misses": (_CACHE, _L1D | _READ << 8 | _MISS),
    "LLC-loads": (_CACHE, _LL | _READ << 8 | _ACCESS),
    "LLC-load-misses": (_CACHE, _LL | _READ << 8 | _MISS),
    "page-faults": (_SOFTWARE, 2),
    "context-switches": (_SOFTWARE, 3),
}
_CALLS = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES = 128  # bytes of the structure; the kernel accepts shorter and longer ones
_FLAGS = 1 << 5 | 1 << 6  # exclude the kernel and the hypervisor
LINE = 64
"""Bytes fetched by a miss of the last-level cache."""
_FORMAT = 1 | 2  # also read time enabled and time running, for multiplexed events


class PerfCounters:
    """Events of this process, counted by the kernel; events without support are absent, with a reason.

    Examples
    --------
    >>> with PerfCounters(("no-such-event",)) as counters:
    ...     print(counters.missing["no-such-event"])
    unknown event
    """

    def __init__(self, events: Sequence[str] = tuple(_EVENTS)) -> None:
        self.missing: dict[str, str] = {}
        self._files: dict[str, int] = {}
        for name in events:
            if name not in _EVENTS:
                self.missing[name] = "unknown event"
                continue
            file, why = _opened(*_EVENTS[name])
            if file < 0:
                self.missing[name] = why
            else:
                self._files[name] = file

    @property
    def read_names(self) -> tuple[str, ...]:
        """Names of the counted events."""
        return tuple(self._files)

    @property
    def reason(self) -> str:
        """Why events are absent, in one sentence; empty if all are counted."""
        reasons: dict[str, list[str]] = {}
        for name, why in self.missing.items():
            reasons.setdefault(why, []).append(name)
        return "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())

    def read(self) -> dict[str, float]:
        """Return the current count of every event, scaled up for multiplexing."""
        counts = {}
        for name, file in self._files.items():
            count, enabled, running = struct.unpack("QQQ", os.read(file, 24))
            counts[name] = float(count) * (enabled / running if running else 1.0)
        return counts

    def close(self) -> None:
        """Release the counters."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def __enter__(self) -> PerfCounters:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _opened(kind: int, number: int) -> tuple[int, str]:
    call = _CALLS.get(platform.machine())
    if platform.system() != "Linux" or call is None:
        return -1, f"perf events need Linux on {' or '.join(_CALLS)}"
    attributes = struct.pack("IIQQQQQ", kind, _ATTRIBUTES, number, 0, 0, _FORMAT, _FLAGS)
    buffer = ctypes.create_string_buffer(attributes.ljust(_ATTRIBUTES, b"\0"), _ATTRIBUTES)
    library = ctypes.CDLL(None, use_errno=True)
    file = library.syscall(call, buffer, 0, -1, -1, 8)
    if file >= 0:
        return int(file), ""
    code = ctypes.get_errno()
    hints = {1: "not permitted (kernel.perf_event_paranoid, or a container)", 13: "not permitted",
             2: "the CPU, or its virtual machine, does not count it", 95: "not supported here",
             38: "the kernel was built without perf events"}  # fmt: skip
    return -1, hints.get(code, os.strerror(code))


def unwrapped(values: Sequence[int], bits: int = 32) -> list[int]:
    """Return the readings of a wrapping counter as a monotonic sequence.

    Parameters
    ----------
    values
        Readings in order of time, less than one period of the counter apart: 19.9 s at 216 MHz.
    bits
        Width of the counter.

    Raises
    ------
    ArgumentError
        If a reading does not fit into the counter.

    Examples
    --------
    >>> unwrapped([4294967290, 4294967295, 4])
    [4294967290, 4294967295, 4294967300]
    """
    turn, total = 1 << bits, 0
    unwrapped_at: list[int] = []
    for index, value in enumerate(values):
        if not 0 <= value < turn:
            raise ArgumentError(f"unwrapped(): `values[{index}]` must fit into {bits} bits, got {value}")
        total = value if not unwrapped_at else total + (value - total) % turn
        unwrapped_at.append(total)
    return unwrapped_at


def per_run(before: dict[str, float], after: dict[str, float]) -> dict[str, float | None]:
    """Return the increase of each counter; None for one that decreased."""
    grown = {name: after[name] - value for name, value in before.items() if name in after}
    return {name: value if value >= 0 else None for name, value in grown.items()}


def counter_ratios(counters: Mapping[str, float | None], seconds: float) -> dict[str, float | None]:
    """Return ratios of counters by name.

    Parameters
    ----------
    counters
        Counts by ``perf``'s event names, over the time.
    seconds
        Duration in seconds.

    Returns
    -------
    dict
        ``ipc``, instructions per cycle; ``l1_miss_rate`` and ``llc_miss_rate``, of loads; ``branch_accuracy``; and
        ``bytes_per_s``, the traffic of last-level cache misses, a lower bound of the memory traffic: write-backs are
        not counted.

    Raises
    ------
    ArgumentError
        If the time is not positive, or there are more misses than loads.

    Examples
    --------
    >>> ratios = counter_ratios({"cycles": 200.0, "instructions": 300.0, "LLC-load-misses": 10.0}, 1e-6)
    >>> ratios["ipc"], ratios["bytes_per_s"], ratios["branch_accuracy"]
    (1.5, 640000000.0, None)
    """
    if not seconds > 0:
        raise ArgumentError(f"counter_ratios(): `seconds` must be above 0, got {seconds!r}. Write e.g. seconds=0.001")

    def over(top: str, bottom: str) -> float | None:
        upper, lower = counters.get(top), counters.get(bottom)
        return None if upper is None or not lower else upper / lower

    ratios = {
        "ipc": over("instructions", "cycles"),
        "l1_miss_rate": over("L1-dcache-load-misses", "L1-dcache-loads"),
        "llc_miss_rate": over("LLC-load-misses", "LLC-loads"),
    }
    wrong = over("branch-misses", "branches")
    for name, rate in (*ratios.items(), ("branch-misses", wrong)):
        if name != "ipc" and rate is not None and rate > 1:
            raise ArgumentError(f"counter_ratios(): `counters` have more misses than events: {name} is {rate:.3g}")
    misses = counters.get("LLC-load-misses")
    return ratios | {
        "branch_accuracy": None if wrong is None else 1 - wrong,
        "bytes_per_s": None if misses is None else misses * LINE / seconds,
    }
