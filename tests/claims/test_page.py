"""A claim is stated once, formatted once, and filed with its sum and its sources."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from mlsys import Hardware, claim, claims_table
from mlsys.claims import current_page, end_chapter, given, start_chapter
from mlsys.claims.render import MIME
from mlsys.provenance import recording
from mlsys.units import Q_, DimensionalityError


@pytest.fixture(autouse=True)
def page() -> Iterator[None]:
    start_chapter("test")
    yield
    start_chapter("")
    end_chapter("")


def result(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("value", "options", "text", "pinned"),
    [
        (Q_(312, "TFLOP/s"), {}, "312 TFLOP/s", "312"),
        (Q_(312, "TFLOP/s"), {"unit": "PFLOP/s"}, "0.312 PFLOP/s", "0.312"),
        (Q_(153.0161842, "FLOP/byte"), {"unit": "FLOP/byte"}, "153 FLOP/byte", "153.016"),
        (Q_(3.35, "TB/s") / Q_(2039, "GB/s"), {"unit": "×"}, "1.64×", "1.64296"),
        (Q_(0.2034, ""), {"unit": "%"}, "20.3%", "20.34"),
        (0.2034, {"unit": "%", "precision": 2}, "20.34%", "20.34"),
        (16.8067, {"unit": "×", "precision": 1}, "16.8×", "16.8067"),
        (7, {}, "7", "7"),
        (2039.0, {}, "2,039", "2039"),
        (0, {}, "0", "0"),
        ("memory", {}, "memory", "memory"),
        (True, {}, "True", "True"),
        (np.True_, {}, "True", "True"),
        (np.float64(2.5), {}, "2.50", "2.5"),
        (Q_(1, "GMAC"), {"unit": "GFLOP"}, "2 GFLOP", "2"),
    ],
)
def test_a_value_is_formatted_once(
    value: object, options: dict, text: str, pinned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(it=value, **options)
    filed = current_page().claims["it"]
    assert (filed.text, filed.pinned) == (text, pinned)
    assert result(capsys)[0].startswith(f"it = {text}  ←  ")


@pytest.mark.parametrize(
    ("values", "options", "complaint"),
    [
        ({}, {}, "name at least one value"),
        ({"it": 3}, {"unit": "GB"}, r'claim\(it=Q_\(3, "GB"\)\)'),
        ({"it": float("nan")}, {}, "must be finite"),
        ({"it": Q_(float("inf"), "s")}, {}, "must be finite"),
        ({"it": 0.004}, {"precision": 2}, r"'it' is 0.004 and would print as 0.00. Raise `precision`"),
    ],
)
def test_what_cannot_be_claimed(values: dict, options: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        claim(**values, **options)
    assert current_page().claims == {}


def test_a_claim_is_not_converted_between_kinds() -> None:
    with pytest.raises(DimensionalityError):
        claim(it=Q_(1, "GB/s"), unit="GHz")


def test_a_name_means_one_value_on_a_page() -> None:
    claim(ridge=Q_(153, "FLOP/byte"))
    claim(ridge=Q_(153.0000001, "FLOP/byte"))  # the same to the digits that are pinned
    for other in (Q_(154, "FLOP/byte"), Q_(153, "MAC/byte"), "153", 153):
        with pytest.raises(ValueError, match=r"'ridge' is already claimed on page 'test' as 153 FLOP/byte, now as"):
            claim(ridge=other)
    start_chapter("another page")
    claim(ridge=154)
    assert current_page().claims["ridge"].pinned == "154"


def test_chapters_open_and_close_in_pairs() -> None:
    with pytest.raises(ValueError, match="the open chapter is 'test', not 'roofline'"):
        end_chapter("roofline")
    end_chapter("test")
    _ = Hardware.Cloud.A100.tdp
    assert current_page().facts == {}, "what is read after the end is not the page's"


def test_a_page_knows_which_facts_it_read_even_unclaimed() -> None:
    a100 = Hardware.Cloud.A100
    with recording() as seen:
        claim(ridge=a100.ridge_point("fp16"))
        _ = a100.tdp
    assert (
        set(current_page().facts)
        == set(seen)
        == {
            "A100_80GB/peaks/fp16/matrix/dense",
            "A100_80GB/memory/HBM/bandwidth",
            "A100_80GB/power/tdp",
        }
    )
    assert current_page().claims["ridge"].facts == (
        "A100_80GB/peaks/fp16/matrix/dense",
        "A100_80GB/memory/HBM/bandwidth",
    )


def test_the_table_is_text_data_and_html(capsys: pytest.CaptureFixture[str]) -> None:
    a100 = Hardware.Cloud.A100
    claim(ridge=a100.ridge_point("fp16"), unit="FLOP/byte")
    claim(bound="memory <&>")
    table = claims_table()
    source = a100.memory_bw.origin
    assert repr(table).splitlines()[:4] == [
        "Claims of test: 2",
        "  ridge = 153.016 FLOP/byte",
        "      from ridge_point(peak=312 TFLOP/s, bandwidth=2039 GB/s)",
        "      on A100_80GB/peaks/fp16/matrix/dense, A100_80GB/memory/HBM/bandwidth",
    ]
    assert "Facts read on this page: 2" in repr(table)
    assert f"      {source.source} ({source.date}; {source.confidence})" in repr(table)
    bundle = table._repr_mimebundle_()
    assert bundle["text/plain"] == repr(table)
    assert json.loads(json.dumps(bundle[MIME])) == bundle[MIME]
    assert [item["name"] for item in bundle[MIME]["claims"]] == ["ridge", "bound"]
    assert "memory &lt;&amp;&gt;" in bundle["text/html"]
    assert "memory <&>" not in bundle["text/html"]


def test_the_table_does_not_depend_on_the_order_of_reading() -> None:
    a100 = Hardware.Cloud.A100
    _ = a100.tdp, a100.memory_bw
    first = repr(claims_table())
    start_chapter("test")
    _ = a100.memory_bw, a100.tdp
    assert repr(claims_table()) == first


@pytest.mark.parametrize(
    ("value", "unit", "printed"),
    [
        (128, None, "128"),
        (4096, None, "4,096"),
        ((128, 64), None, "128 × 64"),
        (Q_(1536, "byte"), "KiB", "1.50 KiB"),
        (Q_(16, "KiB"), None, "16 KiB"),
        ("INT8", None, "INT8"),
        (0.25, None, "0.250"),
    ],
)
def test_what_a_page_sets_is_given_and_prints_all_its_digits(value, unit, printed: str) -> None:
    start_chapter("given")
    assert given(it=value, unit=unit) is value
    filed = current_page().claims["it"]
    end_chapter("given")
    assert (filed.text, filed.facts) == (printed, ())
    assert filed.formula.startswith("given")


def test_several_things_are_given_at_once_and_none_twice_differently() -> None:
    start_chapter("given")
    assert given(rows=64, columns=32) == (64, 32)
    with pytest.raises(ValueError, match="already claimed"):
        given(rows=65)
    with pytest.raises(ValueError, match="name at least one"):
        given()
    end_chapter("given")
