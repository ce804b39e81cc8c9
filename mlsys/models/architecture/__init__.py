"""Architecture-aware models: whole networks on CPU, GPU, TPU and KPU, tiled as each kind of machine tiles them.

:func:`architecture` returns time, energy and bytes by level; a :class:`TilingStrategy` returns the :class:`TilePlan`
of one operator; :func:`strategy_for` selects the strategy for a device.
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
