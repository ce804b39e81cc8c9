"""Logs come back as they were written, and every wrong line is told with its number."""

import gzip
import json
import random
from pathlib import Path

import pytest

import mlsys.measure
from mlsys.cli.explain_platforms import read_logs
from mlsys.errors import LogFileError
from mlsys.files import write_text
from mlsys.measure import Log, Sample, read_log, stored_logs
from mlsys.measure.log import parsed

from .conftest import make_log


def test_round_trip(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one.jsonl"
    log.write(path)
    assert read_log(path) == log
    assert [each.name for each in path.parent.iterdir()] == ["one.jsonl"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "one.jsonl", "\ud800", folders=True)
    assert not list(tmp_path.iterdir())


def broken(log: Log, change) -> str:
    lines = log.lines()
    change(lines)
    with pytest.raises(LogFileError) as result:
        parsed("\n".join(lines) + "\n")
    return str(result.value)


def edit(index: int, **values):
    def change(lines: list[str]) -> None:
        lines[index] = json.dumps({**json.loads(lines[index]), **values})

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines.pop(), "the log is truncated"),
        (lambda lines: lines.__setitem__(3, lines[3][:20]), "line 4: is not JSON"),
        (lambda lines: lines.__delitem__(0), "line 1: the first line must be the header"),
        (lambda lines: lines.insert(1, lines[0]), "a second header"),
        (lambda lines: lines.insert(3, lines[2]), "duplicate sample of run 0, iteration 0"),
        (lambda lines: lines.__delitem__(4), "the log claims 17 lines but has 16"),
        (edit(0, schema="mlsys-explain/9"), "schema: must be 'mlsys-explain/1'"),
        (
            edit(0, integers={"worst_case_steps": -1, "layer": None, "network_steps": 0, "reason": ""}),
            "line 1: integers",
        ),
        (edit(0, integers={"worst_case_steps": 0}), "line 1: integers"),
        (edit(2, latency_ms=-1), "line 3: latency_ms: must be a number above 0"),
        (edit(2, latency_ms=0), "latency_ms: must be a number above 0"),
        (edit(2, latency_ms=float("nan")), "latency_ms"),
        (edit(2, latency_ms="1"), "latency_ms: must be a number above 0 to"),
        (edit(2, extra=1), "unknown key 'extra'"),
        (edit(2, run=9), "run: must be below the 3 runs"),
        (edit(2, kind="smaple"), "`kind` must be one of"),
        (edit(-2, layer="zz"), "the header has no layer 'zz'"),
        (lambda lines: lines.__setitem__(2, lines[2][:-1] + ',"run":0}'), "duplicate key 'run'"),
    ],
)
def test_wrong_logs(log: Log, change, words: str) -> None:
    assert words in broken(log, change)


def test_all_faults_in_one_pass_each_with_its_line(log: Log) -> None:
    def change(lines: list[str]) -> None:
        edit(2, latency_ms=-1)(lines)
        edit(4, run="x", energy_mj=-3)(lines)
        lines[5] = "?"

    result = broken(log, change).splitlines()
    assert [line.split(":")[0] for line in result] == ["log, line 3", "log, line 5", "log, line 5", "log, line 6"]


def test_several_files_are_all_told(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("?\n")
    with pytest.raises(LogFileError) as result:
        read_logs((tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.jsonl"))
    for name in ("a.jsonl, line 1", "b.jsonl, line 1", "c.jsonl: cannot be read (No such file"):
        assert name in str(result.value)


def test_five_hundred_mutations_are_refused_or_mean_a_log(log: Log) -> None:
    draw = random.Random(20261122)
    whole = "\n".join(log.lines()) + "\n"
    refused = 0
    for _ in range(500):
        text = list(whole)
        for _ in range(draw.randint(1, 3)):
            position = draw.randrange(len(text))
            kind = draw.randrange(4)
            if kind == 0:
                del text[position : position + draw.randint(1, 40)]
            elif kind == 1:
                text[position] = draw.choice('{}[]",:-0eN\n\x00é9')
            elif kind == 2:
                text.insert(position, draw.choice(["null", "-1", "NaN", '"', "\n", "{}", "1e999"]))
            else:
                text[position:position] = text[position : position + draw.randint(1, 60)]
        try:
            read = parsed("".join(text))
        except LogFileError as result:
            refused += 1
            assert all(line.startswith("log, line ") for line in str(result).splitlines())
        else:
            assert read.samples and read.median > 0
            assert parsed("\n".join(read.lines()) + "\n") == read
    assert refused > 300


def test_the_logs_that_ship_pass_the_check_that_reading_them_leaves_out() -> None:
    files = sorted((Path(mlsys.measure.__file__).parent / "data").glob("*.jsonl.gz"))
    logs = [parsed(gzip.decompress(path.read_bytes()).decode("utf-8"), path.name) for path in files]
    assert {log.name: log for log in logs} == stored_logs()
    assert len(stored_logs()) == len(files) >= 9


def test_statistics_by_hand() -> None:
    log = make_log([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [4.0, 4.0, 4.0]])
    assert log.median == 2.0
    assert log.run_medians == (2.0, 2.0, 4.0)
    assert log.between_runs == 1.0
    assert log.p99 is None
    long = make_log([[float(value) for value in range(1, 1002)]], runs=1)
    assert long.p99 == pytest.approx(991.0)
    assert make_log([[1.0] * 999], runs=1).p99 is None
    assert make_log([[1.0] * 1000], runs=1).p99 == 1.0


def test_layers_without_a_time_are_left_out() -> None:
    log = make_log(layers=[Sample(0, index, value, layer="b") for index, value in enumerate((3.0, 1.0, 2.0))])
    assert log.layer_medians == {"b": 2.0}
