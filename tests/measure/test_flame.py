"""Flame graphs: a process that spins is seen where it spins, and nothing is left where it cannot be looked at."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mlsys.errors import ArgumentError
from mlsys.measure.flame import flame_graph

SPINS = """
from mlsys.measure.flame import let_look
def turns_and_turns():
    while True:
        sum(range(1000))
let_look()
turns_and_turns()
"""


def test_the_function_that_takes_the_time_is_in_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "made" / "flame.svg"
    try:
        flame_graph([sys.executable, "-c", SPINS], path, seconds=1)
    except ArgumentError as error:
        if "py-spy" in str(error):
            pytest.skip(f"no process may be looked at here: {error}")
        raise
    picture = path.read_text(encoding="utf-8")
    ElementTree.fromstring(picture)
    assert "turns_and_turns" in picture
    assert [sibling.name for sibling in path.parent.iterdir()] == ["flame.svg"]


def test_what_ends_before_it_is_ready_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flame.svg"
    with pytest.raises(ArgumentError, match=r"ended before it was ready: .*such a pity|py-spy is not installed"):
        flame_graph([sys.executable, "-c", "raise SystemExit('such a pity')"], path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e9])
def test_a_time_that_is_none(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="`seconds`|py-spy is not installed"):
        flame_graph([sys.executable, "-c", SPINS], tmp_path / "flame.svg", seconds=seconds)
