"""What the tests of pictures share."""

import functools
from collections.abc import Iterator

import pytest

from axesfaults import figure_faults
from mlsys.provenance.shown import PageExhibit, hear


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()


@pytest.fixture(autouse=True)
def honest_axes() -> Iterator[None]:
    """Look at the axes of every figure that is announced, in whichever test it is drawn."""
    found: list[str] = []

    def look(shown: PageExhibit) -> None:
        if shown.kind == "picture" and isinstance(shown.digest, functools.partial):
            found.extend(f"{shown.name}: {fault}" for fault in figure_faults(*shown.digest.args))

    stop = hear(look)
    yield
    stop()
    assert not found, found
