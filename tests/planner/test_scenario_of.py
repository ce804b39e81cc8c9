"""Scenarios from the catalogue: devices that a scenario cannot be made of are refused in one line."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.planner.placement.profiles import scenario_of
from mlsys.workloads import load


def test_a_device_whose_memory_size_the_board_decides_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"the memory size of 'Hailo8' is not on record \(the host decides"):
        scenario_of(load("lenet5", precision="int8"), ["Hailo8"], precision="int8")


def test_the_memory_of_a_device_is_that_of_its_file() -> None:
    (device,) = scenario_of(load("lenet5"), ["T4"])["devices"]
    assert device == {"name": "T4", "memory_mb": 16_000.0}
