"""Which arguments the unit checks accept, and what they say of the others."""

import math
import re
from decimal import Decimal

import numpy as np
import pint
import pytest

from mlsys import Hardware, formulas
from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.models import roofline
from mlsys.testing import assert_quantity_close, assert_same_dimension
from mlsys.unit_checks import (
    Argument,
    Formula,
    at_least,
    count,
    efficiency,
    fraction,
    nonnegative,
    positive,
    quantity_function,
)
from mlsys.units import Q_
from mlsys.workloads import gemm

ALL = {name: getattr(formulas, name) for name in formulas.__all__ if isinstance(getattr(formulas, name), Formula)}

# One correct call of every formula, written without looking at its specs.
CALLS: dict[str, dict[str, object]] = {
    "aligned_elements": {"element_size": Q_(2, "byte"), "alignment": Q_(16, "byte")},
    "amdahl_ceiling": {"parallel_fraction": 0.9},
    "compressed_gemm_intensity": {"m": 4, "n": 4, "k": 4, "element_size": Q_(2, "byte"), "stored_fraction": 0.5},
    "arithmetic_peak": dict(units=432, macs_per_cycle=Q_(256, "MAC/cycle"), clock=Q_(1.41e9, "cycle/s")),
    "divergence_probability": {"taken": 0.5, "lanes": 32},
    "im2col_expansion": {"kernel": 3, "stride": 2},
    "reduction_levels": {"elements": 512},
    "register_limited_warps": {"register_file": Q_(256, "KiB"), "registers": 255, "lanes": 32},
    "vector_instructions": {"elements": 512, "lanes": 8},
    "warps_to_hide_latency": {"latency": Q_(4, "cycle"), "issued_per_cycle": 4, "independent": 4},
    "padded_efficiency": {"size": 500, "tile": 64},
    "padded_size": {"size": 500, "tile": 64},
    "amdahl_speedup": {"parallel_fraction": 0.9, "accelerator_speedup": 10},
    "arithmetic_intensity": {"operations": Q_(3, "GMAC"), "data": Q_(1, "MB")},
    "attainable_performance": {
        "intensity": Q_(3, "FLOP/byte"),
        "peak": Q_(312, "TFLOP/s"),
        "bandwidth": Q_(2, "TB/s"),
    },
    "attention_bytes": dict(
        batch=1, heads=2, queries=3, keys=4, head_dim=5, element_size=Q_(2, "byte"), score_passes=4
    ),
    "attention_macs": dict(batch=1, heads=2, queries=3, keys=4, head_dim=5),
    "bytes_in_flight": dict(bandwidth=Q_(2, "TB/s"), latency=Q_(500, "ns")),
    "chain_bytes": dict(kernels=3, tensor=Q_(4, "MiB")),
    "conv2d_bytes": dict(
        batch=1,
        in_channels=4,
        in_height=5,
        in_width=5,
        out_channels=8,
        out_height=3,
        out_width=3,
        kernel_height=3,
        kernel_width=3,
        element_size=Q_(2, "byte"),
        groups=2,
    ),
    "conv2d_macs": dict(
        batch=1, in_channels=4, out_channels=8, out_height=3, out_width=3, kernel_height=3, kernel_width=3, groups=2
    ),
    "conv_output_size": dict(size=224, kernel=7, stride=2, padding=3, dilation=1),
    "decode_rate_ceiling": dict(weights=Q_(14, "GB"), bandwidth=Q_(2, "TB/s"), kv_cache=Q_(1, "GB"), batch=2),
    "device_bound_fraction": {"accelerator_speedup": 10},
    "elementwise_bytes": dict(elements=10, tensors_read=2, tensors_written=1, element_size=Q_(2, "byte")),
    "elementwise_flops": dict(elements=10, operations_per_element=Q_(5, "FLOP")),
    "flash_attention_bytes": dict(tokens=1024, head_dim=64, element_size=Q_(2, "byte"), fast_memory=Q_(164, "KiB")),
    "flight_time": dict(distance=Q_(20, "mm"), share_of_light_speed=0.5),
    "gemm_bytes": dict(m=2, n=3, k=4, element_size=Q_(2, "byte")),
    "gemm_intensity": dict(m=2, n=3, k=4, element_size=Q_(2, "byte")),
    "gemm_macs": dict(m=2, n=3, k=4),
    "gustafson_speedup": dict(parallel_fraction=0.9, processors=10),
    "ring_all_gather_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "recursive_doubling_all_gather_time": dict(
        message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")
    ),
    "tree_broadcast_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "ring_broadcast_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "direct_exchange_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "pairwise_all_to_all_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "bruck_all_to_all_time": dict(message=Q_(1, "MB"), ranks=8, latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "ring_reduce_scatter_time": dict(
        message=Q_(1, "MB"),
        ranks=8,
        latency=Q_(5, "us"),
        bandwidth=Q_(100, "GB/s"),
        reduction_time_per_byte=Q_(1, "ps/byte"),
    ),
    "ring_all_reduce_time": dict(
        message=Q_(1, "MB"),
        ranks=8,
        latency=Q_(5, "us"),
        bandwidth=Q_(100, "GB/s"),
        reduction_time_per_byte=Q_(1, "ps/byte"),
    ),
    "recursive_doubling_all_reduce_time": dict(
        message=Q_(1, "MB"),
        ranks=8,
        latency=Q_(5, "us"),
        bandwidth=Q_(100, "GB/s"),
        reduction_time_per_byte=Q_(1, "ps/byte"),
    ),
    "rabenseifner_all_reduce_time": dict(
        message=Q_(1, "MB"),
        ranks=8,
        latency=Q_(5, "us"),
        bandwidth=Q_(100, "GB/s"),
        reduction_time_per_byte=Q_(1, "ps/byte"),
    ),
    "tree_all_reduce_time": dict(
        message=Q_(1, "MB"),
        ranks=8,
        latency=Q_(5, "us"),
        bandwidth=Q_(100, "GB/s"),
        reduction_time_per_byte=Q_(1, "ps/byte"),
    ),
    "copy_share": dict(copy_time=Q_(4, "ms"), compute_time=Q_(6, "ms")),
    "double_buffered_time": dict(copy_time=Q_(4, "ms"), compute_time=Q_(6, "ms"), steps=10),
    "partial_overlap_time": dict(copy_time=Q_(4, "ms"), compute_time=Q_(6, "ms"), overlap=0.5),
    "message_time": dict(message=Q_(1, "MB"), latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "half_performance_size": dict(latency=Q_(5, "us"), bandwidth=Q_(100, "GB/s")),
    "hierarchical_all_reduce_time": dict(
        message=Q_(1, "MB"),
        ranks_per_node=8,
        nodes=2,
        latency_inside=Q_(1, "us"),
        bandwidth_inside=Q_(450, "GB/s"),
        latency_between=Q_(5, "us"),
        bandwidth_between=Q_(50, "GB/s"),
    ),
    "all_reduce_traffic_factor": dict(ranks=8),
    "all_gather_traffic_factor": dict(ranks=8),
    "algorithm_bandwidth": dict(message=Q_(1, "GB"), time=Q_(5, "ms")),
    "shared_bandwidth": dict(bandwidth=Q_(31.5, "GB/s"), flows=2),
    "kv_cache_bytes": dict(layers=2, kv_heads=3, head_dim=4, tokens=5, element_size=Q_(2, "byte"), batch=2),
    "latency_bound_bandwidth": dict(in_flight=Q_(64, "KiB"), latency=Q_(500, "ns")),
    "overlapped_time": dict(
        data=Q_(1, "GB"),
        bandwidth=Q_(1, "GB/s"),
        operations=Q_(1, "TFLOP"),
        peak=Q_(1, "TFLOP/s"),
        efficiency=0.5,
        latency=Q_(1, "ms"),
    ),
    "required_accelerator_speedup": dict(target_speedup=2, parallel_fraction=0.9),
    "required_parallel_fraction": dict(target_speedup=2, accelerator_speedup=10),
    "ridge_point": dict(peak=Q_(312, "TFLOP/s"), bandwidth=Q_(2039, "GB/s")),
    "roofline_time": dict(operations=Q_(1, "TFLOP"), data=Q_(1, "GB"), peak=Q_(1, "TFLOP/s"), bandwidth=Q_(1, "GB/s")),
    "sequential_time": dict(
        data=Q_(1, "GB"),
        bandwidth=Q_(1, "GB/s"),
        operations=Q_(1, "TFLOP"),
        peak=Q_(1, "TFLOP/s"),
        efficiency=0.5,
        latency=Q_(1, "ms"),
    ),
    "serial_share": {"parallel_fraction": 0.9, "accelerator_speedup": 10},
    "utilisation_ceiling": dict(intensity=Q_(3, "FLOP/byte"), ridge=Q_(153, "FLOP/byte")),
    "wire_delay": dict(length=Q_(20, "mm"), delay_per_length=Q_(41, "ps/mm")),
    "weight_bytes": dict(parameters=Q_(7, "Gparam"), bytes_per_parameter=Q_(2, "byte")),
    "standard_attention_bytes": dict(tokens=1024, head_dim=64, element_size=Q_(2, "byte")),
    "checkpoint_bytes": dict(sequence=64, batch=2, hidden=32, shares=2, element_size=Q_(2, "byte")),
    "flops_utilisation": dict(attained=Q_(420, "TFLOP/s"), peak=Q_(989, "TFLOP/s")),
    "layer_activation_bytes": dict(
        sequence=64, batch=2, hidden=32, heads=4, tensor_parallel=2, sequence_parallel=2, scores_kept=0.5
    ),
    "training_bytes_per_parameter": dict(
        stage=2, ranks=8, weight=Q_(2, "byte"), gradient=Q_(4, "byte"), optimizer=Q_(12, "byte")
    ),
    "training_flops_per_token": dict(
        parameters=Q_(7, "Gparam"), layers=32, attention_width=4096, sequence=2048, scores_counted=0.5
    ),
    "training_step_flops": dict(batch=8, sequence=64, layers=2, hidden=32, vocabulary=100, recomputed=0.5),
    "training_time": dict(
        parameters=Q_(7, "Gparam"),
        tokens=1e12,
        chips=64,
        attained=Q_(140, "TFLOP/s"),
        flops_per_parameter=Q_(8, "FLOP"),
    ),
    "data_parallel_speedup": dict(computation=Q_(50, "ms"), communication=Q_(6, "ms"), chips=8, overlap=0.5),
    "pipeline_bubble_over_ideal": dict(stages=4, micro_batches=8, chunks=2),
    "pipeline_bubble_share": dict(stages=4, micro_batches=8, chunks=2),
    "tensor_parallel_layer_bytes": dict(
        sequence=64, batch=2, hidden=32, tensor_parallel=4, element_size=Q_(2, "byte"), forward_passes=2
    ),
    "zero_communication_bytes": dict(weights=Q_(14, "GB"), ranks=8, stage=3),
    "annuity": dict(price=Q_(30_000, "USD"), lifetime=Q_(4, "year"), interest=Q_(0.08, "1/year")),
    "bandwidth_per_price": dict(price=Q_(15_000, "USD"), bandwidth=Q_(2039, "GB/s")),
    "break_even_time": dict(price=Q_(30_000, "USD"), renting=Q_(2, "USD/hour"), owning=Q_(0.1, "USD/hour")),
    "break_even_utilisation": dict(
        price=Q_(30_000, "USD"),
        lifetime=Q_(4, "year"),
        rent=Q_(2, "USD/hour"),
        running=Q_(0.1, "USD/hour"),
        fixed=Q_(0.1, "USD/hour"),
    ),
    "carbon_per_area": dict(
        fab_intensity=Q_(583, "gCO2e/kWh"),
        energy_per_area=Q_(1.2, "kWh/cm**2"),
        gas_per_area=Q_(162.5, "gCO2e/cm**2"),
        material_per_area=Q_(500, "gCO2e/cm**2"),
        fab_yield=0.875,
    ),
    "die_carbon": dict(die_area=Q_(814, "mm**2"), carbon_per_area=Q_(2778, "gCO2e/cm**2"), dies=2),
    "electricity_rate": dict(power=Q_(700, "W"), electricity_price=Q_(0.12, "USD/kWh"), pue=1.2, utilisation=0.7),
    "embodied_share": dict(embodied=Q_(164, "kgCO2e"), time=Q_(1, "hour"), lifetime=Q_(4, "year")),
    "facility_energy": dict(power=Q_(310, "W"), time=Q_(20, "day"), utilisation=0.9, pue=1.12),
    "fleet_energy": dict(inferences=Q_(1e9, "inference"), energy=Q_(8.18, "J/inference"), pue=1.2),
    "inference_energy": dict(operations=Q_(8.18, "GFLOP/inference"), efficiency=Q_(0.01, "TFLOP/J"), utilisation=0.1),
    "memory_carbon": dict(capacity=Q_(80, "GB"), carbon_per_capacity=Q_(65, "gCO2e/GB"), fab_yield=0.875),
    "operational_carbon": dict(energy=Q_(1, "MWh"), grid_intensity=Q_(480, "gCO2e/kWh"), pue=1.2),
    "price_per_performance": dict(price=Q_(15_000, "USD"), peak=Q_(312, "TFLOP/s")),
    "rented_cost": dict(device_time=Q_(1000, "hour"), rent=Q_(2, "USD/hour")),
    "die_yield": dict(die_area=Q_(814, "mm**2"), defect_density=Q_(0.1, "1/cm**2"), clustering=3),
    "doubling_time": dict(growth=1.7),
    "dynamic_power": dict(capacitance=Q_(10, "nF/cycle"), voltage=Q_(1, "V"), clock=Q_(2, "GHz"), activity=0.5),
    "yearly_growth": dict(first=1, last=2, time=Q_(3, "year")),
    "token_carbon": dict(emissions=Q_(360, "gCO2e/hour"), token_rate=Q_(1000, "token/s")),
    "token_cost": dict(rent=Q_(2, "USD/hour"), token_rate=Q_(680, "token/s"), utilisation=0.5),
    "requests_in_system": dict(arrival_rate=Q_(2.5, "1/s"), time_in_system=Q_(25, "s")),
    "battery_power": dict(charge=Q_(225, "mA*hour"), voltage=Q_(3, "V"), lifetime=Q_(365, "day")),
    "duty_cycled_power": dict(energy=Q_(1, "J"), time=Q_(1, "s"), period=Q_(10, "s"), sleep_power=Q_(1, "mW")),
    "batch_fill_wait": dict(batch=32, arrival_rate=Q_(100, "1/s")),
    "mm1_wait": dict(service_time=Q_(1, "s"), utilisation=0.9),
    "md1_wait": dict(service_time=Q_(1, "s"), utilisation=0.9),
    "erlang_c": dict(servers=8, utilisation=0.9),
    "mmc_wait": dict(service_time=Q_(1, "s"), utilisation=0.8, servers=4),
    "mm1_sojourn_percentile": dict(service_time=Q_(1, "s"), utilisation=0.8, share=0.99),
}
# Where two arguments must fit each other, one at which every value of the other fits.
GENTLE = {
    "duty_cycled_power": {"time": Q_(0, "s")},
    "conv2d_bytes": {"groups": 1},
    "conv2d_macs": {"groups": 1},
    "required_parallel_fraction": {"target_speedup": 1},
}
EACH_ARGUMENT = [(name, argument) for name in CALLS for argument in CALLS[name]]
WITH_UNIT = [(name, argument) for name, argument in EACH_ARGUMENT if ALL[name].specs[argument].unit]


def line_to_type(error: Exception) -> tuple[str, object]:
    """Return the argument and the value of the line that the error tells the reader to type."""
    match = re.search(r"Write e\.g\. (\w+)=(.+)$", str(error), re.DOTALL)
    assert match, f"no line to type in: {error}"
    return match.group(1), eval(match.group(2), {"Q_": Q_})


def refused(name: str, argument: str, value: object) -> str:
    """Call a formula with one bad argument, check that the error teaches, and return its text."""
    good = CALLS[name] | GENTLE.get(name, {})
    with pytest.raises(ArgumentError) as caught:
        ALL[name](**good | {argument: value})
    text = str(caught.value)
    assert text.startswith(f"{name}(): `{argument}` must be "), "names function, argument, what is wanted"
    assert ", got " in text, "and what was given"
    result, works = line_to_type(caught.value)
    assert result == argument
    ALL[name](**good | {argument: works})  # the line that it tells one to type works
    return text


def test_every_formula_is_tried() -> None:
    assert set(CALLS) == set(ALL)
    for name, arguments in CALLS.items():
        assert set(arguments) == set(ALL[name].specs)


@pytest.mark.parametrize("name", CALLS)
def test_a_correct_call_answers_in_the_unit_it_says(name: str) -> None:
    assert_same_dimension(ALL[name](**CALLS[name]), ALL[name].unit)


# --- each argument of each formula, wrong in every way ------------------------------------


@pytest.mark.parametrize(("name", "argument"), WITH_UNIT)
def test_bare_numbers_are_refused_where_a_unit_is_wanted(name: str, argument: str) -> None:
    text = refused(name, argument, 3)
    assert "got the bare number 3" in text
    assert f'Q_(3, "{ALL[name].specs[argument].unit}")' in text, "the given number comes back, with its unit"
    for value in (0.5, np.float64(3), np.array(3), np.array([1, 2]), -1, float("nan")):
        refused(name, argument, value)


@pytest.mark.parametrize(("name", "argument"), EACH_ARGUMENT)
def test_wrong_dimensions_are_refused(name: str, argument: str) -> None:
    text = refused(name, argument, Q_(5, "ampere"))
    assert "got 5 A, which is [current]" in text
    refused(name, argument, Q_(np.array([5, 6]), "ampere"))
    with pytest.raises(ArgumentUnitError) as caught:
        ALL[name](**CALLS[name] | {argument: Q_(5, "ampere")})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("name", "argument"), EACH_ARGUMENT)
