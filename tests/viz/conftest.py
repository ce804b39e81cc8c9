"""What the tests of pictures share."""

import pytest


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()
