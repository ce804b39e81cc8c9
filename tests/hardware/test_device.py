"""A twin returns what is requested, refuses what it lacks, and cannot be changed."""

import copy
import dataclasses
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mlsys.errors import UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware, load_device
from mlsys.provenance import perturbed
from mlsys.testing import assert_depends_on, assert_quantity_close, assert_same_dimension
from mlsys.units import Q_, Quantity

SPARSE_TOY = """\
id: Sparse
name: Sparse toy
kind: NPU
vendor: Nobody
release_year: 2024
sources: {sheet: {title: Toy data sheet, date: "2024", confidence: verified}}
headline: fp16
peaks:
  fp16:
    vector: {dense: {value: 1 TFLOP/s, source: sheet}}
    matrix: {"2:4": {value: 20 TFLOP/s, source: sheet}, dense: {value: 10 TFLOP/s, source: sheet}}
  fp32: {vector: {dense: {value: 2 TFLOP/s, source: sheet}}}
memory: {DRAM: {capacity: {value: 1 GB, source: sheet}, bandwidth: {value: 100 GB/s, source: sheet}}}
"""


@pytest.fixture
def toy(tmp_path: Any) -> Device:
    path = tmp_path / "Sparse.yaml"
    path.write_text(SPARSE_TOY)
    return load_device(path)


@pytest.fixture
def a100() -> Device:
    return Hardware.Cloud.A100


# --- one peak for each precision, unit and sparsity ----------------------------------


