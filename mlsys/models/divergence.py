"""Warp divergence: what a branch costs when the lanes of a warp disagree."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_counts


@dataclass(frozen=True)
class WarpBranch:
    """One branch, executed by a warp.

    Attributes
    ----------
    paths
        Path that each lane takes, one number for each lane.
    instructions
        Instructions of each path.
    """

    paths: tuple[int, ...]
    instructions: tuple[int, ...]

    @property
    def taken(self) -> tuple[int, ...]:
        """Paths that at least one lane takes; the warp issues each of them once, one after the other."""
        return tuple(sorted(set(self.paths)))

    @property
    def issued(self) -> int:
        """Instructions that the warp issues."""
        return sum(self.instructions[path] for path in self.taken)

    @property
    def efficiency(self) -> float:
        """Fraction of the lane slots that do work of their own thread; the others are masked."""
        useful = sum(self.instructions[path] for path in self.paths)
        return useful / (len(self.paths) * self.issued)


def warp_branch(paths: Sequence[int], instructions: Sequence[int]) -> WarpBranch:
    """Return what a warp issues for a branch whose lanes take the given paths.

    Parameters
    ----------
    paths
        Number of the path that each lane takes, from zero; as many as the warp has lanes.
    instructions
        Instructions of each path, at least one.

    Raises
    ------
    ArgumentError
        If there are no lanes, or a lane takes a path that does not exist.

    Examples
    --------
    >>> split = warp_branch([0] * 16 + [1] * 16, (10, 10))
    >>> split.issued, split.efficiency
    (20, 0.5)
    """
    lengths = tuple(checked_counts("warp_branch", **{f"instructions[{i}]": n for i, n in enumerate(instructions)}))
    chosen = tuple(paths)
    if not chosen or any(path not in range(len(lengths)) for path in chosen):
        raise ArgumentError(
            f"warp_branch(): `paths` must name one of the {len(lengths)} paths for each lane, by a number from 0 to "
            f"{len(lengths) - 1}, got {list(chosen)}. Write e.g. paths=[0] * 31 + [1]"
        )
    return WarpBranch(chosen, lengths)
