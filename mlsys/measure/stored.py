"""Measurements shipped with the package, each with its machine and date."""

import gzip
import json
from functools import lru_cache
from importlib import resources
from typing import Any

from mlsys.inputs import shipped_text
from mlsys.measure.compile.passes import PassResult
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.log import Log, parsed
from mlsys.provenance import traced


def _rows(file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(shipped_text("mlsys.measure", f"data/{file}"))
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


@lru_cache(maxsize=1)
@traced
def stored_logs() -> dict[str, Log]:
    """Return the shipped logs, by network, format and backend.

    Examples
    --------
    >>> logs = stored_logs()
    >>> sorted({log.backend for log in logs.values() if log.model == "ds-cnn"})
    ['eager', 'inductor', 'litert', 'onnxruntime', 'openvino', 'serial']
    """
    folder = resources.files("mlsys.measure") / "data"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".jsonl.gz"))
    texts = [gzip.decompress((folder / name).read_bytes()).decode("utf-8") for name in names]
    logs = [parsed(text, validate=False) for text in texts]
    return {log.name: log for log in logs}
