"""The roofline model on a machine of round numbers, and what it refuses."""

from pathlib import Path

import pytest

from mlsys import formulas
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware, load_device
from mlsys.mapping import Mapping
from mlsys.mapping.fusion import fuse
from mlsys.models import roofline
from mlsys.testing import assert_depends_on, assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import Network, Operator, dense, gemm, load, relu, zoo

ROUND = """\
id: Round
name: Round machine
kind: GPU
vendor: Nobody
release_year: 2024
sources: {sheet: {title: Round data sheet, date: "2024", confidence: verified}}
headline: fp16
peaks:
  fp16:
    matrix: {dense: {value: 100 GFLOP/s, source: sheet}, "2:4": {value: 200 GFLOP/s, source: sheet}}
    vector: {dense: {value: 10 GFLOP/s, source: sheet}}
  tf32: {matrix: {dense: {value: 50 GFLOP/s, source: sheet}}}
  fp32: {vector: {dense: {value: 5 GFLOP/s, source: sheet}}}
memory:
  DRAM: {capacity: {value: 1 GB, source: sheet}, bandwidth: {value: 10 GB/s, source: sheet}}
  SRAM: {capacity: {value: 1 MB, source: sheet}, bandwidth: {value: 100 GB/s, source: sheet}}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Device:
    path: Path = tmp_path_factory.mktemp("devices") / "Round.yaml"
    path.write_text(ROUND)
    return load_device(path)


def work(gflop: float, gigabytes: float, precision: str = "fp16") -> Operator:
    return Operator("task", "made up", precision, Q_(gflop, "GFLOP"), Q_(gigabytes, "GB"))


@pytest.mark.parametrize(
    ("gflop", "gigabytes", "mapping", "options", "seconds", "bound"),
    [
        (100, 1, Mapping(), {}, 1.0, "compute"),
        (100, 30, Mapping(), {}, 3.0, "memory"),
        (100, 10, Mapping(), {}, 1.0, "compute"),  # on the ridge
        (100, 10, Mapping(overlap=False), {}, 2.0, "compute"),
        (100, 1, Mapping(sparsity="2:4"), {}, 0.5, "compute"),
        (100, 1, Mapping(unit="vector"), {}, 10.0, "compute"),
        (100, 30, Mapping(level="SRAM"), {}, 1.0, "compute"),
        (100, 1, Mapping(), {"compute_efficiency": 0.25}, 4.0, "compute"),
        (100, 30, Mapping(), {"bandwidth_efficiency": 0.5}, 6.0, "memory"),
        (100, 30, Mapping(), {"launch_overhead": Q_(500, "ms")}, 3.5, "memory"),
        (1, 0.1, Mapping(), {"launch_overhead": Q_(1, "s")}, 1.01, "launch"),
        (0, 10, Mapping(), {}, 1.0, "memory"),
    ],
)
def test_by_hand(
    machine: Device, gflop: float, gigabytes: float, mapping: Mapping, options: dict, seconds: float, bound: str
) -> None:
    result = roofline(machine, work(gflop, gigabytes), mapping, **options)
    assert_quantity_close(result.time, Q_(seconds, "s"))
    assert result.bound_by == bound
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)
    assert_quantity_close(result.figures["attained"], Q_(gflop / seconds, "GFLOP/s"), atol=Q_(1e-9, "GFLOP/s"))


def test_figures_are_the_formulas(machine: Device) -> None:
    result = roofline(machine, work(100, 30))
    intensity = formulas.arithmetic_intensity(Q_(100, "GFLOP"), Q_(30, "GB"))
    ridge = formulas.ridge_point(machine.peak("fp16"), machine.memory_bw)
    for name, wanted in {
        "intensity": intensity,
        "ridge": ridge,
        "roof": formulas.attainable_performance(intensity, machine.peak("fp16"), machine.memory_bw),
        "attained": formulas.attainable_performance(intensity, machine.peak("fp16"), machine.memory_bw),
        "utilisation": formulas.utilisation_ceiling(intensity, ridge),
    }.items():
        assert_quantity_close(result.figures[name], wanted)


def test_macs_and_flops_take_the_same_time(machine: Device) -> None:
    macs = Operator("task", "made up", "fp16", Q_(50, "GMAC"), Q_(1, "GB"))
    assert roofline(machine, macs).time == roofline(machine, work(100, 1)).time


def test_fp32_data_may_compute_in_tf32_but_not_in_fp16(machine: Device) -> None:
    assert_quantity_close(roofline(machine, work(50, 1, "fp32")).time, Q_(10, "s"))
    assert_quantity_close(roofline(machine, work(50, 1, "fp32"), Mapping(compute_precision="tf32")).time, Q_(1, "s"))
    with pytest.raises(ArgumentError, match=r"were counted in fp32\. Build the operator with precision='fp16'"):
        roofline(machine, work(50, 1, "fp32"), Mapping(compute_precision="fp16"))


@pytest.mark.parametrize(
    ("task", "mapping"),
    [
        (work(1, 1, "int8"), Mapping()),
        (work(1, 1, "fp32"), Mapping(unit="matrix")),
        (work(1, 1, "fp32"), Mapping(sparsity="2:4")),
        (work(1, 1), Mapping(level="HBM")),
        (work(1, 1, "fp32"), Mapping(compute_precision="fp31")),
    ],
)
def test_nothing_falls_back_silently(machine: Device, task: Operator, mapping: Mapping) -> None:
    with pytest.raises(UnknownNameError):
        roofline(machine, task, mapping)


def test_a_network_is_the_sum_of_its_operators(machine: Device) -> None:
    network = Network("two", (work(100, 1), work(100, 30), work(0, 20)))
    result = roofline(machine, network, launch_overhead=Q_(1, "ms"))
    assert_quantity_close(result.time, Q_(1 + 3 + 2 + 0.003, "s"))
    assert_quantity_close(result.parts["launch"], Q_(3, "ms"))
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)
    assert [child.bound_by for child in result.children] == ["compute", "memory", "memory"]
    assert result.bound_by == "memory"
    assert_quantity_close(result.figures["memory-bound share"], 5.002 / 6.003)
    assert_quantity_close(result.figures["attained"], Q_(200 / 6.003, "GFLOP/s"))
    assert_quantity_close(result.figures["utilisation"], 2 / 6.003)


def test_a_network_of_tiny_operators_is_bound_by_launching_them(machine: Device) -> None:
    result = roofline(machine, Network("crumbs", (gemm(8, 8, 8),) * 10), launch_overhead=Q_(10, "us"))
    assert result.bound_by == "launch"
    assert result.parts["launch"] > 0.9 * result.time


def test_an_empty_network_is_refused(machine: Device) -> None:
    with pytest.raises(ArgumentError, match="at least one operator, got the empty network 'none'"):
        roofline(machine, Network("none", ()))


def test_the_result_leans_on_exactly_the_two_facts_it_used() -> None:
    result = roofline(Hardware.Cloud.A100, dense(32, 2048, 2048))
    facts = "A100_80GB/peaks/fp16/matrix/dense", "A100_80GB/memory/HBM/bandwidth"
    for quantity in (result.time, *result.parts.values(), *result.figures.values()):
        assert_depends_on(quantity, *facts)
    assert_depends_on(roofline(Hardware.Cloud.A100, zoo.network("resnet50", batch=1, precision="fp16")).time, *facts)


def test_explain_tells_the_whole_story(machine: Device) -> None:
    text = roofline(machine, work(100, 30), launch_overhead=Q_(500, "ms")).explain()
    for piece in (
        *("task on Round machine", "3.5 s", "bound by memory", "compute", "exposed memory", "launch", "utilisation"),
        *("57.1%", "28.6%", "14.3%", "dense peak, 100% of it reached", "launch overhead 500 ms"),
    ):
        assert piece in text
    assert "no launch overhead" in roofline(machine, work(100, 30)).explain()


def test_results_and_operators_are_frozen(machine: Device) -> None:
    result = roofline(machine, relu(1000))
    assert isinstance(result.parts, FrozenDict)
    assert isinstance(result.figures, FrozenDict)
    for thing, name in (
        (result, "time"),
        (relu(10), "data"),
        (Mapping(), "level"),
        (zoo.network("resnet50", precision="fp16"), "operators"),
    ):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)


def test_a_captured_network_says_what_is_fused_in_which_format_and_at_which_size() -> None:
    network = load("resnet50", batch=32, precision="fp16")
    alone, fused = (roofline(Hardware.Cloud.A100, each) for each in (network, fuse(network)))
    assert alone.assumptions[-1].startswith(
        "174 operators, each a separate kernel; batch 32, image 224, fp16. mlsys.ana"
    )
    assert fused.assumptions[-1] == "56 kernels for 174 operators, fused by the caller; batch 32, image 224, fp16"
    by_hand = roofline(Hardware.Cloud.A100, Network("mine", (gemm(64, 64, 64),)))
    assert by_hand.assumptions[-1].startswith("operators run one after the other")