def test_peaks_are_told_apart(toy: Device) -> None:
    wanted = {
        ("fp16", None, None): 10,
        ("fp16", "dense", "matrix"): 10,
        ("fp16", "2:4", None): 20,
        ("fp16", "2:4", "matrix"): 20,
        ("fp16", None, "vector"): 1,
        ("fp32", None, None): 2,
        ("FP32", None, "vector"): 2,
        (None, None, None): 10,
    }
    for arguments, rate in wanted.items():
        assert_quantity_close(toy.peak(*arguments), Q_(rate, "TFLOP/s"))
    assert toy.precisions == ("fp16", "fp32")
    assert_quantity_close(toy.peak_flops, Q_(10, "TFLOP/s"))
    assert_quantity_close(toy.peak_flops_fp32, Q_(2, "TFLOP/s"))


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("fp8",), "Sparse toy has no fp8 peak. It has: fp16, fp32"),
        (("fp61",), "unknown precision 'fp61'"),
        (("fp32", "2:4"), "Sparse toy has no 2:4 peak for fp32. It has: vector dense"),
        (("fp32", None, "matrix"), "Sparse toy has no matrix dense peak for fp32. It has: vector dense"),
        (("fp16", "4:8"), "has no 4:8 peak for fp16. It has: vector dense, matrix 2:4, matrix dense"),
        (("fp16", None, "tensor"), "has no tensor dense peak for fp16. It has: vector dense"),
    ],
)
def test_a_missing_peak_is_an_error_that_lists_what_exists(toy: Device, arguments: tuple, result: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        toy.peak(*arguments)
    assert result in str(caught.value)


@pytest.mark.parametrize("name", ["tf32_flops", "fp8_flops", "int8_flops", "tdp", "idle_power", "price"])
def test_the_flat_view_falls_back_on_nothing(toy: Device, name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"Sparse toy"):
        getattr(toy, name)


def test_the_flat_view_is_the_twin(a100: Device) -> None:
    for flat, twin in [
        (a100.peak_flops, a100.peak("fp16", "dense", "matrix")),
        (a100.peak_flops_fp32, a100.peak("fp32", "dense", "vector")),
        (a100.tf32_flops, a100.peak("tf32", "dense", "matrix")),
        (a100.int8_flops, a100.peak("int8", "dense", "matrix")),
        (a100.memory_bw, a100.memory["HBM"].bandwidth),
        (a100.memory_capacity, a100.level("HBM").capacity),
    ]:
        assert_quantity_close(flat, twin, rtol=0)
        assert flat.facts == twin.facts


# --- memory and links ------------------------------------------------------------------


def test_levels_links_and_chip_facts_are_found_by_name(a100: Device) -> None:
    assert next(iter(a100.memory)) == a100.main_memory == "HBM"
    for ask, result in [
        (lambda: a100.level("HMB"), "has no memory level 'HMB'. It has: HBM, L2, L1, Registers. Did you mean 'HBM'?"),
        (lambda: a100.link("NVLnk"), "Did you mean 'NVLink'?"),
        (lambda: a100.chip("clok"), "Did you mean 'clock'?"),
        (lambda: Hardware.Cloud.B200.level("L2").bandwidth, "no bandwidth is recorded. Add it, with its source"),
    ]:
        with pytest.raises(UnknownNameError) as caught:
            ask()
        assert result in str(caught.value)


def test_links_are_per_direction(a100: Device) -> None:
    nvlink = a100.link("NVLink")
    assert_quantity_close(nvlink.per_direction, Q_(300, "GB/s"))
    assert_quantity_close(nvlink.both_directions, Q_(600, "GB/s"))
    assert_depends_on(nvlink.both_directions, "A100_80GB/links/NVLink/per_direction")


def test_a_ridge_is_of_one_precision_and_one_level(a100: Device) -> None:
    assert_quantity_close(a100.ridge_point(), Q_(312e12 / 2039e9, "FLOP/byte"))
    assert_quantity_close(a100.ridge_point("int8"), 2 * a100.ridge_point("fp16"))
    assert_quantity_close(a100.ridge_point("fp16", "2:4"), 2 * a100.ridge_point("fp16"))
    assert_quantity_close(a100.ridge_point("fp16", level="L2"), Q_(312e12 / 7219e9, "FLOP/byte"))
    assert_depends_on(a100.ridge_point(), "A100_80GB/peaks/fp16/matrix/dense", "A100_80GB/memory/HBM/bandwidth")


def test_the_short_text_is_the_dense_headline(toy: Device, a100: Device) -> None:
    assert repr(a100) == "<GPU NVIDIA A100 80 GB SXM4 (2020): fp16 312 TFLOP/s, HBM 2039 GB/s>"
    assert repr(toy) == "<NPU Sparse toy (2024): fp16 10 TFLOP/s, DRAM 100 GB/s>"


# --- frozen, all the way down -----------------------------------------------------------


def _inside(value: Any, path: str = "device") -> Iterator[tuple[str, Any]]:
    """Yield every dataclass, mapping and tuple that a device is made of."""
    if dataclasses.is_dataclass(value):
        yield path, value
        for field in dataclasses.fields(value):
            yield from _inside(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, (FrozenDict, tuple)):
        yield path, value
        pairs = value.items() if isinstance(value, FrozenDict) else enumerate(value)
        for key, item in pairs:
            yield from _inside(item, f"{path}[{key!r}]")
    else:
        assert isinstance(value, (str, int, float, Quantity, type(None))), (
            f"{path} is a {type(value)}: can it be changed?"
        )


def _snapshot(device: Device) -> dict[str, str]:
    read = {
        name: str(getattr(device, name)) for name in ("id", "name", "headline", "main_memory", "aliases", "sources")
    }
    read |= {f"peak {key}": str(value) for key, value in device._peaks.items()}
    read |= {f"{level.name} capacity": str(level.capacity) for level in device.memory.values()}
    read |= {f"{link.name}": str(link.per_direction) for link in device.links.values()}
    return read | {"bandwidth": str(device.memory_bw), "tdp": str(device.tdp), "repr": repr(device)}


def test_no_part_of_a_device_can_be_set_deleted_or_filled(a100: Device) -> None:
    before = _snapshot(a100)
    tried = 0
    for path, part in _inside(a100):
        names = [field.name for field in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
        attempts: list[Callable[[], object]] = [lambda part=part: setattr(part, "anything", 1)]
        for name in names:
            attempts += [
                lambda part=part, name=name: setattr(part, name, 1),
                lambda part=part, name=name: delattr(part, name),
            ]
        if not names and len(part):
            key = next(iter(part)) if isinstance(part, FrozenDict) else 0
            attempts += [
                lambda part=part, key=key: operator.setitem(part, key, 1),
                lambda part=part, key=key: operator.delitem(part, key),
            ]
        for attempt in attempts:
            with pytest.raises((AttributeError, TypeError)):
                attempt()
                pytest.fail(f"{path} was changed")
            tried += 1
    assert tried > 100
    assert _snapshot(a100) == before


PUBLIC: dict[str, Callable[[Device], Quantity]] = {
    "peak": lambda d: d.peak("fp16"),
    "headline": lambda d: d.peak_flops,
    "memory_bw": lambda d: d.memory_bw,
    "memory_capacity": lambda d: d.memory_capacity,
    "level capacity": lambda d: d.level("L2").capacity,
    "level latency": lambda d: d.memory["HBM"].latency,
    "link": lambda d: d.link("NVLink").per_direction,
    "both directions": lambda d: d.link("NVLink").both_directions,
    "tdp": lambda d: d.tdp,
    "chip": lambda d: d.chip("clock"),
    "ridge": lambda d: d.ridge_point(),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_handed_out_is_the_readers_own(name: str, a100: Device) -> None:
    ask = PUBLIC[name]
    before = _snapshot(a100), str(ask(a100)), repr(ask(a100).origin)
    mine = ask(a100)
    mine.ito_base_units()
    mine._magnitude = 1
    mine._origin = None
    mine = ask(a100)
    mine *= 2
    mine += mine
    with pytest.raises(dataclasses.FrozenInstanceError):
        a100.tdp = mine  # type: ignore[misc]
    assert (_snapshot(a100), str(ask(a100)), repr(ask(a100).origin)) == before
    with perturbed(ask(a100).facts[0].name, 1.0):  # the what-if path hands out copies as well
        ask(a100).ito_base_units()
    assert (_snapshot(a100), str(ask(a100)), repr(ask(a100).origin)) == before


def test_copies_are_equal_and_usable_as_keys(a100: Device) -> None:
    for twin in (copy.copy(a100), copy.deepcopy(a100), pickle.loads(pickle.dumps(a100))):
        assert twin == a100
        assert hash(twin) == hash(a100)
        assert twin.memory_bw.facts == a100.memory_bw.facts
    assert len({a100, Hardware.Cloud.A100, Hardware.Cloud.V100}) == 2
    assert_same_dimension(a100.chip("die_area"), "mm**2")


def test_devices_that_are_equal_have_one_hash_and_one_that_differs_in_a_value_is_another() -> None:
    device = Hardware.Cloud.A100
    again = dataclasses.replace(device)
    assert again == device and hash(again) == hash(device) and len({again, device}) == 1
    other = dataclasses.replace(device, note="another")
    assert other != device and len({other, device}) == 2
