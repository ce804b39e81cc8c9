"""Layers of networks, against sums by hand."""

import math

import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.edge import layer_stats, summarize_hardware
from mlsys.errors import ArgumentError
from mlsys.units import Q_
from mlsys.workloads import load


def conv(batch: int, into: int, out: int, side: int, kernel: int = 3) -> tuple[int, int, int, int]:
    """Return elements, weight bytes, activation bytes and MAC of a convolution that keeps the side, in FP32."""
    elements = batch * out * side * side
    return elements, 4 * (out * into * kernel**2 + out), 4 * elements, elements * into * kernel**2


def test_small_cnn_at_batch_64() -> None:
    """Recomputed by the formulas of layers; the original counted four times the MAC of the second convolution."""
    rows = layer_stats(load("small-cnn", batch=64))
    by_hand = [conv(64, 1, 16, 28), conv(64, 16, 32, 14), (640, 4 * (15680 + 10), 2560, 64 * 15680)]
    counted = [(row.output_elements, row.parameter_bytes, row.activation_bytes, row.macs) for row in rows]
    assert counted == by_hand
    assert sum(row[1] + row[2] for row in by_hand) == 4_901_416
    assert sum(row[3] for row in by_hand) == 66_031_616


def test_all_operators_and_other_formats() -> None:
    work = load("small-cnn", batch=2)
    every = layer_stats(work, every=True)
    assert [row.kind for row in every].count("pooling") == 2
    assert sum(row.macs for row in every) == sum(row.macs for row in layer_stats(work))
    half = layer_stats(work.stored_as("fp16"))
    assert [2 * row.activation_bytes for row in half] == [row.activation_bytes for row in layer_stats(work)]
    assert {row.dtype for row in half} == {"fp16"}


@pytest.mark.parametrize("name", ["ds-cnn", "resnet8", "lenet5"])
def test_layers_sum_to_the_network(name: str) -> None:
    work = load(name)
    assert sum(row.macs for row in layer_stats(work)) == work.macs.magnitude
    held = sum(row.parameter_bytes for row in layer_stats(work, every=True))
    assert held == pytest.approx(work.weight_bytes.m_as("byte") + work.buffer_bytes.m_as("byte"), rel=0.03)


def test_published_summary() -> None:
    """4.87 ms and 12.8 GB/s: 1.006 GB/s, 0.0786, 13.56 GMAC/s, 27.1 GFLOP/s."""
    summary = summarize_hardware(load("small-cnn", batch=64), Q_(4.87, "ms"), Q_(12.8, "GB/s"), batch=64)
    once = summary[0]
    assert once.achieved_gb_per_s == pytest.approx(1.006, abs=5e-4)
    assert once.utilisation == pytest.approx(0.0786, abs=5e-5)
    assert once.gmac_per_s == pytest.approx(13.56, abs=5e-3)
    assert once.gflop_per_s == pytest.approx(2 * once.gmac_per_s)
    fused = next(row for row in summary if (row.traffic, row.scope) == ("fused", "batch"))
    assert fused.total_bytes == pytest.approx(12.33e6, rel=5e-4)
    assert {row.scope for row in summary} == {"batch", "sample"}
    for batch, sample in zip(summary[::2], summary[1::2], strict=True):
        assert batch.total_bytes == 64 * sample.total_bytes
        assert batch.achieved_gb_per_s == sample.achieved_gb_per_s


@pytest.mark.parametrize(
    ("time", "bandwidth", "peak", "word"),
    [
        (1.0, 1.0, 1e6, "compute"),
        (13.0, 1.0, 1e3, "memory"),
        (100.0, 1e3, 1e6, "overhead"),
        (100.0, 1e3, None, "not memory"),
    ],
)
def test_what_holds_the_time(time: float, bandwidth: float, peak: float | None, word: str) -> None:
    work = load("small-cnn", batch=64)
    rate = None if peak is None else Q_(peak, "GFLOP/s")
    if word == "compute":  # 132 MFLOP in 1 ms at 140 GFLOP/s; bytes at 1 TB/s take 12 µs
        bandwidth, rate = 1e3, Q_(140, "GFLOP/s")
    summary = summarize_hardware(work, Q_(time, "ms"), Q_(bandwidth, "GB/s"), batch=64, peak=rate)
    assert next(row for row in summary if row.traffic == "fused").bound_by == word


@pytest.mark.parametrize(("time", "bandwidth"), [(0, 1), (-1, 1), (math.nan, 1), (1, 0), (1, -2), (1, math.inf)])
def test_summary_refuses_where_the_original_floored(time: float, bandwidth: float) -> None:
    with pytest.raises(ArgumentError, match="latency|bandwidth"):
        summarize_hardware(load("small-cnn"), Q_(time, "ms"), Q_(bandwidth, "GB/s"))


def test_command_prints_the_columns() -> None:
    done = CliRunner().invoke(main, ["edge", "layers", "small-cnn", "--batch", "64", "--csv"])
    assert done.exit_code == 0, done.output
    head, *rows = done.output.splitlines()
    assert head.startswith("layer,output_elements,parameter_bytes,activation_bytes,macs")
    assert sum(int(row.split(",")[4]) for row in rows) == 66_031_616


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--latency", "4.87 ms"], "--bandwidth must be given together"),
        (["--latency", "0 ms", "--bandwidth", "12.8 GB/s"], "latency"),
        (["--latency", "-1 ms", "--bandwidth", "12.8 GB/s"], "latency"),
        (["--csv", "--json"], "not both"),
    ],
)
def test_command_says_what_is_wrong(options: list[str], message: str) -> None:
    done = CliRunner().invoke(main, ["edge", "layers", "small-cnn", *options])
    assert done.exit_code in (1, 2)
    assert message in done.output


def test_clock_command() -> None:
    points = ["--point", "168 MHz, 145 ms, 18 mJ", "--point", "80 MHz, 305 ms, 24 mJ"]
    done = CliRunner().invoke(main, ["edge", "clock", *points])
    assert done.exit_code == 0, done.output
    assert "static 37.5 mW, dynamic 12.56 mJ" in done.output
    assert "least energy among these: 168 MHz" in done.output
    assert "energy × time 7.32 mJ·s" in done.output  # 24 mJ for 305 ms
    assert CliRunner().invoke(main, ["edge", "clock", *points[:2]]).exit_code == 1
