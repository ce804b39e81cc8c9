"""The library by itself: where the measurements are not installed, everything but their command works."""

import subprocess
import sys
from pathlib import Path

import pytest

# An import of the other distribution fails, and its entry points are not found.
ALONE = """
import importlib.metadata as metadata, sys
sys.modules["mlsys_evidence"] = None
found = metadata.entry_points
metadata.entry_points = lambda **named: [] if named.get("group", "").startswith("mlsys.") else found(**named)
"""


def alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, cwd=folder, check=False)


def command(*words: str) -> str:
    return f"from mlsys.cli import main\nmain({list(words)!r}, prog_name='mlsys')"


def test_every_module_is_imported(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, mlsys
skipped = ("mlsys.__main__", "mlsys.explain.backends", "mlsys.widgets")
for module in pkgutil.walk_packages(mlsys.__path__, "mlsys."):
    if not module.name.startswith(skipped):
        importlib.import_module(module.name)
print("all")
"""
    told = alone(code, tmp_path)
    assert told.stdout.strip() == "all", told.stderr


@pytest.mark.parametrize("words", [("analyze", "lenet5", "--device", "A100"), ("explain", "guide", "--within", "50")])
def test_commands_answer(words: tuple[str, ...], tmp_path: Path) -> None:
    told = alone(command(*words), tmp_path)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("words", [("validate",), ("validate", "--exam", "6"), ("validate", "--data", "mine.csv")])
def test_the_command_of_the_measurements_says_what_to_install(words: tuple[str, ...], tmp_path: Path) -> None:
    told = alone(command(*words), tmp_path)
    assert told.returncode == 1 and told.stdout == ""
    assert told.stderr.strip().splitlines() == [
        "Error: validate: the measurements are a distribution of their own, which is not installed. "
        "Type: pip install mlsys-evidence"
    ]
