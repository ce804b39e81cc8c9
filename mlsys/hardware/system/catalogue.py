"""The catalogue of systems: ``systems["DGX_H100"]`` reads its file on first access."""

import os
from collections.abc import Iterator
from pathlib import Path

from mlsys.errors import ArgumentError, DeviceFileError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.hardware.catalogue import Hardware
from mlsys.hardware.device import Device
from mlsys.hardware.loader import is_system_file
from mlsys.hardware.system.loader import load_system
from mlsys.hardware.system.model import Link, System

_FOLDER = Path(__file__).parents[1] / "data" / "systems"
_NOT_A_FABRIC = ("PCIe", "C2C", "DieToDie")


class SystemCatalogue:
    """All systems by id or alias, including those loaded by the user.

    System files below the folder in the environment variable ``MLSYS_DEVICES`` are found too.

    Examples
    --------
    >>> systems["DGX_H100"].chips
    8
    >>> systems["DGX_H10"]
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: no system 'DGX_H10'. Did you mean 'DGX_H100'? It has: ...
    """

    def __init__(self, folder: Path, users: str = "") -> None:
        self._folder = folder
        self._users = users
        self._files: dict[str, Path] | None = None
        self._loaded: dict[str, System] = {}
        self._aliases: dict[str, str] = {}

    def _known(self) -> dict[str, Path]:
        if self._files is None:
            self._files = {path.stem: path for path in sorted(self._folder.glob("*.yaml"))}
            for path in sorted(Path(self._users).rglob("*.yaml")) if self._users else ():
                if is_system_file(path):
                    self.load(path)
        return self._files

    def __getitem__(self, name: str) -> System:
        files = self._known()
        if isinstance(name, str) and name not in self._loaded and name in files:
            self._loaded[name] = load_system(files[name], validate=False)
        if isinstance(name, str) and name in self._loaded:
            return self._loaded[name]
        for each in self:
            if name in each.aliases:
                return each
        names = [spelling for each in self for spelling in (each.id, *each.aliases)]
        raise UnknownNameError(f"no system {short(name)}.{did_you_mean(name, names)} It has: {', '.join(self.ids)}")

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all systems, in order."""
        return tuple(sorted({*self._known(), *self._loaded}))

    def __iter__(self) -> Iterator[System]:
        return (self[name] for name in self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, name: object) -> bool:
        return any(name == each.id or name in each.aliases for each in self)

    def of(self, device: Device) -> tuple[System, ...]:
        """Return the systems of more than one chip that are made of this device.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> "DGX_H100" in [each.id for each in systems.of(Hardware.Cloud.H100)]
        True
        """
        return tuple(each for each in self if each.device.id == device.id and each.chips > 1)

    def load(self, path: str | Path) -> System:
        """Load a system from a file and add it, or replace the one with the same id.

        Raises
        ------
        DeviceFileError
            If the file has faults (all are listed), or its id or an alias belongs to another system or device.
        """
        loaded = load_system(path, owner=f"from {Path(path).name}, a catalogue of the reader")
        names = {loaded.id, *loaded.aliases}
        taken = {spelling: device for spelling, device in Hardware.spellings() if spelling in names}
        for each in self:
            if each.id != loaded.id:
                taken |= dict.fromkeys(names & {each.id, *each.aliases}, each.id)
        if taken:
            name, other = min(taken.items())
            raise DeviceFileError(f"{path}: {name!r} is already a name of {other}. Choose another name")
        self._loaded[loaded.id] = loaded
        return loaded

    def __repr__(self) -> str:
        return f"<systems: {', '.join(self.ids)}>"


systems = SystemCatalogue(_FOLDER, users=os.environ.get("MLSYS_DEVICES", ""))
"""The systems that the package knows, and those of the user."""


def as_system(system: System | Device | str | Path, nodes: int | None = None) -> System:
    """Return a system: of the catalogue by its name, from a file, or a single device as a system of one chip.

    Parameters
    ----------
    system
        A system, a device, the name of either, or the path of a system file (its name ends with ``.yaml``).
    nodes
        Number of nodes; by default as the system is.

    Raises
    ------
    UnknownNameError
        If there is neither a system nor a device of that name.
    DeviceFileError
        If the file has faults.
    ArgumentError
        If it is something else, or its nodes cannot be joined.

    Examples
    --------
    >>> as_system("DGX_H100", nodes=2).chips, as_system("T4").chips
    (16, 1)
    """
    found = _resolved(system)
    return found if nodes is None else found.with_nodes(nodes)


def _resolved(system: System | Device | str | Path) -> System:
    if isinstance(system, System):
        return system
    if isinstance(system, Device):
        return _of_one_chip(system)
    if isinstance(system, Path) or (isinstance(system, str) and system.endswith((".yaml", ".yml"))):
        return load_system(system, owner=f"from {Path(system).name}")
    if not isinstance(system, str):
        raise ArgumentError(
            f"`system` must be a system, a device or the name of one, such as 'DGX_H100', got {short(system)}"
        )
    if system in systems:
        return systems[system]
    try:
        return _of_one_chip(Hardware[system])
    except UnknownNameError:
        names = [spelling for each in systems for spelling in (each.id, *each.aliases)]
        names += [word for known in Hardware for word in (known.id, *known.aliases)]
        raise UnknownNameError(
            f"no system or device {short(system)}.{did_you_mean(system, names)} "
            "mlsys.systems() lists the systems, `mlsys devices` the devices"
        ) from None


def _of_one_chip(device: Device) -> System:
    """Return a device as a system of one chip: its fabric joins nothing yet, its PCIe leads to the host."""
    fabric = next((link for name, link in device.links.items() if name not in _NOT_A_FABRIC), None)
    pcie = device.links.get("PCIe")
    up = Link("scale_up", device.id)
    if fabric is not None:
        up = Link(
            "scale_up", device.id, fabric.kind or fabric.name, "point to point",
            _bandwidth=fabric._per_direction, _latency=fabric._latency,
        )  # fmt: skip
    host = Link("host", device.id)
    if pcie is not None:
        host = Link(
            "host", device.id, pcie.kind or pcie.name, "point to point",
            _bandwidth=pcie._per_direction, _latency=pcie._latency,
        )  # fmt: skip
    return System(
        id=device.id,
        name=device.name,
        vendor=device.vendor,
        release_year=device.release_year,
        device=device,
        chips_per_node=1,
        scale_up=up,
        host=host,
        note="one chip alone",
    )
