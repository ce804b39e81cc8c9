"""The numeric view of a twin: what it reads, when, and that it makes nothing up."""

import re

import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, DeviceFileError, UnknownNameError
from mlsys.hardware import Technology, load_device, view
from mlsys.hardware.technology import node_of, technology_of
from mlsys.provenance import perturbed, recording

EVERY = [*Hardware, *Hardware.Generic]
# Words in a name that say what the memory is made of, whoever reads them.
WORDS = {"HBM": "HBM", "GDDR": "GDDR", "LPDDR": "LPDDR", "flash": "FLASH", "regist": "REGISTER", "SRAM": "SRAM"}


def test_every_level_of_the_catalogue_has_a_technology_that_its_words_say():
    for device in EVERY:
        for level in device.memory.values():
            technology = technology_of(level.kind)
            names = [name for word, name in WORDS.items() if word in level.kind]
            if names:
                assert technology is Technology[names[0]], (device.id, level.kind)
            else:
                assert technology.dynamic, (device.id, level.kind)


def test_every_process_of_the_catalogue_is_read_or_there_is_none():
    for device in EVERY:
        node = view(device).node
        assert (node is None) == (device.process_node == ""), (device.id, device.process_node)
        if node is not None:
            assert str(int(node)) in re.findall(r"\d+", device.process_node)
            assert 2 <= node <= 65


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("TSMC 4NP", 4), ("TSMC 4N", 4), ("TSMC N5P", 5), ("TSMC N3E", 3), ("Samsung 8LPP", 8), ("5nm", 5),
        ("Intel 7", 7), ("Intel 18A", 1.8), ("TSMC 12 nm FFN", 12), ("TSMC 7 nm cores, 14 nm I/O", 7),
        ("Intel 3 cores, Intel 7 I/O", 3), ("Samsung SF4", 4), ("GlobalFoundries", None), ("", None),
    ],
)  # fmt: skip
def test_spellings_of_a_process(text, node):
    assert node_of(text) == node


@pytest.mark.parametrize("kind", ["core rope", "PHBM2", "DDRX", "my SRAM"])
def test_an_unknown_memory_is_refused(kind):
    with pytest.raises(ArgumentError, match="known kind of memory, such as HBM3e"):
        technology_of(kind)


def test_a_file_with_words_that_no_type_stands_for_is_refused_at_its_line(tmp_path):
    good = (Hardware.Cloud._folder / "A100_80GB.yaml").read_text("utf-8")
    bad = good.replace("kind: HBM2e", "kind: bubbles").replace("TSMC 7 nm N7", "very small").replace("A100", "Mine")
    path = tmp_path / "Mine_80GB.yaml"
    path.write_text(bad, "utf-8")
    with pytest.raises(DeviceFileError) as caught:
        load_device(path)
    assert "got 'bubbles'" in str(caught.value) and "'very small' is not a process node" in str(caught.value)


def test_a_view_agrees_with_the_quantities_of_every_twin():
    for device in EVERY:
        machine = view(device)
        assert machine.rate == pytest.approx(device.peak_flops.m_as("FLOP/s"), rel=1e-15)
        assert machine.main.bandwidth == pytest.approx(device.memory_bw.m_as("byte/s"), rel=1e-15)
        for level in machine.levels:
            assert level.instances == level.level.instances
            if level.has("capacity"):
                assert level.capacity_total == pytest.approx(level.level.capacity_total.m_as("byte"), rel=1e-12)
                assert level.usable_each <= level.capacity_each
        assert [level.name for level in (*machine.outer, *machine.levels)] == list(device.memory)


def test_only_what_is_requested_is_read():
    machine = view(Hardware.Cloud.A100)
    with recording() as seen:
        assert machine.has("tdp") and machine.main.has("latency") and machine.has_rate("int8", "matrix")
        assert machine.fact_of("price") is None and machine.fact_of("tdp").name == "A100_80GB/power/tdp"
        assert [level.technology for level in machine.levels][:2] == [Technology.HBM, Technology.SRAM]
    assert not seen
    with recording() as seen:
        machine.level("L1").capacity_total, machine.node, machine.link("PCIe").bandwidth
    assert set(seen) == {
        "A100_80GB/memory/L1/capacity",
        "A100_80GB/chip/units",
        "A100_80GB/chip/node",
        "A100_80GB/links/PCIe/per_direction",
    }


def test_every_field_follows_its_own_fact_and_no_other():
    machine = view(Hardware.Cloud.A100)
    parts = [machine, *machine.levels, *machine.links]
    facts = {part.fact_of(field).name for part in parts for field in part.UNITS if part.has(field)}
    before = {(id(part), field): part._get(field) for part in parts for field in part.UNITS}
    for name in facts:
        with perturbed(name, 2):
            for part in parts:
                for field in part.UNITS:
                    own = part.fact_of(field)
                    factor = 2 if own is not None and own.name == name else 1
                    was = before[id(part), field]
                    assert part._get(field) == (None if was is None else pytest.approx(factor * was, rel=1e-15))


def test_what_is_unknown_is_none_and_says_so_when_it_is_needed():
    machine = view(Hardware.Generic.KPU, "fp64")
    assert machine.rate is None and not machine.has("rate") and machine.node is None
    with pytest.raises(UnknownNameError, match="no rate is recorded"):
        machine.require("rate")
    with pytest.raises(UnknownNameError, match="has no field 'colour'"):
        machine.quantity("colour")
    with pytest.raises(UnknownNameError, match="`unit` must be one of matrix, vector"):
        view(Hardware.Cloud.A100, unit="tensor")
