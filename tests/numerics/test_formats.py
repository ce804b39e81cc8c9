"""Number formats beside ml_dtypes (an implementation of its own), bit patterns and published limits."""

import ml_dtypes
import numpy as np
import pytest

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.numerics import FORMATS, block_format, float_format
from mlsys.workloads.zoo.weight_formats import weight_bits

ORACLES = {
    "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp6_e3m2": ml_dtypes.float6_e3m2fn, "fp6_e2m3": ml_dtypes.float6_e2m3fn,
    "fp4_e2m1": ml_dtypes.float4_e2m1fn, "e8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


def drawn(name: str) -> np.ndarray:
    """Return numbers of all magnitudes of a format, its halfway points, and its ends."""
    chosen, rng = FORMATS[name], np.random.default_rng(20261128)
    codes = rng.integers(0, 2**31 - 2**24, 4000)  # of FP32, too many to take all
    numbers = chosen.numbers if chosen.bits <= 16 else np.sort(chosen.decode(codes))
    halves = (numbers[1:] + numbers[:-1]) / 2
    near = np.concatenate([np.nextafter(halves, 0), halves, np.nextafter(halves, np.inf)])
    values = np.concatenate([numbers, near, [chosen.largest * 1.01, np.inf]])
    values = values[values > 0] if not chosen.signed else np.concatenate([values, -values])
    with np.errstate(over="ignore"):  # ml_dtypes converts from FP32, so that a double would be rounded twice
        return values.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("name", ORACLES)
def test_every_code_has_the_value_of_ml_dtypes(name: str) -> None:
    chosen, oracle = FORMATS[name], ORACLES[name]
    codes = np.arange(1 << chosen.bits) if chosen.bits <= 16 else np.arange(0, 1 << 32, 65_521)
    width = np.dtype(oracle).itemsize
    with np.errstate(invalid="ignore"):  # NaN that signal
        theirs = codes.astype(f"u{width}").view(oracle).astype(np.float64)
    np.testing.assert_array_equal(chosen.decode(codes), theirs)


@pytest.mark.parametrize("name", ORACLES)
def test_numbers_are_rounded_as_by_ml_dtypes(name: str) -> None:
    chosen, values = FORMATS[name], drawn(name)
    with np.errstate(over="ignore"):
        theirs = values.astype(np.float32).astype(ORACLES[name]).astype(np.float64)
    np.testing.assert_array_equal(chosen.round(values), theirs)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e5m2", "fp8_e4m3", "fp6_e3m2", "fp6_e2m3", "fp4_e2m1"])
def test_codes_are_those_of_ml_dtypes(name: str) -> None:
    values = drawn(name)
    values = values[np.abs(values) <= FORMATS[name].largest]
    width = np.dtype(ORACLES[name]).itemsize
    theirs = values.astype(np.float32).astype(ORACLES[name]).view(f"u{width}")
    np.testing.assert_array_equal(FORMATS[name].encode(values), theirs)


@pytest.mark.parametrize(
    ("name", "largest", "normal", "subnormal", "epsilon"),
    [
        ("fp16", 65504, 2**-14, 2**-24, 9.765625e-4),
        ("fp8_e4m3", 448, 2**-6, 2**-9, 2**-3),
        ("fp8_e5m2", 57344, 2**-14, 2**-16, 2**-2),
        ("fp6_e3m2", 28, 2**-2, 2**-4, 2**-2),
        ("fp6_e2m3", 7.5, 1, 2**-3, 2**-3),
        ("fp4_e2m1", 6, 1, 2**-1, 2**-1),
    ],
)
def test_limits_are_those_of_the_specifications(
    name: str, largest: float, normal: float, subnormal: float, epsilon: float
) -> None:
    """IEEE 754-2019; OFP8 table 2; MX v1.0 tables 1 to 4."""
    chosen = FORMATS[name]
    limits = (chosen.largest, chosen.smallest_normal, chosen.smallest_subnormal, chosen.epsilon)
    assert limits == (largest, normal, subnormal, epsilon)
    assert chosen.numbers[-1] == chosen.largest
    assert chosen.numbers[1] == chosen.smallest_subnormal


def test_the_largest_is_the_highest_pattern_that_is_a_number() -> None:
    for chosen in FORMATS.values():
        codes = np.arange(1 << min(chosen.bits, 19)) if chosen.bits < 32 else np.array([0x7F7FFFFF, 0x7F800000])
        values = chosen.decode(codes)
        assert values[np.isfinite(values)].max() == chosen.largest, chosen.name


def test_tf32_is_fp32_with_a_mantissa_of_fp16() -> None:
    values = np.random.default_rng(1).normal(size=500) * 10.0 ** np.arange(-30, 20, 0.1)
    rounded = FORMATS["tf32"].round(values)
    assert (np.abs(rounded / values - 1) <= 2.0**-11).all()
    np.testing.assert_array_equal(FORMATS["fp32"].round(rounded), rounded)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "e8m0"])
def test_rounding_errs_by_at_most_half_an_epsilon(name: str) -> None:
    chosen = FORMATS[name]
    values = np.random.default_rng(7).uniform(chosen.smallest_normal, chosen.largest, 2000)
    assert (np.abs(chosen.round(values) - values) <= chosen.epsilon / 2 * values).all()


def test_saturation_ends_at_the_largest_number() -> None:
    for name in ("fp16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"):
        rounded = FORMATS[name].round([1e9, -1e9, np.inf], saturate=True)
        assert rounded.tolist() == [FORMATS[name].largest, -FORMATS[name].largest, FORMATS[name].largest]
    assert np.isnan(FORMATS["fp8_e4m3"].round([1e9])[0])
    assert np.isinf(FORMATS["fp8_e5m2"].round([1e9])[0])


def test_blocks_are_rounded_with_the_scale_of_their_largest_value() -> None:
    """Section 6.3 of MX v1.0, written out for one block of FP4: scale 2^(floor(log2 12) − 2) = 2."""
    block = np.zeros(32)
    block[:6] = [12, 1, 0.4, -5, 7, 0.6]
    expected = np.zeros(32)
    expected[:6] = [12, 1, 0, -4, 8, 1]
    assert block_format("mxfp4").round(block).tolist() == expected.tolist()
    assert all(block_format(name).bits_per_value == weight_bits(name[:5]) for name in ("mxfp4", "mxfp8_e4m3"))
    for name in ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4"):
        values = np.random.default_rng(3).normal(size=(5, 64))
        once = block_format(name).round(values)
        np.testing.assert_array_equal(block_format(name).round(once), once)


def test_bad_input_is_named() -> None:
    with pytest.raises(UnknownNameError, match="fp8_e4m3"):
        float_format("fp8_e4m4")
    with pytest.raises(ArgumentError, match="from 0 to 255"):
        FORMATS["fp8_e4m3"].decode([256])
    with pytest.raises(ArgumentError, match="no code for NaN"):
        FORMATS["fp4_e2m1"].encode([np.nan])
    with pytest.raises(ArgumentError, match="whole blocks of 32"):
        block_format("mxfp4").round(np.ones(31))
