"""Laws that every shipped device obeys, and how devices are found."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

import mlsys.hardware
from mlsys.errors import DeviceFileError, UnknownNameError
from mlsys.hardware import Device, Hardware, load_device
from mlsys.hardware.catalogue import Catalogue
from mlsys.provenance import Fact
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, Quantity
from sampled import over_all

DATA = Path(mlsys.hardware.__file__).parent / "data"
PROFILES = sorted([*(DATA / "generic").glob("*.yaml"), *(DATA / "arrays").glob("*.yaml")])
FILES = [path for path in sorted(DATA.rglob("*.yaml")) if path not in PROFILES and path.parent.name != "systems"]
DEVICES = list(Hardware)
each_device = over_all(DEVICES)


def test_there_are_devices_of_every_class() -> None:
    assert len(FILES) >= 4
    assert all(list(group) for group in Hardware.groups if group is not Hardware.User)
    assert not list(Hardware.User)
    assert len(list(Hardware)) == len(FILES), "a file that no group reads"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_passes_the_check_and_is_named_after_its_device(path: Path) -> None:
    assert load_device(path).id == path.stem
    assert len(path.read_text("utf-8").splitlines()) <= 80, "a device fits on a screen"


# --- names ---------------------------------------------------------------------------


def test_ids_names_and_aliases_are_unique_over_all_groups() -> None:
    spelled = Counter(name.lower() for device in DEVICES for name in (device.id, *device.aliases))
    full = Counter(device.name.lower() for device in DEVICES)
    assert [name for name, times in (spelled + full).items() if times > 1] == []


def test_every_id_and_alias_leads_to_its_device() -> None:
    for device in DEVICES:
        for name in (device.id, *device.aliases):
            assert Hardware[name].id == device.id
            assert sum(name in dir(group) for group in Hardware.groups) == 1


def test_spellings_are_those_that_whole_files_say() -> None:
    spellings = {spelling: device.id for device in DEVICES for spelling in (device.id, device.name, *device.aliases)}
    assert dict(Hardware.spellings()) == spellings


def test_spellings_are_read_of_devices_that_were_loaded(tmp_path: Path) -> None:
    catalogue = Catalogue(DATA)
    text = (DATA / "cloud" / "T4.yaml").read_text("utf-8")
    renamed = re.sub("^name: .*$", "name: My own card", text, flags=re.MULTILINE)
    (tmp_path / "mine.yaml").write_text(re.sub("^id: .*$", "id: Mine", renamed, flags=re.MULTILINE), "utf-8")
    catalogue.load(tmp_path / "mine.yaml")
    assert {spelling for spelling, device in catalogue.spellings() if device == "Mine"} >= {"Mine", "My own card"}


def test_a_device_is_read_once_and_shared() -> None:
    assert Hardware.Cloud.A100 is Hardware.Cloud.A100_80GB is Hardware["A100"] is Hardware.Cloud["A100"]


def test_unknown_devices_are_told_with_what_exists() -> None:
    for ask in (lambda: Hardware.Cloud.V10O, lambda: Hardware.Cloud["v100"]):
        with pytest.raises(UnknownNameError, match=r"A100_80GB.* Did you mean 'V100'\?"):
            ask()
    with pytest.raises(UnknownNameError, match=r"no device 'V10O'. Did you mean 'V100'\? `mlsys devices` lists all"):
        _ = Hardware["V10O"]
    with pytest.raises(UnknownNameError, match="Hardware.Tiny has no device 'A100'"):
        _ = Hardware.Tiny.A100
    with pytest.raises(AttributeError, match="Clod"):
        _ = Hardware.Clod
    assert not hasattr(Hardware.Cloud, "V10O")
    assert not hasattr(Hardware.Cloud, "_repr_html_")


def test_groups_can_be_walked_and_completed() -> None:
    assert [device.id for device in Hardware.Cloud] == sorted(device.id for device in Hardware.Cloud)
    assert {"A100", "A100_80GB", "V100"} <= set(dir(Hardware.Cloud))
    assert "A100_80GB" in repr(Hardware.Cloud)
    assert repr(Hardware).count("\n") == 4


def test_one_broken_file_does_not_close_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "cloud").mkdir()
    (tmp_path / "cloud" / "Good.yaml").write_text(
        (DATA / "cloud" / "V100.yaml").read_text().replace("id: V100", "id: Good")
    )
    (tmp_path / "cloud" / "Bad.yaml").write_text("id: Bad\n")
    mine = Catalogue(tmp_path)
    assert mine.Cloud.Good.peak("fp16") == Q_(125, "TFLOP/s")
    with pytest.raises(ValueError, match=r"Bad\.yaml:1: 'name' is a required property"):
        _ = mine.Cloud.Bad
    assert list(mine.Tiny) == []


def test_two_files_of_a_folder_with_one_id_are_refused_by_name(tmp_path: Path) -> None:
    """The second would replace the first without a word."""
    text = (DATA / "cloud" / "V100.yaml").read_text().replace("id: V100", "id: Mine")
    (tmp_path / "deeper").mkdir()
    for name in ("a.yaml", "deeper/b.yaml"):
        (tmp_path / name).write_text(text)
    with pytest.raises(DeviceFileError) as caught:
        Catalogue(DATA, users=str(tmp_path))
    assert f"{tmp_path / 'deeper' / 'b.yaml'}: the id 'Mine' is already used by {tmp_path / 'a.yaml'}" in str(
        caught.value
    )
    (tmp_path / "a.yaml").write_text(text.replace("id: Mine", "id: Other").replace("[V100_SXM2", "[Other_SXM2"))
    assert {device.id for device in Catalogue(DATA, users=str(tmp_path)).User} == {"Mine", "Other"}


# --- laws ------------------------------------------------------------------------------


@each_device
def test_every_number_has_a_birth_certificate(device: Device) -> None:
    numbers = device.recorded()
    assert len(numbers) >= 3
    for quantity in numbers:
        fact = quantity.origin
        assert isinstance(fact, Fact)
        assert fact.name.startswith(f"{device.id}/")
        assert fact.source in {source["title"] for source in device.sources.values()}
        assert re.fullmatch(r"\d{4}(-\d\d){0,2}", fact.date)
        assert quantity.magnitude > 0
        spread = fact.uncertainty
        assert spread is None or 0 <= spread < quantity.magnitude, "uncertainty is in the unit of the value"


@each_device
def test_every_source_is_used(device: Device) -> None:
    text = next(path for path in FILES if path.stem == device.id).read_text("utf-8")
    for key in device.sources:
        assert re.search(rf"source: {re.escape(key)}\b", text), f"source {key!r} is cited by no field"


def _counted_in(device: Device, fact: Fact) -> str:
    """Return the precision in which multiply-accumulates were counted: as the note says, else the headline's."""
    named = re.search(r"\b(FP64|TF32|FP32|BF16|FP16|FP8|INT8)\b", fact.meaning)
    return named.group(1).lower() if named else device.headline


