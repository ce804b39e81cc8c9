"""The vocabulary: what adds, what converts, and what is refused."""

import copy
import itertools
import multiprocessing
import operator
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pint
import pytest

from mlsys import Hardware, units
from mlsys.errors import ArgumentError
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, DimensionalityError, Quantity, UndefinedUnitError, ureg
from sampled import over_all

# Every countable thing is a dimension of its own.
APART = ("byte", "FLOP", "cycle", "param", "token", "inference", "USD", "gCO2e", "s", "J", "m", "K", "A", "")


# --- sentences that make no sense are refused ----------------------------------------


@over_all(itertools.product(APART, APART), spread=True)
def test_only_like_adds_to_like(first: str, other: str) -> None:
    if first == other:
        assert (Q_(5, first) + Q_(3, other)).magnitude == 8
        return
    with pytest.raises(DimensionalityError):
        Q_(5, first) + Q_(3, other)
    with pytest.raises(DimensionalityError):
        Q_(5, first) - Q_(3, other)
    with pytest.raises(DimensionalityError):
        Q_(5, first).to(other)
    with pytest.raises(DimensionalityError):
        _ = Q_(5, first) < Q_(3, other)


@pytest.mark.parametrize("unit", [unit for unit in APART if unit])
def test_a_bare_number_is_not_given_the_unit_somebody_hoped_for(unit: str) -> None:
    with pytest.raises(DimensionalityError):
        Q_(1, unit) + 1
    with pytest.raises(DimensionalityError):
        1 + Q_(1, unit)
    with pytest.raises(ValueError, match="Cannot compare"):
        _ = Q_(1, unit) > 1
    assert Q_(1, unit) != 1


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("GB/s", "Hz"),  # pint's own registry converts this one: a byte is 8 there
        ("TFLOP/s", "THz"),
        ("cycle/s", "1/s"),
        ("FLOP", "cycle"),
        ("token/s", "Hz"),
        ("GFLOP", "GB"),
        ("TFLOP/s", "TFLOP"),
        ("W", "J"),
        ("Wh", "W"),
    ],
)
def test_neighbours_that_people_confuse_do_not_convert(given: str, wanted: str) -> None:
    with pytest.raises(DimensionalityError):
        Q_(1, given).to(wanted)


@pytest.mark.parametrize("name", ["TFLOPS", "TOPS", "GFLOPS", "FLOPS", "tflop/s", "gb", "Gbit/sec/lane", "bananas"])
def test_ambiguous_spellings_are_undefined(name: str) -> None:
    """TFLOPS is read as an amount by some and a rate by others; here nobody can write it."""
    with pytest.raises(UndefinedUnitError):
        Q_(1, name)


# --- conversions: exact by definition ------------------------------------------------

DEFINED = [
    # SI brochure, 9th edition (2019), table 7: decimal prefixes.
    *(
        (f"{prefix}B", "byte", Fraction(10) ** power)
        for prefix, power in zip("kKMGTPE", (3, 3, 6, 9, 12, 15, 18), strict=True)
    ),
    *(
        (f"{prefix}s", "s", Fraction(1, 10**power))
        for prefix, power in zip("mµunpf", (3, 6, 6, 9, 12, 15), strict=True)
    ),
    # IEC 80000-13:2008, clause 4: binary prefixes.
    *((f"{prefix}iB", "byte", Fraction(2) ** power) for prefix, power in zip("KMGTPE", range(10, 70, 10), strict=True)),
    ("byte", "bit", Fraction(8)),  # IEC 80000-13, item 13-9.c
    ("Gbps", "byte/s", Fraction(125_000_000)),
    ("Gbit/s", "Gbps", Fraction(1)),
    ("MAC", "FLOP", Fraction(2)),  # a multiply and an add
    ("TMAC/s", "TFLOP/s", Fraction(2)),
    ("TOP/s", "TFLOP/s", Fraction(1)),
    ("GHz", "cycle/s", Fraction(10**9)),
    ("kWh", "J", Fraction(3_600_000)),  # SI brochure, table 8: 1 h = 3600 s
    ("year", "hour", Fraction(8766)),  # Julian year, 365.25 days (IAU)
    ("percent", "", Fraction(1, 100)),
    ("Bparam", "Gparam", Fraction(1)),
    ("tCO2e", "gCO2e", Fraction(10**6)),
]


@over_all(DEFINED, spread=True)
def test_definitions_are_exact(given: str, wanted: str, factor: Fraction) -> None:
    assert_quantity_close(Q_(1, given).to(wanted), Q_(float(factor), wanted), rtol=4e-16)
    assert Fraction(Q_(1, given).to(wanted).magnitude).limit_denominator(10**15) == factor


