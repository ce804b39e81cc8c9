"""Systems: every file passes its check, bandwidths come from the device files, and bad files are refused by line."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import mlsys
from mlsys.cli import main
from mlsys.errors import ArgumentError, DeviceFileError, UnknownNameError
from mlsys.hardware import Hardware, load_system, systems
from mlsys.hardware.catalogue import Catalogue
from mlsys.hardware.system import SystemCatalogue, as_system, system_view
from mlsys.hardware.whatifs import refuse_unknown_facts
from mlsys.provenance import perturbed, recording

FILES = sorted((Path(mlsys.hardware.__file__).parent / "data" / "systems").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_passes_the_check_and_is_named_after_its_system(path: Path) -> None:
    system = load_system(path)
    assert system.id == path.stem
    assert len(path.read_text("utf-8").splitlines()) <= 40
    assert all(value.facts[0].name.startswith(f"{system.id}/") for value in system.recorded())
    assert all(not value.facts[0].source.isspace() for value in system.recorded())


def test_names_are_unique_and_none_is_a_device() -> None:
    names = [name for each in systems for name in (each.id, *each.aliases)]
    assert len(names) == len(set(names))
    assert not {name.lower() for name in names} & {name.lower() for name, _ in Hardware.spellings()}


def test_a_fact_of_a_device_has_one_home() -> None:
    """NVLink's rate is that of the device file: a what-if there moves every system of that device."""
    dgx = system_view(systems["DGX_H100"])
    with recording() as seen, perturbed("H100_SXM/links/NVLink/per_direction", 2):
        assert dgx.scale_up.bandwidth == 900e9
    assert list(seen) == ["H100_SXM/links/NVLink/per_direction"]


def test_the_taper_of_dgx_h100_is_that_of_the_published_rates() -> None:
    """HBM3 3,350, NVLink 4 450 (900 both ways), PCIe 5 63 and InfiniBand NDR 50 GB/s: each one direction."""
    view = system_view(systems["DGX_H100"])
    assert view.scale_out is not None
    rates = [view.device.main.bandwidth, view.scale_up.bandwidth, view.host.bandwidth, view.scale_out.bandwidth]
    assert rates == [3350e9, 450e9, 63e9, 50e9]
    assert systems["DGX_H100"].scale_up.both_directions.m_as("GB/s") == 900


def test_a_torus_multiplies_out_and_a_mesh_has_a_link_to_each_peer() -> None:
    for each in systems:
        if each.scale_up.topology == "torus":
            assert each.scale_up.ports == 2 * len(each.scale_up.dimensions)
        if each.scale_up.topology == "full mesh":
            assert each.scale_up.ports == each.chips_per_node - 1
    for name, per_port in (("MI300X_platform", 64), ("TPUv5p_pod", 100)):
        link = systems[name].scale_up
        assert link.bandwidth.m_as("GB/s") / link.ports == pytest.approx(per_port)


def test_chips_and_nodes() -> None:
    dgx = systems["DGX_H100"]
    assert [dgx.with_chips(n).nodes for n in (1, 8, 16)] == [1, 1, 2]
    assert dgx.with_chips(2048 * 8).chips == 16384
    with pytest.raises(ArgumentError, match=r"multiple of 8 chips, got 12\. Write e\.g\. chips=16"):
        dgx.with_chips(12)
    with pytest.raises(ArgumentError, match="at most 16,384 chips, got 20000"):
        dgx.with_chips(20000)
    with pytest.raises(ArgumentError, match="joins at most 2048 nodes, got nodes=2049"):
        dgx.with_nodes(2049)


def test_one_device_is_a_system_of_one_chip() -> None:
    alone = as_system("A100")
    assert (alone.chips, alone.scale_up.bandwidth.m_as("GB/s"), alone.host.bandwidth.m_as("GB/s")) == (1, 300, 31.5)
    with pytest.raises(UnknownNameError, match="T4: no bandwidth of scale_up is recorded"):
        as_system("T4").scale_up.bandwidth  # noqa: B018
    with pytest.raises(UnknownNameError, match="no system or device 'DGX_H10O'. Did you mean 'DGX_H100'"):
        as_system("DGX_H10O")


