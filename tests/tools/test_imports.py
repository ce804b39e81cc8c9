"""Importing the package stays light; `make lint` checks which way numbers flow."""

import pkgutil
import subprocess
import sys

import pytest

import mlsys
from sampled import drawn

HEAVY = {"matplotlib", "ipywidgets", "torch", "IPython", "myst_nb", "pandas"}
MAY_LOAD = {
    "mlsys.labs": {"matplotlib"},
    "mlsys.viz": {"matplotlib"},
    "mlsys.widgets": {"matplotlib", "ipywidgets", "IPython"},
}


def loaded_by(module: str) -> set[str]:
    """Heavy packages in memory after a fresh interpreter has imported a module."""
    code = f"import sys, {module}; print(*(name for name in {sorted(HEAVY)} if name in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


MODULES = ["mlsys_evidence", *(f"mlsys.{module.name}" for module in pkgutil.iter_modules(mlsys.__path__))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", ["mlsys", *drawn(MODULES, 5, "imports")])
def test_import_is_light(module: str) -> None:
    assert loaded_by(module) <= MAY_LOAD.get(module, set())
