"""Deprecated name of :mod:`mlsys.measure`, kept for one release."""

import sys
import warnings
from importlib import import_module

from mlsys.measure import *  # noqa: F403

warnings.warn(
    "mlsys.bench is deprecated and will be removed in the next release: import mlsys.measure", DeprecationWarning, 2
)
for _old, _new in {
    "compile": "compile.comparison", "errors": "errors", "kernels": "compile.kernels", "machine": "machine",
    "models": "networks.modules", "passes": "compile.passes", "predict": "compile.predict", "probes": "rates",
    "result": "compile.result", "stored": "stored", "tables": "compile.tables", "ten": "ten_measurements",
    "timing": "timing",
}.items():  # fmt: skip
    _module = sys.modules[f"{__name__}.{_old}"] = import_module(f"mlsys.measure.{_new}")
    globals().setdefault(_old, _module)
