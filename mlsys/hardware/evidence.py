"""How well the values that somebody leans on are known: verified, or following from verified ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlsys.hardware.device import Device
from mlsys.tables import Table


@dataclass(frozen=True)
class Evidence:
    """What the values in use rest on.

    Attributes
    ----------
    used
        Names of the device facts in use, such as ``"A100_80GB/power/tdp"``, in order.
    verified
        Those whose value was read in a primary source, or follows by arithmetic from one that was.
    lacking
        The others, with their confidence and their source.
    """

    used: tuple[str, ...]
    verified: tuple[str, ...]
    lacking: tuple[tuple[str, str, str], ...]

    @property
    def share(self) -> float:
        """Verified values over values in use, between 0 and 1; 1 where none is in use."""
        return len(self.verified) / len(self.used) if self.used else 1.0

    def table(self) -> Table:
        """Return the values that still lack a primary source."""
        caption = f"{len(self.verified)} of {len(self.used)} values in use are verified ({self.share:.0%}); the others"
        return Table(caption, ("value", "confidence", "source"), list(self.lacking))


def standing(device: Device) -> dict[str, tuple[str, str]]:
    """Return the confidence and the source of each recorded value of a device, by name.

    A derived value whose source was read counts as ``verified``: nothing but arithmetic lies between.

    Parameters
    ----------
    device
        A twin; no use of its values is noted.

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
    """Return what the named values rest on.

    Parameters
    ----------
    names
        Names of facts in use, such as :func:`mlsys.provenance.recording` collects them. Those
        that no device records (constants of nature, prices of energy) are left out.
    devices
        Where to look.

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
