"""A list of what could be measured becomes ten rows to fill in, for `mlsys calibrate`; other files are refused."""

import csv
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mlsys.calibration.plan import plan_file, ten_to_take
from mlsys.calibration.rows import read_rows
from mlsys.cli import main

HEADS = (
    "device",
    "device_class",
    "workload",
    "model",
    "precision",
    "batch",
    "seq_or_shape",
    "metric",
    "unit",
    "software",
)
NETWORKS = ("resnet18", "resnet50", "vgg16", "mobilenet-v2", "densenet121")
SOFTWARE = ("PyTorch 2.4 eager", "TensorRT 10")


def cells(model: str, batch: int, software: str, device: str = "NVIDIA L4") -> list[str]:
    size = "224x224 image"
    return [device, "datacenter GPU", "CNN inference", model, "fp16", str(batch), size, "latency", "ms", software]


LIST = [cells(*each) for each in product(NETWORKS, (1, 8, 64), SOFTWARE)]


def written(path: Path, rows: list[list[str]], heads: tuple[str, ...] = HEADS) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([heads, *rows])
    return path


def calibrate(*words: object) -> Result:
    return CliRunner().invoke(main, ["calibrate", *map(str, words)])


def test_ten_of_every_software_and_size_are_written_to_be_filled_in(tmp_path: Path) -> None:
    data, out = written(tmp_path / "wanted.csv", LIST), tmp_path / "ten.csv"
    result = calibrate(data, "--plan", out)
    assert result.exit_code == 0, result.output
    with out.open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 10 and {line["value"] for line in lines} == {""}
    assert {line["software"] for line in lines} == set(SOFTWARE)
    assert {line["batch"] for line in lines} == {"1", "8", "64"}
    assert len({line["model"] for line in lines}) >= 4
    assert not (tmp_path / "calibration.yaml").exists()
    for line in lines:  # filled in, they are measurements
        line["value"] = "10"
    filled = written(tmp_path / "mine.csv", [list(line.values()) for line in lines], tuple(lines[0]))
    assert calibrate(filled, "--out", tmp_path / "own.yaml").exit_code == 0


def test_values_are_not_read_and_rows_that_stand_twice_count_once(tmp_path: Path) -> None:
    plain = plan_file(written(tmp_path / "a.csv", LIST), tmp_path / "out.csv")
    heads = (*HEADS, "value")
    valued = [[*row, ("", "7", "-1", "soon")[index % 4]] for index, row in enumerate(LIST)]
    assert [each.line for each in plan_file(written(tmp_path / "b.csv", valued, heads), tmp_path / "out.csv")] == [
        each.line for each in plain
    ]
    twice = ten_to_take(read_rows(written(tmp_path / "c.csv", LIST + LIST), measured=False))
    assert sorted(each.line for each in twice) == sorted(each.line for each in plain)
    assert len(ten_to_take(read_rows(written(tmp_path / "d.csv", LIST[:4]), measured=False))) == 4, "few are all taken"


WRONG = {
    "one machine": ([*LIST, cells("resnet18", 1, SOFTWARE[0], "NVIDIA A100")], HEADS, "line 32: `device`"),
    "no such device": ([*LIST, cells("resnet18", 1, SOFTWARE[0], "NVIDIA L999")], HEADS, "line 32: no twin"),
    "too few": (LIST[:2], HEADS, "at least 3"),
    "all the same": ([LIST[0]] * 12, HEADS, "only 1 different"),
    "too many": (
        [cells("resnet18", batch, SOFTWARE[0]) for batch in range(1, 2003)],
        HEADS,
        "2002 measurements, at most 2000 are accepted",
    ),
    "no batch": ([*LIST, cells("resnet18", -8, SOFTWARE[0])], HEADS, "line 32: `batch`"),
    "no such network": ([*LIST, cells("resnet1O1", 8, SOFTWARE[0])], HEADS, "line 32"),
    "misspelt": (LIST, (*HEADS[:-1], "sofware"), "unknown column"),
    "no unit": ([row[:8] + row[9:] for row in LIST], HEADS[:8] + HEADS[9:], "columns missing: unit"),
    "no rows": ([], HEADS, "no rows"),
}


@pytest.mark.parametrize("name", WRONG)
def test_lists_that_plan_nothing_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    rows, heads, wanted = WRONG[name]
    out = tmp_path / "ten.csv"
    result = calibrate(written(tmp_path / "wanted.csv", rows, heads), "--plan", out)
    assert result.exit_code == 1 and not out.exists()
    assert wanted in result.output and len(result.output.strip().splitlines()) == 1


def test_a_plan_keeps_its_list_and_learns_nothing(tmp_path: Path) -> None:
    data = written(tmp_path / "wanted.csv", LIST)
    before = data.read_text()
    result = calibrate(data, "--plan", data)
    assert result.exit_code == 2 and "is an input of this command" in result.output and data.read_text() == before
    both = calibrate(data, "--plan", tmp_path / "ten.csv", "--out", tmp_path / "own.yaml")
    assert both.exit_code == 2 and "omit --out" in both.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wanted.csv"]
