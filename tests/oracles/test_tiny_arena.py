"""Arena, flash, and cycles and SRAM of an NPU, against TFLM's and Vela's records (``data/README.md``)."""

import csv
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.edge.arena import ArenaEstimate, ArenaRecord, arena, recorded
from mlsys.edge.npu import ethos_u55
from mlsys.errors import ArgumentError
from mlsys.workloads import load
from mlsys.workloads.workload import Workload

HELD_OUT = ("resnet8_wide", "streaming_wake_word")  # nothing was fitted to them


@pytest.fixture(scope="module")
def networks() -> list[tuple[ArenaRecord, Workload, ArenaEstimate]]:
    planned = []
    for record in recorded():
        work = load(record.network)
        planned.append((record, work, arena(work)))
    return planned


def off(ours: float, theirs: float) -> float:
    return abs(float(ours) / theirs - 1)


def test_activations_are_those_of_the_runtime_to_the_byte(
    networks: list[tuple[ArenaRecord, Workload, ArenaEstimate]],
) -> None:
    """TFLM's head: inputs and activations as its greedy planner lays them out, on all six networks."""
    assert len(networks) == 6
    for record, _, memory in networks:
        assert memory.activations.m_as("byte") == record.head, record.network
        assert memory.least.m_as("byte") <= record.head


def test_a_better_plan_needs_a_quarter_less_for_visual_wake_words(
    networks: list[tuple[ArenaRecord, Workload, ArenaEstimate]],
) -> None:
    """The fullest step is the first pointwise layer: 48 × 48 × 8 in, 48 × 48 × 16 out; the greedy plan leaves gaps."""
    memory = next(memory for record, _, memory in networks if "vww" in record.network)
    assert memory.least.m_as("byte") == 48 * 48 * (8 + 16)
    assert memory.activations.m_as("byte") == 73_728


def test_ram_and_flash_beside_the_records(networks: list[tuple[ArenaRecord, Workload, ArenaEstimate]]) -> None:
    for record, _, memory in networks:
        assert off(memory.total.m_as("byte"), record.head + record.tail) < 0.04, record.network
        assert off(memory.persistent.m_as("byte"), record.tail) < 0.06, record.network
        assert off(memory.flash.m_as("byte"), record.file_bytes) < 0.13, record.network
        if record.declared_arena is not None:
            assert memory.total.m_as("byte") < record.declared_arena, "what the reference sets aside suffices"
    assert median(off(memory.flash.m_as("byte"), record.file_bytes) for record, _, memory in networks) < 0.07


@pytest.mark.parametrize("macs", [128, 256])
def test_cycles_and_sram_beside_vela(networks: list[tuple[ArenaRecord, Workload, ArenaEstimate]], macs: int) -> None:
    cycles, sram = {}, {}
    for record, work, _ in networks:
        memory = ethos_u55(work, macs, weight_ratio=record.weight_ratio)
        cycles[record.network] = off(memory.cycles, record.cycles[macs])
        sram[record.network] = off(memory.sram_bytes, record.sram[macs])
    assert max(cycles.values()) < 0.15, cycles
    assert median(cycles.values()) < 0.07
    assert median(sram.values()) < 0.02, sram
    assert max(sram.values()) < 0.27
    unseen = [error for name, error in cycles.items() if name.rpartition(":")[2] in HELD_OUT]
    assert len(unseen) == 2


def test_totals_of_vela_are_the_sums_of_its_layers() -> None:
    """What is shipped was copied right: operators sum to the totals, but for the few that overlap."""
    sums: dict[tuple[str, int], int] = defaultdict(int)
    with (Path(__file__).parent / "data" / "vela_layers.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            longest = max(int(row[name]) for name in ("npu", "sram", "flash"))
            assert int(row["cycles"]) >= longest
            sums[row["network"], int(row["configuration"].rpartition("-")[2])] += int(row["cycles"])
    assert len(sums) == 12
    for record in recorded():
        for macs in (128, 256):
            assert sums[record.network, macs] == pytest.approx(record.cycles[macs], rel=0.01)


def test_more_multipliers_never_take_longer_and_heavier_weights_never_less() -> None:
    work = load("resnet8")
    assert ethos_u55(work, 256).cycles < ethos_u55(work, 128).cycles
    assert ethos_u55(work, weight_ratio=2.0).cycles > ethos_u55(work).cycles
    least = work.macs.magnitude / 128
    assert ethos_u55(work).cycles > least
    with pytest.raises(ArgumentError, match="128 or 256"):
        ethos_u55(work, 64)
    with pytest.raises(ArgumentError, match="weight_ratio"):
        ethos_u55(work, weight_ratio=0)


def test_command_says_whether_it_fits() -> None:
    done = CliRunner().invoke(main, ["edge", "arena", "vww-mobilenet-v1", "--device", "STM32G0B1"])
    assert done.exit_code == 0, done.output
    assert "RAM 103,139 B of 147,456 B in SRAM: fits" in done.output
    large = CliRunner().invoke(main, ["edge", "arena", "resnet18", "--device", "STM32H743"])
    assert large.output.count("does not fit") == 2
    assert CliRunner().invoke(main, ["edge", "arena", "--device", "STM32G0B1"]).exit_code == 1
    assert "unknown network 'ds-cn'" in CliRunner().invoke(main, ["edge", "arena", "ds-cn"]).output
