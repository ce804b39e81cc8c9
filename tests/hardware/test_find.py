"""Devices are found by what they can do, and readers bring their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mlsys.hardware
from mlsys import Q_, provenance
from mlsys.errors import ArgumentError, ArgumentUnitError, DeviceFileError, UnknownNameError
from mlsys.hardware import Hardware
from mlsys.hardware.catalogue import Catalogue
from mlsys.hardware.compare import comparison, confidence, listing, records

DATA = Path(mlsys.hardware.__file__).parent / "data"
T4 = (DATA / "cloud" / "T4.yaml").read_text("utf-8")


def ids(**criteria) -> list[str]:
    return [device.id for device in Hardware.find(**criteria)]


def test_no_criterion_finds_everything() -> None:
    assert ids() == [device.id for device in Hardware]


def test_each_criterion_splits_the_catalogue_in_two() -> None:
    everything = set(ids())
    for criterion, fits in (
        ({"kind": "GPU"}, lambda d: d.kind == "GPU"),
        ({"vendor": "google"}, lambda d: d.vendor == "Google"),
        ({"precision": "fp8"}, lambda d: any(key[0] == "fp8" for key in d._peaks)),
        ({"since": 2020}, lambda d: d.release_year >= 2020),
        ({"until": 2019}, lambda d: d.release_year < 2020),
        ({"min_bandwidth": Q_(2, "TB/s")}, lambda d: d.memory_bw.m_as("GB/s") >= 2000),
    ):
        chosen = set(ids(**criterion))
        assert chosen and chosen < everything
        for device in Hardware:
            with_bandwidth = device.memory[device.main_memory]._bandwidth is not None
            assert (device.id in chosen) == (
                fits(device) if with_bandwidth or "min_bandwidth" not in criterion else False
            )


def test_a_peak_is_looked_for_in_the_precision_that_is_named() -> None:
    # Dense INT8 of the T4 is 130 TOP/s, its FP16 65 TFLOP/s (NVIDIA T4 datasheet).
    assert "T4" in ids(precision="int8", min_peak=Q_(130, "TOP/s"))
    assert "T4" not in ids(precision="fp16", min_peak=Q_(66, "TFLOP/s"))
    # 2:4 rates do not count: the A100 has 624 dense and 1,248 sparse.
    assert "A100_80GB" not in ids(precision="int8", min_peak=Q_(1000, "TOP/s"))


@pytest.mark.parametrize(
    ("criteria", "error", "words"),
    [
        ({"kind": "GPUs"}, UnknownNameError, "Did you mean 'GPU'"),
        ({"vendor": "Nvida"}, UnknownNameError, "Did you mean 'NVIDIA'"),
        ({"precision": "fp61"}, UnknownNameError, "unknown precision 'fp61'"),
        ({"min_peak": 100}, ArgumentUnitError, "`min_peak` must be a quantity in FLOP/s"),
        ({"min_bandwidth": Q_(1, "TFLOP/s")}, ArgumentUnitError, "`min_bandwidth` must be a quantity in byte/s"),
        ({"min_peak": Q_(-1, "FLOP/s")}, ArgumentError, "`min_peak` must be a finite number > 0"),
        ({"since": 2021, "until": 2020}, ArgumentError, "`since` must not be after `until`"),
    ],
)
def test_unsound_criteria_are_refused(criteria, error, words) -> None:
    with pytest.raises(error, match=words):
        Hardware.find(**criteria)


def test_listing_and_comparing_note_no_use() -> None:
    with provenance.recording() as seen:
        listing(Hardware.find(kind="GPU"))
        comparison([Hardware.Cloud.A100, Hardware.Cloud.H100])
        records(list(Hardware))
    assert not seen


def test_records_are_the_twins_numbers() -> None:
    for row in records(list(Hardware)):
        twin = Hardware[str(row["id"])]
        assert row[f"{twin.headline}, TFLOP/s"] == pytest.approx(twin.peak_flops.m_as("TFLOP/s"), rel=1e-8)
        if row["ridge, FLOP/byte"] is not None:
            assert row["ridge, FLOP/byte"] == pytest.approx(twin.ridge_point().m_as("FLOP/byte"), rel=1e-8)


def test_every_recorded_value_is_counted_once_by_its_grade() -> None:
    table = confidence(Hardware)
    assert table.rows[-1][-1] == sum(len(device.recorded()) for device in Hardware)
    for column in range(1, len(table.columns)):
        assert table.rows[-1][column] == sum(row[column] for row in table.rows[:-1])
    assert all(row[-1] == sum(row[1:-1]) for row in table.rows)


# --- the reader's own devices -----------------------------------------------------------


def test_a_new_device_joins_and_its_claims_say_whose_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(T4.replace("id: T4", "id: MyCard").replace("320 GB/s", "400 GB/s"), "utf-8")
    catalogue = Catalogue(DATA)
    device = catalogue.load(mine)
    assert catalogue.User.MyCard is device is catalogue["MyCard"]
    assert device in list(catalogue)
    assert device.memory_bw.m_as("GB/s") == 400
    assert "[from mine.yaml, a catalogue of the reader]" in device.ridge_point("fp16").source
    assert "MyCard" not in dir(Hardware.Cloud) and "reader" not in Hardware.Cloud.T4.memory_bw.source


def test_the_same_id_replaces_a_device_in_its_group(tmp_path: Path) -> None:
    mine = tmp_path / "faster.yaml"
    mine.write_text(T4.replace("320 GB/s", "400 GB/s"), "utf-8")
    catalogue = Catalogue(DATA)
    before = len(list(catalogue))
    catalogue.load(mine)
    assert catalogue.Cloud.T4.memory_bw.m_as("GB/s") == 400
    assert len(list(catalogue)) == before


def test_a_faulty_or_clashing_file_leaves_the_catalogue_as_it_was(tmp_path: Path) -> None:
    catalogue = Catalogue(DATA)
    before = list(catalogue)
    clash, faulty = tmp_path / "clash.yaml", tmp_path / "faulty.yaml"
    clash.write_text(T4.replace("id: T4", "id: MyCard\naliases: [A100]"), "utf-8")
    faulty.write_text(T4.replace("70 W", "-70 W"), "utf-8")
    with pytest.raises(DeviceFileError, match=r"'A100' is already a name of A100_80GB.*to replace that device"):
        catalogue.load(clash)
    with pytest.raises(DeviceFileError, match=r"faulty\.yaml:\d+: power\.tdp"):
        catalogue.load(faulty)
    assert list(catalogue) == before


def test_the_environment_names_a_folder(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "mine.yaml").write_text(T4.replace("id: T4", "id: MyCard"), "utf-8")
    code = "from mlsys import Hardware; print(Hardware['MyCard'].id, len(list(Hardware.User)))"

    def ask(folder: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "MLSYS_DEVICES": str(folder)}
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )

    assert ask(tmp_path).stdout.split() == ["MyCard", "1"]
    absent = ask(tmp_path / "absent")
    assert absent.returncode == 1 and "which is not a folder" in absent.stderr