GOOD = (Path(mlsys.hardware.__file__).parent / "data/systems/DGX_H100.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("device: H100_SXM", "device: H100_SXN", r"device: no device 'H100_SXN'. Did you mean 'H100_SXM'"),
        ("device_link: NVLink", "device_link: NVLnk", r"has no link 'NVLnk'. It has: NVLink, PCIe"),
        ("topology: switch", "topology: star", "scale_up.topology: 'star' is not one of"),
        ("value: 50 GB/s", "value: 50 Gb", "scale_out.bandwidth.value"),
        ('taper: {value: "1"', 'taper: {value: "0.5"', "must be 1 or more"),
        ("source: basepod}", "source: basepot}", "'basepot' is not among this file's sources"),
        ("device_link: NVLink, topology: switch", "topology: switch", "give either `device_link`"),
        ("device_link: NVLink, topology: switch", "device_link: NVLink, topology: torus", "`dimensions` goes with"),
        (
            "device_link: NVLink, topology: switch",
            "device_link: NVLink, topology: torus, dimensions: [2, 2]",
            "product of `dimensions` is 4, but `chips_per_node` is 8",
        ),
        ("hosts_per_node", "host_per_node", "unknown key 'host_per_node'. Did you mean 'hosts_per_node'"),
    ],
)
def test_faults_are_listed_with_their_line(before: str, after: str, fault: str, tmp_path: Path) -> None:
    assert before in GOOD
    path = tmp_path / "Mine.yaml"
    path.write_text(GOOD.replace(before, after, 1), "utf-8")
    with pytest.raises(DeviceFileError, match=fault) as error:
        load_system(path)
    assert str(error.value).startswith(f"{path}:")


def test_systems_of_a_user_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "Mine.yaml"
    path.write_text(GOOD.replace("id: DGX_H100", "id: Mine").replace("[HGX_H100]", "[]"), "utf-8")
    mine = mlsys.system(path, nodes=2)
    assert mine.id == "Mine" and mine.chips == 16
    assert "from Mine.yaml" in mine.scale_out._taper.facts[0].source  # type: ignore[union-attr]


@pytest.mark.parametrize(("alias", "owner"), [("DGX_A100", "DGX_A100"), ("H100", "H100_SXM")])
def test_a_first_load_refuses_names_of_other_systems_and_devices(alias: str, owner: str, tmp_path: Path) -> None:
    path = tmp_path / "Mine.yaml"
    path.write_text(GOOD.replace("id: DGX_H100", "id: Mine").replace("[HGX_H100]", f"[{alias}]"), "utf-8")
    catalogue = SystemCatalogue(FILES[0].parent)
    with pytest.raises(DeviceFileError, match=f"'{alias}' is already a name of {owner}"):
        catalogue.load(path)
    assert "Mine" not in catalogue


def test_check_takes_system_files_and_a_folder_of_a_user_may_hold_both(tmp_path: Path) -> None:
    path = tmp_path / "Mine.yaml"
    path.write_text(GOOD.replace("id: DGX_H100", "id: Mine").replace("[HGX_H100]", "[Mine_too]"), "utf-8")
    done = CliRunner().invoke(main, ["check", str(path)])
    assert done.exit_code == 0 and "8 x H100_SXM" in done.output
    path.write_text(path.read_text("utf-8").replace("topology: switch", "topology: star", 1), "utf-8")
    refused = CliRunner().invoke(main, ["check", str(path)])
    assert refused.exit_code == 1 and "'star' is not one of" in refused.output
    path.write_text(path.read_text("utf-8").replace("topology: star", "topology: switch", 1), "utf-8")
    data = Path(mlsys.hardware.__file__).parent / "data"
    assert not list(Catalogue(data, users=str(tmp_path)).User), "a system is no device"
    assert SystemCatalogue(data / "systems", users=str(tmp_path))["Mine_too"].id == "Mine"


def test_facts_of_systems_may_be_changed_from_outside() -> None:
    refuse_unknown_facts(["DGX_H100/scale_out/bandwidth", "TPUv5e_pod/scale_out/latency"])
    with pytest.raises(UnknownNameError, match="Did you mean 'DGX_H100/scale_out/bandwidth'"):
        refuse_unknown_facts(["DGX_H100/scale_out/bandwith"])