def test_values_outside_the_range_are_refused(name: str, argument: str) -> None:
    unit = ALL[name].specs[argument].unit
    for bad in (float("nan"), float("inf"), float("-inf"), -1, -1e-300):
        refused(name, argument, Q_(bad, unit) if unit else bad)
    if not unit:
        refused(name, argument, 10**400)  # more than a float can hold


NO_NUMBERS = (
    *(True, np.True_, "3", "3 GB", b"3", None, 1j, np.complex128(1), Decimal(1), [1, 2], (1,), {}),
    *(np.array(["3"]), np.array([None]), np.array([True])),
)


@pytest.mark.parametrize(("name", "argument"), EACH_ARGUMENT)
def test_what_is_no_number_is_refused(name: str, argument: str) -> None:
    for bad in NO_NUMBERS:
        refused(name, argument, bad)


@pytest.mark.parametrize(("name", "argument"), EACH_ARGUMENT)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_one_bad_element_spoils_an_array(name: str, argument: str, bad: float) -> None:
    values = np.full((2, 3), 0.5 if ALL[name].specs[argument].high == 1 else 2.0)
    values[1, 2] = bad
    unit = ALL[name].specs[argument].unit
    refused(name, argument, Q_(values, unit) if unit else values)


@pytest.mark.parametrize(
    "value",
    [
        Q_(1j, "FLOP/s"),
        Q_(np.array([1j]), "FLOP/s"),
        Q_(np.array([None]), "FLOP/s"),
        pint.UnitRegistry().Quantity(3, "hertz"),
    ],
    ids=repr,
)
def test_quantities_of_the_wrong_sort_are_refused(value: object) -> None:
    refused("ridge_point", "peak", value)


