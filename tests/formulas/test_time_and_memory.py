"""Time, roofs and bytes at the places where somebody can check them by hand."""

import numpy as np
import pytest

from mlsys import constants, formulas
from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_

# A machine of round numbers: 10 FLOP for each byte it can fetch.
PEAK, BANDWIDTH = Q_(100, "GFLOP/s"), Q_(10, "GB/s")


def test_the_roof_of_a_round_machine() -> None:
    assert_quantity_close(formulas.ridge_point(PEAK, BANDWIDTH), Q_(10, "FLOP/byte"))
    for intensity, attained in ((1, 10), (5, 50), (10, 100), (1000, 100)):
        roof = formulas.attainable_performance(Q_(intensity, "FLOP/byte"), PEAK, BANDWIDTH)
        assert_quantity_close(roof, Q_(attained, "GFLOP/s"))
    assert formulas.utilisation_ceiling(Q_(5, "FLOP/byte"), Q_(10, "FLOP/byte")).magnitude == 0.5
    assert formulas.utilisation_ceiling(Q_(50, "FLOP/byte"), Q_(10, "FLOP/byte")).magnitude == 1


def test_macs_count_double_in_an_intensity() -> None:
    assert_quantity_close(formulas.arithmetic_intensity(Q_(3, "GMAC"), Q_(2, "GB")), Q_(3, "FLOP/byte"))


@pytest.mark.parametrize(
    ("operations", "data", "seconds"), [(100, 1, 1), (50, 10, 1), (200, 10, 2), (100, 30, 3), (0, 10, 1), (100, 0, 1)]
)
def test_the_longer_of_computing_and_moving(operations: float, data: float, seconds: float) -> None:
    time = formulas.roofline_time(Q_(operations, "GFLOP"), Q_(data, "GB"), PEAK, BANDWIDTH)
    assert_quantity_close(time, Q_(seconds, "s"))


def test_the_iron_law_by_hand() -> None:
    task = {"data": Q_(10, "GB"), "bandwidth": BANDWIDTH, "operations": Q_(100, "GFLOP"), "peak": PEAK}
    assert_quantity_close(formulas.sequential_time(**task), Q_(2, "s"))
    assert_quantity_close(formulas.overlapped_time(**task), Q_(1, "s"))
    slow = {**task, "efficiency": 0.25, "latency": Q_(500, "ms")}
    assert_quantity_close(formulas.sequential_time(**slow), Q_(1 + 4 + 0.5, "s"))
    assert_quantity_close(formulas.overlapped_time(**slow), Q_(4 + 0.5, "s"))


def test_overlap_over_arrays_is_element_by_element() -> None:
    data = np.array([0.0, 1e10, 3e10])
    times = formulas.overlapped_time.bare(data, 1e10, 1e11, 1e11)
    np.testing.assert_allclose(times, [1, 1, 3])


def test_bytes_of_weights() -> None:
    assert_quantity_close(formulas.weight_bytes(Q_(7, "Gparam"), Q_(2, "byte")), Q_(14, "GB"))
    assert_quantity_close(formulas.weight_bytes(Q_(7, "Gparam"), Q_(4, "bit")), Q_(3.5, "GB"))
    assert formulas.model_memory(Q_(2**20, "param"), Q_(4, "byte"), "MiB") == 4
    assert formulas.model_memory(Q_(1, "Mparam"), Q_(4, "byte")) == 4, "megabytes when nothing is said"
    with pytest.raises(ArgumentUnitError, match=r"`unit` must be a unit of information, got FLOP"):
        formulas.model_memory(Q_(1, "Mparam"), Q_(4, "byte"), "FLOP")
    with pytest.raises(ArgumentUnitError, match=r"`parameters` must be a quantity in param, got the bare number 7"):
        formulas.weight_bytes(7, Q_(4, "byte"))


def test_model_memory_takes_a_bare_count_of_parameters_as_the_cells_of_textbooks_do() -> None:
    assert formulas.model_memory(7e9, constants.BYTES_FP16, constants.GB) == 14
    assert formulas.model_memory(np.int64(2**30), constants.BYTES_INT4, "GiB") == 0.5
    with pytest.raises(ArgumentUnitError, match=r"`bytes_per_parameter` must be a quantity in byte, got .* number 2"):
        formulas.model_memory(7e9, 2, constants.GB)
    for count in (-7e9, 0, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="`parameters` must be"):
            formulas.model_memory(count, constants.BYTES_FP16)
    for count in (True, "7e9"):
        with pytest.raises((ArgumentUnitError, ArgumentError), match="`parameters` must be"):
            formulas.model_memory(count, constants.BYTES_FP16)


def test_a_batch_reads_the_weights_once_and_each_cache() -> None:
    alone = formulas.decode_rate_ceiling(Q_(10, "GB"), BANDWIDTH)
    assert_quantity_close(alone, Q_(1, "token/s"))
    assert_quantity_close(formulas.decode_rate_ceiling(Q_(10, "GB"), BANDWIDTH, batch=8), 8 * alone)
    assert_quantity_close(formulas.decode_rate_ceiling(Q_(10, "GB"), BANDWIDTH, Q_(10, "GB"), 8), 4 * alone)


def test_grouped_queries_shrink_the_cache_in_proportion() -> None:
    whole = formulas.kv_cache_bytes(80, 64, 128, 1000, Q_(2, "byte"))
    grouped = formulas.kv_cache_bytes(80, 8, 128, 1000, Q_(2, "byte"))
    assert_quantity_close(whole / grouped, 8)
    assert_quantity_close(formulas.kv_cache_bytes(80, 8, 128, 1000, Q_(2, "byte"), batch=3), 3 * grouped)
