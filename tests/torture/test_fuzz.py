"""Hypothesis looks for inputs that the grammars do not have: numbers with units, files of every kind, pieces of sweeps."""

import json
import locale
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsys.amounts import amount, parsed_number
from mlsys.edge.config import Config as EdgeConfig
from mlsys.errors import (
    ArgumentError,
    DeviceFileError,
    EdgeFileError,
    LogFileError,
    ScenarioFileError,
    SweepFileError,
    UnknownNameError,
    UnreadableError,
)
from mlsys.hardware import load_device
from mlsys.measure import read_log
from mlsys.measure.summary import summary_text
from mlsys.planner.memory.fixed import FixedBuffers
from mlsys.planner.placement import Scenario
from mlsys.sweep import SweepSpec, load_results, sweep
from mlsys.sweep.store import Folder
from mlsys.workloads import load as load_network

sys.path.insert(0, str(Path(__file__).parent))

from torture_cases import data_of, right

TIMES = int(os.environ.get("MLSYS_TIMES") or 1)
FUZZ = settings(
    max_examples=25 * TIMES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just([]), st.just({}))
DATA = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@FUZZ
@given(st.text(max_size=30) | st.from_regex(r"[-+0-9.,eE ]{0,12} ?(TB/s|GB|FLOP/s|[a-z*/()0-9]{0,12})", fullmatch=True))
def test_a_number_with_a_unit_is_what_is_written_or_is_refused(text: str) -> None:
    try:
        quantity = amount(text, "byte/s")
    except ValueError as error:
        assert str(error)
        return
    figures = text.strip().partition(" ")[0].replace(",", "")
    assert quantity.magnitude == pytest.approx(float(figures)) and quantity.magnitude > 0


@FUZZ
@given(st.from_regex(r"[+-]?[0-9]{0,4}[.,]?[0-9]{0,4}([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_a_comma_never_vanishes(text: str) -> None:
    try:
        number = parsed_number(text)
    except ValueError:
        return
    assert number == float(text.replace(",", ""))
    assert "," not in text or len(text.partition(",")[2].split("e")[0].split("E")[0].split(".")[0]) == 3


def changed(name: str, source: st.DataObject) -> Any:
    """A right file with one place of it, however deep, in the place of anything."""
    data = data_of(name)
    inner, key = {"": data}, ""
    while True:
        inside = inner[key]
        keys = (
            list(inside) if isinstance(inside, dict) else list(range(len(inside))) if isinstance(inside, list) else []
        )
        if not keys or ((inner.keys() != {""} if isinstance(inner, dict) else True) and source.draw(st.booleans())):
            break
        inner, key = inside, source.draw(st.sampled_from(keys))
    inner[key] = source.draw(DATA)
    return data


@FUZZ
@given(st.data())
def test_device_files(tmp_path: Path, source: st.DataObject) -> None:
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(changed("device.yaml", source)), encoding="utf-8")
    try:
        twin = load_device(tmp_path / "x.yaml")
    except DeviceFileError as error:
        assert str(error)
    else:
        assert all(value.magnitude > 0 for value in twin.recorded())


@FUZZ
@given(st.data(), st.sampled_from(["json", "yaml"]))
def test_scenarios(tmp_path: Path, source: st.DataObject, kind: str) -> None:
    data = changed("scenario.json", source)
    text = json.dumps(data) if kind == "json" else yaml.safe_dump(data)
    (tmp_path / f"x.{kind}").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        Scenario.load(tmp_path / f"x.{kind}")
    except ScenarioFileError as error:
        assert str(error)


@FUZZ
@given(st.data())
def test_specifications_of_sweeps(tmp_path: Path, source: st.DataObject) -> None:
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(changed("sweep.yaml", source)), encoding="utf-8")
    try:
        SweepSpec.load(tmp_path / "x.yaml")
    except SweepFileError as error:
        assert str(error)


@FUZZ
@given(st.data())
def test_logs_of_explain(tmp_path: Path, source: st.DataObject) -> None:
    """One line of a log in the place of another, or with one place of it anything; what is read can be told."""
    data = changed("log.jsonl", source)
    records = data if isinstance(data, list) else [data]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    try:
        log = read_log(tmp_path / "x.jsonl")
    except LogFileError as error:
        assert str(error)
    else:
        assert summary_text(log) and log.median > 0


