"""An analysis: its parts sum to the whole, and no change gains more than it can."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.formulas import amdahl_ceiling
from mlsys.hardware import view
from mlsys.models.analysis import Analysis, analyze
from mlsys.models.analysis.changes import (
    HALF_WEIGHTS,
    NO_LAUNCH,
    TWICE_THE_BATCH,
    doubled,
    scaled_traffic,
    weights_of_twice_the_batch,
)
from mlsys.models.analysis.parts import AT_PEAK, NO_TIME
from mlsys.models.estimate import CaseBatch, Work, calibrated_times, kernel_times, snapshot
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.lowering import expert_by_expert, kernels_of
from mlsys.models.roofline import roofline
from mlsys.provenance import perturbed
from mlsys.units import Q_
from mlsys.workloads import Network, Workload, conv2d, elementwise, gemm
from mlsys.workloads.zoo import network

NETWORKS = {
    "resnet50": {"batch": 32},
    "mobilenet-v2": {"batch": 1},
    "bert-base": {"batch": 8},
    "llama3-8b": {"phase": "decode", "sequence": 512},
}
DEVICES = ("A100", "T4", "H100", "Xeon_8380", "TPUv4")


def usual(device: str) -> str:
    """Return a 16-bit precision that the device has, or its headline."""
    twin = Hardware[device]
    return next((name for name in ("fp16", "bf16") if name in twin.precisions), twin.headline)


@pytest.fixture(scope="module", params=[(name, device) for name in NETWORKS for device in DEVICES], ids="-".join)
def analysis(request: pytest.FixtureRequest) -> Analysis:
    name, device = request.param
    return analyze(
        Hardware[device], network(name, **NETWORKS[name], precision="fp16"), precision=usual(device), cached=False
    )


def test_the_parts_sum_to_the_whole(analysis: Analysis) -> None:
    for parts in (analysis.operators, analysis.groups):
        assert sum(part.estimate.m_as("s") for part in parts) == pytest.approx(analysis.estimate.m_as("s"))
        assert sum(part.share for part in parts) == pytest.approx(1)
    assert sum(operator.bound.m_as("s") for operator in analysis.operators) == pytest.approx(analysis.bound.m_as("s"))
    assert sum(group.operators for group in analysis.groups) == len(analysis.operators)
    assert sum(map(analysis.share_limited_by, ("compute", "memory", "launch"))) == pytest.approx(1)
    assert sum(entry.share for entry in analysis.costliest(10**6)) == pytest.approx(1)
    assert sum(operator.utilisation * operator.share for operator in analysis.operators) == pytest.approx(
        analysis.utilisation
    )


def test_no_operator_beats_its_roofline_where_data_return_to_memory(analysis: Analysis) -> None:
    for operator in analysis.operators:
        assert operator.estimate.m_as("s") >= operator.bound.m_as("s")


def test_no_change_gains_more_than_amdahl_allows(analysis: Analysis) -> None:
    assert analysis.changes
    for change in analysis.changes:
        assert 1 <= change.speedup <= change.limit * (1 + 1e-9)
        assert (change.time + change.saved).m_as("s") == pytest.approx(analysis.estimate.m_as("s"))
        assert change.speedup == pytest.approx((analysis.estimate / change.time).m_as(""))
        if change.limit != float("inf"):
            assert change.limit == pytest.approx(amdahl_ceiling(change.share).m_as(""))
        if change.change == NO_TIME and change.limit != float("inf"):
            assert change.speedup == pytest.approx(change.limit)
        if change.change == TWICE_THE_BATCH:
            assert change.speedup <= 2
    saved = [change.saved.magnitude for change in analysis.changes]
    assert saved == sorted(saved, reverse=True)


def test_of_all_there_is_no_saving_is_told() -> None:
    answer = analyze(Hardware["RaspberryPi5"], network("yolov8n", precision="fp32"), precision="fp32")
    assert answer.groups[0].share == pytest.approx(1, abs=1e-9)
    assert all(change.change != NO_TIME and change.speedup < 100 for change in answer.changes)
    assert "inf×" not in answer.explain()


def test_half_the_weights_and_the_compute_peak_gain_no_more_than_no_time_at_all(analysis: Analysis) -> None:
    gone = {change.target: change for change in analysis.changes if change.change == NO_TIME}
    for change in analysis.changes:
        if change.change in (AT_PEAK, HALF_WEIGHTS) and change.target in gone:
            assert change.saved <= gone[change.target].saved * (1 + 1e-9)


def test_the_bound_is_the_roofline_and_the_estimate_the_validated_model() -> None:
    device, net = Hardware.Cloud.A100, network("resnet50", batch=16, precision="fp16")
    analysis = analyze(device, net)
    assert analysis.bound == roofline(device, net).time
    assert analysis.intensity.m_as("FLOP/byte") == pytest.approx(net.intensity.m_as("FLOP/byte"))
    parameters = parameters_of("compiled network on GPU", "A100_80GB", "resnet50")[0].vectorised()
    work = kernels_of(net, None)
    times = kernel_times(CaseBatch.of([(view(device, "fp16"), work, True)]), parameters)
    below = 0
    for row, operator, child in zip(net.arrays.order, analysis.operators, analysis.roofline.children, strict=True):
        direct, least = times.seconds[row], child.time.m_as("s") + times.launch[row]
        below += direct < least
        assert operator.estimate.m_as("s") == pytest.approx(max(direct, least))
    assert below < len(net) / 10, "the bound holds the model up in few places"


def test_an_estimate_is_never_below_its_bound_whatever_the_cache_holds() -> None:
    """An Edge TPU's estimate of MobileNetV2 was half of its own bound: all weights stayed on the chip."""
    for device, name in (("EdgeTPU", "mobilenet-v2"), ("L40S", "resnet50"), ("CloudAI100", "mobilenet-v2")):
        twin = Hardware[device]
        for batch in (1, 32):
            analysis = analyze(twin, network(name, batch=batch, precision="fp16"), precision=twin.headline)
            assert analysis.estimate >= analysis.bound
            assert all(operator.estimate >= operator.bound for operator in analysis.operators)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_order_of_operators_changes_nothing(name: str) -> None:
    net = network(name, **NETWORKS[name], precision="fp16")
    shuffled = np.random.default_rng(1).permutation(len(net))
    straight = analyze(Hardware.Cloud.A100, net)
    turned = replace(net, operators=tuple(net.operators[index] for index in shuffled))
    other = analyze(Hardware.Cloud.A100, turned)
    assert other.estimate.m_as("s") == pytest.approx(straight.estimate.m_as("s"))
    assert [straight.operators[index].share for index in shuffled] == pytest.approx(
        [each.share for each in other.operators]
    )
    assert [str(change) for change in straight.changes][:3] == [str(change) for change in other.changes][:3]