def test_ranges_end_where_the_formula_stops_making_sense() -> None:
    with pytest.raises(ArgumentError, match="> 0 in byte/s, got 0 B/s"):
        formulas.ridge_point(Q_(1, "FLOP/s"), Q_(0, "byte/s"))
    with pytest.raises(ArgumentError, match=">= 0 and < 1, got 1"):
        formulas.amdahl_ceiling(1)
    with pytest.raises(ArgumentError, match=">= 1, got 0.99"):
        formulas.amdahl_speedup(0.5, 0.99)
    with pytest.raises(ArgumentError, match="a whole number >= 1, got 2.5"):
        formulas.gemm_macs(2.5, 3, 4)
    with pytest.raises(ArgumentError, match="a whole number >= 1"):
        formulas.gemm_macs(np.array([2, 2.5]), 3, 4)
    with pytest.raises(ArgumentError, match="> 0 and <= 1, got 0"):
        formulas.sequential_time(*list(CALLS["sequential_time"].values())[:4], efficiency=0)
    assert formulas.amdahl_speedup(1, 7).magnitude == 7
    assert formulas.amdahl_speedup(0, 7).magnitude == 1
    assert formulas.roofline_time(Q_(0, "FLOP"), Q_(0, "byte"), Q_(1, "FLOP/s"), Q_(1, "byte/s")).magnitude == 0


