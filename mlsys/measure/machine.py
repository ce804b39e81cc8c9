"""Description of this machine, published with every measured time, and the cores and threads that a run may use."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from mlsys.measure.errors import NoCompilerError

_CPU_FACTS, _CPUS = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu")
_PACKAGES = ("numpy", "torch", "onnxruntime", "openvino", "ai-edge-litert", "pyserial")
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONDEVMODE", "ONEDNN_MAX_CPU_ISA")


@dataclass(frozen=True)
class Machine:
    """Description of a machine, stored with a measurement.

    Attributes
    ----------
    cpu
        Model of the CPU, as reported by the system.
    cores
        Number of CPU cores.
    usable
        Cores available to this process; fewer when it is pinned.
    instructions
        Widest vector instructions that torch uses here, such as ``"AVX512"``.
    system, python, torch, compiler
        The system and its architecture; versions of the software.
    day
        Date, as YYYY-MM-DD.
    load
        Load average of the last minute, including this process; negative if unknown.
    """

    cpu: str
    cores: int
    usable: int
    instructions: str
    system: str
    python: str
    torch: str
    compiler: str
    day: str
    load: float

    def explain(self) -> str:
        """Return the description as three lines of text."""
        load = "not known" if self.load < 0 else f"{self.load:.2f}"
        return (
            f"{self.cpu}, {self.usable} of {self.cores} cores usable, {self.instructions}; load {load}; {self.day}\n"
            f"torch {self.torch}, Python {self.python}, {self.system}\n{self.compiler or 'no C++ compiler'}"
        )


def this_machine() -> Machine:
    """Return the description of the machine that runs this code.

    Examples
    --------
    >>> machine = this_machine()
    >>> machine.cores >= machine.usable >= 1, len(machine.day)
    (True, 10)
    """
    import torch

    try:
        version = compiler()
    except NoCompilerError:
        version = ""
    cores, family = os.cpu_count() or 1, _cpu_facts("cpu family")
    known = bool(family and _cpu_facts("model name"))
    return Machine(
        cpu=f"{cpu_name()} (family {family[0]})" if known else cpu_name(),
        cores=cores,
        usable=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores,
        instructions=torch.backends.cpu.get_cpu_capability(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        torch=torch.__version__,
        compiler=version,
        day=date.today().isoformat(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0,
    )


def compiler() -> str:
    """Return the name and version of the C++ compiler that ``torch.compile`` would call.

    Raises
    ------
    NoCompilerError
        If there is none.
    """
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        path = get_cpp_compiler()
        output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (InvalidCxxCompiler, OSError, subprocess.SubprocessError, RuntimeError) as error:
        raise NoCompilerError(
            "compile_bench(): no C++ compiler was found, which torch.compile needs on a CPU. Install one "
            "(apt install g++, or conda install cxx-compiler), or name yours in the environment variable CXX"
        ) from error
    return output.splitlines()[0].strip() if output.strip() else Path(path).name


def environment() -> dict[str, Any]:
    """Return CPU, clock, versions, load and settings; values that the system does not report are None.

    Examples
    --------
    >>> described = environment()
    >>> described["cores"] >= 1, "clock_governor" in described, described["python"].count(".")
    (True, True, 2)
    """
    clocks = _clocks()
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual_machine": "hypervisor" in next(iter(_cpu_facts("flags")), ""),
        "python": platform.python_version(),
        "versions": {name: version for name in _PACKAGES if (version := _version(name))},
        "clock_governor": _text_of(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "clock_mhz": round(clocks[0]) if clocks else None,
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


def _cpu_facts(key: str) -> list[str]:
    """Return the system's value of a key for each core, such as ``cpu MHz``; empty if it reports none."""
    lines = (line.partition(":") for line in (_text_of(_CPU_FACTS) or "").splitlines())
    return [value.strip() for name, _, value in lines if name.strip() == key]


def cpu_name() -> str:
    """Return the system's name of the CPU."""
    return next(iter(_cpu_facts("model name")), "") or platform.processor() or platform.machine() or "unknown processor"


def clock_mhz() -> str:
    """Return the highest current clock of a core, MHz; empty if unknown."""
    return f"{max(clocks):.0f}" if (clocks := _clocks()) else ""


def _clocks() -> list[float]:
    try:
        return [float(value) for value in _cpu_facts("cpu MHz")]
    except ValueError:
        return []


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


@contextmanager
def with_threads(threads: int) -> Iterator[None]:
    """Set PyTorch's number of threads inside the context."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
