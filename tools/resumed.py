"""A pytest plugin for long runs, ``pytest --resume``: progress, time left, and no test run twice.

Each test that passes is written down at once in pytest's own cache (``.pytest_cache/d/resumed``), in a file that is
named by the state of the tree: every file that git does not ignore, the installed packages, the ``MLSYS_`` variables.
Run again after an interruption, or after a failure that was not caused by the tree, it continues with the rest; any
change starts over. Files of earlier states only serve to estimate durations. ``make mutants`` uses it.

Stepwise and ``--last-failed`` of pytest itself know what failed and nothing of what was never reached; plugins that
replay a run from a list run what the list names, not what it leaves out, and draw a bar without the time left.
"""

import contextlib
import hashlib
import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

__all__ = ["Resumed", "room_of", "state_of", "time_left"]

OWN = ("mlsys", "mlsys-evidence", "mlsys_evidence")  # their files are in the tree
EVERY = 20.0  # seconds between two lines
KEPT = 4  # files of tree states
WORST = 12  # lines about failures at the end: more do not fit a screen


def state_of(root: Path) -> str | None:
    """Return a digest of everything that decides whether a test passes; None outside a git tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True
    )
    if listed.returncode:
        return None
    state = hashlib.sha256(platform.python_version().encode())
    for name in sorted(set(listed.stdout.decode().split("\0")) - {""}):
        path = root / name
        content = path.read_bytes() if path.is_file() else b"gone"
        state.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    packages = sorted(f"{package.name} {package.version}" for package in distributions() if package.name not in OWN)
    settings = sorted(f"{key}={os.environ[key]}" for key in os.environ if key.startswith("MLSYS_"))
    state.update(
        "\n".join(packages + [setting for setting in settings if not setting.startswith("MLSYS_SEED=")]).encode()
    )
    return state.hexdigest()[:16]


def room_of(test: str) -> str:
    """Return the group of a test: its file, or the page whose facts the test changes.

    Examples
    --------
    >>> room_of("tests/workloads/test_zoo.py::test_laws_of_every_network[vgg16]")
    'workloads/test_zoo'
    >>> room_of("tests/test_sensitivity.py::test_a_change_is_noticed[edge-EthosU55_128/chip/clock]")
    'test_sensitivity, edge'
    """
    file, _, rest = test.partition("::")
    room = file.removeprefix("tests/").removesuffix(".py")
    if room != "test_sensitivity" or not rest.endswith("]"):
        return room
    return f"{room}, {rest.partition('[')[2].rstrip(']').partition('-')[0]}"


def time_left(waiting: Iterable[str], seconds: dict[str, float], earlier: dict[str, float], workers: int) -> float:
    """Return the estimated time of the waiting tests, s.

    Each takes as long as in an earlier run, times how much slower this one is; where it is new, as the mean of its
    room, else of all.

    Examples
    --------
    >>> time_left(["a.py::two"], {"a.py::one": 4.0}, {"a.py::one": 2.0, "a.py::two": 3.0}, 2)
    3.0
    >>> time_left(["a.py::two", "b.py::three"], {"a.py::one": 4.0}, {}, 1)
    8.0
    """
    both = seconds.keys() & earlier.keys()
    before = sum(earlier[test] for test in both)
    slower = sum(seconds[test] for test in both) / before if before else 1.0
    known = {test: took * slower for test, took in earlier.items()} | seconds
    if not known:
        return 0.0
    by_room: dict[str, list[float]] = {}
    for test, took in known.items():
        by_room.setdefault(room_of(test), []).append(took)
    like = {room: fmean(times) for room, times in by_room.items()}
    usual = fmean(known.values())
    return sum(known.get(test, like.get(room_of(test), usual)) for test in waiting) / workers


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class Resumed:
    """Plugin that tracks passed, running and waiting tests in the controlling process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.before: set[str] = set()  # passed when this tree was run earlier
        self.earlier: dict[str, float] = {}
        self.waiting: list[str] | None = None  # until it is known what was collected
        self.running: dict[str, None] = {}
        self.seconds: dict[str, float] = {}
        self.outcomes: dict[str, str] = {}
        self.workers: int | None = None  # processes beside this one
        self.started = self.last_report = time.monotonic()
        self.file = Path()
        if self.worker is not None:
            self.before = set(self.worker["passed_before"])
        elif (cache := getattr(config, "cache", None)) is None:
            raise pytest.UsageError("--resume keeps what passed in pytest's cache: leave out -p no:cacheprovider")
        else:
            self._read(cache.mkdir("resumed"))

    def _read(self, folder: Path) -> None:
        state = state_of(self.config.rootpath)
        self.file = folder / f"{state or 'unknown'}.jsonl"
        self.file.touch()
        files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
        for file in files:
            for line in file.read_text("utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a line that was cut off while it was written
                    test, took = json.loads(line)
                    self.earlier[test] = took
                    if file == self.file and state is not None:
                        self.before.add(test)
        for file in files[:-KEPT]:
            file.unlink()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what it need not run: all workers must collect the same, whenever they start."""
        node.workerinput["passed_before"] = sorted(self.before)
        self.workers = len(node.config.getoption("tx"))

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect tests that have passed."""
        done = [item for item in items if item.nodeid in self.before]
        items[:] = [item for item in items if item.nodeid not in self.before]
        if done:
            config.hook.pytest_deselected(items=done)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what waits, where this process runs the tests itself."""
        if self.worker is None and self.workers is None:
            self._wait_for([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Note what waits, where workers run it."""
        if self.waiting is None:
            self._wait_for(ids)

    def _wait_for(self, tests: list[str]) -> None:
        self.waiting = tests
        passed = f"; {len(self.before)} passed before on this very tree" if self.before else ""
        self._say(f"{len(tests)} tests to run{passed}")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what runs."""
        self.running[nodeid] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test went; when it has ended, write it down."""
        if self.worker is not None:
            return
        test = report.nodeid
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        if report.outcome != "passed":
            self.outcomes[test] = report.outcome
            if report.failed:
                self._say(f"FAILED {test} ({report.when})")
        if report.when != "teardown":
            return
        self.running.pop(test, None)
        if self.outcomes.setdefault(test, "passed") == "passed":
            with self.file.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps([test, round(self.seconds[test], 3)]))
        if time.monotonic() - self.last_report >= EVERY:
            self._say(self.progress())

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Suppress pytest's dots, which progress lines replace."""
        if hasattr(report, "wasxfail"):
            return None
        if report.failed:
            return ("failed" if report.when == "call" else "error", "", "")
        return (report.outcome if report.when == "call" or report.skipped else "", "", "")

    def progress(self) -> str:
        """Return the progress of this run."""
        left = self._left()
        done, total = len(self.outcomes), len(self.outcomes) + len(left)
        bad = sum(outcome == "failed" for outcome in self.outcomes.values())
        ended = {test: took for test, took in self.seconds.items() if test in self.outcomes}
        still = _clock(time_left(left, ended, self.earlier, self.workers or 1))
        rooms = ", ".join(dict.fromkeys(map(room_of, self.running)))
        gone = _clock(time.monotonic() - self.started)
        far = f"{done} of {total} ({100 * done // max(total, 1)} %)"
        return f"{far}, {bad} failed, {gone} gone, about {still} left: {rooms}"

    def _left(self) -> list[str]:
        return [test for test in self.waiting or () if test not in self.outcomes]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Treat a run with nothing left to do as a success."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.before:
            session.exitstatus = pytest.ExitCode.OK

    def _say(self, line: str) -> None:
        self.last_report = time.monotonic()
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)
            reporter.flush()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print a summary: a line per group, and the failures."""
        if self.worker is not None:
            return
        by_room: dict[str, Counter[str]] = {}
        for test in self.before:
            by_room.setdefault(room_of(test), Counter())["before"] += 1
        for test, outcome in self.outcomes.items():
            counted = by_room.setdefault(room_of(test), Counter())
            counted[outcome] += 1
            counted["ms"] += round(1000 * self.seconds[test])
        left = self._left()
        for test in left:
            by_room.setdefault(room_of(test), Counter())["not reached"] += 1
        terminalreporter.section("what was run")
        words = ("passed", "before", "skipped", "failed", "not reached")
        for room, counted in sorted(by_room.items()):
            result = ", ".join(f"{counted[word]} {word}" for word in words if counted[word])
            terminalreporter.write_line(f"{room:36s} {counted['ms'] / 1000:6.0f} s  {result}")
        bad = [test for test, outcome in self.outcomes.items() if outcome == "failed"]
        for test in bad[:WORST]:
            terminalreporter.write_line(f"FAILED {test}")
        if len(bad) > WORST:
            terminalreporter.write_line(f"and {len(bad) - WORST} more")
        seconds = sum(self.seconds.values())
        terminalreporter.write_line(
            f"{len(self.outcomes)} tests in {_clock(time.monotonic() - self.started)} ({_clock(seconds)} of tests), "
            f"{len(self.before)} passed before, {len(bad)} failed, {len(left)} not reached"
            + (": the same command goes on here" if left or bad else "")
        )
