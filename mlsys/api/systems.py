"""``mlsys.system`` and ``mlsys.systems``: systems of many chips."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.hardware.system import systems as catalogue
from mlsys.tables import Table


@dataclass(frozen=True)
class SystemList:
    """Systems of the catalogue, in order."""

    systems: tuple[System, ...]

    def __iter__(self) -> Iterator[System]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    def record(self) -> list[dict[str, Any]]:
        """Return one record for each system."""
        return [each.record() for each in self.systems]

    def table(self) -> Table:
        """Return a table: a row for each system."""
        rows = [
            (
                each.id,
                each.device.id,
                f"{each.chips_per_node:,}",
                _rate(each.scale_up._bandwidth),
                each.scale_up.topology or "-",
                _rate(each.scale_out._bandwidth if each.scale_out else None),
                _rate(each.host._bandwidth),
            )
            for each in self.systems
        ]
        columns = ("system", "chip", "chips in a node", "scale-up", "topology", "scale-out", "host")
        return Table("Systems, bandwidth of one chip in one direction", columns, rows)

    def explain(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def _rate(quantity: Any) -> str:
    return "-" if quantity is None else f"{quantity:.4g~P}"


def system(name: System | Device | str | Path, nodes: int | None = None) -> System:
    """Return a system: of the catalogue by its name, from a file, or a single device as a system of one chip.

    Parameters
    ----------
    name
        Such as ``"DGX_H100"``; the name of a device; or the path of a system file, which ends with ``.yaml``.
    nodes
        Number of nodes; by default as the system is.

    Raises
    ------
    UnknownNameError
        If there is neither a system nor a device of that name.
    DeviceFileError
        If the file has faults.
    ArgumentError
        If its nodes cannot be joined, or not so many.

    Examples
    --------
    >>> system("DGX_H100", nodes=4)
    <system NVIDIA DGX H100: 4 nodes of 8 x H100_SXM, NVLink 4 450 GB/s each>
    """
    return as_system(name, nodes)


def systems(device: Device | str | None = None) -> SystemList:
    """Return the systems of the catalogue, by default all of them.

    Parameters
    ----------
    device
        Only those made of this device.

    Raises
    ------
    UnknownNameError
        If there is no such device.

    Examples
    --------
    >>> [each.id for each in systems("H200_SXM")]
    ['AWS_p5en', 'DGX_H200']
    """
    if device is None:
        return SystemList(tuple(catalogue))
    from mlsys.api.arguments import device_of

    return SystemList(catalogue.of(device_of(device)))
