"""Flame graphs of Python and native code, sampled by py-spy."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.files import atomically

if TYPE_CHECKING:
    from mlsys.measure.networks.subjects import SubjectFormat

# Line that a sampled process prints once it is warm: sampling starts there.
READY = "ready"
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, -1
_LONGEST, _RATE = 900.0, 200


def flame_graph(command: Sequence[str], path: Path, *, seconds: float = 5.0) -> None:
    """Run a command, sample it once it is ready, and write its flame graph as an interactive SVG file.

    Parameters
    ----------
    command
        A program that prints :data:`READY` on a line of its own and runs until it is ended.
    path
        Output file; folders are created, and no partial file is left on failure.
    seconds
        Duration of the sampling, at 200 samples per second.

    Raises
    ------
    ArgumentError
        If py-spy is not installed, the command ends before it is ready, or the system does not allow sampling of other
        processes.
    """
    beside = Path(sys.executable).with_name("py-spy")
    spy = str(beside) if beside.exists() else shutil.which("py-spy")
    if spy is None:
        raise ArgumentError("flame_graph(): py-spy is not installed. Install it: pip install 'mlsys[measure]'")
    if not 0 < seconds <= 600:
        raise ArgumentError(f"flame_graph(): `seconds` must be above 0 and at most 600, got {seconds!r}")
    watched = subprocess.Popen(list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert watched.stdout is not None and watched.stderr is not None
        if watched.stdout.readline().strip() != READY:
            reported = watched.stderr.read().strip().splitlines() or ["no error message"]
            raise ArgumentError(f"flame_graph(): the sampled program ended before it was ready: {reported[-1]}")

        def draw(draft: Path) -> None:
            done = subprocess.run(
                [spy, "record", "--pid", str(watched.pid), "--duration", str(max(1, round(seconds))), "--rate",
                 str(_RATE), "--format", "flamegraph", "--output", str(draft)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode or not draft.exists() or not draft.stat().st_size:
                reported = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
                raise ArgumentError(
                    f"flame_graph(): py-spy could not sample: {(reported or ['no error message'])[-1].strip()}"
                )

        atomically(path, draw, folders=True)
    finally:
        watched.kill()
        watched.communicate()


def of_subject(model: str, format: str, batch: int, path: Path) -> None:
    """Write the flame graph of a model's inferences in eager PyTorch, in a separate process.

    Parameters
    ----------
    model, format, batch
        As for `mlsys explain run`.
    path
        Output file.
    """
    code = f"from mlsys.measure.flame import repeat; repeat({model!r}, {format!r}, {batch!r})"
    flame_graph([sys.executable, "-c", code], path)


def repeat(model: str, format: SubjectFormat, batch: int) -> None:
    """Run inferences forever, after printing the ready line; the program that :func:`of_subject` samples."""
    from mlsys.measure.backends.pytorch import Eager
    from mlsys.measure.networks.subjects import subject_of

    backend = Eager()
    backend.setup(subject_of(model, format, batch=batch), 1)
    for _ in range(5):
        backend.run_inference()
    let_look()
    ends = time.monotonic() + _LONGEST
    while time.monotonic() < ends:
        backend.run_inference()


def let_look() -> None:
    """Allow other processes to trace this one, where Linux requires it, and print the ready line."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_long(_ANYBODY), 0, 0, 0)
    os.write(sys.stdout.fileno(), f"{READY}\n".encode())  # unbuffered, for the sampling process
