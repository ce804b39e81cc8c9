"""What must hold of every tiled machine, whatever operator it runs."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.hardware import Device
from mlsys.mapping import Mapping
from mlsys.models import roofline
from mlsys.models.architecture import ArchitectureResult, architecture, strategy_for
from mlsys.models.architecture.blocks import cubes, fewest_words, footprint
from mlsys.models.architecture.demand import Product
from mlsys.provenance import perturbed
from mlsys.units import Q_
from mlsys.workloads import Network, Operator, attention, conv2d, depthwise_conv2d, elementwise, gemm, softmax

WITHOUT_CACHE = Hardware.Edge.JetsonOrinNano
DEVICES = (
    *Hardware.Generic, Hardware.Cloud.A100, Hardware.Cloud.TPUv4, Hardware.CPU.Xeon_8380, Hardware.Edge.RaspberryPi4,
    WITHOUT_CACHE,
)  # fmt: skip
PROFILES = tuple(Hardware.Generic)
ALMOST = 1 - 1e-9

edges = st.one_of(st.integers(1, 300), st.integers(1, 6000))
few = st.integers(1, 64)
devices = st.sampled_from(DEVICES)
profiles = st.sampled_from(PROFILES)


@st.composite
def operators(draw: st.DrawFn, precision: str) -> Operator:
    kind = draw(st.sampled_from(("gemm", "conv", "depthwise", "attention", "stream", "softmax")))
    if kind == "gemm":
        return gemm(draw(edges), draw(edges), draw(edges), precision)
    if kind == "conv":
        kernel = draw(st.sampled_from((1, 3, 5)))
        size = draw(st.integers(kernel, 64))
        return conv2d(draw(few), draw(few), draw(few), size, kernel, draw(st.integers(1, 2)), precision=precision)
    if kind == "depthwise":
        return depthwise_conv2d(draw(few), draw(few), draw(st.integers(3, 64)), precision=precision)
    if kind == "attention":
        return attention(draw(st.integers(1, 4)), draw(st.integers(1, 16)), draw(edges), draw(edges), 64, precision)
    if kind == "stream":
        return elementwise(draw(edges) * draw(edges), draw(st.integers(1, 20)), draw(few), precision=precision)
    return softmax(draw(edges), draw(edges), precision)


@st.composite
def cases(draw: st.DrawFn, among: st.SearchStrategy[Device] = devices) -> tuple[Device, Operator]:
    device = draw(among)
    return device, draw(operators(device.headline))


def seconds(result: ArchitectureResult) -> float:
    return float(result.time.m_as("s"))


@given(cases(), st.booleans())
@settings(max_examples=120)
def test_no_operator_beats_the_roofline_nor_the_design_power(case: tuple[Device, Operator], overlap: bool) -> None:
    device, operator = case
    result = architecture(device, operator, Mapping(overlap=overlap))
    assert seconds(result) >= roofline(device, operator, Mapping(overlap=overlap)).time.m_as("s") * ALMOST
    if device._tdp is not None:
        assert result.spent.m_as("J") <= device.tdp.m_as("W") * seconds(result) / ALMOST
    assert result.moved[device.main_memory].m_as("byte") >= operator.data.m_as("byte") * ALMOST


@given(cases(), st.booleans())
def test_parts_sum_to_the_whole(case: tuple[Device, Operator], overlap: bool) -> None:
    device, operator = case
    result = architecture(device, operator, Mapping(overlap=overlap), launch_overhead=Q_(1, "us"))
    assert math.isclose(sum(part.m_as("s") for part in result.parts.values()), seconds(result), rel_tol=1e-12)
    energy = sum(part.m_as("J") for part in result.energy.values())
    assert math.isclose(energy, result.spent.m_as("J"), rel_tol=1e-12)
    assert min(part.magnitude for part in (*result.parts.values(), *result.energy.values())) >= 0
    bytes_by_level = [moved.m_as("byte") for moved in result.moved.values()]
    assert bytes_by_level == sorted(bytes_by_level), "what leaves the chip's inside has come from its outside"


@given(cases())
def test_a_plan_fits_and_covers_the_operator(case: tuple[Device, Operator]) -> None:
    device, operator = case
    plan = strategy_for(device).plan(operator)
    assert plan.buffer.m_as("byte") <= plan.capacity.m_as("byte") / ALMOST
    assert 0 < plan.utilisation <= 1 / ALMOST
    if plan.order and operator.kind == "gemm":
        sizes = operator.shape["m"], operator.shape["n"], operator.shape["k"]
        for size, edge, count in zip(sizes, plan.tile, plan.tiles, strict=True):
            assert (count - 1) * edge < size <= count * edge
    total = (plan.read + plan.written).m_as("byte")
    assert math.isclose(total, plan.moved[device.main_memory].m_as("byte"), rel_tol=1e-12)


@given(devices, edges, edges, edges, st.integers(2, 5))
@settings(max_examples=60)
def test_a_larger_batch_never_takes_less_time_or_fewer_bytes(
    device: Device, m: int, n: int, k: int, times: int
) -> None:
    name = device.headline
    pairs = [
        (gemm(m, n, k, name), gemm(m * times, n, k, name)),
        (gemm(m, n, k, name), gemm(m + 1, n, k, name)),
        (conv2d(1, 16, 32, 14, 3, precision=name), conv2d(times, 16, 32, 14, 3, precision=name)),
        (elementwise(m * n, 2, precision=name), elementwise(m * n * times, 2, precision=name)),
    ]
    for smaller, larger in pairs:
        less, more = architecture(device, smaller), architecture(device, larger)
        assert seconds(less) <= seconds(more) / ALMOST
        if device is not WITHOUT_CACHE:  # there the tile of least time decides the bytes, too
            assert less.moved[device.main_memory].m_as("byte") <= more.moved[device.main_memory].m_as("byte") / ALMOST


@given(cases(), st.floats(1, 50))
def test_a_faster_memory_never_takes_longer(case: tuple[Device, Operator], factor: float) -> None:
    device, operator = case
    before = seconds(architecture(device, operator))
    with perturbed(f"{device.id}/memory/{device.main_memory}/bandwidth", factor):
        assert seconds(architecture(device, operator)) <= before / ALMOST


@given(cases(profiles), st.floats(1, 60))
def test_more_memory_on_the_chip_never_moves_more_bytes(case: tuple[Device, Operator], factor: float) -> None:
    device, operator = case
    size = round(device.inner_levels[0].capacity.m_as("byte") * factor)
    larger = device.with_onchip(Q_(size, "byte"))
    main = device.main_memory
    before, after = architecture(device, operator).moved[main], architecture(larger, operator).moved[main]
    assert after.m_as("byte") <= before.m_as("byte") / ALMOST


@given(st.tuples(edges, edges, edges), st.integers(40, 10**6), st.integers(0, 10**6))
def test_more_room_never_moves_more_words(shape: tuple[int, int, int], words: int, more: int) -> None:
    m, n, k = shape
    product = Product(m, n, k, 1, m * k, 0)
    for chosen in (cubes, lambda product, words: fewest_words(product, words, (16,))):
        small, large = chosen(product, words), chosen(product, words + more)
        if small is not None:
            assert large is not None and large.words <= small.words
            assert footprint(small.m, small.n, small.k) <= words


@given(profiles, st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_operators_changes_no_total(device: Device, random: object) -> None:
    name = device.headline
    listed = [gemm(64 * size, 100, 200, name) for size in range(1, 6)] * 2
    listed += [softmax(100, 100, name), depthwise_conv2d(1, 32, 14, precision=name)]
    mixed = list(listed)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    in_order, other = (architecture(device, Network("network", tuple(each))) for each in (listed, mixed))
    assert in_order.time == other.time and in_order.spent == other.spent and in_order.moved == other.moved
    assert in_order.parts == other.parts and in_order.bound_by == other.bound_by


@given(cases(profiles))
def test_a_chain_of_equal_operators_takes_as_long_as_one_as_often(case: tuple[Device, Operator]) -> None:
    device, operator = case
    single, four = architecture(device, operator), architecture(device, Network("four", (operator,) * 4))
    assert seconds(four) == pytest.approx(4 * seconds(single), rel=1e-12)
    assert four.spent.m_as("J") == pytest.approx(4 * single.spent.m_as("J"), rel=1e-12)


@given(cases(profiles))
def test_waiting_for_every_block_never_saves_time(case: tuple[Device, Operator]) -> None:
    device, operator = case
    assert (
        seconds(architecture(device, operator))
        <= seconds(architecture(device, operator, Mapping(overlap=False))) / ALMOST
    )
