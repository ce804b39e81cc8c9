"""Teaching profiles can be given another on-chip memory; nothing else of them, or of a real device, can."""

import dataclasses
from pathlib import Path

import pytest

import mlsys.hardware
from mlsys.errors import ArgumentError, ArgumentUnitError, DeviceFileError
from mlsys.hardware import Hardware, load_device
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_

DATA = Path(mlsys.hardware.__file__).parent / "data"


@pytest.mark.parametrize("name", ["CPU", "GPU", "TPU", "KPU"])
def test_a_profile_with_another_memory_is_a_new_frozen_device(name: str) -> None:
    profile = getattr(Hardware.Generic, name)
    first, *inner = profile.inner_levels
    size = 2 * first.capacity
    changed = profile.with_onchip(size)
    assert changed is not profile
    assert_quantity_close(changed.level(first.name).capacity, size, rtol=0)
    assert_quantity_close(profile.level(first.name).capacity, size / 2, rtol=0)
    assert changed.generic
    assert changed.name != profile.name
    assert changed.level(first.name).capacity.origin.confidence == "assumed"
    assert changed.level(first.name).usable == size
    assert [level.name for level in changed.inner_levels] == [first.name, *(level.name for level in inner)]
    assert changed.peak_flops == profile.peak_flops
    with pytest.raises(dataclasses.FrozenInstanceError):
        changed.profile = ""  # type: ignore[misc]
    again = changed.with_onchip(first.capacity)
    assert_quantity_close(again.level(first.name).capacity, first.capacity)
    assert again.name.count(",") == 1, "the name tells the last size alone"


@pytest.mark.parametrize(
    ("size", "error", "result"),
    [
        (2 * 2**20, ArgumentUnitError, "with_onchip(): `capacity` must be a quantity in byte, got the bare number"),
        ("2 MiB", ArgumentUnitError, "got '2 MiB'"),
        (Q_(2, "MB/s"), ArgumentUnitError, "must be a quantity in byte, got 2 MB/s"),
        (Q_(0, "MiB"), ArgumentError, "must be a finite number > 0 in byte"),
        (Q_(-1, "MiB"), ArgumentError, "must be a finite number > 0 in byte"),
        (Q_(float("nan"), "MiB"), ArgumentError, "must be a finite number > 0 in byte"),
        (Q_([1, 2], "MiB"), ArgumentError, "must be a single value"),
        (Q_(100_000.5, "byte"), ArgumentError, "must be a whole number of bytes"),
        (Q_(8, "GiB"), ArgumentError, "less than the 8,589,934,592 byte of DRAM, got 8 GiB"),
        (Q_(64, "KiB"), ArgumentError, "more than the 65,536 byte of the next level"),
    ],
)
def test_a_size_that_cannot_be_is_refused(size: object, error: type[Exception], result: str) -> None:
    with pytest.raises(error) as caught:
        Hardware.Generic.KPU.with_onchip(size)  # type: ignore[arg-type]
    assert result in str(caught.value)


def test_the_sizes_of_a_real_device_are_facts() -> None:
    with pytest.raises(ArgumentError, match=r"NVIDIA A100 .* is a real device, whose capacities are facts. Start from"):
        Hardware.Cloud.A100.with_onchip(Q_(2, "MiB"))


def test_assumed_values_and_teaching_profiles_belong_together(tmp_path: Path) -> None:
    """A real device cannot assume, and a profile cannot quote; both are told for each field."""
    path = tmp_path / "GenericKPU.yaml"
    text = (DATA / "generic" / "GenericKPU.yaml").read_text("utf-8")
    path.write_text(text.replace("profile: teaching\n", ""))
    with pytest.raises(DeviceFileError) as caught:
        load_device(path)
    assert str(caught.value).count("only power, price and links of a real device") == text.count("source: profile")
    path.write_text(text.replace("confidence: assumed", "confidence: verified"))
    with pytest.raises(DeviceFileError) as caught:
        load_device(path)
    assert str(caught.value).count("add `confidence: assumed`") == text.count("source: profile")


def test_what_nobody_publishes_is_listed() -> None:
    assert "VMEM bandwidth" in Hardware.Cloud.TPUv5p.unknown()
    assert "HBM bandwidth" not in Hardware.Cloud.A100.unknown()
    for device in Hardware:
        assert f"{device.main_memory} bandwidth" not in device.unknown()