def test_gb_is_not_gib() -> None:
    assert Q_(1, "GB") != Q_(1, "GiB")
    assert Q_(1, "GiB") - Q_(1, "GB") == Q_(2**30 - 10**9, "byte")


def test_flop_per_cycle_times_clock_is_a_rate() -> None:
    assert_quantity_close(Q_(2, "FLOP/cycle") * Q_(1.5, "GHz"), Q_(3, "GFLOP/s"))


def test_power_times_time_is_energy() -> None:
    assert_quantity_close(Q_(300, "W") * Q_(2, "hour"), Q_(0.6, "kWh"))
    assert_quantity_close(Q_(1, "V") * Q_(1, "A"), Q_(1, "W"))


# --- our registry and everybody else's -----------------------------------------------


def test_importing_leaves_pints_application_registry_alone() -> None:
    code = """
import pint
before = pint.get_application_registry().get()
import mlsys, mlsys.units, mlsys.hardware, mlsys.formulas, mlsys.claims
assert pint.get_application_registry().get() is before
assert before is not mlsys.units.ureg
assert pint.Quantity(1, "byte").to("bit").magnitude == 8
assert pint.Quantity(1, "mile").units == pint.Unit("mile")
assert pint.UnitRegistry()("1 GB/s").to("Hz").magnitude > 0, "pint itself still mixes bytes and cycles"
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_two_registries_live_side_by_side_and_do_not_mix() -> None:
    theirs = pint.UnitRegistry()
    assert (1 + theirs.Quantity(1, "byte")).magnitude == 9  # pint's reading
    with pytest.raises(DimensionalityError):
        1 + Q_(1, "byte")  # ours
    with pytest.raises(ValueError, match="registr"):
        Q_(1, "byte") + theirs.Quantity(1, "byte")


# --- copies keep value, unit and origin ----------------------------------------------


def _quantities() -> list[Quantity]:
    fact = Hardware.Cloud.A100.memory_bw
    return [
        Q_(3, "GB"),
        Q_(0.1, "TFLOP/s/W"),
        Q_(2, "mm**2"),
        Q_(5, ""),
        Q_(np.arange(3.0), "token/s"),
        fact,
        2 * fact / Q_(3, "FLOP/byte"),
        np.array([1.0, 2.0]) * fact,
    ]


def _same(first: Quantity, other: Quantity) -> bool:
    return (
        isinstance(first, Quantity)
        and type(first.magnitude) is type(other.magnitude)
        and np.array_equal(first.magnitude, other.magnitude)
        and first.units == other.units
        and first.facts == other.facts
        and isinstance(first.origin, type(other.origin))
    )


COPIES = [copy.copy, copy.deepcopy, *(lambda q, p=p: pickle.loads(pickle.dumps(q, p)) for p in range(2, 6))]


@over_all(itertools.product(_quantities(), COPIES), spread=True)
def test_copies_keep_value_unit_and_origin(quantity: Quantity, duplicate: object) -> None:
    twin = duplicate(quantity)  # type: ignore[operator]
    assert _same(twin, quantity)
    assert (twin + quantity).units == quantity.units, "it still belongs to the registry"


def test_quantities_cross_into_a_spawned_process_and_back() -> None:
    """A spawned process imports everything anew: nothing is inherited."""
    given = _quantities()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.map(copy.copy, given)
        names = pool.map(operator.attrgetter("source"), given)
        ridge = pool.apply(operator.truediv, (Hardware.Cloud.A100.peak("fp16"), Hardware.Cloud.A100.memory_bw))
    assert all(map(_same, back, given))
    assert names == [quantity.source for quantity in given]
    assert [fact.name for fact in ridge.facts] == [
        "A100_80GB/peaks/fp16/matrix/dense",
        "A100_80GB/memory/HBM/bandwidth",
    ]
    assert_quantity_close(ridge, Hardware.Cloud.A100.ridge_point("fp16"))


def test_a_quantity_made_at_once_is_the_one_that_pint_makes() -> None:
    """A unit that is parsed, its parts, and its name come to the same, whatever stands before it."""
    plain, rate = pint.UnitRegistry(), ureg.Unit("byte/s")
    for value in (3, -0.5, float("nan"), 2**70, Fraction(1, 3), [1.0, 2.5]):
        expected = plain.Quantity(value, "bit/s").magnitude
        for unit in (rate, rate._units, "byte/s"):
            quantity = ureg.Quantity(value, unit)
            assert type(quantity.magnitude) is type(expected) and str(quantity.magnitude) == str(expected)
            assert isinstance(quantity, Quantity) and quantity.units == rate and quantity.origin is None
    with pytest.raises(TypeError, match="magnitude"):
        ureg.Quantity(True, rate)


def test_units_pickle_by_name() -> None:
    unit = ureg.Unit("GB/s")
    again = pickle.loads(pickle.dumps(unit))
    assert again == unit
    assert isinstance(again, units.Unit)
    assert_quantity_close(3 * again, Q_(3, "GB/s"))


# --- arrays ----------------------------------------------------------------------------


def test_arrays_keep_their_unit_and_refuse_the_same_sentences() -> None:
    sizes = Q_(np.array([1, 2, 4]), "KiB")
    assert sizes.to("byte").magnitude.tolist() == [1024, 2048, 4096]
    assert_quantity_close(sizes.sum(), Q_(7, "KiB"))
    assert_quantity_close(np.max(sizes / Q_(2, "s")), Q_(2, "KiB/s"))
    with pytest.raises(DimensionalityError):
        sizes + np.ones(3)
    with pytest.raises(DimensionalityError):
        np.minimum(sizes, Q_(np.ones(3), "FLOP"))


def test_assigning_in_place_never_changes_what_was_handed_out() -> None:
    total = part = Q_(np.array([1.0, 2.0]), "GB")
    total += Q_(1, "GB")
    total *= 2
    assert part.magnitude.tolist() == [1, 2]
    assert total.magnitude.tolist() == [4, 6]
    assert (part * 2).origin is None, "a literal has no origin"


# --- how they look -------------------------------------------------------------------


def test_text_has_nine_digits_and_short_units() -> None:
    assert str(Q_(0.1 + 0.2, "GB")) == "0.3 GB"
    assert f"{Q_(312, 'TFLOP/s') / Q_(2039, 'GB/s'):.1f}" == "0.2 TFLOP/GB"
    assert repr(Q_(1 / 3, "s")) == "<Quantity(0.333333333, 's')>"


def test_the_refusal_of_a_comma_says_both_ways_to_write_it() -> None:
    with pytest.raises(ArgumentError, match=r"Write '4\.87 ms', or '487 ms' if the comma groups thousands"):
        ureg.Quantity("4,87 ms")


@pytest.mark.parametrize(
    "text",
    ["4,87 ms", "8,843 V", "4,87", "1,000 GB", "1.000,5 ms", "1,2,3 GB", "1e3,5 s",
     "4\N{ARABIC DECIMAL SEPARATOR}87 ms",
     "4\N{ARABIC COMMA}87 ms", "4;87 ms", "4:87 ms", "4'870 ms", "4\N{RIGHT SINGLE QUOTATION MARK}870 ms", "4·87 ms",
     "1 000 ms", "1\N{NO-BREAK SPACE}000 ms", "3 ms 4", "3.5.5 ms", "3..5 ms", "3(1) ms", "\N{MINUS SIGN}5 ms",
     "\N{EN DASH}5 ms", "\N{FULLWIDTH DIGIT FOUR} ms", "3 ± 1 ms", "3$", "~3 ms", "3 ms!", "3 ms # about"],
)  # fmt: skip
def test_a_text_is_read_as_it_stands_or_refused(text: str) -> None:
    """Pint drops the signs that it does not know, and takes a gap for a product."""
    for read in (Q_, ureg, ureg.parse_units, ureg.Unit, lambda given: Q_(3, "ms").to(given)):
        with pytest.raises(ArgumentError, match="Write"):
            read(text)


@pytest.mark.parametrize(
    "quantity", [Q_(-1.5e-30, "B*s/m**2"), Q_(4.87, "ms"), Q_(3, "J/(s*m)"), Q_(5, "%"), Q_(1, "1/s")]
)
def test_what_a_quantity_prints_is_read_back(quantity: Quantity) -> None:
    assert Q_(str(quantity)) == quantity


def test_a_number_that_begins_with_a_comma_keeps_its_size() -> None:
    with pytest.raises(ArgumentError, match=r"Write '0\.5 ms'"):
        ureg.Quantity(",5 ms")


@pytest.mark.parametrize("value", ["7", "4,87", b"7", ["7"], ("7",), np.array(["7"]), np.str_("7")])
def test_a_text_is_no_magnitude(value: object) -> None:
    with pytest.raises(ArgumentError, match="must be a number"):
        Q_(value, "ms")