def test_ranges_hold_in_the_formulas_unit_not_in_the_callers() -> None:
    assert_quantity_close(formulas.amdahl_speedup(Q_(90, "percent"), 10), formulas.amdahl_speedup(0.9, 10))
    with pytest.raises(ArgumentError, match="<= 1"):
        formulas.amdahl_speedup(Q_(101, "percent"), 10)
    with pytest.raises(ArgumentError, match="a whole number"):
        formulas.gemm_macs(Q_(250, "percent"), 3, 4)


def test_conditions_that_join_arguments_are_told_by_the_formula() -> None:
    with pytest.raises(ArgumentError, match=r"^conv2d_macs\(\): `groups` must divide both"):
        formulas.conv2d_macs(1, 3, 8, 2, 2, 1, 1, groups=2)
    with pytest.raises(ArgumentError, match=r"^conv_output_size\(\): the kernel does not fit"):
        formulas.conv_output_size(3, 5)
    with pytest.raises(ArgumentError, match="at or above the ceiling"):
        formulas.required_accelerator_speedup(20, 0.95)
    with pytest.raises(ArgumentError, match="cannot be above `accelerator_speedup`"):
        formulas.required_parallel_fraction(11, 10)


def test_models_speak_like_formulas() -> None:
    chip, work = Hardware.Cloud.A100, gemm(64, 64, 64)
    for argument, bad in {"compute_efficiency": 1.01, "bandwidth_efficiency": 0, "launch_overhead": 5}.items():
        with pytest.raises(ArgumentError, match=rf"^roofline\(\): `{argument}` must be ") as caught:
            roofline(chip, work, **{argument: bad})
        result, works = line_to_type(caught.value)
        roofline(chip, work, **{result: works})


