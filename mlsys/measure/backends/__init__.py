"""Backends for running a network, with a common interface."""

from mlsys.measure.backends.base import Backend
from mlsys.measure.backends.pytorch import Eager, Inductor
from mlsys.measure.backends.runtimes import LiteRT, OnnxRuntime, OpenVino
from mlsys.measure.backends.tvm import Tvm
from mlsys.measure.errors import BackendMissingError, Unmeasured
from mlsys.measure.networks.subjects import Subject

__all__ = ["BACKENDS", "Backend", "BackendMissingError", "Subject", "Unmeasured"]

BACKENDS: dict[str, type[Backend]] = {each.name: each for each in (Eager, Inductor, OnnxRuntime, OpenVino, LiteRT, Tvm)}
"""Backends on this CPU, by name; a board needs its port: :class:`mlsys.measure.firmware.serial.SerialDevice`."""
