"""How long a fresh interpreter works before the first line of a page can run (CPU time)."""

import importlib.util
import resource
import subprocess
import sys
from typing import Any

import pytest

LINES = {
    "nothing": "pass",
    "import mlsys": "import mlsys",
    "from mlsys import Q_, Hardware": "from mlsys import Q_, Hardware",
    "first twin": "from mlsys import Q_, Hardware; Hardware.Cloud.A100.ridge_point('fp16')",
    "pint and its registry": "import pint; pint.UnitRegistry()",
    "import mlsysim": "import mlsysim",
}


def children_cpu() -> float:
    """Return the CPU seconds, user and system, of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("name", LINES)
@pytest.mark.benchmark(group="import", timer=children_cpu)
def test_import(benchmark: Any, name: str, quick: bool) -> None:
    if "mlsysim" in name and importlib.util.find_spec("mlsysim") is None:
        pytest.skip("mlsysim is installed by benchmarks/run.py alone")
    command = [sys.executable, "-c", LINES[name]]
    subprocess.run(command, check=True)  # compiles what was never compiled
    benchmark.extra_info["name"] = name
    benchmark.pedantic(subprocess.run, (command,), {"check": True}, rounds=3 if quick else 15)
