"""One way to run a collective operation, with its time."""

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["LL", "LL128", "Simple", ""]
"""Protocol of NCCL; empty for a closed form."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An algorithm (in a protocol) and its time in seconds.

    Attributes
    ----------
    latency, transfer
        Seconds that do not depend on the size, and those that do.
    bound_by
        ``"latency"``, or the link that takes the bytes longest: ``"scale_up"`` or ``"scale_out"``.
    up_bytes, out_bytes
        Bytes that one chip sends inside its node and out of it.
    """

    algorithm: str
    protocol: Protocol
    latency: float
    transfer: float
    bound_by: str
    up_bytes: float
    out_bytes: float

    @property
    def seconds(self) -> float:
        """Time, s."""
        return self.latency + self.transfer


def candidate(
    algorithm: str, protocol: Protocol, latency: float, transfer: float, link: str, up_bytes: float, out_bytes: float
) -> Candidate:
    """Return a candidate, bound by its latency if that is the longer part, else by ``link``."""
    bound = link if transfer > latency else "latency"
    return Candidate(algorithm, protocol, latency, transfer, bound, up_bytes, out_bytes)