# --- what comes out ---------------------------------------------------------------------


def _plain(name: str, value: object, argument: str) -> object:
    unit = ALL[name].specs[argument].unit
    return value.m_as(unit) if unit else value  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CALLS)
def test_bare_is_the_same_formula_over_floats(name: str) -> None:
    plain = {argument: _plain(name, value, argument) for argument, value in CALLS[name].items()}
    assert_quantity_close(ALL[name](**CALLS[name]), Q_(ALL[name].bare(**plain), ALL[name].unit), rtol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_bare_takes_arrays_in_every_argument(name: str) -> None:
    """One argument at a time becomes a column: the answer has its shape and the scalar's values."""
    plain = {argument: _plain(name, value, argument) for argument, value in CALLS[name].items()}
    once = ALL[name].bare(**plain)
    for argument, value in plain.items():
        column = np.full((3, 1), value)
        np.testing.assert_allclose(ALL[name].bare(**plain | {argument: column}), np.full((3, 1), once), rtol=1e-14)
        unit = ALL[name].specs[argument].unit
        checked = ALL[name](**CALLS[name] | {argument: Q_(column, unit) if unit else column})
        assert_quantity_close(checked, Q_(np.full((3, 1), once), ALL[name].unit), rtol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_bare_broadcasts(name: str) -> None:
    plain = {argument: _plain(name, value, argument) for argument, value in CALLS[name].items()}
    if len(plain) == 1:
        return
    first, second = list(plain)[:2]
    swept = plain | {first: np.full((3, 1), plain[first]), second: np.full((1, 4), plain[second])}
    assert np.shape(ALL[name].bare(**swept)) == (3, 4)


def test_units_of_arguments_do_not_change_the_answer() -> None:
    reported = formulas.ridge_point(Q_(312e6, "MFLOP/s"), Q_(2.039, "TB/s"))
    assert_quantity_close(reported, formulas.ridge_point(Q_(156, "TMAC/s"), Q_(16312, "Gbps")))
    assert f"{reported.units}" == "FLOP/B"


def test_positions_names_and_defaults_are_one_call() -> None:
    by_place = formulas.conv_output_size(224, 7, 2, 3)
    assert by_place == formulas.conv_output_size(size=224, kernel=7, padding=3, stride=2)
    with pytest.raises(TypeError, match="missing a required argument"):
        formulas.ridge_point(Q_(1, "FLOP/s"))
    with pytest.raises(TypeError, match="unexpected keyword"):
        formulas.ridge_point(Q_(1, "FLOP/s"), Q_(1, "byte/s"), speed=3)


def test_a_formula_keeps_name_and_docstring_for_help() -> None:
    for name, formula in ALL.items():
        assert formula.__name__ == name
        assert "Examples" in (formula.__doc__ or "")
        assert repr(formula).startswith(f"<formula {name}(")


def test_a_door_without_a_spec_for_each_argument_is_not_hung() -> None:
    with pytest.raises(TypeError, match=r"without a spec: \['b'\]"):
        quantity_function("s", a=positive("s"))(lambda a, b: a)


@pytest.mark.parametrize(
    "spec",
    [
        positive("s"),
        nonnegative("s"),
        at_least(3),
        at_least(0.5),
        fraction(),
        fraction(below_one=True),
        efficiency(),
        count(),
        Argument("", low=-2, high=-1),
    ],
    ids=Argument.wanted,
)
def test_the_example_of_every_kind_of_argument_is_acceptable(spec: Argument) -> None:
    formula = quantity_function(spec.unit, argument=spec)(lambda argument: argument)
    with pytest.raises(ArgumentError) as caught:
        formula(math.nan)
    assert formula(line_to_type(caught.value)[1]) is not None
