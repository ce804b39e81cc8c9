"""Every output of an answer that rests on numbers of the reader says so, in every form."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import mlsys.hardware
from mlsys.cli import main

T4 = Path(mlsys.hardware.__file__).parent / "data/cloud/T4.yaml"
RUN = """
import sys
from click.testing import CliRunner
from mlsys.cli import main
for line in sys.stdin.read().splitlines():
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    print(line, "->", "as mine.yaml" in done.stdout.replace(sys.argv[1], ""), "power/tdp" in done.stdout)
"""
FORMS = [
    "analyze lenet5 --device T4",
    "analyze lenet5 --device T4 --json",
    "analyze lenet5 --device T4 --csv",
    "compare lenet5 --devices A100,T4",
    "compare lenet5 --devices A100,T4 --json",
    "compare lenet5 --devices A100,T4 --csv",
    "tiles lenet5 --device T4",
    "tiles lenet5 --device T4 --json",
    "tiles lenet5 --device T4 --csv",
    "mapper gemm:8x8x8 --device T4",
    "mapper gemm:8x8x8 --device T4 --json",
    "memory lenet5 --device T4",
    "memory lenet5 --device T4 --json",
    "memory lenet5 --device T4 --csv",
    "device T4",
    "devices T4",
    "devices --kind GPU",
    "devices T4 --format json",
    "devices T4 --format csv",
    "sweep s.yaml",
    "sweep s.yaml --json",
    "sweep s.yaml --csv",
    "sweep --show s.sweep --csv",
    "plan --profiles-from lenet5 --devices T4",
    "plan --profiles-from lenet5 --devices T4 --format json",
    "plan --profiles-from lenet5 --devices T4 --format csv",
    "plan --profiles-from lenet5 --devices T4 --format html",
    "compare lenet5 --devices A100 --json",
]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "devices").mkdir()
    (folder / "devices" / "mine.yaml").write_text(T4.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "s.yaml").write_text("models: [lenet5]\ndevices: [T4]\n")
    environment = {**os.environ, "MLSYS_DEVICES": "devices", "MLSYS_PERTURB": "T4/power/tdp=1.5"}
    done = subprocess.run(
        [sys.executable, "-c", RUN.replace("as mine.yaml", "mine.yaml, not by the catalogue"), "nothing"],
        input="\n".join(FORMS), capture_output=True, text=True, env=environment, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(" -> ") for line in done.stdout.splitlines())


@pytest.mark.parametrize("form", FORMS)
def test_it_is_said(result: dict[str, str], form: str) -> None:
    assert result[form] == ("False True" if "A100 --json" in form else "True True")


def test_the_page_says_it_too(tmp_path: Path) -> None:
    environment = {**os.environ, "MLSYS_PERTURB": "A100_80GB/power/tdp=2"}
    command = [sys.executable, "-m", "mlsys", "analyze", "lenet5", "--device", "A100", "--html", "page.html"]
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=tmp_path)
    assert "A100_80GB/power/tdp is multiplied by 2 (MLSYS_PERTURB)" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("value", ["A100_80GB/power/tdp=nan", "A100_80GB/power/tdp=-1", "no equals sign", "x=1e999"])
def test_a_change_that_is_none_is_refused_in_one_line(value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mlsys", "device", "T4"], capture_output=True, text=True, check=False,
        env={**os.environ, "MLSYS_PERTURB": value},
    )  # fmt: skip
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr and "MLSYS_PERTURB" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("fact", "meant"),
    [
        ("A100_80GB/power/tpd", "A100_80GB/power/tdp"),
        ("A100_80G/power/tdp", "A100_80GB/power/tdp"),
        ("ENERGY_DRAM_ACESS_PJ", "ENERGY_DRAM_ACCESS_PJ"),
        ("nothing/of the kind", ""),
    ],
)
def test_a_change_of_a_fact_that_nobody_has_is_refused_in_one_line(fact: str, meant: str) -> None:
    """It would change nothing, and say that it did."""
    done = subprocess.run(
        [sys.executable, "-m", "mlsys", "device", "T4"], capture_output=True, text=True, check=False,
        env={**os.environ, "MLSYS_PERTURB": f"T4/power/tdp=2,{fact}=1.5"},
    )  # fmt: skip
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 and repr(fact) in done.stderr
    assert not meant or f"Did you mean '{meant}'?" in done.stderr


def test_a_folder_of_devices_that_is_none_is_refused_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mlsys", "device", "T4"], capture_output=True, text=True, check=False,
        env={**os.environ, "MLSYS_DEVICES": "/no/such/folder"},
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "MLSYS_DEVICES" in done.stderr


@pytest.mark.parametrize(
    ("device", "setting", "message"),
    [
        ("A10O", "compiled network on GPU", "is not used: unknown device 'A10O'. Did you mean"),
        (
            "A100",
            "compiled network on GPU",
            "is not used: 'A100' is not an id of a device. Write device: A100_80GB in the file",
        ),
        ("T4", "compiled network on GPU", "is not used: it calibrates T4, which is not a device of this answer"),
        ("A100_80GB", "abacus", "is used in part: unknown settings 'abacus'"),
        (
            "A100_80GB",
            "stream on GPU",
            "is not used: it calibrates stream on GPU, and this answer is for compiled network on GPU",
        ),
        ("A100_80GB", "compiled network on GPU", "estimates for A100_80GB are calibrated by"),
    ],
)
def test_a_calibration_that_plays_no_part_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, setting: str, message: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f'device: {device}\nsettings:\n  "{setting}": {{compute: 0.5, launch: 1.0e-6}}\n')
    monkeypatch.setenv("MLSYS_CALIBRATION", str(file))
    for form in ([], ["--json"], ["--csv"]):
        done = CliRunner().invoke(main, ["analyze", "lenet5", "--device", "A100", *form])
        result = " ".join(done.stdout.split()).replace('\\"', '"')
        assert done.exit_code == 0 and message in result, done.output
