"""Confidence of the values in use: which are verified, or derived from verified ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlsys.hardware.device import Device
from mlsys.tables import Table


@dataclass(frozen=True)
class Evidence:
    """The values in use, divided into verified and unverified ones.

    Attributes
    ----------
    used
        Names of the device facts in use, such as ``"A100_80GB/power/tdp"``, in order.
    verified
        Names of those read in a primary source, or derived from one by arithmetic.
    lacking
        Name, confidence and source of each of the others.
    """

    used: tuple[str, ...]
    verified: tuple[str, ...]
    lacking: tuple[tuple[str, str, str], ...]

    @property
    def share(self) -> float:
        """Verified values as a fraction of the values in use, from 0 to 1; 1 if none is in use."""
        return len(self.verified) / len(self.used) if self.used else 1.0

    def table(self) -> Table:
        """Return a table of the values that still lack a primary source."""
        caption = f"{len(self.verified)} of {len(self.used)} values in use are verified ({self.share:.0%}); the others"
        return Table(caption, ("value", "confidence", "source"), list(self.lacking))


def standing(device: Device) -> dict[str, tuple[str, str]]:
    """Return the confidence and the source of each recorded value of a device, by name.

    A derived value whose source was read counts as ``verified``, as only arithmetic was added.

    Parameters
    ----------
    device
        A device; no use of its values is recorded.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> standing(Hardware.Cloud.A100)["A100_80GB/memory/L2/bandwidth"][0]
    'verified'
    """
    base: Mapping[str, str] = {source["title"]: source["confidence"] for source in device.sources.values()}
    counted = {}
    for value in device.recorded():
        (fact,) = value.facts
        read = base.get(fact.source, "") if fact.confidence == "derived" else fact.confidence
        counted[fact.name] = ("verified" if read == "verified" else fact.confidence, fact.source)
    return counted


def evidence(names: Iterable[str], devices: Iterable[Device]) -> Evidence:
    """Return the confidence of the named values.

    Parameters
    ----------
    names
        Names of facts in use, as collected by :func:`mlsys.provenance.recording`. Facts that belong
        to no device (physical constants, energy prices) are ignored.
    devices
        Devices whose values are looked up.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> evidence(["A100_80GB/power/tdp", "GPT2_PARAMS"], Hardware.Cloud).share
    1.0
    """
    known: dict[str, tuple[str, str]] = {}
    for device in devices:
        known |= standing(device)
    used = tuple(name for name in dict.fromkeys(names) if name in known)
    return Evidence(
        used=used,
        verified=tuple(name for name in used if known[name][0] == "verified"),
        lacking=tuple((name, *known[name]) for name in used if known[name][0] != "verified"),
    )
