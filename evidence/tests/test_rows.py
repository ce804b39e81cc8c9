"""Measurements are read whole or refused with every fault; what ships names its source and licence."""

import random
from pathlib import Path

import pytest

from mlsys.calibration.rows import read_rows
from mlsys_evidence.questions.language import language_model_of
from mlsys_evidence.rows import cited_rows, shipped_rows, sources, typed

HEADS = "id,device,device_class,n_devices,workload,model,precision,batch,seq_or_shape,metric,value,unit,software"
GOOD = 'r1,NVIDIA T4,datacenter GPU,1,GEMM,,fp16,1,"M=8,N=8,K=8",time,0.01,ms,cuBLAS'
REDISTRIBUTABLE = ("Apache-2.0", "BSD-3-Clause", "MIT")


def write(folder: Path, *lines: str, heads: str = HEADS) -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join([heads, *lines]) + "\n", encoding="utf-8")
    return path


def test_every_shipped_row_has_a_source_whose_licence_lets_it_ship() -> None:
    rows = shipped_rows()
    assert len(rows) > 1800
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert sources()[row.source]["licence"].startswith(REDISTRIBUTABLE), row.source
        assert row.source_path


def test_sources_that_cannot_be_redistributed_give_single_facts_only() -> None:
    assert len(cited_rows()) <= 40
    assert {sources()[row.source]["licence"] for row in cited_rows()} == {"single facts cited"}
    assert not {row.id for row in cited_rows()} & {row.id for row in shipped_rows()}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (GOOD.replace("0.01", "-1"), "`value` must be a number above zero in ms, got '-1'"),
        (GOOD.replace("0.01", "nan"), "got 'nan'"),
        (GOOD.replace("0.01", "0"), "got '0'"),
        (GOOD.replace("0.01", "fast"), "got 'fast'"),
        (GOOD.replace("0.01", '"0,01"'), "got '0,01': write 0.01, with a point"),
        (GOOD.replace("0.01", "0.01 ms"), "got '0.01 ms': write 0.01, and the unit in its own column"),
        (GOOD.replace("GPU,1,GEMM", "GPU,two,GEMM"), "`n_devices` must be a whole number above zero"),
        (GOOD.replace("NVIDIA T4", ""), "`device` must not be empty"),
        (GOOD + ",more", "expected 13 cells, as in the first line, got 14"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(ValueError, match="1 bad row") as caught:
        read_rows(write(tmp_path, GOOD, line))
    assert "line 3" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(("text", "means"), [("", 1), ("8", 8), ("8.0", 8), ("?", 0)])
def test_numbers_of_devices_are_read_as_people_write_them(tmp_path: Path, text: str, means: int) -> None:
    (row,) = read_rows(write(tmp_path, GOOD.replace("GPU,1,GEMM", f"GPU,{text},GEMM")))
    assert row.n_devices == means


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    bad = [GOOD.replace("0.01", "-1")] * 3
    with pytest.raises(ValueError, match="3 bad rows"):
        read_rows(write(tmp_path, *bad))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="columns missing: unit"):
        read_rows(write(tmp_path, GOOD, heads=HEADS.replace(",unit", ",units")))


def test_noise_is_refused_in_words(tmp_path: Path) -> None:
    generator = random.Random(7)
    for _ in range(60):
        text = GOOD
        for _ in range(generator.randint(1, 4)):
            position = generator.randrange(len(text))
            text = text[:position] + generator.choice(",\"'0-x%é") + text[position + 1 :]
        try:
            read_rows(write(tmp_path, text))
        except ValueError as error:
            assert "rows.csv" in str(error)


def test_energy_over_latency_is_a_power_that_the_board_can_draw() -> None:
    """Boards that MLPerf metered: energy of a query over its time is above a phone's and below the power supply's."""
    supplies = {"Raspberry Pi 4": 15.3, "NVIDIA Jetson AGX Xavier": 65, "NVIDIA Jetson AGX Orin": 90, "Rockchip": 24}
    rows = [row for row in shipped_rows() if row.source == "mlcommons/cm4mlperf-results"]
    times = {row.source_path: row.value for row in rows if row.unit == "ms"}
    powers = {row.source_path: (row, row.value / times[row.source_path]) for row in rows if row.unit == "mJ"}
    assert len(powers) == 12 and powers.keys() == times.keys()
    for row, watts in powers.values():
        assert 2 < watts < next(most for name, most in supplies.items() if row.device.startswith(name)), row.device


def test_the_gpt3_xl_of_neusight_is_wider_than_the_published_one() -> None:
    """Its gpt3_xl.json: n_embd 3072, n_head 24, n_layer 24; a block of GPT has 12 width^2 weights, and some biases."""
    rows = [row for row in shipped_rows() if row.model == "gpt3-1.3b" and row.source == "sitar-lab/NeuSight"]
    assert rows
    for model in map(language_model_of, map(typed, rows)):
        weights = (12 * 3072**2) * 24 + (50257 + 2048) * 3072
        assert model.parameters().m_as("param") == pytest.approx(weights, rel=0.01)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100_80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100_40GB_PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100_SXM"),
        ("Tesla V100-SXM2-16GB", "V100_16GB"),
    ],
)
def test_the_names_that_nvidia_smi_gives_are_known(name: str, twin: str) -> None:
    from mlsys_evidence.ingest.reading import device_of

    assert device_of(name)[0].id == twin


@pytest.mark.parametrize(
    ("name", "on"),
    [("STM32F746", "cpu"), ("EdgeTPU", "cpu"), ("A100", "cpu"), ("Xeon_8380", "cuda"), ("Apple_M1", "cuda")],
)
def test_measure_refuses_what_pytorch_does_not_run_on_there(name: str, on: str) -> None:
    from click.testing import CliRunner

    from mlsys.cli import main

    out = CliRunner().invoke(main, ["measure", "--device", name, "--on", on])
    assert out.exit_code == 1 and f"--on {on} measures another kind of device" in out.output


def test_measure_takes_a_jetson_for_a_machine_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from mlsys.cli import main

    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = CliRunner().invoke(main, ["measure", "--device", "JetsonOrinNano", "--on", "cuda"])
    assert out.exit_code == 1 and "finds no GPU" in out.output


def test_columns_that_differ_by_capitals_alone_are_told_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: write column names in lower case: device, "):
        read_rows(write(tmp_path, GOOD, heads=HEADS.title()))
