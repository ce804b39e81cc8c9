"""The device catalogue: ``Hardware.Cloud.A100`` reads its file on first access."""

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from mlsys.errors import DeviceFileError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.hardware.find import find
from mlsys.hardware.loader import is_system_file, load_device

_FIXED = "{place} cannot be set: the catalogue is read-only. Add a device with Hardware.load(path)"
_ALIASES = re.compile(rb"^aliases:\s*\[(.*?)\]", re.MULTILINE)
_NAME = re.compile(rb"^name:\s*(\"?)(.+?)\1\s*$", re.MULTILINE)


def _head(path: str) -> bytes:
    """Return the first bytes of a device file, which contain its names; much faster than parsing the file."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1000)
    finally:
        os.close(file)


def _aliases(path: str) -> list[str]:
    match = _ALIASES.search(_head(path))
    return match.group(1).decode().replace(",", " ").split() if match else []


def refuse_second_file(device_id: str, path: Path, first: dict[str, Path]) -> None:
    """Record the file of a device id; raise if another file has the same id.

    Parameters
    ----------
    device_id, path
        Id of a device and the file that describes it.
    first
        File of each id so far; the new one is added.

    Raises
    ------
    DeviceFileError
        If another file has the same id.

    Examples
    --------
    >>> refuse_second_file("Toy", Path("b.yaml"), {"Toy": Path("a.yaml")})
    Traceback (most recent call last):
        ...
    mlsys.errors.DeviceFileError: b.yaml: the id 'Toy' is already used by a.yaml. Change one of the two ids
    """
    other = first.setdefault(device_id, path)
    if other != path:
        raise DeviceFileError(f"{path}: the id {device_id!r} is already used by {other}. Change one of the two ids")


class DeviceGroup:
    """The devices of one class, as attributes; each file is read on first access."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self._name = name
        self._folder = folder  # None: a group of loaded devices only
        self._devices: dict[str, Device] = {}

    @cached_property
    def _ids(self) -> dict[str, str]:
        """Every id, mapped to itself; taken from the file names, without opening the files."""
        names = os.listdir(self._folder) if self._folder and self._folder.is_dir() else ()
        return {stem: stem for stem, suffix in map(os.path.splitext, sorted(names)) if suffix == ".yaml"}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Every id and alias, mapped to the id."""
        names = dict(self._ids)
        for stem in self._ids if self._folder else ():
            for alias in _aliases(os.path.join(str(self._folder), f"{stem}.yaml")):
                names[alias] = stem
        return names

    def __getattr__(self, name: str) -> Device:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._ids and name not in self._names:
            raise UnknownNameError(
                f"Hardware.{self._name} has no device {short(name)}. It has: {', '.join(sorted(self._names))}."
                + did_you_mean(name, self._names)
            )
        device_id = self._ids.get(name) or self._names[name]
        if device_id not in self._devices and self._folder:
            self._devices[device_id] = load_device(self._folder / f"{device_id}.yaml", validate=False)
        return self._devices[device_id]

    __getitem__ = __getattr__

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(_FIXED.format(place=f"Hardware.{self._name}.{name}"))
        super().__setattr__(name, value)

    def _add(self, device: Device) -> None:
        """Add a device, or replace the one with the same id."""
        self._devices[device.id] = device
        for name in (device.id, *device.aliases):
            self._names[name] = device.id

    def __iter__(self) -> Iterator[Device]:
        return (getattr(self, name) for name in sorted(set(self._names.values())))

    def _spellings(self) -> Iterator[tuple[str, str]]:
        """Yield every id, name and alias with its id, without parsing any file."""
        for spelling, device_id in self._names.items():
            yield spelling, device_id
        for device_id in sorted(set(self._names.values())):
            if device_id in self._devices or not self._folder:
                yield self._devices[device_id].name, device_id
            elif match := _NAME.search(_head(os.path.join(str(self._folder), f"{device_id}.yaml"))):
                yield match.group(2).decode(), device_id

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<Hardware.{self._name}: {', '.join(sorted(set(self._names.values())))}>"


class Catalogue:
    """All devices in groups, including those loaded by the user.

    ``Generic`` holds four teaching profiles (CPU, GPU, TPU and KPU) that are not real products, and ``Arrays``
    a small array for teaching mapping and the accelerators of a published mapping tool. They are
    accessible by group or id and excluded from listings.

    Device files below the folder in the environment variable ``MLSYS_DEVICES`` are loaded as by
    :meth:`load`.

    Examples
    --------
    >>> Hardware.Cloud.A1OO
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: Hardware.Cloud has no device 'A1OO'. It has: ...
    >>> [device.id for device in Hardware.find("TPU v5p", precision="int8")]
    ['TPUv5p']
    """

    def __init__(self, folder: Path, users: str = "") -> None:
        self.Cloud = DeviceGroup("Cloud", folder / "cloud")
        self.Edge = DeviceGroup("Edge", folder / "edge")
        self.Mobile = DeviceGroup("Mobile", folder / "mobile")
        self.Tiny = DeviceGroup("Tiny", folder / "tiny")
        self.CPU = DeviceGroup("CPU", folder / "cpu")
        self.Generic = DeviceGroup("Generic", folder / "generic")
        self.Arrays = DeviceGroup("Arrays", folder / "arrays")
        self.User = DeviceGroup("User", None)
        self.__dict__["user_files"] = {}  # by id: the file of a loaded device, and whether it replaced a device
        if users:
            self._load_folder(Path(users))

    user_files: dict[str, tuple[str, bool]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or not isinstance(value, DeviceGroup):
            raise AttributeError(_FIXED.format(place=f"Hardware.{name}"))
        super().__setattr__(name, value)

    @property
    def groups(self) -> tuple[DeviceGroup, ...]:
        """The groups, from data centre to microcontroller, followed by the devices that the user added."""
        return self.Cloud, self.CPU, self.Edge, self.Mobile, self.Tiny, self.User

    def __iter__(self) -> Iterator[Device]:
        return (device for group in self.groups for device in group)

    def spellings(self) -> Iterator[tuple[str, str]]:
        """Yield every id, name and alias with its id, without parsing any file.

        Examples
        --------
        >>> sorted(spelling for spelling, device in Hardware.spellings() if device == "A100_80GB")
        ['A100', 'A100_80GB', 'NVIDIA A100 80 GB SXM4']
        """
        return (pair for group in self.groups for pair in group._spellings())

    def __getitem__(self, name: str) -> Device:
        group = self._group_of(name)
        if group is None:
            known = [known for group in self.groups for known in group._names]
            raise UnknownNameError(f"no device {short(name)}.{did_you_mean(name, known)} `mlsys devices` lists all")
        return group[name]

    def _group_of(self, name: str) -> DeviceGroup | None:
        for group in self.groups:
            if name in group._ids:
                return group
        for group in self.groups:
            if name in group._names:
                return group
        # By id only, so that the alias "GPU" alone matches no device.
        return next((group for group in (self.Generic, self.Arrays) if name in group._ids), None)

    def class_of(self, name: str) -> str:
        """Return the group of a device, such as ``"Cloud"``.

        Raises
        ------
        UnknownNameError
            If there is no such device.

        Examples
        --------
        >>> Hardware.class_of("A100")
        'Cloud'
        """
        group = self._group_of(name)
        return self[name].id if group is None else group._name  # self[name] raises: there is no such device

    def find(self, text: str = "", *, generic: bool = False, **criteria: Any) -> list[Device]:
        """Return the devices that meet every criterion; see :func:`mlsys.hardware.find.find`.

        Parameters
        ----------
        text
            Part of the id, an alias, the name or the architecture.
        generic
            Whether to include the teaching profiles.
        **criteria
            As for :func:`mlsys.hardware.find.find`.

        Examples
        --------
        >>> [device.id for device in Hardware.find("domain flow", generic=True)]
        ['GenericKPU']
        """
        return find([*self, *(self.Generic if generic else ())], text, **criteria)

    def load(self, path: str | Path) -> Device:
        """Load a device from a file and add it, or replace the device with the same id.

        Parameters
        ----------
        path
            A YAML file as described by ``schema.yaml``.

        Returns
        -------
        Device
            Also reachable as ``Hardware.User.<id>``, or in the group of the device it
            replaces. Its sources name this file.

        Raises
        ------
        DeviceFileError
            If the file has faults (all are listed), or one of its aliases belongs to
            another device; the catalogue is then unchanged.
        """
        device = load_device(path, owner=f"from {Path(path).name}, a catalogue of the reader")
        for name in (device.id, *device.aliases):
            group = self._group_of(name)
            if group is not None and group._names[name] != device.id:
                raise DeviceFileError(
                    f"{path}: {name!r} is already a name of {group._names[name]}. Choose another name, "
                    f"or give the file the id {group._names[name]} to replace that device"
                )
        home = self._group_of(device.id)
        (home or self.User)._add(device)
        self.user_files[device.id] = (str(path), home is not None and home is not self.User)
        return device

    def _load_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DeviceFileError(
                f"MLSYS_DEVICES names {folder}, which is not a folder. Set it to a folder of YAML files"
            )
        first: dict[str, Path] = {}
        for path in sorted(folder.rglob("*.yaml")):
            if is_system_file(path):
                continue  # read by mlsys.hardware.system
            device = self.load(path)
            refuse_second_file(device.id, path, first)

    def __repr__(self) -> str:
        return "\n".join(repr(group) for group in self.groups if group._names)


Hardware = Catalogue(Path(__file__).parent / "data", users=os.environ.get("MLSYS_DEVICES", ""))
