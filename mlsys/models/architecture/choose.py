"""Selection of the tiling strategy for a device."""

from typing import Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.mapping import Mapping
from mlsys.models.architecture.arrays import KpuTiling, TpuTiling
from mlsys.models.architecture.cpu import CpuTiling
from mlsys.models.architecture.gpu import GpuTiling, has_shared_memory
from mlsys.models.architecture.strategy import TilingStrategy
from mlsys.unit_checks import checked_choice

StrategyName = Literal["cpu", "gpu", "tpu", "kpu"]
STRATEGIES: dict[StrategyName, type[TilingStrategy]] = {
    "cpu": CpuTiling,
    "gpu": GpuTiling,
    "tpu": TpuTiling,
    "kpu": KpuTiling,
}


def strategy_for(
    device: Device, mapping: Mapping | None = None, *, strategy: StrategyName | None = None
) -> TilingStrategy:
    """Return the tiling strategy for ``device``.

    CPUs and microcontrollers tile for the cache of each core, GPUs for the shared memory of each
    multiprocessor, systolic arrays for stationary weights, domain-flow machines for stationary
    results. A system on a chip counts as a GPU if its units have shared memory.

    Parameters
    ----------
    device
        A device twin.
    mapping
        Rate, unit and overlap.
    strategy
        ``"cpu"``, ``"gpu"``, ``"tpu"`` or ``"kpu"``; by default chosen by the kind and parts of the device.

    Raises
    ------
    ArgumentError
        If no strategy suits the device, or it lacks data that the strategy needs.
    UnknownNameError
        If the strategy is unknown.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [strategy_for(device).name for device in Hardware.Generic]
    ['cpu', 'gpu', 'kpu', 'tpu']
    >>> strategy_for(Hardware.Cloud.TPUv4).name, strategy_for(Hardware.Edge.RaspberryPi4).name
    ('tpu', 'cpu')
    """
    chosen = _suggested(device) if strategy is None else strategy
    return STRATEGIES[checked_choice("strategy_for", "strategy", chosen, get_args(StrategyName))](
        device, mapping or Mapping()
    )


def _suggested(device: Device) -> StrategyName:
    if "domain flow" in device.architecture:
        return "kpu"
    if device.systolic_array is not None:
        return "tpu"
    if device.kind == "GPU" or (device.kind == "SoC" and any(map(has_shared_memory, view(device).inner))):
        return "gpu"
    if device.kind in ("CPU", "MCU", "SoC"):
        return "cpu"
    raise ArgumentError(
        f"strategy_for(): no tiling strategy suits `device` {device.name}, of kind {device.kind} without a recorded "
        "systolic array. Add `systolic_array: {rows, columns, count}` to its YAML file, or name a strategy: "
        f"strategy='{'gpu' if any(level.scope == 'unit' for level in device.inner_levels) else 'cpu'}'"
    )
