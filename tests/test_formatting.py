"""Numbers as a page prints them: right, and never zero by accident."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.formatting import check, fmt, fmt_percent, natural
from mlsys.units import Q_, DimensionalityError, ureg


@pytest.mark.parametrize(
    ("quantity", "options", "text"),
    [
        (Q_(312, "TFLOP/s"), {}, "312.0"),
        (Q_(312, "TFLOP/s"), {"unit": "GFLOP/s", "precision": 0}, "312,000"),
        (Q_(312, "TFLOP/s"), {"unit": "GFLOP/s", "precision": 0, "commas": False}, "312000"),
        (Q_(312, "TFLOP/s"), {"unit": ureg.Unit("PFLOP/s"), "precision": 3}, "0.312"),
        (Q_(1, "GiB"), {"unit": "GB", "precision": 2}, "1.07"),
        (Q_(1, "GMAC"), {"unit": "GFLOP", "precision": 0}, "2"),
        (1234.5678, {"precision": 2}, "1,234.57"),
        (-1234.5, {"precision": 1}, "-1,234.5"),
        (0, {}, "0.0"),
        (Q_(0.0, "s"), {"unit": "ms"}, "0.0"),
        (0.04, {"allow_zero": True}, "0.0"),
        (np.float32(2.5), {"precision": 1}, "2.5"),
        (Q_(50, "percent"), {"unit": "", "precision": 1}, "0.5"),
    ],
)
def test_fmt(quantity: object, options: dict, text: str) -> None:
    assert fmt(quantity, **options) == text


@pytest.mark.parametrize(
    ("quantity", "options", "complaint"),
    [
        (0.04, {}, r"0.04 would print as '0.0'. Raise `precision` \(now 1\)"),
        (-0.04, {}, "would print as"),
        (Q_(3, "ms"), {"unit": "s"}, "0.003 s would print as '0.0'"),
        (math.nan, {}, "must be finite"),
        (Q_(math.inf, "s"), {}, "must be finite"),
        (3, {"unit": "GB"}, r'got the bare number 3. Write e.g. fmt\(Q_\(3, "GB"\), "GB"\)'),
    ],
)
def test_fmt_refuses(quantity: object, options: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        fmt(quantity, **options)


def test_fmt_does_not_convert_between_kinds() -> None:
    with pytest.raises(DimensionalityError):
        fmt(Q_(1, "GB/s"), "Hz")


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 12))
def test_fmt_is_true_to_half_a_unit_of_its_last_digit_or_raises(value: float, precision: int) -> None:
    try:
        text = fmt(value, precision=precision)
    except ValueError:
        assert 0 < abs(value) <= 0.5 * 10**-precision
        return
    assert abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-precision * (1 + 1e-9) + abs(value) * 1e-15
    assert len(text.partition(".")[2]) == precision


def test_fmt_percent() -> None:
    assert fmt_percent(0.203) == "20.3"
    assert fmt_percent(Q_(0.203, "")) == fmt_percent(Q_(20.3, "percent")) == "20.3"
    assert fmt_percent(12.5, precision=0, commas=True) == "1,250"
    assert fmt_percent(Q_(1, "TB/s") / Q_(500, "GB/s")) == "200.0", "TB over GB is a thousand"
    with pytest.raises(ValueError, match="must be a pure number, got 5 GB"):
        fmt_percent(Q_(5, "GB"))
    with pytest.raises(ValueError, match="would print as"):
        fmt_percent(0.0003)


def test_check_raises_its_message_and_passes_in_silence() -> None:
    assert check(True, "never seen") is None
    for false in (False, 0, np.False_, [], Q_(1, "GB") > Q_(1, "GiB")):
        with pytest.raises(ValueError, match="^the reason$"):
            check(false, "the reason")


def test_check_survives_python_dash_o() -> None:
    """A guard written with ``assert`` vanishes under ``python -O``; ours must not."""
    import subprocess
    import sys

    code = "from mlsys import check\ncheck(1 > 2, 'still here')"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError: still here" in done.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (2039.0, "2,039"),
        (153.016, "153"),
        (4.24278, "4.24"),
        (0.0065, "0.00650"),
        (0.00001234, "1.23e-05"),
        (-9.2, "-9.20"),
        (312e12, "3.12e+14"),
    ],
)
def test_natural(value: float, text: str) -> None:
    assert natural(value) == text


@given(st.floats(1e-300, 1e300), st.sampled_from([-1, 1]))
def test_natural_keeps_three_significant_digits(size: float, sign: int) -> None:
    assert float(natural(sign * size).replace(",", "")) == pytest.approx(sign * size, rel=5.01e-3)
