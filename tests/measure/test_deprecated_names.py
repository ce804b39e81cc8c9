"""The names that the package had before: they work, and say what to write."""

import importlib
import subprocess
import sys
import warnings

import pytest

OLD = ["bench", "explain"]


@pytest.mark.parametrize("old", OLD)
def test_an_import_warns_at_the_line_that_imports(old: str) -> None:
    code = f"import mlsys.{old}\nfrom mlsys.{old} import Timing"
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    message = f"DeprecationWarning: mlsys.{old} is deprecated and will be removed in the next release"
    assert f"<string>:1: {message}: import mlsys.measure" in done.stderr and done.stderr.count(message) == 1


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("bench", "measure", "compile_bench"),
        ("bench", "measure", "stored_compile_results"),
        ("bench.timing", "measure.timing", "ratio_of_medians"),
        ("bench.ten", "measure.ten_measurements", "ten_measurements"),
        ("explain", "measure", "attribute"),
        ("explain", "measure", "doubts"),
        ("explain.whatif", "measure.recommend.whatif", "what_ifs"),
        ("explain.energy", "measure.energy", "PowerTrace"),
        ("explain.nets", "measure.networks.chains", "net_of"),
        ("explain.backends", "measure.backends", "Unmeasured"),
    ],
)
def test_old_and_new_names_are_one_object(old: str, new: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(f"mlsys.{old}")
    assert getattr(module, name) is getattr(importlib.import_module(f"mlsys.{new}"), name)
