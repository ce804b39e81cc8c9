"""Clocks of Intel's processors against the columns of Intel's own specification pages.

``intel_clocks.csv`` holds those columns, in MHz, as dumped in felixsteinke/cpu-spec-dataset,
dataset/intel-cpus.csv@4c08d88. Intel prints up to four turbo clocks; `boost` is the highest of them, whichever
technology reaches it, because the twin defines it as the clock of one core alone.
"""

import csv
from pathlib import Path

import pytest

from mlsys.hardware import Hardware

with (Path(__file__).parent / "intel_clocks.csv").open(encoding="utf-8") as table:
    ROWS = {row["id"]: row for row in csv.DictReader(table)}
TURBOS = ("turbo_2", "performance_core", "turbo_max_3", "thermal_velocity", "max_turbo")


def test_every_twin_that_cites_intels_page_has_its_row() -> None:
    cited = {
        device.id
        for device in Hardware.CPU
        if "ark" in device.sources and "ark.intel.com" in device.sources["ark"].get("url", "")
    }
    assert cited == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_boost_is_the_highest_turbo_clock_of_one_core(name: str) -> None:
    row, device = ROWS[name], Hardware[name]
    clock = round(device.chip("clock").m_as("MHz"))
    highest = max(int(row[column] or 0) for column in TURBOS)
    recorded = device._chip.get("boost")
    if highest > clock:
        assert recorded is not None, f"{name} reaches {highest} MHz and has no `boost`"
        assert round(recorded.m_as("MHz")) == highest
    else:
        assert recorded is None, f"{name}: `boost` is for a clock above {clock} MHz"
