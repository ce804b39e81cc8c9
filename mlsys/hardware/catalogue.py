"""Finding devices: ``Hardware.Cloud.A100`` reads one file, once, when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.hardware.device import Device
from mlsys.hardware.loader import load_device

__all__ = ["Catalogue", "Group", "Hardware"]

_ALIASES = re.compile(r"^aliases:\s*\[(.*?)\]", re.MULTILINE)


class Group:
    """The devices of one class, as attributes; files are read when first asked for."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder
        self._devices: dict[str, Device] = {}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Every id and alias, with the id it leads to."""
        names: dict[str, str] = {}
        for path in sorted(self._folder.glob("*.yaml")):
            names[path.stem] = path.stem
            found = _ALIASES.search(path.read_text("utf-8"))
            for alias in filter(None, re.split(r"[,\s]+", found.group(1) if found else "")):
                names[alias] = path.stem
        return names

    def __getattr__(self, name: str) -> Device:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._names:
            raise UnknownNameError(
                f"Hardware.{self._name} has no device {name!r}. It has: {', '.join(sorted(self._names))}."
                + did_you_mean(name, self._names)
            )
        device_id = self._names[name]
        if device_id not in self._devices:
            self._devices[device_id] = load_device(self._folder / f"{device_id}.yaml", validate=False)
        return self._devices[device_id]

    __getitem__ = __getattr__

    def __iter__(self) -> Iterator[Device]:
        return (getattr(self, name) for name in sorted(set(self._names.values())))

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<Hardware.{self._name}: {', '.join(sorted(set(self._names.values())))}>"


class Catalogue:
    """All devices, in groups.

    Examples
    --------
    >>> Hardware.Cloud.A1OO
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: Hardware.Cloud has no device 'A1OO'. It has: ...
    """

    def __init__(self, folder: Path) -> None:
        self.Cloud = Group("Cloud", folder / "cloud")
        self.Edge = Group("Edge", folder / "edge")
        self.Mobile = Group("Mobile", folder / "mobile")
        self.Tiny = Group("Tiny", folder / "tiny")
        self.CPU = Group("CPU", folder / "cpu")

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, from the data centre down to the sensor."""
        return self.Cloud, self.CPU, self.Edge, self.Mobile, self.Tiny

    def __iter__(self) -> Iterator[Device]:
        return (device for group in self.groups for device in group)

    def __getitem__(self, name: str) -> Device:
        for group in self.groups:
            if name in group._names:
                return group[name]
        known = [known for group in self.groups for known in group._names]
        raise UnknownNameError(f"no device {name!r}. Known: {', '.join(sorted(known))}.{did_you_mean(name, known)}")

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.groups))


Hardware = Catalogue(Path(__file__).parent / "data")
