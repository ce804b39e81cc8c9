"""Measurements shipped with the package, each with its machine."""

import json
from functools import lru_cache
from typing import Any

from mlsys.bench.passes import PassResult
from mlsys.bench.result import CompileResult
from mlsys.inputs import shipped_text
from mlsys.provenance import traced


def _rows(file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(shipped_text("mlsys.bench", f"data/{file}"))
    return rows


@lru_cache(maxsize=1)
@traced
def stored_compile_results() -> tuple[CompileResult, ...]:
    """Return the shipped comparisons of eager and compiled execution.

    Examples
    --------
    >>> first = stored_compile_results()[0]
    >>> first.machine.torch != "", len(first.eager.samples) == len(first.compiled.samples)
    (True, True)
    """
    return tuple(map(CompileResult.from_record, _rows("compile.json")))


@lru_cache(maxsize=1)
@traced
def stored_pass_results() -> tuple[PassResult, ...]:
    """Return the shipped measurements of compiler passes.

    Examples
    --------
    >>> first = stored_pass_results()[0]
    >>> [step.name for step in first.steps][:2]
    ['eager', 'normalisation folded']
    """
    return tuple(map(PassResult.from_record, _rows("passes.json")))
