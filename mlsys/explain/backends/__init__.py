"""Backends for running a network, with a common interface."""

from mlsys.explain.backends.base import Backend, BackendMissingError, Subject, Unmeasured
from mlsys.explain.backends.compiler import Tvm
from mlsys.explain.backends.pytorch import Eager, Inductor
from mlsys.explain.backends.runtimes import LiteRT, OnnxRuntime, OpenVino

__all__ = ["BACKENDS", "Backend", "BackendMissingError", "Subject", "Unmeasured"]

BACKENDS: dict[str, type[Backend]] = {each.name: each for each in (Eager, Inductor, OnnxRuntime, OpenVino, LiteRT, Tvm)}
"""Backends on this CPU, by name; a serial device needs its port: :class:`mlsys.explain.serial.SerialDevice`."""
