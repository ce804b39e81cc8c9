"""Values of a device file that follow from others by physics: width times rate, units times lanes times clock.

What a note multiplies out must be the value beside it; what a rate leans on cannot be less known than the rate.
"""

import re
from collections.abc import Iterator
from math import isclose, prod
from pathlib import Path

import pytest
import yaml

import mlsys.hardware
from mlsys.hardware import Device, Hardware
from mlsys.hardware.evidence import standing
from sampled import over_all

DATA = Path(mlsys.hardware.__file__).parent / "data"
UNITS = {"GHz": 1e9, "MHz": 1e6, "GT/s": 1e9}
DEVICES = list(Hardware)
NVIDIA = [device for device in DEVICES if device.vendor == "NVIDIA" and device.kind == "GPU"]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


# --- a memory bus carries its width times its rate -----------------------------------------


def bus(kind: str) -> float | None:
    """Return the bytes a second of a bus from the words that name it, such as ``DDR4-3200, 8 channels``."""
    named = re.search(r"(?:LPDDR\d?X?|DDR\d?L?|MRDIMM)-(\d+)", kind)
    halves = re.search(r"at ([\d,]+) MHz", kind)  # LPDDR moves two bits in each cycle of the clock it names
    rate = float(named.group(1)) * 1e6 if named else _number(halves.group(1)) * 2e6 if halves else None
    lanes = re.search(r"(\d+) x (\d+) bits", kind)
    wide = re.search(r"([\d,]+) bits", kind)
    channels = re.search(r"(\d+) channels?", kind)
    if lanes:
        bits = float(lanes.group(1)) * float(lanes.group(2))
    else:
        bits = _number(wide.group(1)) if wide else 64 * float(channels.group(1)) if channels else 0.0
    return rate * bits / 8 if rate and bits else None


@pytest.mark.parametrize(
    "kind, gigabytes",
    [
        ("DDR4-3200, 8 channels", 204.8),
        ("LPDDR5X, 4 x 16 bits at 4,800 MHz", 76.8),
        ("LPDDR5-6400, 1,024 bits", 819.2),
        ("GDDR6", None),
    ],
)
def test_the_words_for_a_bus_are_read(kind: str, gigabytes: float | None) -> None:
    bits = bus(kind)
    assert bits is gigabytes is None or isclose(bits, gigabytes * 1e9)


def test_memory_moves_what_its_width_and_rate_give() -> None:
    """Within 1 %; Apple prints hundreds: 100 GB/s for the 102.4 of LPDDR5-6400 on 128 bits, and 200, 400, 800."""
    read = 0
    for device in DEVICES:
        for name, level in device.memory.items():
            expected = bus(level.kind)
            if expected is None or level._bandwidth is None:
                continue
            read += 1
            moved = level.bandwidth_total.m_as("byte/s")
            near = 0.025 if device.id.startswith("Apple_") else 0.01
            assert isclose(moved, expected, rel_tol=near), f"{device.id}/{name}: {moved:.4g} of {expected:.4g} byte/s"
    assert read >= 75, "names of buses are no longer read"


# --- a product in a note is the value beside it ---------------------------------------------


def product(clause: str) -> float | None:
    """Return what a clause such as ``8 x 5.4 GHz x 32 FLOP a cycle + 16 x 4.3 GHz x 16`` multiplies out to."""
    total = 0.0
    for term in clause.split(" + "):
        factors = [re.match(r"([\d,]*\d\.?\d*)\s*([A-Za-z/]*)", factor.strip()) for factor in term.split(" x ")]
        if len(factors) < 2 or not all(factors):
            return None
        given = [factor for factor in factors if factor]
        if not any(factor.group(2) in UNITS for factor in given):
            return None
        total += prod(_number(factor.group(1)) * UNITS.get(factor.group(2), 1.0) for factor in given)
    return total


