"""What must hold of roofs, times and intensities, whatever the numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import formulas
from mlsys.hardware import Device, Hardware
from mlsys.mapping import Mapping
from mlsys.models import roofline
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import Network, Operator, attention, conv2d, dense, gemm

rates = st.floats(1e6, 1e18)
amounts = st.floats(1, 1e18)
intensities = st.floats(1e-6, 1e6)
shares = st.floats(0.01, 1)
sizes = st.integers(1, 4096)
small = st.integers(1, 12)
A_HAIR = 1 + 1e-12
DEVICES = [device for device in Hardware if "fp16" in device.precisions]
devices = st.sampled_from(DEVICES)
mappings = st.builds(Mapping, overlap=st.booleans())

roof = formulas.attainable_performance.bare


@given(intensities, rates, rates)
def test_nothing_is_above_either_roof(I: float, R: float, BW: float) -> None:  # noqa: E741
    assert roof(I, R, BW) <= R
    assert roof(I, R, BW) <= BW * I
    assert roof(I, R, BW) in (R, BW * I), "and the lower one is reached"


@given(st.tuples(intensities, intensities).map(sorted), rates, rates, st.floats(1, 1e3))
def test_the_roof_rises_with_intensity_peak_and_bandwidth(I: list[float], R: float, BW: float, more: float) -> None:  # noqa: E741
    assert roof(I[0], R, BW) <= roof(I[1], R, BW)
    assert roof(I[0], R, BW) <= roof(I[0], R * more, BW)
    assert roof(I[0], R, BW) <= roof(I[0], R, BW * more)


@given(rates, rates, st.floats(1e-9, 1e-3))
def test_the_roofs_meet_at_the_ridge(R: float, BW: float, step: float) -> None:
    ridge = formulas.ridge_point.bare(R, BW)
    assert roof(ridge, R, BW) == pytest.approx(R, rel=1e-12)
    below, above = roof(ridge * (1 - step), R, BW), roof(ridge * (1 + step), R, BW)
    assert R * (1 - step) / A_HAIR <= below <= R, "continuous from the left"
    assert above == R, "flat to the right"
    assert below < R, "and falling to the left"


@given(amounts, amounts, rates, rates)
def test_time_is_bounded_below_by_computing_and_by_moving(O: float, D: float, R: float, BW: float) -> None:  # noqa: E741
    time = formulas.roofline_time.bare(O, D, R, BW)
    assert time >= O / R
    assert time >= D / BW
    assert O / time == pytest.approx(roof(O / D, R, BW), rel=1e-9), "rate and time are one law"


@given(amounts, rates, amounts, rates, shares, st.floats(0, 1e3))
def test_overlap_helps_and_at_most_by_two(D: float, BW: float, O: float, R: float, eta: float, L: float) -> None:  # noqa: E741
    apart = formulas.sequential_time.bare(D, BW, O, R, eta, 0.0)
    together = formulas.overlapped_time.bare(D, BW, O, R, eta, 0.0)
    assert together <= apart <= 2 * together * A_HAIR
    for law, plain in ((formulas.sequential_time, apart), (formulas.overlapped_time, together)):
        assert law.bare(D, BW, O, R, eta, L) == pytest.approx(plain + L, rel=1e-12), "latency is added, never hidden"


@given(amounts, rates, amounts, rates, shares)
def test_less_efficiency_never_shortens(D: float, BW: float, O: float, R: float, eta: float) -> None:  # noqa: E741
    for law in (formulas.sequential_time, formulas.overlapped_time):
        assert law.bare(D, BW, O, R, eta) >= law.bare(D, BW, O, R, 1.0)


@given(intensities, rates, rates)
def test_the_utilisation_ceiling_is_the_roof_over_the_peak(I: float, R: float, BW: float) -> None:  # noqa: E741
    ceiling = formulas.utilisation_ceiling.bare(I, formulas.ridge_point.bare(R, BW))
    assert ceiling == pytest.approx(roof(I, R, BW) / R, rel=1e-9)
    assert ceiling <= 1


# --- intensities ---------------------------------------------------------------------


@given(sizes, sizes, sizes)
def test_a_product_in_half_precision_stays_below_its_smallest_dimension(m: int, n: int, k: int) -> None:
    assert formulas.gemm_intensity.bare(m, n, k, 2) < min(m, n, k)
    assert formulas.gemm_intensity.bare(m, n, k, 2) >= min(m, n, k) / 3 / A_HAIR, "and reaches a third of it"


@given(st.permutations([0, 1, 2]), st.tuples(sizes, sizes, sizes))
def test_all_three_dimensions_are_equivalent(order: list[int], shape: tuple[int, int, int]) -> None:
    turned = [shape[i] for i in order]
    assert formulas.gemm_intensity.bare(*turned, 2) == pytest.approx(formulas.gemm_intensity.bare(*shape, 2), rel=1e-12)
    assert formulas.gemm_macs.bare(*turned) == formulas.gemm_macs.bare(*shape)


@given(sizes, sizes, sizes, st.integers(1, 64))
def test_a_larger_batch_is_never_less_intense(m: int, n: int, k: int, more: int) -> None:
    assert formulas.gemm_intensity.bare(m + more, n, k, 2) >= formulas.gemm_intensity.bare(m, n, k, 2)


@given(sizes, sizes, sizes)
def test_work_over_bytes_is_the_intensity(m: int, n: int, k: int) -> None:
    size = Q_(2, "byte")
    ratio = formulas.arithmetic_intensity(formulas.gemm_macs(m, n, k), formulas.gemm_bytes(m, n, k, size))
    assert_quantity_close(ratio, formulas.gemm_intensity(m, n, k, size), rtol=1e-12)


@given(small, sizes, sizes, small, small)
def test_a_one_by_one_convolution_is_a_product(batch: int, into: int, out: int, height: int, width: int) -> None:
    """Pixels are rows: (N·H·W) × C_out × C_in."""
    rows, size = batch * height * width, 2
    macs = formulas.conv2d_macs.bare(batch, into, out, height, width, 1, 1)
    assert macs == formulas.gemm_macs.bare(rows, out, into)
    data = formulas.conv2d_bytes.bare(batch, into, height, width, out, height, width, 1, 1, size)
    assert data == formulas.gemm_bytes.bare(rows, out, into, size)


@given(small, small, small, small, small, small)
def test_groups_divide_work_and_filters(groups: int, into: int, out: int, size: int, kernel: int, batch: int) -> None:
    """Splitting into g groups leaves inputs and outputs as they are and divides the rest by g."""
    channels = batch, groups * into, groups * out
    whole = formulas.conv2d_macs.bare(*channels, size, size, kernel, kernel)
    assert formulas.conv2d_macs.bare(*channels, size, size, kernel, kernel, groups) * groups == whole

    def filters(g: int) -> float:
        image = (channels[1], size, size, channels[2], size, size)
        total = formulas.conv2d_bytes.bare(batch, *image, kernel, kernel, 1, g)
        return total - batch * size * size * (channels[1] + channels[2])

    assert filters(groups) * groups == filters(1)


@given(small, small, st.integers(1, 40), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
def test_output_sizes_are_what_fits(a: int, b: int, size: int, kernel: int, stride: int, padding: int) -> None:
    """The last window starts inside, and one more would not fit."""
    if size + 2 * padding < kernel:
        return
    out = formulas.conv_output_size.bare(size, kernel, stride, padding)
    assert (out - 1) * stride + kernel <= size + 2 * padding < out * stride + kernel


@given(small, small, sizes, sizes, st.integers(1, 128))
def test_fused_attention_moves_less_and_computes_the_same(b: int, h: int, q: int, k: int, d: int) -> None:
    apart, fused = (attention(b, h, q, k, d, fused=fused) for fused in (False, True))
    assert apart.flops == fused.flops
    assert apart.data > fused.data
    assert apart.intensity < fused.intensity


# --- the model -----------------------------------------------------------------------

operators = st.one_of(
    st.builds(gemm, sizes, sizes, sizes),
    st.builds(dense, st.integers(1, 512), sizes, sizes),
    st.builds(conv2d, small, small, small, st.integers(3, 60), st.sampled_from([1, 3])),
)


@given(devices, operators, mappings, shares, shares, st.floats(0, 1e-3))
def test_parts_sum_to_the_time_and_the_time_is_above_its_bounds(
    device: Device, work: Operator, how: Mapping, compute: float, memory: float, launch: float
) -> None:
    result = roofline(
        device, work, how, compute_efficiency=compute, bandwidth_efficiency=memory, launch_overhead=Q_(launch, "s")
    )
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time, rtol=1e-12)
    assert all(part.magnitude >= 0 for part in result.parts.values())
    peak, bandwidth = device.peak("fp16").m_as("FLOP/s"), device.memory_bw.m_as("byte/s")
    seconds = result.time.m_as("s") * A_HAIR
    assert seconds >= work.flops.m_as("FLOP") / (peak * compute) + launch
    assert seconds >= work.data.m_as("byte") / (bandwidth * memory) + launch
    assert result.figures["utilisation"].magnitude <= compute * A_HAIR
    assert result.figures["attained"] <= result.figures["roof"] * A_HAIR


@given(devices, operators)
def test_the_label_is_the_side_of_the_ridge(device: Device, work: Operator) -> None:
    result = roofline(device, work)
    assert (result.bound_by == "compute") == (work.intensity >= device.ridge_point("fp16"))


@given(devices, operators, shares, shares)
def test_less_efficiency_lengthens_what_it_bounds(
    device: Device, work: Operator, compute: float, memory: float
) -> None:
    ideal = roofline(device, work)
    assert roofline(device, work, compute_efficiency=compute).time >= ideal.time / A_HAIR
    assert roofline(device, work, bandwidth_efficiency=memory).time >= ideal.time / A_HAIR
    bound = {"compute": "compute_efficiency", "memory": "bandwidth_efficiency"}[ideal.bound_by]
    assert_quantity_close(roofline(device, work, **{bound: 0.5}).time, 2 * ideal.time)  # type: ignore[arg-type]


@given(devices, operators)
def test_the_model_never_beats_the_machine_without_overlap(device: Device, work: Operator) -> None:
    together, apart = (roofline(device, work, Mapping(overlap=overlap)).time for overlap in (True, False))
    assert together <= apart <= 2 * together * A_HAIR


@given(devices, st.lists(operators, min_size=1, max_size=4), st.integers(1, 3))
def test_networks_add_and_repeat(device: Device, parts: list[Operator], times: int) -> None:
    once, repeated = roofline(device, Network("n", tuple(parts))), roofline(device, Network("n", tuple(parts * times)))
    assert_quantity_close(repeated.time, times * once.time)
    assert_quantity_close(once.time, sum((roofline(device, part).time for part in parts), Q_(0.0, "s")))
    assert_quantity_close(repeated.figures["utilisation"], once.figures["utilisation"])