@FUZZ
@given(st.data())
def test_configurations_of_the_edge_optimiser(tmp_path: Path, source: st.DataObject) -> None:
    text = yaml.safe_dump(changed("edge.yaml", source))
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        config = EdgeConfig.load(tmp_path / "x.yaml")
    except EdgeFileError as error:
        assert str(error)
    else:
        assert config.variants and config.active_bytes > 0


@FUZZ
@given(st.data())
def test_buffers(tmp_path: Path, source: st.DataObject) -> None:
    cells = st.sampled_from(
        ["0", "1", "-1", "7", "1e3", "1_0", "٣", "nan", "", " 5", "1,5", "99999999999999999999", '"', "a"]
    )
    rows = [[source.draw(cells | st.text(max_size=5)) for _ in range(4)] for _ in range(source.draw(st.integers(0, 3)))]
    text = "id,lower,upper,size\n" + "".join(f"{','.join(row)}\n" for row in rows)
    (tmp_path / "b.csv").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        read = FixedBuffers.load(tmp_path / "b.csv")
    except ScenarioFileError as error:
        assert str(error)
    else:
        assert (read.lower < read.upper).all() and (read.size > 0).all()


@FUZZ
@given(st.data())
def test_configurations(tmp_path: Path, source: st.DataObject) -> None:
    text = json.dumps(changed("config.json", source))
    (tmp_path / "config.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        load_network(tmp_path / "config.json")
    except (ArgumentError, UnknownNameError, UnreadableError) as error:
        assert str(error)


@settings(FUZZ, max_examples=40 * TIMES)
@given(st.data())
def test_onnx_bytes(tmp_path: Path, source: st.DataObject) -> None:
    raw = bytearray(right("net.onnx"))
    for _ in range(source.draw(st.integers(1, 4))):
        raw[source.draw(st.integers(0, len(raw) - 1))] = source.draw(st.integers(0, 255))
    (tmp_path / "x.onnx").write_bytes(raw)
    try:
        network = load_network(tmp_path / "x.onnx")
    except (ArgumentError, UnknownNameError) as error:
        assert str(error)
    else:
        assert network.flops.magnitude >= 0 and network.data.magnitude > 0


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    sweep(SweepSpec(models=["lenet5"], devices=["A100", "T4"]), folder)
    return folder


@FUZZ
@given(st.data())
def test_pieces_of_sweeps(kept: Path, source: st.DataObject) -> None:
    whole = load_results(kept)
    piece = next((kept / "pieces").glob("*.parquet"))
    before = raw = piece.read_bytes()
    cut = source.draw(st.integers(0, len(raw)))
    raw = raw[:cut] + source.draw(st.binary(max_size=8)) + raw[cut + source.draw(st.integers(0, 8)) :]
    piece.write_bytes(raw)
    try:
        rows, others, damaged = Folder(kept).rows(whole.columns["id"])
        assert others == 0 and (raw == before or damaged == [piece.name])
        assert all(row in set(map(tuple, whole)) for row in rows.values())
    finally:
        (kept / "damaged" / piece.name).unlink(missing_ok=True)
        piece.write_bytes(before)


COMMAS = """
import locale, sys
names = [name for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8") if name]
for name in names:
    try:
        locale.setlocale(locale.LC_ALL, name)
        break
    except locale.Error:
        continue
else:  # no such locale on this machine: everything that asks for the decimal sign gets a comma
    right = locale.localeconv()
    locale.localeconv = lambda: {**right, "decimal_point": ",", "thousands_sep": "."}
from click.testing import CliRunner
from mlsys.cli import main
for words in (["analyze", "lenet5", "--device", "A100"], ["devices", "--min-bandwidth", "1.5 TB/s", "--format", "csv"]):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    print(done.stdout)
assert CliRunner().invoke(main, ["devices", "--min-bandwidth", "1,5 TB/s"]).exit_code == 2
"""


def test_a_locale_with_a_decimal_comma_changes_nothing() -> None:
    def message(code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    begin = COMMAS.index("from click")
    assert message(COMMAS) == message(COMMAS[begin:])
    assert locale.localeconv()["decimal_point"] == "."