def noted(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield precision and unit, value and note of each peak of a file."""
    for precision, by_unit in yaml.safe_load(path.read_text("utf-8")).get("peaks", {}).items():
        for unit, rates in by_unit.items():
            for sparsity, field in rates.items():
                yield f"{precision}/{unit}/{sparsity}", field["value"], field.get("note", "")


# NVIDIA prints 34 TFLOP/s where its clock and units give 33.5, as the notes say.
ROUNDED_UP = {"H100_SXM/fp64/vector/dense": 0.017, "H200_SXM/fp64/vector/dense": 0.017}


def test_what_a_note_multiplies_out_is_the_peak_beside_it() -> None:
    """Within 1 %: peaks have three or four digits. Clauses that are no whole product are passed over."""
    read = 0
    for path in sorted(DATA.rglob("*.yaml")):
        for name, value, note in noted(path):
            written, unit = value.split()
            scale = {"TFLOP/s": 1e12, "TOP/s": 1e12, "GFLOP/s": 1e9, "GOP/s": 1e9, "MFLOP/s": 1e6, "MOP/s": 1e6}
            for clause in re.split(r"[;:]|, ", note):
                computed = product(clause)
                if computed is None:
                    continue
                read += 1
                at = f"{path.stem}/{name}"
                near = ROUNDED_UP.get(at, 0.01)
                assert isclose(computed, float(written) * scale[unit], rel_tol=near), (
                    f"{at}: {clause} makes {computed:.4g}"
                )
    assert read >= 200, "notes are no longer read"


# --- a GPU computes with its lanes and tensor cores ------------------------------------------

# FP32 multiply-adds a cycle of one streaming multiprocessor: shading units over multiprocessors in TechPowerUp's tables
# (RTX 3060 3,584/28, GTX TITAN X 3,072/24, Quadro RTX 6000 4,608/72, K20X 2,688/14); NVIDIA's Ampere Tuning Guide,
# Improved FP32 throughput, says that 8.6 has twice those of 8.0.
LANES = {
    r"Kepler": 192,
    r"Maxwell|Pascal \(GP102|Ampere \(GA10[2-7]|Ada|Hopper|Blackwell": 128,
    r"Pascal \(GP100|Volta|Turing|Ampere \(GA100": 64,
}
# NVIDIA prints their vector rates at a clock above the one at which tensor cores reach theirs, which is the twin's.
VECTORS_AT_A_HIGHER_CLOCK = r"Hopper|Blackwell$"


@over_all(NVIDIA)
def test_fp32_is_units_times_lanes_times_clock(device: Device) -> None:
    lanes = next((lanes for words, lanes in LANES.items() if re.match(words, device.architecture)), None)
    if lanes is None or not {"units", "clock"} <= set(device._chip) or ("fp32", "vector", "dense") not in device._peaks:
        return
    units, clock = device._chip["units"].m_as("count"), device._chip["clock"].m_as("Hz")
    printed = device._peaks["fp32", "vector", "dense"].m_as("FLOP/s")
    ratio = printed / (units * lanes * 2 * clock)
    if re.match(VECTORS_AT_A_HIGHER_CLOCK, device.architecture):
        assert 1.05 < ratio < 1.16
    else:
        near = 0.03 if device.id == "GB300" else 0.01  # its review rounds FP32 to 0.08 PFLOP/s
        assert isclose(ratio, 1, rel_tol=near)


@over_all(NVIDIA)
def test_tensor_cores_accumulate_in_fp32(device: Device) -> None:
    """INT8 is twice FP16, and four times on GeForce, whose tensor cores take half the FP16 products when they add them
    up in FP32 (getianao's notes on NVIDIA SMs, which the twins cite). A peak with FP16 accumulation would stand apart
    from its siblings, as those of three cards did."""
    rates = {key[0]: rate for key, rate in device._peaks.items() if key[1:] == ("matrix", "dense")}
    if device.id == "GB300":
        assert rates["int8"] < 0.1 * rates["fp16"]  # Blackwell Ultra gave units for INT8 up
    elif {"fp16", "int8"} <= set(rates):
        want = 4 if "GeForce" in device.name else 2
        near = 0.03 if device.id == "L40S" else 0.01  # its datasheet has dense FP16 at another clock
        assert isclose((rates["int8"] / rates["fp16"]).m_as(""), want, rel_tol=near)


def test_the_lanes_are_known_for_most_gpus() -> None:
    known = [device for device in NVIDIA if any(re.match(words, device.architecture) for words in LANES)]
    assert len(known) >= 0.9 * len(NVIDIA)


# --- what follows from a clock is no better known than the clock ------------------------------


def test_a_verified_rate_rests_on_a_verified_clock() -> None:
    """A rate that is derived, and whose note names a clock or a cycle, counts as verified only if the clock does."""
    for device in DEVICES:
        grades = standing(device)
        clock = grades.get(f"{device.id}/chip/clock", ("verified", ""))[0]
        if clock in ("verified", "derived"):  # derived from the rate itself
            continue
        for value in device.recorded():
            (fact,) = value.facts
            if not re.search(r"/peaks/|/bandwidth$", fact.name) or fact.confidence != "derived":
                continue
            if re.search(r"[MG]Hz|a cycle", fact.meaning):
                assert grades[fact.name][0] != "verified", f"{fact.name}: its clock is {clock}"
