"""Architecture-aware models: whole networks on CPU, GPU, TPU and KPU, tiled as each kind of machine does.

:func:`architecture` gives time, energy and bytes by level; a :class:`TilingStrategy` gives the :class:`TilePlan`
of one operator; :func:`strategy_for` picks the strategy that suits a device.
"""

from mlsys.models.architecture.arrays import ArrayTiling, KpuTiling, TpuTiling
from mlsys.models.architecture.choose import STRATEGIES, StrategyName, strategy_for
from mlsys.models.architecture.cpu import CpuTiling
from mlsys.models.architecture.gpu import GpuTiling
from mlsys.models.architecture.model import PARTS, architecture
from mlsys.models.architecture.plan import TilePlan
from mlsys.models.architecture.result import ArchitectureResult
from mlsys.models.architecture.spending import ENERGY_PARTS
from mlsys.models.architecture.strategy import TilingStrategy

__all__ = [
    "ENERGY_PARTS",
    "PARTS",
    "STRATEGIES",
    "ArchitectureResult",
    "ArrayTiling",
    "CpuTiling",
    "GpuTiling",
    "KpuTiling",
    "StrategyName",
    "TilePlan",
    "TilingStrategy",
    "TpuTiling",
    "architecture",
    "strategy_for",
]
