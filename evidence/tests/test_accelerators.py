"""Neural processors, and boards of their size: what their makers and the code of their programs say, against rows."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.case import Case
from mlsys.hardware import view
from mlsys.models.estimate import CaseBatch, Parameters, calibrated_times, snapshot
from mlsys.models.estimate.processors import plain_loops, scalar
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.evaluate.report import validate
from mlsys_evidence.fit.intervals import Left, intervals
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.metal_sync_overhead import CROSSING
from mlsys_evidence.rows import shipped_rows

QUICK = Parameters(launch=1e-8)


def cases_on(device: str, software: str = "", precision: str = "") -> list[Case]:
    rows = [row for row in shipped_rows() if device in row.device and software in row.software]
    return [interpret(row) for row in rows if precision in row.precision]


def seconds(cases: list[Case]) -> np.ndarray:
    return calibrated_times(CaseBatch.of([(case.engine, case.work, case.cached) for case in cases]), QUICK.vectorised())


def test_plain_loops_are_told_by_their_instructions_alone() -> None:
    """A TH1520 takes what nine instructions for a multiply-accumulate take, on the one thread of that program."""
    measured = cases_on("TH1520", "ncnn", "int8")
    assert len(measured) == 4
    result = [plain_loops(case.engine, Hardware["TH1520"], "ncnn", "int8", case.work) for case in measured]
    ratios = np.array(result) / [case.seconds for case in measured]
    assert 0.6 < ratios.min() < ratios.max() < 1.5
    assert {case.setting for case in measured} == {"ncnn int8 1 thread network on CPU"}
    one = measured[0]
    assert plain_loops(one.engine, Hardware["TH1520"], "ncnn", "fp16", one.work) == 0, "they have kernels"
    assert plain_loops(one.engine, Hardware["RaspberryPi4"], "ncnn", "int8", one.work) == 0


def test_one_chip_at_several_powers_is_as_fast_as_its_peak() -> None:
    """MLPerf's rates of three modules of one chip: no clock falls below what the maker states at that power."""
    parts, result = [], []
    for device, peak in (("PCIe HHHL", 375e12), ("DM.2 ", 197e12), ("DM.2e", 128e12)):
        offline = [
            case
            for case in cases_on(f"Cloud AI 100 {device}", "", "int8")
            if case.network.startswith("ResNet-50") and "stream" not in case.setting
        ]
        parts.append(max(case.work.flops / case.seconds / peak for case in offline))
        result.append(offline[0].work.flops / seconds(offline[:1])[0] / peak)
    assert max(parts) < 1.3 * min(parts)
    assert all(0.6 < of_model / measured < 1.6 for of_model, measured in zip(result, parts, strict=True))


@pytest.mark.parametrize(("name", "felt"), [("A100", True), ("Hailo8", False), ("TPUv4", False)])
def test_power_limits_the_clock_of_a_gpu_and_is_counted_in_the_peak_of_others(name: str, felt: bool) -> None:
    twin = Hardware[name]
    assert np.isfinite(snapshot(view(twin, "int8")).power) == felt


def test_multipliers_of_a_neural_processor_are_fed_from_beside_them() -> None:
    """Twice the multipliers are fed twice as fast, whatever its main memory does; what is on record goes first."""
    small, large = (snapshot(view(Hardware[name], "int8")) for name in ("CloudAI100_DM2", "CloudAI100"))
    assert large.bandwidth == pytest.approx(small.bandwidth, rel=0.01)
    assert large.cache_bandwidth / small.cache_bandwidth == pytest.approx(375 / 197, rel=0.01)
    assert small.matmul / small.cache_bandwidth == pytest.approx(64)
    assert snapshot(view(Hardware["EdgeTPU"], "int8")).cache_bandwidth == 0, "its main memory is its host's"


def test_a_call_that_an_apple_gpu_is_waited_for_crosses_and_comes_back() -> None:
    """No call of a public benchmark takes less than 0.14 ms on any of five chips, however little it moves."""
    rows = [row for row in blind_evaluation_rows(3) if "mlx-benchmark" in row.source]
    cases = [interpret(row) for row in rows if row.device.startswith("Apple")]
    small = [case for case in cases if case.work["moved"][:-1].sum() < 40e6]
    assert len(small) >= 8
    assert min(case.seconds for case in cases) > 0.7 * CROSSING
    extra = [case.work["moved"][-1] / case.engine.bandwidth for case in cases]
    assert extra == pytest.approx([CROSSING] * len(cases))
    queued = replace(next(row for row in rows if row.device.startswith("Apple")), note="", id="m000000000000")
    assert interpret(queued).work.launches < cases[0].work.launches
    assert all(0 < case.compulsory < 1 for case in cases), "no bound counts it"


def test_a_setting_shares_its_range_with_the_work_that_most_of_its_rows_do() -> None:
    """A picture by diffusion beside twenty networks does not lend the networks the few errors of pictures."""
    setting = "npu runtime network on NPU"
    result = [each.case for each in validate([row for row in shipped_rows() if "ANE)" in row.device]).predictions]
    chosen = sorted(
        (case for case in result if case is not None and case.setting == setting), key=lambda case: case.kind
    )
    assert chosen[0].kind == "diffusion"
    wide = [Left(case, 3.0 * (-1) ** place, 3.0 * (-1) ** place) for place, case in enumerate(chosen)]
    reach = intervals(wide, {})[setting]
    assert reach["of"] == "of network inference on NPU"
    assert reach["unseen"] == pytest.approx((-3.0, 3.0), rel=0.01)


def test_code_without_vectors_does_one_multiply_add_a_cycle() -> None:
    """MobileNet's products on a TH1520 take nine tenths of that rate or more, and nothing of the program exceeds it."""
    result = validate([row for row in shipped_rows() if "TH1520" in row.device and "fp32" in row.precision]).predictions
    bounds = {each.row.model: each.bound / each.case.seconds for each in result if each.case is not None}
    assert len(bounds) >= 10
    assert max(bounds.values()) == bounds["MobileNet-v1 1.0"]
    assert 0.9 < bounds["MobileNet-v1 1.0"] < 1
    whole = snapshot(view(Hardware["TH1520"], "fp32"))
    one = scalar(whole.share(1 / 4))
    assert one.matmul == one.vector == pytest.approx(2 * whole.clock)
