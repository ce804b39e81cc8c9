"""Description of the machine during a measurement."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

_CPUS = Path("/sys/devices/system/cpu")
_PACKAGES = ("numpy", "torch", "onnxruntime", "openvino", "ai-edge-litert", "pyserial")
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONDEVMODE", "ONEDNN_MAX_CPU_ISA")


def environment() -> dict[str, Any]:
    """Return CPU, clock, versions, load and settings; values that the system does not report are None.

    Examples
    --------
    >>> described = environment()
    >>> described["cores"] >= 1, "clock_governor" in described, described["python"].count(".")
    (True, True, 2)
    """
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual_machine": "hypervisor" in _cpu_lines("flags"),
        "python": platform.python_version(),
        "versions": {name: version for name in _PACKAGES if (version := _version(name))},
        "clock_governor": _text_of(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "clock_mhz": _clock(),
        "throttled": throttle_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "debug": _debug(),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _cpu_lines(key: str) -> str:
    text = _text_of(Path("/proc/cpuinfo")) or ""
    return next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(key)), "")


def cpu_name() -> str:
    """Return the system's name of the CPU."""
    return _cpu_lines("model name") or platform.processor() or platform.machine() or "unknown processor"


def _clock() -> float | None:
    try:
        return round(float(_cpu_lines("cpu MHz")))
    except ValueError:
        return None


def throttle_count() -> int | None:
    """Return the number of thermal throttling events since boot; None where they are not counted."""
    counts = [_text_of(path) for path in sorted(_CPUS.glob("cpu*/thermal_throttle/core_throttle_count"))]
    known = [int(count) for count in counts if count is not None and count.isdigit()]
    return sum(known) if known else None


def _debug() -> list[str]:
    """Return debug builds and checks that distort measurements."""
    flags = []
    if hasattr(sys, "gettotalrefcount"):
        flags.append("Python is a debug build")
    if sys.flags.dev_mode:
        flags.append("Python runs in development mode")
    if sys.gettrace() is not None:
        flags.append("a tracer or debugger is attached")
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch.version, "debug", False):
        flags.append("PyTorch is a debug build")
    return flags


@contextmanager
def pinned(cores: list[int] | None) -> Iterator[list[int] | None]:
    """Pin this process to the given cores, or to a single core if None; yields the cores, if pinning is supported.

    Parameters
    ----------
    cores
        Core numbers; None uses the last core available to the process.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    chosen = set(cores) if cores else {max(before)}
    os.sched_setaffinity(0, chosen)
    try:
        yield sorted(chosen)
    finally:
        os.sched_setaffinity(0, before)
