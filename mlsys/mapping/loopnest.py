"""Loop nests: tile sizes, loop orders, spatial unrolling and what is kept where. No costs."""

from __future__ import annotations

import math
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import IterationSpace
from mlsys.unit_checks import checked_count


@dataclass(frozen=True)
class TileLevel:
    """One inner memory of a loop nest.

    Attributes
    ----------
    memory
        Name of the memory.
    tile
        Loop name to tile size: what one instance of the memory works on at a time.
        A loop that is not named is not split here: its tile is that of the level above.
    order
        Loops that step from tile to tile, outermost first. Loops left out do not step.
    keeps
        Operands that have a buffer here; others pass by. Empty means all.
    unroll
        Loop name to instances that take neighbouring tiles at the same time.

    Examples
    --------
    >>> TileLevel("SRAM", {"m": 8, "n": 8, "k": 4}, ("m", "n", "k")).tile["k"]
    4
    """

    memory: str
    tile: FrozenDict[str, int]
    order: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    unroll: FrozenDict[str, int] = field(default_factory=lambda: FrozenDict({}))

    def __post_init__(self) -> None:
        for name in ("tile", "unroll"):
            given: AnyMapping[str, int] = getattr(self, name)
            checked = {dim: checked_count("TileLevel", f"{name}[{dim}]", v) for dim, v in given.items()}
            object.__setattr__(self, name, FrozenDict(checked))
        object.__setattr__(self, "order", tuple(self.order))
        object.__setattr__(self, "keeps", tuple(self.keeps))
        if len(set(self.order)) != len(self.order):
            raise ArgumentError(
                f"TileLevel(): `order` must name each loop once, got {self.order}. Write e.g. order=('m', 'n', 'k')"
            )

    @property
    def instances(self) -> int:
        """Memories of this level that work at the same time."""
        return math.prod(self.unroll.values())


@dataclass(frozen=True)
class LoopNest:
    """A whole mapping: levels from the one next to main memory to the innermost.

    Attributes
    ----------
    levels
        Outermost first. Main memory, which holds everything, is not listed.

    Examples
    --------
    >>> nest = LoopNest((TileLevel("SRAM", {"m": 2, "n": 3, "k": 4}, ("m", "n", "k")),))
    >>> from mlsys.mapping.iteration import gemm_space
    >>> print(nest.resolved(gemm_space(4, 4, 4)).pseudocode(gemm_space(4, 4, 4)))
    for m in 2 steps of 2:  # SRAM
      for n in 2 steps of 3:
        C[m, n] += A[m, k] · B[k, n]  on the tile m=2, n=3, k=4
    """

    levels: tuple[TileLevel, ...]

    def resolved(self, space: IterationSpace) -> LoopNest:
        """Return the nest with every tile filled in and cut to the space, or raise.

        Raises
        ------
        ArgumentError
            If a loop or operand does not exist, if a loop that must step is not in the
            order, or if a tile is not a whole number of the tiles inside it.
        """
        outer = dict(space.sizes)
        levels = []
        for level in self.levels:
            _known_names(space, level)
            tile = {dim: min(level.tile.get(dim, outer[dim]), outer[dim]) for dim in space.sizes}
            for dim, size in outer.items():
                step = tile[dim] * level.unroll.get(dim, 1)
                if size > step and dim not in level.order:
                    raise ArgumentError(
                        f"LoopNest: loop {dim!r} takes {-(-size // step)} steps at {level.memory}, but is not in its "
                        f"order {level.order}. Write e.g. order={(*level.order, dim)}"
                    )
                if size % step and size > step and size != space.sizes[dim]:
                    raise ArgumentError(
                        f"LoopNest: the {dim}-tile of {size} around {level.memory} is not a whole number of its steps "
                        f"of {step}; only the end of a loop may be ragged. Write e.g. {dim}={step * -(-size // step)}"
                    )
            keeps = level.keeps or tuple(operand.name for operand in space.operands)
            levels.append(TileLevel(level.memory, FrozenDict(tile), level.order, keeps, level.unroll))
            outer = tile
        return LoopNest(tuple(levels))

    def pseudocode(self, space: IterationSpace) -> str:
        """Return the nest as pseudocode."""
        lines, outer, depth = [], dict(space.sizes), 0
        for level in self.levels:
            note = f"  # {level.memory}"
            for dim in level.order:
                step = min(level.tile[dim] * level.unroll.get(dim, 1), outer[dim])
                if outer[dim] > step:
                    lines.append(f"{'  ' * depth}for {dim} in {-(-outer[dim] // step)} steps of {step}:{note}")
                    note, depth = "", depth + 1
            for dim, lanes in level.unroll.items():
                if lanes > 1 and outer[dim] > level.tile[dim]:
                    lines.append(f"{'  ' * depth}parallel {dim} on {lanes} instances:{note}")
                    note, depth = "", depth + 1
            outer = dict(level.tile)
        out, (left, right) = space.output, space.inputs
        names = [f"{o.name}[{', '.join('+'.join(a.dims) for a in o.axes)}]" for o in (out, left, right)]
        tile = ", ".join(f"{dim}={size}" for dim, size in outer.items() if size > 1 or len(outer) <= 3)
        lines.append(f"{'  ' * depth}{names[0]} += {names[1]} · {names[2]}  on the tile {tile or '1'}")
        return "\n".join(lines)


def _known_names(space: IterationSpace, level: TileLevel) -> None:
    for what, given, known in (
        ("tile", level.tile, space.sizes),
        ("order", level.order, space.sizes),
        ("unroll", level.unroll, space.sizes),
        ("keeps", level.keeps, [operand.name for operand in space.operands]),
    ):
        for name in given:
            if name not in known:
                raise ArgumentError(
                    f"LoopNest: {level.memory} names {name!r} in its {what}, which {space.name} does not have. "
                    f"It has: {', '.join(known)}"
                )
