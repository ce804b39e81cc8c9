"""``mlsys systolic``: one case as a table, many as CSV, and errors in one line."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsys.cli import main

RECORDED = Path(__file__).parents[1] / "oracles" / "data" / "scalesim.csv"
HEAD = "name,M,N,K,array_rows,array_cols,dataflow"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["systolic", *map(str, arguments)])
    return result.exit_code, result.output


def test_one_case_is_a_readable_table() -> None:
    code, text = run(512, 512, 512, "--array", "32x32", "--dataflow", "os")
    assert code == 0
    assert "(512 × 512) by (512 × 512) on 32 × 32, output-stationary" in text
    cycles = next(
        line for line in text.splitlines() if "cycles" in line and "convention" not in line and "," in line[-8:]
    )
    assert cycles.split()[-1] == f"{256 * (512 + 2 * 32 + 32 - 2):,}"


def test_one_case_for_machines() -> None:
    code, text = run(512, 512, 512, "--array", "32x32", "--convention", "scalesim", "--json")
    answer = json.loads(text)
    assert code == 0 and answer["total_cycles"] == 155_135 and answer["dram_ofmap_writes"] == 4_194_335
    code, text = run(512, 512, 512, "--array", "32x32", "--convention", "scalesim", "--sram", 256, "--csv")
    (row,) = csv.DictReader(text.splitlines())
    assert code == 0 and row["total_cycles"] == "155135"


def test_a_file_of_rows_comes_back_with_what_the_tool_recorded(tmp_path: Path) -> None:
    """The answers are taken out of the recorded rows, and must come back."""
    with RECORDED.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["total_cycles"]) < 100_000]
    columns = (
        "kind,name,dims,M,N,K,array_rows,array_cols,dataflow,ifmap_sram_kb,filter_sram_kb,ofmap_sram_kb,word_bytes"
    )
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns.split(","), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    code, text = run("--rows", path, "--convention", "scalesim", "--csv")
    listed = list(csv.DictReader(text.splitlines()))
    assert code == 0 and len(listed) == len(rows) > 40
    added = [name for name in listed[0] if name not in columns]
    assert len(added) == 10
    for ours, theirs in zip(listed, rows, strict=True):
        assert ours["name"] == theirs["name"]
        for name in added:
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-10), (ours["name"], name)


def test_the_needed_columns_are_enough_and_others_pass_through(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD},remark\nsmall,100,100,100,8,8,ws,mine\n", "utf-8")
    code, text = run("--rows", path, "--convention", "scalesim", "--csv")
    (row,) = csv.DictReader(text.splitlines())
    assert code == 0 and row["remark"] == "mine" and row["total_cycles"] == "20617"
    code, text = run("--rows", path, "--json")
    assert code == 0 and json.loads(text)[0]["sram_ofmap_reads"] == 120_000


def test_dimensions_of_a_convolution_speak_for_themselves(tmp_path: Path) -> None:
    """Without a `kind`, seven numbers are a convolution, whose windows share words."""
    path = tmp_path / "rows.csv"
    path.write_text(f'{HEAD},dims\nconv,12544,64,147,32,32,os,"229,229,7,7,3,64,2"\n', "utf-8")
    code, text = run("--rows", path, "--convention", "scalesim")
    (row,) = csv.DictReader(text.splitlines())
    assert code == 0 and row["dram_ifmap_reads"] == "347837"


def test_no_utilisation_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD}\none,1,1,1,1,1,os\n", "utf-8")
    code, text = run("--rows", path, "--convention", "scalesim")
    (row,) = csv.DictReader(text.splitlines())
    assert code == 0 and row["overall_util_pct"] == "" and row["total_cycles"] == "0"
    assert "undefined" in run(1, 1, 1, "--array", "1x1", "--dataflow", "os", "--convention", "scalesim")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either M N K or --rows FILE"),
        ((1, 2), "give three sizes, M N K, got 1 2"),
        ((8, 0, 8), "`N` must be a whole number >= 1, got '0'"),
        ((8, 8, 2.5), "`K` must be a whole number >= 1, got '2.5'"),
        ((8, 8, "x"), "`K` must be a whole number >= 1, got 'x'"),
        ((8, 8, 8, "--array", "8x0"), "`array_cols` must be a whole number >= 1, got '0'"),
        ((8, 8, 8, "--array", "8"), "`array_cols` must be a whole number >= 1, got ''"),
    ],
)
def test_errors_are_one_line(arguments: tuple, words: str) -> None:
    code, text = run(*arguments)
    assert code == (2 if words.startswith("give") else 1)
    assert words in text and len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--dataflow", "rs", "'rs' is not one of 'ws', 'os', 'is'"),
        ("--convention", "theirs", "'theirs' is not one of 'physical', 'scalesim'"),
        ("--overlap", "some", "'some' is not one of 'none', 'load', 'full'"),
    ],
)
def test_a_choice_lists_what_there_is(option: str, value: str, words: str) -> None:
    code, text = run(8, 8, 8, option, value)
    assert code == 2 and words in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"{HEAD}\na,-1,8,8,8,8,ws\n", "line 2: `M` must be a whole number >= 1, got '-1'"),
        ("name,M,N,K\na,1,8,8\n", "columns missing: array_rows, array_cols, dataflow"),
        (f"{HEAD},kind,dims\na,1,8,8,8,8,ws,conv,3x3\n", "`dims` of a convolution must be"),
        (f"{HEAD}\n", "no rows"),
    ],
)
def test_rows_that_cannot_be_counted(tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(body, "utf-8")
    code, text = run("--rows", path, "--csv")
    assert code == 1 and words in text and "Traceback" not in text
