"""A sandbox for code of others: bubblewrap, without a network, with limits, and with nothing to read but Python.

Bubblewrap gives the code namespaces of its own: no network, no processes but its own, no files but the interpreter and
its packages, read only, and an empty temporary folder that is gone afterwards. Limits are watched from outside, and
whatever exceeds one is killed with everything that it started.
"""

import contextlib
import os
import shutil
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError

__all__ = ["Limits", "Sandbox", "SandboxResult"]

_HOME = "/tmp/home"  # inside
_PAUSE = 0.05
"""Time between two looks at the processes inside, s."""
_ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/fonts", "/etc/localtime", "/etc/alternatives")
_SETTINGS = ("acpi", "asound", "bus", "dynamic_debug", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger")
"""Files in ``/proc`` that change the machine."""


@dataclass(frozen=True)
class Limits:
    """What the code may use.

    Attributes
    ----------
    seconds
        Time until it is stopped, and processor time of each of its processes.
    memory
        Bytes of memory of all its processes together.
    disk
        Bytes that it may write to its temporary folder.
    processes
        Processes that it may have at once.
    output
        Bytes that it may return.
    """

    seconds: float = 120.0
    memory: int = 4_000_000_000
    disk: int = 250_000_000
    processes: int = 100
    output: int = 20_000_000


@dataclass(frozen=True)
class SandboxResult:
    """How a run ended: what it returned, which limit stopped it (empty if none), and how long it took."""

    output: bytes
    stopped_by: str
    seconds: float


class Sandbox:
    """Bubblewrap with the Python that runs now.

    Parameters
    ----------
    hidden
        Folders that the code must not see even where they lie beside the interpreter, such as those of other
        submissions.

    Raises
    ------
    ArgumentError
        If bubblewrap is not installed, or this system allows it no namespaces.
    """

    def __init__(self, hidden: Sequence[str | Path] = ()) -> None:
        found = shutil.which("bwrap")
        instead = "grade without --run, which reads notebooks and runs nothing"
        if found is None:
            raise ArgumentError(
                f"--run: running notebooks needs bubblewrap (bwrap), which is not installed, and runs on Linux alone. "
                f"Install it, on Debian by apt-get install bubblewrap; or {instead}"
            )
        self._bwrap = found
        self._hidden = tuple(os.path.realpath(path) for path in hidden)
        self._more: tuple[str, ...] = ()
        try:
            known = subprocess.run([found, "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
            self._more = ("--disable-userns",) if "--disable-userns" in known else ()  # since bubblewrap 0.8
            tried = subprocess.run(
                self._arguments(Limits(), ["true"]), capture_output=True, text=True, timeout=20, check=False
            )
            why = tried.stderr.strip().splitlines()[-1:] if tried.returncode else []
        except (OSError, subprocess.SubprocessError) as error:
            tried, why = None, [str(error)]
        if tried is None or tried.returncode:
            raise ArgumentError(
                f"--run: this system does not let bubblewrap shut code in ({''.join(why)[:200] or 'no reason given'}). "
                f"Allow user namespaces, or {instead}"
            )

    def _arguments(self, limits: Limits, command: Sequence[str]) -> list[str]:
        arguments = [
            self._bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--uid", "65534", "--gid", "65534", "--clearenv", *self._more,
        ]  # fmt: skip
        for name in ("bin", "sbin", "lib", "lib32", "lib64"):
            path = Path("/", name)
            if path.is_symlink():
                arguments += ["--symlink", os.readlink(path), str(path)]
            elif path.is_dir():
                arguments += ["--ro-bind", str(path), str(path)]
        for file in _ETC:
            arguments += ["--ro-bind-try", file, file]
        size = str(limits.disk)
        arguments += ["--proc", "/proc"]
        for name in _SETTINGS:  # whoever grades as root would be root to these files, without any capability
            arguments += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
        arguments += ["--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"]
        arguments += ["--size", size, "--tmpfs", "/tmp"]
        for folder in _readable():
            arguments += ["--ro-bind", folder, folder]
        for folder in self._hidden:
            if any(Path(folder).is_relative_to(known) for known in _readable()):
                arguments += ["--tmpfs", folder, "--remount-ro", folder]
        arguments += ["--dir", _HOME, "--chdir", _HOME, "--remount-ro", "/dev", "--remount-ro", "/"]
        for name, value in _environment().items():
            arguments += ["--setenv", name, value]
        return [*arguments, "--", *command]

    def run(self, command: Sequence[str], given: bytes, limits: Limits) -> SandboxResult:
        """Run a command inside, with ``given`` on its standard input.

        Parameters
        ----------
        command
            Program and arguments; ``sys.executable`` exists inside as well.
        given
            What it reads.
        limits
            What it may use.
        """
        start = time.monotonic()
        with tempfile.TemporaryFile() as content:
            content.write(given)
            content.seek(0)
            process = subprocess.Popen(
                self._arguments(limits, command), stdin=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        reader = _Reader(process.stdout, limits.output)
        stopped_by = ""
        try:
            while process.poll() is None and not stopped_by:
                time.sleep(_PAUSE)
                stopped_by = "output" if reader.full else _exceeded(process.pid, limits, time.monotonic() - start)
        finally:
            _kill(process)
        reader.join()
        return SandboxResult(reader.content, stopped_by or ("output" if reader.full else ""), time.monotonic() - start)


class _Reader(threading.Thread):
    """Reads a pipe to its end, or until there is too much."""

    def __init__(self, pipe: Any, most: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._most = pipe, most
        self.content, self.full = b"", False
        self.start()

    def run(self) -> None:
        pieces: list[bytes] = []
        read = 0
        with self._pipe:
            while piece := self._pipe.read1(1 << 16):
                read += len(piece)
                if read > self._most:
                    self.full = True
                    break
                pieces.append(piece)
        self.content = b"".join(pieces)


def _readable() -> tuple[str, ...]:
    """Return the folders that Python and its packages need; none of them is the folder of somebody's work."""
    package = str(Path(__file__).resolve().parents[1])
    folders = ["/usr", sys.base_prefix, sys.prefix, *site.getsitepackages(), site.getusersitepackages(), package]
    folders.append(str(Path(os.path.realpath(sys.executable)).parents[1]))
    kept: list[str] = []
    for folder in sorted({os.path.abspath(each) for each in folders if os.path.isdir(each)}):
        if not any(Path(folder).is_relative_to(known) for known in kept):
            kept.append(folder)
    return tuple(kept)


def _environment() -> dict[str, str]:
    return {
        "HOME": _HOME, "USER": "student", "LOGNAME": "student", "LANG": "C.UTF-8", "TZ": "UTC",
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin", "MPLBACKEND": "agg", "MLSYS_LAB_STATE": "memory",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def _inside(process: int) -> Iterator[Any]:
    import psutil

    with contextlib.suppress(psutil.Error):
        yield from psutil.Process(process).children(recursive=True)


def _exceeded(process: int, limits: Limits, seconds: float) -> str:
    """Return the limit that the processes inside exceed; empty if none."""
    import psutil

    if seconds > limits.seconds:
        return "time"
    used, count = 0, 0
    for each in _inside(process):
        with contextlib.suppress(psutil.Error):
            used += each.memory_info().rss
            count += 1
    if count > limits.processes:
        return "processes"
    return "memory" if used > limits.memory else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap and everything inside; the first process inside takes all others along."""
    import psutil

    inside = list(_inside(process.pid))[:3]
    process.kill()
    for each in inside:
        with contextlib.suppress(psutil.Error):
            each.kill()
    process.wait()
