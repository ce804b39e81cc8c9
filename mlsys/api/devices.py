"""``mlsys.device`` and ``mlsys.devices``: look-up and search in the device catalogue."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mlsys.api.arguments import device_of
from mlsys.errors import ArgumentError
from mlsys.hardware import Hardware
from mlsys.hardware.compare import comparison, listing, records
from mlsys.hardware.device import Device
from mlsys.tables import Table
from mlsys.unit_checks import checked_choice
from mlsys.units import Quantity

SortKey = Literal["peak", "bandwidth", "capacity", "ridge", "tdp", "year"]


@dataclass(frozen=True)
class DeviceList:
    """Devices of the catalogue, in order.

    Attributes
    ----------
    devices
        The devices.
    named
        Whether the caller named them, so that they are compared in columns.
    """

    devices: tuple[Device, ...]
    named: bool = False

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def record(self) -> list[dict[str, object]]:
        """Return the records printed by ``mlsys devices --json``: one per device, all with the same keys."""
        return records(self.devices)

    def table(self) -> Table:
        """Return a table: one column per named device, or one row per device found."""
        return (comparison if self.named else listing)(self.devices)

    def explain(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def device(name: str) -> Device:
    """Return a device of the catalogue by name, as described by the command ``mlsys device``.

    Parameters
    ----------
    name
        An id or alias.

    Returns
    -------
    Device
        Its ``record()`` is printed by ``mlsys device --json``.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such device.

    Examples
    --------
    >>> device("A100").record()["id"]
    'A100_80GB'
    """
    return device_of(name)


def devices(
    *names: str,
    text: str = "",
    kind: str | None = None,
    vendor: str | None = None,
    precision: str | None = None,
    min_peak: Quantity | None = None,
    min_bandwidth: Quantity | None = None,
    since: int | None = None,
    until: int | None = None,
    sort: SortKey | None = None,
) -> DeviceList:
    """Return the devices that meet every criterion, or the named ones, as the command ``mlsys devices`` does.

    Parameters
    ----------
    *names
        Devices to compare, instead of criteria.
    text, kind, vendor, precision, min_peak, min_bandwidth, since, until
        As for :func:`mlsys.hardware.find.find`.
    sort
        Sort key; largest first.

    Returns
    -------
    DeviceList
        Its ``record()`` is printed by ``mlsys devices --json``.

    Raises
    ------
    UnknownNameError
        If a device, kind, precision or sort key is unknown.
    ArgumentError
        If both names and criteria are given.

    Examples
    --------
    >>> [twin.id for twin in devices(kind="GPU", vendor="AMD", sort="peak")][:1]
    ['MI355X']
    >>> len(devices("A100", "T4").record())
    2
    """
    criteria: dict[str, Any] = {
        "text": text, "kind": kind, "vendor": vendor, "precision": precision, "min_peak": min_peak,
        "min_bandwidth": min_bandwidth, "since": since, "until": until,
    }  # fmt: skip
    if names and any(value not in (None, "") for value in criteria.values()):
        raise ArgumentError("devices(): give either names to compare or criteria to filter by, not both")
    if sort is not None:
        checked_choice("devices", "sort", sort, get_args(SortKey))
    chosen = [device_of(name) for name in names] or Hardware.find(**criteria)
    if sort == "year":
        chosen.sort(key=lambda twin: -twin.release_year)
    elif sort is not None:
        chosen.sort(key=lambda twin: -_amount(twin.glance()[sort]))
    return DeviceList(tuple(chosen), bool(names))


def _amount(value: Quantity | None) -> float:
    return float("-inf") if value is None else float(value.to_base_units().magnitude)
