"""What the values in use rest on: the share that is verified, and a floor that it must not fall below."""

import importlib.util
from pathlib import Path

import pytest

from mlsys.hardware import Hardware, load_device
from mlsys.hardware.evidence import evidence, standing

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def facts_in_use():
    spec = importlib.util.spec_from_file_location("facts_in_use", ROOT / "tools" / "facts_in_use.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Raise the floor with the share, and lower it for no page: find a primary source instead, or another machine.
# `python tools/facts_in_use.py` lists what is lacking: of 178 values in use, six prices, the L2 of the L4 (measured on
# another card), the power of TPU v3 and of an idle STM32H7A3, the memory of the WSE-2, and, of cards ten years old and
# more, the FP32 rates of the K20X and the K80, the transistors of the one and the memory of the other.
FLOOR = 0.89

# The machines that other people measured are not ours to choose, and makers of small chips publish little: what the
# estimates of measured rows read is counted apart. A wrong value there is an error that the validation page shows.
FLOOR_JUDGED = 0.35


def test_the_values_that_claims_lean_on_are_mostly_verified(facts_in_use) -> None:
    """Verified: the value was read in a primary source (the maker's text or code, or what the device reports of
    itself), or follows by arithmetic from values that were."""
    in_use = facts_in_use.in_use()
    assert len(in_use.used) >= 20
    assert in_use.share >= FLOOR, str(in_use.table())


def test_what_our_errors_lean_on_is_counted_too(facts_in_use) -> None:
    judged = evidence(facts_in_use.judged(), Hardware)
    assert len(judged.used) >= 1000
    assert judged.share >= FLOOR_JUDGED, str(judged.table())


TOY = """\
id: Toy
name: A toy
kind: NPU
vendor: Nobody
release_year: 2024
sources:
  read: {title: A text that we read, date: "2024", confidence: verified}
  told: {title: A text that was told to us, date: "2024", confidence: secondary}
headline: int8
peaks: {int8: {matrix: {dense: {value: 4 TOP/s, source: read}}}}
memory:
  DRAM: {capacity: {value: 1 GB, source: told}, bandwidth: {value: 1 GB/s, source: read, confidence: derived}}
  SRAM:
    capacity: {value: 1 MB, source: told, confidence: derived}
    usable: {value: 1 kB, source: read, confidence: unverified}
"""


def test_arithmetic_over_a_verified_text_is_verified_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "Toy.yaml"
    path.write_text(TOY)
    toy = load_device(path)
    assert {name.partition("/")[2]: grade for name, (grade, _) in standing(toy).items()} == {
        "peaks/int8/matrix/dense": "verified",
        "memory/DRAM/bandwidth": "verified",
        "memory/DRAM/capacity": "secondary",
        "memory/SRAM/capacity": "derived",
        "memory/SRAM/usable": "unverified",
    }
    names = ["Toy/memory/DRAM/bandwidth", "Toy/memory/DRAM/capacity", "Toy/memory/DRAM/bandwidth", "GPT2_PARAMS"]
    judged = evidence(names, [toy])
    assert (len(judged.used), len(judged.verified), judged.share) == (2, 1, 0.5)
    assert judged.lacking == (("Toy/memory/DRAM/capacity", "secondary", "A text that was told to us"),)
    assert "1 of 2 values in use are verified (50%)" in str(judged.table())
    assert evidence([], [toy]).share == 1


def test_looking_at_the_evidence_is_no_use_of_it() -> None:
    from mlsys.provenance import recording

    with recording() as seen:
        standing(Hardware.Cloud.A100)
    assert not seen


def test_the_memory_levels_are_printed_for_one_unit_and_for_the_device() -> None:
    from mlsys.hardware.compare import levels

    table = levels([Hardware.Cloud.A100])
    row = next(row for row in table.rows if row[1] == "L1")
    assert row[2:5] == ("108", "192 KiB", "164 KiB")
    assert "GB" in row[5]
