"""A measurement in the terms of the models, or the reason why it is not."""

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
    """A row that no model of ours can express; its text is the reason, counted and listed."""


@dataclass(frozen=True)
class Case:
    """One measurement as an engine, its work, and the time it took.

    Attributes
    ----------
    row
        As it was published.
    kind
        Of workload: ``"gemm"``, ``"llm decode"``, …
    setting
        Which set of fitted parameters holds: the kind of software on the class of machine.
    twin
        Id of the twin.
    engine, work
        What does it, and what is done.
    seconds
        What was measured, as the time of ``work``.
    inverse
        True if the published number is a rate, which falls as time grows.
    cached
        Whether data that fit the cache are found there, because the kernel was repeated
        on the same data or because the kernel before wrote them; as a number, how many copies
        of the weights took turns.
    at_least
        Seconds that latency takes whatever the rates: bytes over what can be in flight.
    power
        For a measured energy, the power that it is told as time by: joules over it are ``seconds``,
        so that launches, FLOP and bytes cost energy as they cost time, and nothing bounds it. Else 0.
    compulsory
        Part of the bytes of ``work`` that no other program saves: a row that is read twice could be kept.
    fastest
        Part of the time of the engine's arithmetic that the machine's fastest instructions take: a kernel may be
        written in slower ones, and what they attain bounds nothing.
    network
        Name of the network, as the catalogue spells it where it has it; that of a kernel is of no use.
    version
        The software: its version, and how it was built and run; empty where nobody says.
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
        """Return the case by slower instructions than the machine's fastest."""
        return replace(self, engine=engine, fastest=self.fastest * engine.matmul / self.engine.matmul)
