"""How long one answer takes, and how many points a second a sweep makes."""

from typing import Any

import numpy as np
import pint
import pytest

from mlsys import Q_, Hardware
from mlsys.formulas import attainable_performance
from mlsys.models import roofline
from mlsys.workloads import dense, zoo

POINTS = 1_000_000
INTENSITIES = np.geomspace(1e-2, 1e4, POINTS)


def note(benchmark: Any, name: str, points: int = 1) -> None:
    benchmark.extra_info["name"] = name
    benchmark.extra_info["points"] = points


@pytest.mark.benchmark(group="sweep")
def test_sweep_of_the_bare_formula(benchmark: Any) -> None:
    note(benchmark, "bare formula, a million points", POINTS)
    roof = benchmark(attainable_performance.bare, INTENSITIES, 312e12, 2039e9)
    assert roof[0] == 2039e9 * INTENSITIES[0]
    assert roof[-1] == 312e12


@pytest.mark.benchmark(group="sweep")
def test_sweep_of_the_checked_formula(benchmark: Any) -> None:
    note(benchmark, "checked formula, a million points", POINTS)
    chip = Hardware.Cloud.A100
    benchmark(attainable_performance, Q_(INTENSITIES, "FLOP/byte"), chip.peak("fp16"), chip.memory_bw)


@pytest.mark.benchmark(group="sweep")
def test_sweep_of_numpy(benchmark: Any) -> None:
    note(benchmark, "numpy alone, a million points", POINTS)
    benchmark(lambda: np.minimum(312e12, 2039e9 * INTENSITIES))


@pytest.mark.benchmark(group="call")
def test_call_of_the_bare_formula(benchmark: Any) -> None:
    note(benchmark, "bare formula, one call")
    benchmark(attainable_performance.bare, 31.0, 312e12, 2039e9)


@pytest.mark.benchmark(group="call")
def test_call_of_the_checked_formula(benchmark: Any) -> None:
    note(benchmark, "checked formula, one call")
    intensity, peak, bandwidth = Q_(31, "FLOP/byte"), Q_(312, "TFLOP/s"), Q_(2039, "GB/s")
    roof = benchmark(attainable_performance, intensity, peak, bandwidth)
    assert roof.m_as("TFLOP/s") == pytest.approx(63.209)


@pytest.mark.benchmark(group="call")
def test_call_in_plain_pint(benchmark: Any) -> None:
    note(benchmark, "plain pint, one call")
    ureg = pint.UnitRegistry()
    intensity, peak, bandwidth = (ureg.Quantity(*pair) for pair in ((31, "1/byte"), (312, "1/ps"), (2039, "GB/s")))
    benchmark(lambda: min((bandwidth * intensity).to("1/s"), peak.to("1/s")))


@pytest.mark.benchmark(group="model")
def test_model_of_one_operator(benchmark: Any) -> None:
    note(benchmark, "roofline, one operator")
    chip, layer = Hardware.Cloud.A100, dense(32, 2048, 2048)
    assert benchmark(roofline, chip, layer).bound_by == "memory"


@pytest.mark.benchmark(group="model")
def test_model_of_a_network(benchmark: Any) -> None:
    note(benchmark, "roofline, ResNet-50 layer by layer", 54)
    chip, network = Hardware.Cloud.A100, zoo.network("resnet50", batch=32, precision="fp16")
    assert len(benchmark(roofline, chip, network).children) == 54


@pytest.mark.benchmark(group="model")
def test_model_of_mlsysim(benchmark: Any) -> None:
    mlsysim = pytest.importorskip("mlsysim", reason="mlsysim is installed by benchmarks/run.py alone")
    note(benchmark, "mlsysim, ResNet-50 as one operator")
    network, chip = mlsysim.Models.Vision.ResNet50, mlsysim.Hardware.Cloud.A100
    assert benchmark(mlsysim.Engine.solve, network, chip, batch_size=32).bottleneck == "Compute"
