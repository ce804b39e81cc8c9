"""A warp that divides at a branch, executed slot by slot."""

import random

import pytest

from mlsys.errors import ArgumentError
from mlsys.models.divergence import warp_branch


def test_each_slot_belongs_to_one_path() -> None:
    drawn = random.Random(3)
    for _ in range(200):
        lengths = [drawn.randint(1, 9) for _ in range(drawn.randint(1, 4))]
        paths = [drawn.randrange(len(lengths)) for _ in range(drawn.choice((1, 8, 32)))]
        left, issued, used = [lengths[path] for path in paths], 0, 0
        while any(left):  # issue for the first lane that waits; all lanes of its path go along
            path = next(path for path, rest in zip(paths, left, strict=True) if rest)
            active = [lane for lane, own in enumerate(paths) if own == path]
            issued, used = issued + 1, used + len(active)
            for lane in active:
                left[lane] -= 1
        branch = warp_branch(paths, lengths)
        assert (branch.issued, branch.efficiency) == (issued, pytest.approx(used / (issued * len(paths))))


@pytest.mark.parametrize(("paths", "lengths"), [([], (1,)), ([2], (1, 1)), ([-1], (1,)), ([0], (0,))])
def test_a_path_must_exist(paths: list[int], lengths: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"warp_branch\(\)"):
        warp_branch(paths, lengths)
