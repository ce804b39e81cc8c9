"""Run the labs as Google Colab would: with its versions of Jupyter and Python, and mlsys from this checkout.

If that Python is not installed, the labs run on this one, and the first and the last line of the output say so.

    python tools/colab_check.py                    all labs
    python tools/colab_check.py labs/01-amdahl.md  only this one

The environment is kept in _build/colab and recreated when the pins change.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mlsys.files import write_text

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "_build" / "colab"
TIMEOUT = 120
"""Time limit of one cell, s."""

# github.com/googlecolab/backend-info, pip-freeze.txt at a724079 (2026-08-19): packages loaded by a Colab kernel.
PYTHON = "3.13"
PINS = (
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "ipywidgets==7.7.1",
    "traitlets==5.7.1",
    "jupyter_client==7.4.9",
    "numpy==2.1.3",
    "matplotlib==3.10.0",
)
TOOLS = ("nbclient", "jupytext")

# A reader's actions, added as a last cell: predict, move every control, save the state and restore it.
USE = """
lab.predict(lab.prediction.listed()[0] if lab.prediction.listed() else 1.0)
before = lab.picture.value
for control in lab.controls.values():
    assert not control.widget.disabled, control.name
    last = control.widget.options[-1] if hasattr(control.widget, "options") else not control.value
    control.widget.value = last[1] if isinstance(last, tuple) else last
assert lab.picture.value != before, "the picture did not change"
lab.restore(lab.save())
assert lab.summary.value and "<img alt=" in lab.picture.value
"""

RUN = """
import sys, jupytext, nbformat
from nbclient import NotebookClient
source, folder, timeout, use = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
notebook = jupytext.read(source)
notebook.cells.append(nbformat.v4.new_code_cell(use))
NotebookClient(notebook, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
shown = [o for c in notebook.cells for o in c.get("outputs", []) if o.output_type == "display_data"]
views = [o for o in shown if "application/vnd.jupyter.widget-view+json" in o.data]
assert views, "no widget was shown"
noise = [o.text for c in notebook.cells for o in c.get("outputs", []) if o.get("name") == "stderr"]
assert not noise, noise
"""


def find_python() -> str:
    """Return Colab's Python if it is installed, else the running one."""
    installed = Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python")
    for candidate in (shutil.which(f"python{PYTHON}"), *map(str, sorted(installed))):
        if (
            candidate
            and subprocess.run([candidate, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
        ):
            return candidate
    return sys.executable


def version_of(python: str | Path) -> str:
    """Return the version of a Python, such as 3.13.0."""
    code = "import platform; print(platform.python_version())"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def stands_for(version: str) -> str:
    """Return a description of the Python that the labs run on, compared with Colab's."""
    if version.startswith(f"{PYTHON}."):
        return f"Python {version}, as on Colab"
    return (
        f"Python {version} instead of Colab's {PYTHON}, which is not installed here "
        f"(neither as python{PYTHON} on the PATH nor in pyenv)"
    )


def pip(python: Path, *arguments: str) -> str:
    """Run pip in the environment and return its output; an error shows it."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"pip {' '.join(arguments)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def make_environment() -> Path:
    """Return the Python of an environment with Colab's pins."""
    python, stamp = HOME / "bin" / "python", HOME / "pins.txt"
    base = find_python()
    required = "\n".join((version_of(base), *PINS, *TOOLS))
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == required):
        shutil.rmtree(HOME, ignore_errors=True)
        subprocess.run([base, "-m", "venv", str(HOME)], check=True)
        pip(python, "install", "-q", *PINS, *TOOLS)
        write_text(stamp, required)
    return python


def install_mlsys(python: Path) -> None:
    """Install this checkout as the first cell of a lab does; fail if that changes a loaded package."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "mlsys"
        copy.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy)
        shutil.copytree(ROOT / "mlsys", copy / "mlsys", ignore=shutil.ignore_patterns("__pycache__"))
        pip(python, "install", "-q", "--force-reinstall", "--no-deps", str(copy))
        pip(python, "install", "-q", f"{copy}[labs]")
    have = {line.lower().replace("_", "-") for line in pip(python, "freeze").splitlines()}
    moved = [pin for pin in PINS if pin.lower().replace("_", "-") not in have]
    if moved:
        raise SystemExit(f"installing mlsys replaced {', '.join(moved)}: Colab would have to restart its kernel")


def run_lab(python: Path, lab: Path) -> str | None:
    """Run one lab in a folder of its own; return the error, if any."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), "-c", RUN, str(lab), folder, str(TIMEOUT), USE]
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=3 * TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"not done after {3 * TIMEOUT} s"
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stderr)[-2000:] if done.returncode else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the labs; return 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", type=Path, help="labs (default: all)")
    options = parser.parse_args(arguments)
    labs = [lab.resolve() for lab in options.labs] or sorted((ROOT / "labs").glob("*.md"))
    start = time.perf_counter()
    python = make_environment()
    install_mlsys(python)
    stand = stands_for(version_of(python))
    print(f"{stand}, with {', '.join(PINS)}: ready in {time.perf_counter() - start:.0f} s", flush=True)
    failed = 0
    for lab in labs:
        start = time.perf_counter()
        fault = run_lab(python, lab)
        failed += fault is not None
        print(f"{lab.name}: {fault or 'runs'} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{len(labs) - failed} of {len(labs)} labs run on {stand}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
