"""Settings of the test run."""

import gc
import os
import random
import tempfile

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from fonts import own_font_list
from mlsys.faults import json_schema

json_schema()  # before nbformat loads it, in each process for a second (see there)

# `make torture` sets MLSYS_TIMES, and looks at so many times as many examples of each law.
TIMES = int(os.environ.get("MLSYS_TIMES") or 1)
settings.register_profile("everywhere", deadline=None, print_blob=True, max_examples=50 * TIMES)
settings.register_profile("ci", parent=settings.get_profile("everywhere"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

# Thousands of tests and all their modules stay. What looks for garbage must not look at them again and again: neither
# the collector, which goes seldom and may leave a few hundred megabytes, nor code that is timed, which collects before.
gc.set_threshold(20_000, 10, 10)

own_font_list()

# Threads of PyTorch that wait for a core which another process holds would burn it meanwhile: they sleep.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for doctests only where there are any: else each object of a module is looked at, in every worker.

    Packages are always looked at: pytest imports a module anew whose package is not imported yet, and hides a function
    of the package that has the name of the module.
    """
    collectors = yield
    if file_path.name == "__init__.py":
        return collectors
    if any(isinstance(each, DoctestModule) for each in collectors) and ">>>" not in file_path.read_text("utf-8"):
        return [each for each in collectors if not isinstance(each, DoctestModule)]
    return collectors


# Files whose tests take seconds each, or wait for processes of theirs. They come first: a worker that has nothing left
# takes from the end of another's, and the last to end is a short one.
LONG = (
    "tests/test_sensitivity.py", "tests/sweep", "tests/cli/test_plan.py",
    "tests/laws/test_fact_laws.py", "tests/notebooks", "tests/edge/test_run.py", "tests/oracles/test_flops_counters.py",
    "tests/measure/test_compile.py", "tests/mapping/test_fusion_executor.py", "tests/cli/test_own_numbers.py",
    "tests/test_compiled.py", "tests/torture", "tests/test_files.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let long tests be first, and leave the order otherwise."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_runtest_teardown(item, nextitem) -> None:
    """Set aside what a file of tests leaves for those behind it."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


# Where there are too many cases for every run (tools/sampled.py), a seed draws some. Workers inherit it.
os.environ.setdefault("MLSYS_SEED", str(random.randrange(1, 1_000_000)))


def pytest_addoption(parser) -> None:
    resume = "go on where a run of this very tree was interrupted, and say how far it is (tools/resumed.py)"
    parser.addoption("--resume", action="store_true", help=resume)


def pytest_configure(config) -> None:
    if config.getoption("resume"):
        from resumed import Resumed  # found since pytest has read `pythonpath`

        config.pluginmanager.register(Resumed(config), "resumed")
    if config.getoption("nbval", False) and os.name == "posix":
        import kernels

        folder = tempfile.TemporaryDirectory(prefix="kernels-")
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(kernels.end)
        kernels.prepare(folder.name)


def pytest_terminal_summary(terminalreporter) -> None:
    if not os.environ.get("MLSYS_ALL"):
        drawn = f"MLSYS_SEED={os.environ['MLSYS_SEED']}"
        terminalreporter.write_line(f"Some cases were drawn with {drawn}, which repeats them; `make mutants` runs all.")
