"""Measurements shipped with the package, each with its machine and date."""

import gzip
from functools import lru_cache
from importlib import resources

from mlsys.explain.log import Log, parsed
from mlsys.provenance import traced


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
    folder = resources.files("mlsys.explain") / "data"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".jsonl.gz"))
    texts = [gzip.decompress((folder / name).read_bytes()).decode("utf-8") for name in names]
    logs = [parsed(text, validate=False) for text in texts]
    return {log.name: log for log in logs}
