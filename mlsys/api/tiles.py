"""``mlsys.tiles``: how a device cuts a network into tiles, and what that costs in time and energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import Phase
from mlsys.hardware.device import Device
from mlsys.mapping.fusion import as_run
from mlsys.models.architecture import ArchitectureResult, StrategyName, TilingStrategy, architecture
from mlsys.models.record import with_units
from mlsys.models.result import ResultMembers
from mlsys.tables import Table
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import sizes_in_words, sizes_used

_COLUMNS = ("operator", "times", "share", "tile", "tiles", "of peak", "bound by")


@dataclass(frozen=True)
class TiledNetwork(ResultMembers):
    """Time and energy of a network whose operators are cut into tiles.

    Attributes
    ----------
    device
        The device, with the memory on the chip that was requested.
    network
        The network as it was loaded, before it was fused.
    result
        The result of :func:`mlsys.models.architecture.architecture`, with a child for each operator.
    """

    device: Device
    network: Network
    result: ArchitectureResult

    def record(self) -> dict[str, Any]:
        """Return what ``mlsys tiles --json`` prints."""
        work = {
            "flops": self.network.flops.m_as("FLOP"),
            "product_flops": self.network.product_flops.m_as("FLOP"),
        }
        return with_units({**self.result.record(), **sizes_used(self.network), **work})

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data for each operator."""
        return [
            {
                "operator": child.workload,
                "tile": "x".join(map(str, child.plan.tile)),
                "tiles": child.plan.count,
                "level": child.plan.level,
                "buffer_bytes": child.plan.buffer.m_as("byte"),
                "block": "x".join(map(str, child.plan.block)),
                "block_level": child.plan.block_level,
                "read_bytes": child.plan.read.m_as("byte"),
                "written_bytes": child.plan.written.m_as("byte"),
                "loads": child.plan.loads,
                "waves": child.plan.waves,
                "utilisation": child.plan.utilisation,
                "seconds": child.time.m_as("s"),
                "joules": child.spent.m_as("J"),
                "bound_by": child.bound_by,
            }
            for child in self._children
        ]

    @property
    def _children(self) -> tuple[Any, ...]:
        return self.result.children

    def longest(self, shown: int = 10) -> Table:
        """Return the operators that take longest; equal ones are one row."""
        alike: dict[tuple[str, float], list[Any]] = {}
        for child in self._children:
            alike.setdefault((child.workload, child.time.m_as("s")), []).append(child)
        order = sorted(alike.values(), key=lambda members: -len(members) * members[0].time.m_as("s"))
        rows = [
            (
                members[0].workload,
                len(members),
                f"{(len(members) * members[0].time / self.result.time).m_as(''):.1%}",
                "×".join(map(str, members[0].plan.tile)),
                f"{members[0].plan.count:,}",
                f"{members[0].plan.utilisation:.0%}",
                members[0].bound_by,
            )
            for members in order[:shown]
        ]
        return Table("Longest operators", _COLUMNS, rows)

    def explain(self) -> str:
        """Return the result, the longest operators, and the sizes, as text."""
        return f"{self.result.explain()}\n{self.longest()}\n{sizes_in_words(self.network)}"


def tiles(
    device: Device | str,
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    onchip: Quantity | None = None,
    strategy: TilingStrategy | StrategyName | None = None,
    fusion: bool = True,
    launch_overhead: Quantity | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    option: str = "`{}`",
) -> TiledNetwork:
    """Return how a device cuts a network into tiles, and the time and energy, as the command ``mlsys tiles`` does.

    Parameters
    ----------
    device
        A device or its name in the catalogue.
    network, batch, sequence, image, phase, sizes, shape, option
        As of :func:`mlsys.analyze`.
    precision
        Number format of every value; by default what the network states, or else the headline format of the device.
    onchip
        Memory on the chip of a generic device, byte.
    strategy, launch_overhead
        As of :func:`mlsys.models.architecture.architecture`.
    fusion
        False runs every activation and normalisation as a kernel of its own.

    Returns
    -------
    TiledNetwork
        Its ``record()`` is what ``mlsys tiles --json`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such device, network, number format or strategy.
    ArgumentError
        If an argument does not go with the device or the network.

    Examples
    --------
    >>> answer = tiles("A100", "resnet50", batch=8)
    >>> answer.record()["precision"], answer.bound_by
    ('fp16', 'compute')
    """
    twin = device_of(device)
    twin = twin if onchip is None else twin.with_onchip(onchip)
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option)
    loaded = request.network(network, twin.headline)
    kernels = as_run(loaded, "kernels") if fusion else loaded
    return TiledNetwork(twin, loaded, architecture(twin, kernels, strategy=strategy, launch_overhead=launch_overhead))
