"""``mlsys mapper``: rows of a file, one layer, a network, and errors of one line."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mlsys.cli import main

RECORDED = Path(__file__).parents[1] / "oracles" / "data" / "gemm_two_level.csv"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["mapper", *map(str, arguments)])
    return result.exit_code, result.output


def test_rows_come_back_with_the_recorded_words() -> None:
    code, text = run("--rows", RECORDED, "--csv")
    assert code == 0
    recorded = list(csv.DictReader(RECORDED.open()))
    answers = list(csv.DictReader(io.StringIO(text)))
    assert [row["best_words"] for row in answers] == [row["best_words"] for row in recorded]
    for row in answers:
        assert sum(int(row[part]) for part in ("A", "B", "C_reads", "C_writes")) == int(row["best_words"])
        assert int(row["lb_safe"]) == max(int(row["compulsory"]), -(-float(row["lb_smith"]) // 1))
        assert float(row["ratio"]) == int(row["best_words"]) / int(row["lb_safe"])
        assert int(row["covered"]) >= 6


def test_rows_as_text_and_as_json(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("M,N,K,S,tile_set\n512,256,32,1024,all\n1000000,1000000,1000000,1000000,div\n")
    assert "286,720 words" in run("--rows", file)[1]
    first, second = json.loads(run("--rows", file, "--json")[1])
    assert first["best_words"] == 286_720
    assert second["best_words"] > 2 * 10**15


def test_a_layer_is_explained() -> None:
    code, text = run("resnet50:conv3_1b", "--device", "A100", "--objective", "energy")
    assert code == 0
    assert "proven best" in text and "Why it is optimal" in text and "for p in" in text
    (data,) = json.loads(run("gemm:512x256x32", "--device", "A100", "--objective", "edp", "--json")[1])
    assert data["proven"] and data["words"][0] == data["bound"] == 155_648
    assert [level["memory"] for level in data["levels"]] == ["L2", "L1"]


def test_a_network_is_listed_layer_by_layer() -> None:
    code, text = run("resnet50:all", "--device", "A100")
    assert code == 0 and len(text.splitlines()) == 54 + 1


def test_seconds_are_those_of_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlsys.api.mapper as home

    given: list[float] = []
    best = home.best_mapping

    def noted(*arguments: Any, seconds: float, **options: Any) -> Any:
        given.append(seconds)
        return best(*arguments, seconds=None, **options)

    monkeypatch.setattr(home, "best_mapping", noted)
    code, _ = run("lenet5:all", "--device", "A100", "--seconds", "1000")
    assert code == 0 and len(given) == 5
    assert given[0] <= 1000 / 5 and given[-1] <= 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either LAYER"),
        (["gemm:8x8x8"], "--device"),
        (["gemm:8x8", "--device", "A100"], "three sizes"),
        (["gemm:8x8xa", "--device", "A100"], "a size must be a whole number, got 'a'"),
        (["gemm:0x8x8", "--device", "A100"], "must be a whole number >= 1, got 0"),
        (["conv:1", "--device", "A100"], "unknown network 'conv'"),
        (["conv", "--device", "A100"], "is not a layer"),
        (["resnet50:conv3_1", "--device", "A100"], "has no layer 'conv3_1'. Did you mean"),
        (["gemm:8x8x8", "--device", "A10O"], "Did you mean"),
        (["gemm:8x8x8", "--device", "A100", "--precision", "fp8"], "must be one that NVIDIA A100"),
    ],
)
def test_errors_are_one_line(arguments: list[str], words: str) -> None:
    code, text = run(*arguments)
    assert code == (2 if words in ("give either LAYER", "--device") else 1), text
    assert words in text and len(text.splitlines()) == 1


def test_an_objective_is_one_of_a_list() -> None:
    code, text = run("gemm:8x8x8", "--device", "A100", "--objective", "speed")
    assert code == 2 and "'speed' is not one of 'traffic', 'energy', 'latency', 'edp'" in text


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("8,8,8,2,all", "line 2: best_two_level(): `capacity` must hold one word"),
        ("8,8,8.5,64,all", "line 2: K must be a whole number, got '8.5'"),
        ("8,-8,8,64,all", "line 2: best_two_level(): `n` must be a whole number >= 1, got -8"),
        ("8,8,8,64,some", "line 2: best_two_level(): `tile_set` must be one of all, div, got 'some'"),
        ("8,8,8,64", "line 2: expected 5 cells"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: str, words: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(f"M,N,K,S,tile_set\n{row}\n")
    code, text = run("--rows", file, "--csv")
    assert code == 1 and words in text and len(text.splitlines()) == 1
