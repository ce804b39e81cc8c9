"""Settings of the test run."""

import gc
import os
import random

from hypothesis import settings

settings.register_profile("everywhere", deadline=None, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("everywhere"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

# Ten thousand tests and all their modules stay: a collector that passes over them at its usual pace takes an eighth of
# the time. A few hundred megabytes of garbage may wait instead.
gc.set_threshold(20_000, 10, 10)

# Where there are too many cases for every run (tools/sampled.py), a seed draws some. Workers inherit it.
os.environ.setdefault("MLSYS_SEED", str(random.randrange(1, 1_000_000)))


def pytest_addoption(parser) -> None:
    told = "go on where a run of this very tree was interrupted, and say how far it is (tools/resumed.py)"
    parser.addoption("--resume", action="store_true", help=told)


def pytest_configure(config) -> None:
    if config.getoption("resume"):
        from resumed import Resumed  # found since pytest has read `pythonpath`

        config.pluginmanager.register(Resumed(config), "resumed")


def pytest_terminal_summary(terminalreporter) -> None:
    if not os.environ.get("MLSYS_ALL"):
        drawn = f"MLSYS_SEED={os.environ['MLSYS_SEED']}"
        terminalreporter.write_line(f"Some cases were drawn with {drawn}, which repeats them; `make mutants` runs all.")
