"""Stops sweeps in every rough way and lets them go on: each must end with the results of one that nobody stopped.

    python tests/torture/torture_sweeps.py [--runs 50] [--seed N]

A run is killed outright, or with its workers left behind, or loses one worker, or finds the disk full (a limit on the size
of files stands for it), after a time drawn by the seed. Compared are the bytes of results.csv and of every row of
results.parquet; nothing half-written may stay, and no process.
"""

import argparse
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SPEC = "models: [alexnet, gpt2]\ndevices: [all]\nbatches: [1, 8, 32]\nprecisions: [fp16, int8]\n"
WAYS = ("kill", "kill with workers", "a worker dies", "full disk", "full disk with workers", "interrupt")


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    faults = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid:
            faults += [int(path.parent.name), *children(int(path.parent.name))]
    return faults


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def started(folder: Path, way: str, most: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mlsys", "sweep", "spec.yaml", "--jobs", "2" if "worker" in way else "1"]

    def limited() -> None:
        if most:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # half of a module's code would stay beyond this run
    pipes: dict[str, int] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, **pipes, preexec_fn=limited, env=environment)


def digest(folder: Path) -> str:
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "results.parquet").to_pydict()
    return hashlib.sha256((folder / "results.csv").read_bytes() + repr(rows).encode()).hexdigest()


def stopped(folder: Path, way: str, source: random.Random) -> str:
    """Stop one run in a way; return what was wrong with how it ended."""
    most = source.randrange(2_000, 60_000) if way.startswith("full") else 0
    process = started(folder, way, most)
    pieces, wanted, start_time = folder / "spec.sweep" / "pieces", source.randrange(3), time.monotonic()
    if not most:
        while process.poll() is None and not (pieces.is_dir() and len(list(pieces.glob("*.parquet"))) >= wanted):
            if time.monotonic() - start_time > 300:
                break
            time.sleep(0.01)
        workers = children(process.pid)
        if way == "a worker dies" and workers:
            os.kill(source.choice(workers), signal.SIGKILL)
        elif way == "interrupt":
            process.send_signal(signal.SIGINT)
        else:
            process.kill()
    else:
        workers = []
    try:
        errors = process.communicate(timeout=300)[1].decode()
    except subprocess.TimeoutExpired:
        process.kill()
        return "hangs"
    if "Traceback" in errors:
        return "a traceback: " + errors.strip().splitlines()[-1]
    end = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    if left := [pid for pid in workers if alive(pid)]:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return f"{len(left)} processes are left behind"
    return ""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = options.parse_args()
    print(f"seed {given.seed}")
    import click

    source, faults, ways = random.Random(given.seed), [], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        whole = Path(place) / "whole"
        whole.mkdir()
        (whole / "spec.yaml").write_text(SPEC)
        assert started(whole, "alone").wait() == 0
        right = digest(whole / "spec.sweep")
        with click.progressbar(range(given.runs), label="stopped sweeps", file=sys.stderr) as runs:
            for number in runs:
                way = WAYS[number % len(WAYS)]
                ways[way] += 1
                folder = Path(place) / str(number)
                folder.mkdir()
                (folder / "spec.yaml").write_text(SPEC)
                fault = stopped(folder, way, source)
                again = started(folder, way)
                message = again.communicate()[1].decode()
                if again.returncode:
                    fault = fault or f"does not go on: {message.strip().splitlines()[-1]}"
                elif digest(folder / "spec.sweep") != right:
                    fault = fault or "ends with other results"
                elif left := [str(path.relative_to(folder)) for path in folder.rglob("*.part")]:
                    fault = fault or f"leaves {', '.join(left)}"
                if fault:
                    faults.append(f"run {number}, {way}: {fault}")
    print(f"{sum(ways.values())} sweeps stopped ({', '.join(f'{count} × {way}' for way, count in ways.items())}), "
          f"{sum(ways.values()) - len(faults)} of them went on to the same bytes")  # fmt: skip
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
