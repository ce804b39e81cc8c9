"""A number that somebody wrote down is read as written, or refused with the line to type."""

import pytest

from mlsys.amounts import amount, parsed_number
from mlsys.units import Q_


@pytest.mark.parametrize(
    ("text", "value"),
    [("312", 312), ("2,039", 2039), ("1,234,567.5", 1234567.5), ("1.5e3", 1500), (".5", 0.5), ("-2", -2), ("+7", 7)],
)
def test_a_number_is_read(text: str, value: float) -> None:
    assert parsed_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "19,5",
        "1,,2",
        "0,5",
        "0,125",
        "12,34",
        "1,2345",
        ",5",
        "",
        "-",
        "e5",
        ".",
        "1_000",
        "nan",
        "inf",
        "1e400",
        "0x10",
        "٣",
        "1 2",
    ],
)
def test_a_number_that_could_mean_two_things_or_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"comma|not a number|finite"):
        parsed_number(text)


def test_a_decimal_comma_gets_the_line_to_type() -> None:
    with pytest.raises(ValueError, match=r"'19,5'.* Write 19\.5, or 195"):
        amount("19,5 TFLOP/s", "FLOP/s")


@pytest.mark.parametrize(
    ("text", "unit", "wanted"),
    [
        ("312 TFLOP/s", "FLOP/s", Q_(312, "TFLOP/s")),
        ("2,039 GB/s", "byte/s", Q_(2039, "GB/s")),
        ("1,410 MHz", "Hz", Q_(1410, "MHz")),
        ("108", "count", Q_(108, "count")),
        ("5 us", "s", Q_(5, "us")),
        ("20 pJ/bit", "J/byte", Q_(20, "pJ/bit")),
    ],
)
def test_an_amount_is_read(text: str, unit: str, wanted) -> None:
    assert amount(text, unit) == wanted


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        ("1410 mHz", "Hz", "Write 1410 MHz"),
        ("80 mB", "byte", "Write 80 MB"),
        ("5 nbit/s", "bit/s", "thousandths"),
        ("1 TFLOP/s**9**9**9**9", "FLOP/s", "not a unit"),
        ("1 TFLOP/(", "FLOP/s", "not a unit"),
        ("1 😀", "FLOP/s", "not a unit"),
        ("1 TFLOP/0", "FLOP/s", "not a unit"),
        ("1 GB", "FLOP/s", "must be in FLOP/s"),
        ("1 parsnips", "FLOP/s", "parsnips"),
        ("0 GB/s", "byte/s", "above zero"),
        ("-1 GB/s", "byte/s", "above zero"),
        ("nan GB/s", "byte/s", "must be finite"),
        ("TFLOP/s", "FLOP/s", "must be a number"),
        ("1" * 300 + " B", "byte", "too long"),
        ("1 " + "m*" * 5000 + "m", "byte", "too long"),
    ],
)
def test_what_is_no_amount_is_refused_in_one_line(text: str, unit: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("/", r"/")) as raised:
        amount(text, unit)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