# Devices whose maker printed rates that do not agree with each other, and by how much, with the reason.
PRINTED_APART = {
    "L40S": 0.0125  # the datasheet's dense FP16 is that of 2,490 MHz, its rates with sparsity those of 2,520
}


@each_device
def test_peak_is_two_operations_for_each_multiply_accumulate_and_cycle(device: Device) -> None:
    """Within 1 %: vendors round peaks to three digits and clocks to 10 MHz."""
    if {"macs_per_cycle", "clock"} <= set(device._chip):
        macs = device.chip("macs_per_cycle")
        computed = macs.to("FLOP/cycle") * device.chip("clock")
        assert_quantity_close(
            computed, device.peak(_counted_in(device, macs.origin)), rtol=PRINTED_APART.get(device.id, 0.01)
        )


@each_device
def test_a_systolic_array_has_as_many_multipliers_as_it_does_multiplications(device: Device) -> None:
    if device.systolic_array and "macs_per_cycle" in device._chip:
        rows, columns, arrays = device.systolic_array
        assert device.chip("macs_per_cycle").m_as("MAC/cycle") == rows * columns * arrays


def test_the_laws_of_peak_and_array_are_not_empty() -> None:
    with_both = [device.id for device in DEVICES if {"macs_per_cycle", "clock"} <= set(device._chip)]
    assert {"A100_80GB", "V100"} <= set(with_both)


@each_device
def test_structured_sparsity_doubles_the_dense_rate(device: Device) -> None:
    """Within 0.1 %: twice a rounded number is not the rounded double (1,978.9 against 2 x 989.4)."""
    for (precision, unit, sparsity), rate in device._peaks.items():
        if sparsity == "2:4":
            assert_quantity_close(
                rate, 2 * device.peak(precision, "dense", unit), rtol=PRINTED_APART.get(device.id, 1e-3)
            )


@each_device
def test_fewer_bits_are_never_slower_on_the_same_unit(device: Device) -> None:
    """Floating point and integers each on their own ladder; TF32 computes on 19 bits."""
    for ladder in (
        ("fp64", "fp32", "fp16", "fp8", "fp6", "fp4"),
        ("fp32", "tf32", "bf16", "fp8"),
        ("int16", "int8", "int4", "int1"),
    ):
        for unit in ("matrix", "vector"):
            rates = [device._peaks[step, unit, "dense"] for step in ladder if (step, unit, "dense") in device._peaks]
            for slower, faster in itertools.pairwise(rates):
                assert faster >= slower * 0.999


@each_device
def test_memory_shrinks_quickens_and_speeds_up_inward(device: Device) -> None:
    """From level to level one piece holds no more, a load takes less time, and all pieces together are faster.

    Register files are held to speed alone: that of a GPU holds the state of every thread in flight
    (2,048 threads of 32 words of 4 bytes are 256 KiB), and so is larger than the cache beside it.
    """
    known: dict[str, list[Quantity]] = {"capacity": [], "latency": [], "bandwidth": []}
    for level in device.memory.values():
        if "register" not in level.kind and level._capacity is not None:
            known["capacity"].append(level._capacity)
        if level._latency is not None:
            known["latency"].append(level._latency)
        if level._bandwidth is not None:
            known["bandwidth"].append(level.bandwidth_total)
    for outer, inner in itertools.pairwise(known["capacity"]):
        assert inner <= outer
    for outer, inner in itertools.pairwise(known["latency"]):
        assert inner < outer
    for outer, inner in itertools.pairwise(known["bandwidth"]):
        assert inner > outer * 0.999, "shares of one memory together have its bandwidth"


