"""Our SCALE-Sim convention against recorded runs of SCALE-Sim 3.0.0 (``data/README.md``), every column of every row."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from mlsys.models.systolic import Window, count_systolic
from mlsys.models.systolic.accesses import ArrayCounts

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


LARGE, SMALL = recorded("scalesim.csv"), recorded("scalesim_small.csv")


def counted(row: dict[str, str]) -> ArrayCounts:
    window = None
    if row["kind"] != "gemm":
        height, width, kernel_height, kernel_width, _, _, stride = map(int, row["dims"].split(","))
        channels = int(row["K"]) // (kernel_height * kernel_width)  # a depthwise row is one channel
        window = Window(height, width, channels, kernel_height, kernel_width, stride)
    buffers = {
        f"{operand}_words": int(row[f"{operand}_sram_kb"]) * 1024 // int(row["word_bytes"])
        for operand in ("ifmap", "filter", "ofmap")
    }
    sizes = (int(row[name]) for name in ("M", "N", "K", "array_rows", "array_cols"))
    return count_systolic(*sizes, row["dataflow"], convention="scalesim", **buffers, window=window)


def differences(row: dict[str, str], counts: ArrayCounts) -> list[str]:
    sram, dram = counts.sram, counts.dram
    exact = {
        "total_cycles": counts.cycles,
        "sram_ifmap_reads": sram.ifmap_reads,
        "sram_filter_reads": sram.filter_reads,
        "sram_ofmap_writes": sram.ofmap_writes,
        "dram_ifmap_reads": dram.ifmap_reads,
        "dram_filter_reads": dram.filter_reads,
        "dram_ofmap_writes": dram.ofmap_writes,
    }
    shares = {
        "overall_util_pct": counts.utilisation,
        "mapping_eff_pct": counts.mapping_efficiency,
        "compute_util_pct": counts.compute_utilisation,
    }
    wrong = [f"{name}: {ours}, recorded {row[name]}" for name, ours in exact.items() if ours != float(row[name])]
    # The tool averages over folds one by one, which leaves a rounding error.
    wrong += [
        f"{name}: {100 * ours}, recorded {row[name]}"
        for name, ours in shares.items()
        if 100 * ours != pytest.approx(float(row[name]), rel=1e-10)
    ]
    return wrong


@pytest.mark.parametrize("row", LARGE, ids=lambda row: f"{row['name']}-{row['array_rows']}x{row['array_cols']}")
def test_every_recorded_number_of_the_large_runs(row: dict[str, str]) -> None:
    assert differences(row, counted(row)) == []


def test_every_recorded_number_of_the_small_runs() -> None:
    wrong = {row["name"]: wrong for row in SMALL if (wrong := differences(row, counted(row)))}
    assert wrong == {}


def test_the_recorded_rows_are_worth_comparing_with() -> None:
    assert len(LARGE) == 70 and len(SMALL) > 250
    rows = LARGE + SMALL
    assert {row["dataflow"] for row in rows} == {"ws", "os", "is"} and {row["kind"] for row in LARGE} >= {"dw", "conv"}
    again = [row for row in rows if float(row["dram_filter_reads"]) > int(row["K"]) * int(row["N"])]
    assert len(again) > 20, "buffers overflow in some"
    assert all(float(row["stall_cycles"]) == 0 for row in rows)


@pytest.mark.parametrize("field", ["cycles", "mapping_efficiency", "sram", "dram"])
def test_a_count_that_is_off_by_one_is_noticed(field: str) -> None:
    row = LARGE[0]
    counts = counted(row)
    value = getattr(counts, field)
    spoilt = value + 1 if isinstance(value, (int, float)) else replace(value, filter_reads=value.filter_reads + 1)
    assert len(differences(row, replace(counts, **{field: spoilt}))) == 1
