"""Least energy against recorded runs of ZigZag 3.9.1 (tests/oracles/data/zigzag.csv).

Where the models coincide: the same memories, the same spatial unrolling, energy by bits that
move. ZigZag rounds the bits of one transfer up to the least access of a port and cuts the
sum down to whole accesses; its element counts, priced by bits, are what is compared. Where a
layer does not fill the array, as everywhere on 14 by 12 elements, the tool lets it use a
fraction of a row on average (128 channels take 12.8 rows); here a row is used or not.
"""

import csv
import functools
import re
from pathlib import Path

import pytest

from mlsys.mapping import IterationSpace, conv_space
from mlsys.planner.mapper.accelerator import Accelerator, accelerator
from mlsys.planner.mapper.paths import least_energy

ROWS = [
    row
    for row in csv.DictReader((Path(__file__).parent / "data" / "zigzag.csv").open())
    if row["energy_total"]  # one run of the tool ended without a result
]
CONVOLUTIONS = {
    "conv1x1_56_64_256": (1, 64, 256, 56, 56, 1, 1),
    "conv3x3_56_64_64": (1, 64, 64, 56, 56, 3, 3),
    "rn50_conv1": (1, 3, 64, 112, 112, 7, 7, 2),
    "dw3x3_112_32": (1, 32, 32, 112, 112, 3, 3, 1, 32),
}


def space_of(layer: str) -> IterationSpace:
    name = layer.removesuffix("_d")
    if name in CONVOLUTIONS:
        return conv_space(*CONVOLUTIONS[name])
    sizes = [int(size) for size in re.findall(r"\d+", name)]
    m, n, k = sizes if len(sizes) == 3 else (129, 128, 128) if sizes == [129] else sizes * 3
    return conv_space(m, k, n, 1, 1, 1, 1)


def priced(row: dict[str, str], machine: Accelerator) -> float:
    """Return the energy of the element moves that the tool recorded, by bits, pJ."""
    total, bits = float(row["mac_energy"]), machine.bits
    for letter, operand in (("I", "input"), ("W", "weight"), ("O", "output")):
        for store in machine.paths[operand]:
            down, up, filled, drained = (
                int(row.get(f"elems:{letter}@{store.name}:{way}") or 0) for way in ("rd_dn", "rd_up", "wr_dn", "wr_up")
            )
            if operand != "output":
                total += bits[operand] * (down * store.read + filled * store.write)
                continue
            below = bits["partial"] if down else bits["output"]
            above = bits["partial"] if filled else bits["output"]
            total += below * (down * store.read + drained * store.write)
            total += above * (up * store.read + filled * store.write)
    return total


def test_layers_are_those_that_were_recorded() -> None:
    assert len(ROWS) >= 30
    for row in ROWS:
        assert space_of(row["layer"]).macs == int(float(row["total_macs"]))


@functools.cache
def ours(layer: str, name: str) -> float:
    return least_energy(accelerator(name), space_of(layer), ("few",)).energy


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "{layer} {accelerator} {opt}".format(**row))
def test_least_energy_is_at_most_that_of_the_tool(row: dict[str, str]) -> None:
    energy = ours(row["layer"], row["accelerator"])
    whole_rows = 1.0011 if row["accelerator"] == "eyeriss_like" else 1 + 1e-9
    assert energy <= priced(row, accelerator(row["accelerator"])) * whole_rows
    assert energy <= float(row["energy_total"]) * 1.00002  # whole accesses, cut down


def test_where_both_find_one_mapping_they_count_the_same() -> None:
    equal = [
        row
        for row in ROWS
        if ours(row["layer"], row["accelerator"])
        == pytest.approx(priced(row, accelerator(row["accelerator"])), rel=1e-12)
    ]
    assert len(equal) == 15
    assert {row["accelerator"] for row in equal} == {"edge_tpu_like", "tpu_like"}


def test_the_shared_scratchpad_of_the_block_is_worth_dividing() -> None:
    """The tool keeps the order of loops that its mapping file gives; other orders take half."""
    row = next(row for row in ROWS if row["layer"] == "g1024_d")
    assert ours("g1024_d", "gemm_l1_l3") < 0.5 * float(row["energy_total"])
