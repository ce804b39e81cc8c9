"""Compiled loops work where nothing can be written."""

import os
import subprocess
import sys

import pytest
from numba.core import caching

from mlsys.compiled import njit


def triangle(n: int) -> int:
    total = 0
    for i in range(n + 1):
        total += i
    return total


def test_code_is_kept_where_it_can_be() -> None:
    assert type(njit()(triangle)._cache).__name__ == "FunctionCache"


def test_no_folder_for_code_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    compiled = njit(nogil=True)(triangle)
    assert type(compiled._cache).__name__ == "NullCache"
    assert compiled(100) == 5050


def test_models_run_from_an_install_that_nobody_can_write() -> None:
    """In an interpreter of its own, whose Numba finds no folder for any file."""
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from mlsys import Q_; from mlsys.models.cache import Cache, gemm_trace, simulate\n"
        "trace = gemm_trace(8, 8, 8, Q_(4, 'byte'))\n"
        "print(simulate(trace, Cache(Q_(64, 'KiB'), Q_(4, 'byte'))).last.misses)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert int(done.stdout) == 3 * 8 * 8  # each word of the three matrices comes in once
