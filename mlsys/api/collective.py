"""``mlsys.collective``: time of a collective operation on a system."""

from pathlib import Path

from mlsys.choices import Collective, CollectiveAlgorithm, CollectiveLibrary
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.models.collectives import CollectiveResult, collective_time
from mlsys.units import Quantity


def collective(
    operation: Collective,
    size: Quantity,
    on: System | Device | str | Path,
    *,
    chips: int | None = None,
    nodes: int | None = None,
    algorithm: CollectiveAlgorithm | None = None,
    library: CollectiveLibrary | None = None,
) -> CollectiveResult:
    """Estimate the time of a collective operation, as the command ``mlsys collective`` prints it.

    Parameters
    ----------
    operation
        ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"all-to-all"``, ``"broadcast"`` or ``"send-recv"``.
    size
        Bytes of the array of each chip; of the whole array in an all-gather and a reduce-scatter.
    on
        A system, the name of one, or the path of a system file.
    chips
        Chips that take part; by default all of the system.
    nodes
        Nodes of the system; by default one.
    algorithm, library
        As of :func:`mlsys.models.collectives.collective_time`.

    Raises
    ------
    UnknownNameError
        If there is no such system, operation, algorithm or library.
    ArgumentUnitError, ArgumentError
        If the size has no unit or is not above zero, there are not so many chips, or the algorithm does not serve.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> result = collective("all-gather", Q_(1, "GB"), "DGX_A100", library="ideal", algorithm="ring")
    >>> print(f"{result.time.to('ms'):.3f}, {result.bus_bandwidth.to('GB/s'):.0f}")
    2.921 ms, 300 GB/s
    """
    system = as_system(on, nodes)
    return collective_time(system, operation, size, chips=chips, algorithm=algorithm, library=library)
