"""Run pages and numerical tests with the kernels, instructions and thread counts of other CPUs.

    python tools/portable.py                                     all of them (`make portable`)
    python tools/portable.py --on oldest book/energy.ipynb       these alone, under one setting

NumPy, OpenBLAS, Numba, PyTorch and oneDNN select kernels by CPU, which changes the last digits of their results. Each
setting makes them select kernels for another CPU; settings that this CPU cannot run are reported and skipped.
``other-math`` imitates the functions of other vector libraries (tools/other_math), which no variable selects. What each
setting prints is kept in ``_build/portable/SETTING.log``, line by line.
"""

import argparse
import importlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pages import ROOT, notebook_files

LOGS = ROOT / "_build" / "portable"
PYTEST = (sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider")
SANITIZE = ("--nbval", "--nbval-sanitize-with", "tests/notebooks/sanitize.cfg")
NO_NUMBERS = {"browser", "cli", "notebooks", "portable", "tools", "torture", "typing", "widgets"}
"""Folders of tests without numerical results, or that run tests of other folders."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_AVX512 = ("AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL")


@dataclass(frozen=True)
class Setting:
    """A setting that makes libraries select the kernels of another CPU.

    Attributes
    ----------
    name, variables
        Its name, and its environment variables.
    threads
        Number of threads of the libraries.
    needs
        Instruction sets that it requires.
    """

    name: str
    variables: Mapping[str, str]
    threads: int = 1
    needs: Sequence[str] = field(default=())

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a process under this setting."""
        path = os.pathsep.join(filter(None, (self.variables.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))))
        threads = dict.fromkeys(_THREADS, str(self.threads))
        return {**os.environ, **threads, **self.variables, **({"PYTHONPATH": path} if path else {})}


def optional_features() -> list[str]:
    """Return the optional instruction sets of this CPU that NumPy uses."""
    return [name for name in _numpy("__cpu_dispatch__") if _numpy("__cpu_features__").get(name)]


def _numpy(name: str) -> Any:
    """Return the CPU features that NumPy detected at import."""
    return getattr(importlib.import_module("numpy._core._multiarray_umath"), name)


def settings() -> list[Setting]:
    """Return every setting for this architecture, including those that this CPU cannot run."""
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(optional_features()), "NUMBA_CPU_NAME": "generic"}
    other = Setting("other-math", {"PYTHONPATH": str(ROOT / "tools" / "other_math")})
    if platform.machine().lower() in ("arm64", "aarch64"):
        return [
            Setting("oldest", {"OPENBLAS_CORETYPE": "ARMV8", "ATEN_CPU_CAPABILITY": "default", **plain}),
            Setting("4-threads", {"OPENBLAS_CORETYPE": "NEOVERSEN1"}, threads=4),
            other,
        ]
    old = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
    avx2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    return [
        Setting("oldest", {"OPENBLAS_CORETYPE": "Prescott", **old, **plain}),
        Setting("haswell", {"OPENBLAS_CORETYPE": "Haswell", **avx2}, threads=4, needs=("AVX2", "FMA3")),
        Setting("zen", {"OPENBLAS_CORETYPE": "Zen", **avx2}, needs=("AVX2", "FMA3")),
        Setting("skylakex", {"OPENBLAS_CORETYPE": "SkylakeX"}, threads=4, needs=_AVX512),
        other,
    ]


def lacking(setting: Setting) -> list[str]:
    """Return the required instruction sets of a setting that this CPU lacks."""
    return [name for name in setting.needs if not _numpy("__cpu_features__").get(name)]


def numerical_tests() -> list[str]:
    """Return the files and folders of tests with numerical results."""
    tests = ROOT / "tests"
    folders = [path for path in tests.iterdir() if path.is_dir() and any(path.glob("test_*.py"))]
    chosen = [*(path for path in folders if path.name not in NO_NUMBERS), *tests.glob("test_*.py")]
    return ["mlsys", "evidence", *sorted(str(path.relative_to(ROOT)) for path in chosen)]


def everything() -> list[str]:
    """Return all pages and numerical tests."""
    return [*(str(path.with_suffix(".ipynb").relative_to(ROOT)) for path in notebook_files()), *numerical_tests()]


def commands(what: Sequence[str]) -> list[list[str]]:
    """Return the commands that run notebooks and tests; each notebook has a kernel of its own."""
    notebooks = [path for path in what if path.partition("::")[0].endswith(".ipynb")]
    tests = [path for path in what if path not in notebooks]
    return [
        *([[*PYTEST, *SANITIZE, *notebooks]] if notebooks else []),
        *([[*PYTEST, "-p", "no:nbval", "--import-mode=importlib", *tests]] if tests else []),
    ]


@dataclass(frozen=True)
class Outcome:
    """Result of one setting: number of passes, failures, duration (s) and output."""

    passed: int
    failed: tuple[str, ...]
    seconds: float
    output: str


def run(setting: Setting, what: Sequence[str], logs: Path | None = None) -> Outcome:
    """Run notebooks and tests under a setting; a run without a summary counts as failed."""
    started, passed, failed, output = time.monotonic(), 0, list[str](), ""
    logs = logs or LOGS
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{setting.name}.log"
    log.unlink(missing_ok=True)
    for command in commands(what):
        before = len(output)
        with log.open("a", encoding="utf-8") as out:
            done = subprocess.run(command, cwd=ROOT, env=setting.environment, stdout=out, stderr=subprocess.STDOUT)
        output = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text("utf-8", "replace"))
        text = output[before:]
        counted = re.search(r"(\d+) passed", text)
        passed += int(counted[1]) if counted else 0
        named = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
        failed += named or ([f"{command[-1]}: pytest ended with {done.returncode}"] if done.returncode else [])
    return Outcome(passed, tuple(failed), time.monotonic() - started, output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything under every setting, print a table and the failures; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", action="append", metavar="SETTING", help="only this setting; may be given again")
    parser.add_argument("what", nargs="*", help="notebooks and tests (all, when none is named)")
    options = parser.parse_args(arguments)
    known = {setting.name: setting for setting in settings()}
    if unknown := sorted(set(options.on or ()) - set(known)):
        parser.error(f"--on {unknown[0]}: no such setting. Known: {', '.join(known)}")
    what = options.what or everything()
    print(f"{platform.machine()}, NumPy {np.__version__} with {', '.join(optional_features()) or 'its baseline'}")
    print(f"{'setting':<12} {'threads':>7} {'passed':>7} {'failed':>7} {'s':>6}", flush=True)
    bad: list[str] = []
    for name in options.on or known:
        setting = known[name]
        if lack := lacking(setting):
            print(f"{name:<12} {setting.threads:>7} left out: this CPU lacks {', '.join(lack)}", flush=True)
            continue
        outcome = run(setting, what)
        bad += [f"{name}: {each}" for each in outcome.failed]
        counts = f"{outcome.passed:>7} {len(outcome.failed):>7} {outcome.seconds:>6.0f}"
        print(f"{name:<12} {setting.threads:>7} {counts}", flush=True)
    print("\n".join(bad))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