@pytest.mark.parametrize("name", [*NETWORKS, "gpt2", "efficientnet-b0", "vit-b16", "resnext50"])
@pytest.mark.parametrize("batch", [1, 6])
def test_kernels_at_twice_the_batch_are_those_of_the_network_at_twice_the_batch(name: str, batch: int) -> None:
    shape = {**NETWORKS.get(name, {}), "batch": batch}
    net = network(name, **shape, precision="fp16")
    large = kernels_of(network(name, **{**shape, "batch": 2 * batch}, precision="fp16"), None)
    small = kernels_of(net, None)
    twice = doubled(small, weights_of_twice_the_batch(net, small))
    np.testing.assert_allclose(twice.columns, large.columns, rtol=1e-12)


@pytest.mark.parametrize(("name", "batch"), [("mixtral-8x7b", 1), ("mixtral-8x7b", 8), ("deepseek-v3", 1)])
def test_twice_the_tokens_visit_more_experts(name: str, batch: int) -> None:
    """Experts are chosen anew for every token: of 256 two tokens visit 15.75 where one visits 8."""
    nets = [network(name, batch=size, phase="decode", precision="fp16") for size in (batch, 2 * batch)]
    small, large = (expert_by_expert(kernels_of(net, None), 2.0) for net in nets)
    named = {row for row, each in zip(nets[0].arrays.order, nets[0], strict=True) if "experts" in each.name}
    experts = np.array([row in named and small["batch"][row] > 1 for row in range(len(small["m"]))])
    assert experts.sum() == 2
    twice = doubled(small, weights_of_twice_the_batch(nets[0], small))
    np.testing.assert_allclose(twice.columns[:, experts], large.columns[:, experts], rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_half_the_bits_are_never_slower(device: str) -> None:
    twin, chosen = Hardware[device], usual(device)
    work = kernels_of(network("mobilenet-v2", batch=4, precision="fp16"), None)
    engine, parameters = snapshot(view(twin, chosen)), parameters_of(f"compiled network on {twin.kind}")[0].vectorised()
    rng = np.random.default_rng(2)
    for stays in (True, False):
        before = calibrated_times(CaseBatch.of([(engine, work, stays)]), parameters)[0]
        for _ in range(5):
            here = rng.random(len(work["count"])) < 0.5
            for change in ({"weights": 0.5}, {"other": 0.5}, {"weights": 0.5, "other": 0.5}):
                assert (
                    calibrated_times(CaseBatch.of([(engine, scaled_traffic(work, here, **change), stays)]), parameters)[
                        0
                    ]
                    <= before
                )


def test_scaling_by_one_changes_nothing_and_half_the_weights_halve_only_them() -> None:
    work = kernels_of(network("resnet50", batch=2, precision="fp16"), None)
    everywhere = np.ones(len(work["count"]), dtype=bool)
    assert np.array_equal(scaled_traffic(work, everywhere).columns, work.columns)
    half = scaled_traffic(work, everywhere, weights=0.5)
    assert half.weights == work.weights / 2
    assert np.allclose(half["moved"] - half["weights"], work["moved"] - work["weights"])


def test_a_network_by_hand_is_held_by_what_must_hold_it() -> None:
    net = Network(
        "three",
        (
            gemm(8192, 8192, 8192, name="large"),
            elementwise(2**28, 1, name="stream"),
            gemm(16, 16, 16, name="tiny"),
            gemm(1024, 1024, 1024, name="between: a launch takes longer than its data, not than its work"),
        ),
    )
    analysis = analyze(Hardware.Cloud.A100, net)
    assert [operator.limited_by for operator in analysis.operators] == ["compute", "memory", "launch", "compute"]
    assert analysis.costliest(1)[0].operator.name == "large"
    launches = next(change for change in analysis.changes if change.change == NO_LAUNCH)
    launch = parameters_of("compiled network on GPU", "A100_80GB")[0].launch
    assert launches.saved.m_as("s") == pytest.approx(4 * launch)


def test_equal_layers_are_listed_once_with_their_number() -> None:
    analysis = analyze(Hardware.Cloud.A100, network("bert-base", precision="fp16"))
    assert {entry.times for entry in analysis.costliest(3)} == {12}
    assert "and 14 more" in analysis.explain(4)


def test_depthwise_convolutions_stand_by_themselves() -> None:
    kinds = {group.kind for group in analyze(Hardware.Cloud.A100, network("mobilenet-v2", precision="fp16")).groups}
    assert kinds == {"conv2d", "depthwise conv2d", "gemm"}


def test_a_precision_recounts_every_byte() -> None:
    half, single = (network("resnet50", batch=4, precision=name) for name in ("fp16", "fp32"))
    device = Hardware.Cloud.A100
    recounted = analyze(device, half, precision="fp32")
    assert recounted.data.m_as("byte") == pytest.approx(single.data.m_as("byte"))
    assert recounted.estimate.m_as("s") == pytest.approx(analyze(device, single).estimate.m_as("s"))
    assert recounted.precision == "fp32"
    assert "every value is stored in fp32" in recounted.assumptions


def test_a_captured_workload_counts_all_its_work() -> None:
    net = network("resnet50", fused=False, precision="fp16")
    workload = Workload.from_network(net)
    assert [operator.products for operator in workload] == [operator.products for operator in net]
    analysis = analyze(Hardware.Cloud.A100, workload)
    assert analysis.estimate.m_as("s") == pytest.approx(analyze(Hardware.Cloud.A100, net).estimate.m_as("s"))
    assert analysis.flops == net.flops


def test_the_rate_counts_samples_and_nothing_else_does() -> None:
    net = network("resnet50", batch=8, precision="fp16")
    single, eight = (analyze(Hardware.Cloud.A100, net, samples=samples) for samples in (1, 8))
    assert eight.rate.m_as("1/s") == pytest.approx(8 / eight.estimate.m_as("s"))
    assert single.estimate == eight.estimate


def test_parameters_of_another_machine_are_named() -> None:
    analysis = analyze(Hardware["STM32H743"], network("resnet8", precision="int8"))
    assert analysis.setting == "microcontroller runtime on MCU"
    eager = analyze(Hardware.Cloud.A100, network("resnet50", precision="fp16"), software="eager network on GPU")
    assert eager.calibration == "eager network on GPU"
    assert eager.estimate != analyze(Hardware.Cloud.A100, network("resnet50", precision="fp16")).estimate


def test_recurrent_layers_say_how_they_are_timed() -> None:
    layer = replace(gemm(8, 64, 64), kind="recurrent")
    analysis = analyze(Hardware.Cloud.A100, Network("recurrent", (layer,)))
    assert any(text.startswith("recurrent layers are timed on the vector units") for text in analysis.assumptions)


def test_the_text_says_what_counts() -> None:
    text = analyze(Hardware.Cloud.A100, network("resnet50", batch=32, precision="fp16"), precision="fp16").explain(3)
    for part in ("at least", "estimate", "above the ridge", "Fix first: ", "What if:", "Assumptions:", "and 51 more"):
        assert part in text


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"workload": Network("none", ())}, ArgumentError, r"analyze\(\): `workload` must have at least one operator"),
        (
            {"workload": "resnet50"},
            ArgumentError,
            r"`workload` must be a network, such as load\('resnet50'\); .*, got 'resnet50'",
        ),
        ({"samples": 0}, ArgumentError, r"analyze\(\): `samples` must be a whole number >= 1, got 0"),
        ({"samples": True}, ArgumentError, r"`samples` must be a whole number >= 1, got True"),
        ({"precision": "fp61"}, UnknownNameError, "unknown precision 'fp61'"),
        ({"precision": "fp8"}, UnknownNameError, "has no fp8 peak. It has: "),
        (
            {"software": "compiled network on GPUs"},
            UnknownNameError,
            "never fitted. Did you mean 'compiled network on GP",
        ),
    ],
)
def test_bad_input_is_refused_in_words(change: dict[str, object], error: type[Exception], text: str) -> None:
    wanted = {"workload": network("resnet50", precision="fp16"), **change}
    with pytest.raises(error, match=text):
        analyze(Hardware.Cloud.A100, **wanted)  # type: ignore[arg-type]


def test_operators_in_other_formats_are_refused_by_name_not_mixed() -> None:
    operator = replace(conv2d(1, 3, 8, size=8, kernel=3), precision="fp8")
    with pytest.raises(UnknownNameError, match="has no fp8 peak"):
        analyze(Hardware.Cloud.A100, Network("eight bits", (operator,)))
    assert analyze(Hardware.Cloud.A100, Network("eight bits", (operator,)), precision="fp16").estimate > Q_(0, "s")


def test_work_of_an_analysis_is_one_kernel_for_each_distinct_operator() -> None:
    net = network("bert-base", precision="fp16")
    work = kernels_of(net, None)
    assert isinstance(work, Work)
    assert work.launches == len(net)


def test_a_network_on_one_device_leans_on_no_link() -> None:
    """What is sent nowhere is not named, and a link of half the speed changes nothing."""
    device, net = Hardware.Cloud.A100, network("resnet50", batch=2, precision="fp16")
    analysis = analyze(device, net)
    assert not [fact.name for fact in analysis.facts if "/links/" in fact.name]
    with perturbed("A100_80GB/links/NVLink/per_direction", 0.5):
        assert analyze(device, net).estimate.magnitude == analysis.estimate.magnitude
