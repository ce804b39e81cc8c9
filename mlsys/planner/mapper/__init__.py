"""The mapper: optimal tile sizes and loop orders by exact search."""

from mlsys.planner.mapper.landscape import Landscape, pareto_front, random_mappings
from mlsys.planner.mapper.mapper import OBJECTIVES, MappedLayer, Objective, best_mapping, map_network
from mlsys.planner.mapper.two_level import TILE_SETS, TwoLevelMapping, best_two_level, safe_bound

__all__ = [
    "OBJECTIVES",
    "TILE_SETS",
    "Landscape",
    "MappedLayer",
    "Objective",
    "TwoLevelMapping",
    "best_mapping",
    "best_two_level",
    "map_network",
    "pareto_front",
    "random_mappings",
    "safe_bound",
]
