"""Deprecated name of :mod:`mlsys.measure`, kept for one release."""

import sys
import warnings
from importlib import import_module

from mlsys.measure import *  # noqa: F403

warnings.warn(
    "mlsys.explain is deprecated and will be removed in the next release: import mlsys.measure", DeprecationWarning, 2
)
for _old, _new in {
    "attribution": "attribution", "backends": "backends", "compatibility": "recommend.compatibility",
    "counters": "counters", "derived": "counters", "doubts": "doubts", "energy": "energy",
    "energy_model": "energy.model", "environment": "machine", "export": "networks.export",
    "firmware": "firmware.build", "flame": "flame", "guide": "recommend.guide", "hypotheses": "hypotheses",
    "imported": "firmware.capture", "int8": "networks.int8", "integer_check": "integer_check", "log": "log",
    "nets": "networks.chains", "platforms": "recommend.platforms", "portability": "recommend.portability",
    "protocol": "protocol", "rates": "rates", "schema": "schema", "serial": "firmware.serial", "stored": "stored",
    "subjects": "networks.subjects", "summary": "summary", "uart": "firmware.uart", "whatif": "recommend.whatif",
}.items():  # fmt: skip
    _module = sys.modules[f"{__name__}.{_old}"] = import_module(f"mlsys.measure.{_new}")
    globals().setdefault(_old, _module)