@each_device
def test_a_part_is_no_more_than_the_whole(device: Device) -> None:
    for level in device.memory.values():
        assert level.instances >= 1
        if level._capacity is None:
            assert level.name == device.main_memory and re.search("(board|host) decides", level.note)
            continue
        assert level.usable <= level.capacity
        assert_quantity_close(level.capacity_each * level.instances, level.capacity_total)


# Chips whose on-chip memory nobody publishes, as far as we could read.
NO_ONCHIP_SIZE = {
    "Inferentia1",  # AWS documents the DRAM; of the SRAM it says only that it is large
    "TPUv7x",  # Google publishes HBM alone
    "Hailo8",
    *("Apple_A12", "Apple_A13", "Apple_A14", "Apple_A15", "Apple_A16", "Apple_M3", "Apple_M3Max_30core"),
    *("Apple_M3Pro_14core", "Apple_M3Pro_18core", "Apple_M4", "Apple_M4Max_40core", "Apple_M4Pro_20core"),
    *("Apple_M2_ANE", "SnapdragonXElite"),
    "RaspberryPi5_GPU",  # Broadcom publishes nothing of its caches
    # Not looked up yet: these twins came with measurements.
    *("ATSAMD51", "ESP32", "Hailo10H", "Hailo15H", "Hailo15L", "Hailo15M", "Hailo8L", "RK1808_NPU", "RK3562_NPU"),
    *("RK3568_NPU", "RK3576_NPU", "RK3588_NPU", "RV1109_NPU", "RV1126_NPU", "AX630C", "AX650N", "SG2002_TPU"),
}


def test_every_device_has_a_level_to_tile_for() -> None:
    """A level inside the main memory; or, on microcontrollers, SRAM beside the flash that holds the weights."""
    flat = {
        device.id
        for device in DEVICES
        if not device.inner_levels and not (len(device.memory) > 1 and "SRAM" in device.level().kind)
    }
    assert flat <= NO_ONCHIP_SIZE
    assert len(NO_ONCHIP_SIZE) <= 0.12 * len(DEVICES)


def test_a_tile_is_chosen_for_one_unit() -> None:
    """164 KiB of the 192 KiB of an SM can be shared memory: NVIDIA, Ampere tuning guide, compute capability 8.0."""
    l1 = Hardware.Cloud.A100.level("L1")
    assert (l1.scope, l1.instances) == ("unit", 108)
    assert_quantity_close(l1.usable, Q_(164, "KiB"), rtol=0)
    assert_quantity_close(l1.capacity_total, Q_(108 * 192, "KiB"), rtol=0)
    vmem = Hardware.Cloud.TPUv5p.level("VMEM")  # 64 MiB for each of two cores
    assert (vmem.scope, vmem.instances) == ("device", 2)
    assert_quantity_close(vmem.capacity_each, Q_(64, "MiB"), rtol=0)
    assert_quantity_close(vmem.capacity_total, Q_(128, "MiB"), rtol=0)
    assert_quantity_close(l1.bandwidth_total, 108 * l1.bandwidth)


@each_device
def test_on_chip_memory_fits_on_the_die(device: Device) -> None:
    """A bit of SRAM takes at least 0.021 square micrometres, the densest cell in production when TSMC's 5 nm began
    (G. Yeap et al., IEDM 2019). A MiB written as a GiB does not fit."""
    if "die_area" not in device._chip:
        return
    cells = Q_(0.0, "mm**2")
    for level in device.memory.values():
        if re.search("SRAM|register", level.kind) and not level.kind.startswith("share"):
            cells += level.capacity_total.m_as("bit") * Q_(0.021e-6, "mm**2")
    assert cells < device.chip("die_area")


@each_device
def test_a_pcie_link_is_what_its_generation_gives(device: Device) -> None:
    """PCI Express base specification: 5 GT/s a lane, coded 8b/10b; then 8, 16, 32, coded 128b/130b.

    Within 0.5 %: published rounded.
    """
    for link in device.links.values():
        named = re.fullmatch(r"PCIe (\d)\.0(?: x|, )(\d+)(?: lanes)?", link.kind)
        if named:
            transfers, coding = {2: (5e9, 8 / 10), 3: (8e9, 128 / 130), 4: (16e9, 128 / 130), 5: (32e9, 128 / 130)}[
                int(named.group(1))
            ]
            bits = transfers * int(named.group(2)) * coding
            assert_quantity_close(link.per_direction, Q_(bits, "bit/s"), rtol=5e-3)


@each_device
def test_a_machine_at_rest_takes_less_than_at_work(device: Device) -> None:
    if device._tdp is not None and device._idle_power is not None:
        assert device.idle_power < device.tdp
