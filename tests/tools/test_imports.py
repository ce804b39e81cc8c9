"""Numbers flow one way, and importing the package stays light."""

import pkgutil
import subprocess
import sys

import pytest
from importlinter.cli import lint_imports

import mlsys
from pages import ROOT
from sampled import drawn

HEAVY = {"matplotlib", "ipywidgets", "torch", "IPython", "myst_nb", "pandas"}
MAY_LOAD = {"mlsys.viz": {"matplotlib"}, "mlsys.widgets": {"matplotlib", "ipywidgets", "IPython"}}


def test_import_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def loaded_by(module: str) -> set[str]:
    """Heavy packages in memory after a fresh interpreter has imported a module."""
    code = f"import sys, {module}; print(*(name for name in {sorted(HEAVY)} if name in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


MODULES = [f"mlsys.{module.name}" for module in pkgutil.iter_modules(mlsys.__path__)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", ["mlsys", *drawn(MODULES, 5, "imports")])
def test_import_is_light(module: str) -> None:
    assert loaded_by(module) <= MAY_LOAD.get(module, set())
