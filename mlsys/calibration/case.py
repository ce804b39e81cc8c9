"""A measurement in the terms of the models, or the reason why it has none."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from mlsys.calibration.rows import Row
from mlsys.models.estimate import Snapshot, Work

_TRAILING_ZEROS = re.compile(r"(\d)(\.0)+(?![.\d])")


@lru_cache(maxsize=4096)
def without_zeros(software: str) -> str:
    """Return the name of a program and its version without trailing zeros: 9.0 and 9.0.0 are one version.

    Examples
    --------
    >>> without_zeros("TensorRT 9.0.0")
    'TensorRT 9'
    """
    return _TRAILING_ZEROS.sub(r"\1", software)


class Inexpressible(Exception):
    """Error of a row that no model can express, with the reason."""


@dataclass(frozen=True)
class Case:
    """One measurement: an engine, its work, and the measured time.

    Attributes
    ----------
    row
        The row as published.
    kind
        Kind of workload: ``"gemm"``, ``"llm decode"``, …
    setting
        Setting whose parameters apply: the kind of software on the class of machine.
    twin
        Id of the device.
    engine, work
        The engine, and its work.
    seconds
        Measured time of ``work``.
    inverse
        Whether the published number is a rate, which falls as time grows.
    cached
        Whether data that fit in the cache are found there, because the kernel was repeated on the same data or because
        the kernel before wrote them; as a number, the copies of the weights used in rotation.
    at_least
        Least seconds imposed by latency, whatever the rates: bytes over bytes in flight.
    power
        For a measured energy, the power that converts it to a time: joules divided by it are ``seconds``, so that
        launches, FLOP and bytes cost energy as they cost time, without a bound. Otherwise 0.
    compulsory
        Fraction of the bytes of ``work`` that no other program could avoid: a row that is read twice could be kept.
    fastest
        Fraction of the time of the engine's arithmetic with the machine's fastest instructions: a kernel may use slower
        ones, whose rate is not a bound.
    network
        Name of the network, as in the catalogue if it is listed there; not used for a kernel.
    version
        Software version, build and run mode; empty if unknown.
    """

    row: Row
    kind: str
    setting: str
    twin: str
    engine: Snapshot
    work: Work
    seconds: float
    inverse: bool
    cached: float = True
    at_least: float = 0.0
    power: float = 0.0
    compulsory: float = 1.0
    fastest: float = 1.0
    network: str = ""
    version: str = ""

    def slower_on(self, engine: Snapshot) -> "Case":
        """Return the case with slower instructions than the machine's fastest."""
        return replace(self, engine=engine, fastest=self.fastest * engine.matmul / self.engine.matmul)
