"""Description of this machine, to be published with every measured time."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from mlsys.measure.errors import NoCompilerError

_CPU_FACTS = Path("/proc/cpuinfo")


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
    cores = os.cpu_count() or 1
    return Machine(
        cpu=_cpu(),
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


def _cpu() -> str:
    facts: dict[str, str] = {}
    if _CPU_FACTS.is_file():
        for line in _CPU_FACTS.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
    named = facts.get("model name") or platform.processor() or platform.machine()
    family = facts.get("cpu family")
    return f"{named} (family {family})" if family and "model name" in facts else named
