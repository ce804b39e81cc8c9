"""Forked kernels: what they have imported before a page begins hides nothing from the page."""

import os
import subprocess
import sys

import pytest

import kernels
from pages import ROOT

READ_AT_IMPORT = """
import importlib, sys
from mlsys.provenance import Seen, listen
seen = Seen()
stop = listen(seen)
for name in sys.argv[1:]:
    importlib.import_module(name)
stop()
print(*seen, *(name for name in sys.modules if name.startswith("mlsys.claims")), sep=", ")
"""


def taken_from_a_page_by_importing(*names: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", READ_AT_IMPORT, *names], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.strip()


def test_before_a_page_begins_no_fact_is_read_and_no_cell_watched() -> None:
    """The page would record the fact; ``mlsys.claims`` watches the cells of the kernel that imports it."""
    assert taken_from_a_page_by_importing(*kernels.OURS) == ""


def test_a_kernel_with_another_environment_than_its_origin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_environment", kernels._read_at_import(os.environ))
    changed = {**os.environ, "MLSYS_PERTURB": "A100_80GB/power/tdp=1.01"}
    with pytest.raises(RuntimeError, match="the environment has changed"):
        kernels.launch(["python", "-m", "ipykernel_launcher"], env=changed)
