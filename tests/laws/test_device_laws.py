"""Laws between the values of a device, and between devices that share a chip.

Energy by process node is that of :mod:`mlsys.models.energy`, at the low end of its range: what even the
most frugal multipliers of the node would draw must fit the rated power.
"""

import re
from collections import Counter

import pytest

from mlsys.hardware import Device, Hardware
from mlsys.models.energy import Energies
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, Quantity
from sampled import over_all

DEVICES = [*Hardware, *Hardware.Generic]
each_device = over_all(DEVICES)

FORMATS = ("int8", "fp8", "bf16", "fp16", "fp32")


def energy_of_an_operation(precision: str, device: Device) -> Quantity:
    """Return the energy of one operation, half a multiply-add, on the process of a device."""
    return Q_(Energies.of(device).mac(precision).value.m_as("pJ") / 2, "pJ/FLOP")


# Devices whose arithmetic alone would need more than their rated power, with the reason.
ABOVE_TDP: dict[tuple[str, str], str] = {}


@each_device
def test_arithmetic_at_full_rate_stays_within_the_rated_power(device: Device) -> None:
    """Energy per operation times the dense peak is at most the TDP: the rest moves data and waits."""
    if device._tdp is None:
        return
    for precision in set(FORMATS) & set(device.precisions):
        needed = energy_of_an_operation(precision, device) * device.fastest(precision)
        within = needed <= device.tdp
        assert within or (device.id, precision) in ABOVE_TDP, f"{precision}: {needed.to('W'):.3g} above {device.tdp}"
        assert not (within and (device.id, precision) in ABOVE_TDP), "an exception that is none any more"


@each_device
def test_rates_without_qualification_are_dense(device: Device) -> None:
    """What a page gets by default is never a 2:4 rate, and no precision is sparse without being dense."""
    for (precision, unit, sparsity), rate in device._peaks.items():
        if sparsity == "2:4":
            dense = device._peaks[precision, unit, "dense"]
            assert rate > dense * 1.9
            assert device.peak(precision, unit=unit) == dense != rate
            assert device.fastest(precision) < rate
    assert device.peak_flops <= device.fastest()
    assert "sparse" not in device.peak_flops.origin.meaning


@each_device
def test_links_are_per_direction(device: Device) -> None:
    """NVLink by generation, one direction: 80, 150, 300, 450 GB/s (NVIDIA, TensorRT-LLM, cluster_info.py), then 900."""
    for link in device.links.values():
        if link._per_direction is None:
            continue
        assert_quantity_close(link.both_directions, 2 * link.per_direction)
        match = re.fullmatch(r"NVLink (\d)", link.kind)
        if match:
            full = Q_({1: 80, 2: 150, 3: 300, 4: 450, 5: 900}[int(match.group(1))], "GB/s")
            assert_quantity_close(link.per_direction, full)


# --- one chip in several modules: they differ in what is listed and in nothing else --------------

_RATES = r"peaks/.*"
SAME_CHIP = {
    ("A100_40GB", "A100_80GB"): r"memory/HBM/(capacity|bandwidth)",  # NVIDIA: HBM2 and HBM2e, all else alike
    ("A100_80GB", "A100_80GB_PCIe"): r"memory/HBM/bandwidth|power/tdp",  # 400 W in SXM, 300 W on the card
    # 132 of the SMs against 114, a lower clock, HBM2e, a bridge for NVLink, half the power
    ("H100_SXM", "H100_PCIe"): _RATES
    + r"|memory/HBM/bandwidth|memory/L[12]/bandwidth|links/NVLink/.*|power/tdp|chip/(units|clock|macs_per_cycle)",
    ("H100_SXM", "H200_SXM"): r"memory/HBM/(capacity|bandwidth)",  # NVIDIA: the same chip with HBM3e
    ("V100", "V100_16GB"): r"memory/HBM/capacity",
    ("V100_16GB", "V100_PCIe_16GB"): _RATES + r"|memory/L1/bandwidth|chip/clock|power/tdp",  # clock and power
    ("MI300X", "MI325X"): r"memory/HBM/(capacity|bandwidth)|power/tdp",  # AMD: HBM3e on the same chiplets
}


@pytest.mark.parametrize("pair", SAME_CHIP, ids="-".join)
def test_modules_of_one_chip_differ_only_where_the_sources_say_so(pair: tuple[str, str]) -> None:
    first, other = (
        {value.facts[0].name.partition("/")[2]: value for value in Hardware[name].recorded()} for name in pair
    )
    differing = {name for name in first.keys() & other.keys() if first[name] != other[name]}
    assert differing, "two names for one device"
    assert {name for name in differing if not re.fullmatch(SAME_CHIP[pair], name)} == set()


# --- names ----------------------------------------------------------------------------------------


def test_no_two_devices_share_an_id_a_name_or_an_alias() -> None:
    for names in (
        [device.id.lower() for device in DEVICES],
        [device.name.lower() for device in DEVICES],
        [name.lower() for device in DEVICES for name in (device.id, *(() if device.generic else device.aliases))],
    ):
        assert [name for name, times in Counter(names).items() if times > 1] == []
    assert all(1980 <= device.release_year <= 2026 for device in DEVICES)


# --- teaching profiles -----------------------------------------------------------------------------


def test_teaching_profiles_are_assumed_and_stay_apart() -> None:
    profiles = list(Hardware.Generic)
    assert {profile.id for profile in profiles} == {"GenericCPU", "GenericGPU", "GenericTPU", "GenericKPU"}
    assert not any(device.generic for device in Hardware)
    assert not {profile.id for profile in profiles} & {device.id for device in Hardware.find()}
    assert {profile.id for profile in profiles} <= {device.id for device in Hardware.find(generic=True)}
    for profile in profiles:
        assert profile.generic
        assert {value.origin.confidence for value in profile.recorded()} == {"assumed"}
        assert Hardware[profile.id] is profile
        assert profile.inner_levels
        macs = profile.chip("macs_per_cycle").to("FLOP/cycle")
        assert_quantity_close(macs * profile.chip("clock"), profile.peak_flops, rtol=1e-3)
