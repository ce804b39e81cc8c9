"""Twins of one product, and devices on one die, agree in what belongs to the product and to the die."""

import re
from collections import defaultdict
from collections.abc import Iterable

import pytest

from mlsys.hardware import Device, Hardware
from mlsys.hardware.technology import generation_of, node_of, technology_of
from mlsys.hardware.view import view
from sampled import over_all

# Systems on chips and modules, whose CPU, GPU and NPU have files of their own.
SYSTEMS = [*Hardware.Edge, *Hardware.Mobile, *Hardware.CPU]
# What a file's name adds to say which engine or which variant of a chip it describes.
_ENGINE = re.compile(r"_(CPU|GPU|NPU|ANE|TPU|DSP|\d+core|\d+GB)$")
_DIE = re.compile(r"\((?:\d x )?([A-Z][A-Za-z]* ?\d[\w-]*)\)")
_AS_DRAWN = "as the cores draw from it"


def grouped(named: Iterable[tuple[str, Device]]) -> dict[str, list[Device]]:
    """Return the names that several devices have."""
    groups: dict[str, list[Device]] = defaultdict(list)
    for name, device in named:
        groups[name].append(device)
    return {name: devices for name, devices in groups.items() if name and len(devices) > 1}


STEMS = grouped((_ENGINE.sub("", device.id), device) for device in SYSTEMS)
PRODUCTS = grouped((device.product, device) for device in Hardware)
DIES = grouped((match[1], device) for device in Hardware if (match := _DIE.search(device.architecture)))


def made(device: Device) -> tuple[str | None, float | None]:
    """Return the foundry, where it is named, and the node of a device."""
    foundry = re.match(r"TSMC|Samsung|GlobalFoundries|Intel", device.process_node)
    return foundry and foundry[0], node_of(device.process_node)


def test_there_are_twins_to_compare() -> None:
    assert len(STEMS) > 25 and len(PRODUCTS) > 25 and len(DIES) > 15


@over_all(STEMS)
def test_twins_say_which_product_they_belong_to(stem: str) -> None:
    unnamed = [device.id for device in STEMS[stem] if not device.product]
    assert not unnamed, f"{unnamed} need `product`: their twins are {[device.id for device in STEMS[stem]]}"


@over_all(PRODUCTS)
def test_twins_of_a_product_are_of_one_year(product: str) -> None:
    assert len({device.release_year for device in PRODUCTS[product]}) == 1


@over_all(PRODUCTS)
def test_twins_of_a_product_have_one_memory(product: str) -> None:
    """One size, or none where the board decides; one kind of DRAM; one bandwidth, to how makers round it."""
    memories = [view(device).main for device in PRODUCTS[product]]
    assert len({memory.capacity for memory in memories}) == 1
    kinds = {(technology_of(memory.level.kind), generation_of(memory.level.kind)) for memory in memories}
    assert len(kinds) == 1, kinds
    rates = [memory.require("bandwidth") for memory in memories if _AS_DRAWN not in memory.level.kind]
    assert max(rates) <= 1.03 * min(rates), "Apple prints 100 GB/s for 102.4"


@over_all(STEMS)
def test_twins_of_a_chip_have_one_process(stem: str) -> None:
    assert len({made(device) for device in STEMS[stem]}) == 1, [device.process_node for device in STEMS[stem]]


@over_all(DIES)
def test_devices_on_one_die_have_one_process(die: str) -> None:
    assert len({made(device) for device in DIES[die]}) == 1, {device.id: device.process_node for device in DIES[die]}


# Nodes by the name that NVIDIA gives the process of each family, found in `architecture` by pattern: databases print
# the family of TSMC that a process belongs to instead.
FAMILIES = {
    "Ada Lovelace": 4,  # whitepaper of the architecture: TSMC 4N
    "Hopper": 4,  # whitepaper: TSMC 4N
    "Blackwell": 4,  # 4NP in the data centre, 4N in GeForce RTX 50
    "Volta": 12,  # 12 nm FFN
    "Turing": 12,  # 12 nm FFN
    "Maxwell": 28,
    "Kepler": 28,
    r"Pascal \(GP10[024]\)": 16,
    r"Ampere \(GA100\)": 7,
    r"Ampere \(GA10[2-7]\)": 8,  # Samsung 8N
}
OTHERWISE = {
    "GB10": 3,  # slides of Hot Chips 2025: TSMC 3 nm, both dies
    "JetsonNano": 20,  # a Tegra X1, whose GPU is of the Maxwell family
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_process_is_the_one_that_the_maker_names(family: str) -> None:
    members = [device for device in Hardware if device.vendor == "NVIDIA" and re.match(family, device.architecture)]
    assert members
    nodes = {device.id: node_of(device.process_node) for device in members if device.process_node}
    assert nodes == {name: OTHERWISE.get(name, FAMILIES[family]) for name in nodes}


@over_all([device for group in Hardware.groups for device in group])
def test_a_size_that_the_board_decides_is_not_recalled(device: Device) -> None:
    """A size of DRAM on the board is the most that a chip supports, or that of a board that is named."""
    capacity = device.level()._capacity
    if capacity is None:
        return
    (fact,) = capacity.facts
    assert not re.search(r"boards differ|phones differ|(board|host|phone) decides|usual in", fact.meaning)
    sold_with_memory = device.kind in ("GPU", "TPU", "MCU") or device.id in MODULES
    if "recalled" in fact.source and not sold_with_memory:
        assert re.search(r"the most|at most|of the ", fact.meaning), (
            f"{capacity} of which board? Say so, or leave it out"
        )


MODULES = {"Ascend910"}  # chips whose package holds the memory
