"""Run the parts of `make test` in parallel, to keep two cores busy.

Each part writes into ``_build/test/NAME.log``, which is printed when it ends, with its time and its processor time.
Parts in one line wait for each other, because the browser needs the book; lines run at once. Those that often wait
for another process have priority, and the tests take what is left: they alone can be shared out to the last second,
so they end last. All parts run to their end, and any failure is the failure of the whole.

Processor time is that of the processes somebody waited for: a browser's own helpers, about 50 s, are not in it.
"""

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fonts import own_font_list
from pages import ROOT, notebook_files

LOGS = ROOT / "_build" / "test"
PYTEST = (sys.executable, "-m", "pytest", "-q")
EVERY = 20.0  # seconds between two lines about what still runs


@dataclass
class Part:
    """One command, and its result."""

    name: str
    command: Sequence[str]
    nice: int = 0
    started: float = 0.0
    ended: float = 0.0
    processor: float = 0.0
    code: int | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """Return the file that takes its output."""
        return LOGS / f"{self.name}.log"

    def run(self) -> None:
        """Run it to completion."""
        self.started = time.monotonic()
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                ["nice", "-n", str(self.nice), *self.command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
            )
        _, status, used = os.wait4(self.process.pid, 0)
        self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.processor, self.ended = used.ru_utime + used.ru_stime, time.monotonic()

    def state(self) -> str:
        """Return its progress, by pytest's percentage if there is one."""
        done = re.findall(r"\[ *(\d+)%\]", self.log.read_text("utf-8", "replace")) if self.log.exists() else []
        return f"{self.name} {done[-1]} %" if done else self.name

    def verdict(self) -> str:
        """Return the line about its end."""
        verdict = "passed" if self.code == 0 else f"FAILED ({self.code})"
        return f"{self.name}: {verdict} in {self.ended - self.started:.0f} s ({self.processor:.0f} s of processor time)"


def lines() -> list[list[Part]]:
    """Return the parts of `make test`, by line."""
    notebooks = [str(path.with_suffix(".ipynb").relative_to(ROOT)) for path in notebook_files()]
    sanitize = ("--nbval-sanitize-with", "tests/notebooks/sanitize.cfg")
    shared = ("-n", "auto", "--dist", "worksteal")
    return [
        [
            Part("book", (sys.executable, "tools/book.py", "test")),
            Part("browser", (*PYTEST, "-p", "no:nbval", "tests/browser")),
        ],
        [Part("notebooks", (*PYTEST, "--nbval", *sanitize, *notebooks))],
        [Part("tests", (*PYTEST, "-p", "no:nbval", *shared, "--ignore", "tests/browser"), nice=5)],
        [Part("lint", ("make", "--no-print-directory", "lint"), nice=5)],
    ]


def run(line: Sequence[Part], printing: threading.Lock) -> None:
    """Run parts one after another, and print the log of each at its end."""
    for part in line:
        part.run()
        with printing:
            print(
                f"\n===== {part.name}\n{part.log.read_text('utf-8', 'replace').rstrip()}\n{part.verdict()}", flush=True
            )


def main() -> int:
    """Run everything; return 1 if any part failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    for old in LOGS.glob("*.log"):
        old.unlink()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of interpreters start: each would compile all anew
    own_font_list()  # before several parts want it at once
    os.environ.setdefault("MLSYS_SEED", str(random.randrange(1, 1_000_000)))  # one draw for all parts
    print(f"Some cases are drawn with MLSYS_SEED={os.environ['MLSYS_SEED']}", flush=True)
    plan, printing, start_time = lines(), threading.Lock(), time.monotonic()
    threads = [threading.Thread(target=run, args=(line, printing), daemon=True) for line in plan]
    parts = [part for line in plan for part in line]
    try:
        for thread in threads:
            thread.start()
        message = start_time
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            if time.monotonic() - message >= EVERY:
                message = time.monotonic()
                running = [part.state() for part in parts if part.started and not part.ended]
                with printing:
                    print(f"{message - start_time:4.0f} s: {', '.join(running)}", flush=True)
    except KeyboardInterrupt:
        for part in parts:
            if part.process is not None and part.code is None:
                part.process.terminate()
        return 130
    processor = sum(part.processor for part in parts)
    print(f"\n===== {time.monotonic() - start_time:.0f} s in all, {processor:.0f} s of processor time")
    for part in parts:
        print(part.verdict())
    return int(any(part.code for part in parts))


if __name__ == "__main__":
    sys.exit(main())
