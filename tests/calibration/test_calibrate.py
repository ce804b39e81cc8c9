"""Ten measurements of a machine teach the model what it attains, and files that cannot teach are refused."""

import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.calibration.calibrate import calibrate, calibrate_file
from mlsys.calibration.rows import Row, columns_of, read_rows
from mlsys.choices import Processor
from mlsys.cli import main
from mlsys.hardware import Hardware
from mlsys.inputs import yaml_of
from mlsys.mapping.fusion import as_kernels
from mlsys.measure import ten_measurements as ten
from mlsys.measure import timing
from mlsys.models.analysis import analyze
from mlsys.models.estimate.library import CALIBRATION, calibrated, fitted, parameters_of
from mlsys.models.estimate.ranges import range_of
from mlsys.models.estimate.user_calibration import calibrated_by, calibrated_network, decimal
from mlsys.sweep import SweepSpec, sweep
from mlsys.units import Q_
from mlsys.workloads import load
from mlsys.workloads.torch_models import recipe
from mlsys.workloads.zoo import network
from mlsys_evidence import validate
from mlsys_evidence.ingest.reading import device_of
from mlsys_evidence.questions import interpret

HEADS = ("device", "device_class", "workload", "precision", "seq_or_shape", "metric", "value", "unit", "software")
ADD = "STREAM Add (PyTorch eager torch.add)"


def written(path: Path, rows: list[tuple[str, ...]], heads: tuple[str, ...] = HEADS) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(heads)
        writer.writerows(rows)
    return path


def stream_rows(attained: float, device: str = "NVIDIA L4", launch: float = 4e-6) -> list[tuple[str, ...]]:
    """Return streams of a machine whose memory attains a part of its peak, and whose launches cost so much."""
    bandwidth = float(Hardware["L4"].memory_bw.m_as("byte/s")) * attained
    rows: list[tuple[str, ...]] = []
    for size in (100, 200, 400, 600, 800, 1000, 1200, 1600, 2000, 2400):
        moved = 3e6 * size
        rate = moved / (moved / bandwidth + launch) / 1e9
        shape = f"{size} MB per array (2 loads + 1 store)"
        words = (device, "datacenter GPU", ADD, "fp32", shape, "memory bandwidth", f"{rate:.6g}", "GB/s")
        rows.append((*words, "PyTorch 2.1 eager"))
    return rows


@pytest.mark.parametrize("attained", [0.55, 0.71, 0.93])
def test_ten_streams_teach_what_the_memory_attains(tmp_path: Path, attained: float) -> None:
    """The rows are made by a machine whose attained part is known: it must come out again."""
    calibration = calibrate(read_rows(written(tmp_path / "mine.csv", stream_rows(attained))))
    (machine,) = calibration.settings.values()
    assert machine.bandwidth == pytest.approx(attained, rel=0.06)
    assert calibration.after < 0.06
    assert any("your memory attains" in sentence for sentence in calibration.learned)


def test_the_file_is_used_where_it_is_named_and_only_for_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = written(tmp_path / "mine.csv", stream_rows(0.6)), tmp_path / "own.yaml"
    result = CliRunner().invoke(main, ["calibrate", str(data), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "your memory attains" in result.output
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    setting, usual = "stream on GPU", parameters_of("stream on GPU", "L4")[0].bandwidth
    assert calibrated(setting, "L4") is None
    monkeypatch.setenv(CALIBRATION, str(out))
    own, whose = parameters_of(setting, "L4")
    assert own.bandwidth == pytest.approx(0.6, rel=0.06) and own.bandwidth != usual
    assert whose.endswith("measured on this machine")
    assert parameters_of(setting, "T4")[1] == setting


def network_rows(
    factor: dict[str, float], spoilt: str = "", precision: str = "fp32", software: str = "ncnn benchncnn"
) -> list[tuple[str, ...]]:
    """Return ten networks on a Raspberry Pi 5 that take so many times what is estimated, one of them ten times that."""
    names = ("ResNet-18", "ResNet-50", "VGG-16", "GoogLeNet", "SqueezeNet 1.1", "MobileNet-v2", "MnasNet 1.0",
             "MobileNet v3 large", "EfficientNet-B0", "AlexNet")  # fmt: skip
    words = ("Raspberry Pi 5", "edge SoC", "CNN inference on CPU 4 threads", precision, "224x224 image", "latency")
    heads = ("device", "device_class", "workload", "precision", "seq_or_shape", "metric")
    rows: list[tuple[str, ...]] = []
    for name in names:
        empty = dict.fromkeys(("id", "source", "source_path", "quality", "group", "note"), "")
        row = Row(**dict(zip(heads, words, strict=True)), **empty, n_devices=1, model=name, batch="1", value=1.0,
                  line=0, unit="ms", software=software)  # fmt: skip
        (result,) = validate([row]).predictions
        value = result.value * factor.get(name, factor[""]) * (10 if name == spoilt else 1)
        rows.append((*words, f"{value:.6g}", "ms", software, name, "1"))
    return rows


NETWORK_HEADS = (*HEADS[:6], "value", "unit", "software", "model", "batch")


def test_the_scale_of_a_machine_is_learned_and_one_spoilt_row_does_not_spoil_it(tmp_path: Path) -> None:
    """Every network takes twice what is estimated: so it must come out, also where one row is ten times too high."""
    plain = calibrate(read_rows(written(tmp_path / "a.csv", network_rows({"": 2.0}), NETWORK_HEADS)))
    spoilt = calibrate(read_rows(written(tmp_path / "b.csv", network_rows({"": 2.0}, "VGG-16"), NETWORK_HEADS)))
    assert plain.before == pytest.approx(0.5, abs=0.01) and plain.after < 0.05
    assert spoilt.after < 0.12, "the median is of nine good rows and one bad"
    (plain_parameters,), (other,) = plain.settings.values(), spoilt.settings.values()
    assert other.compute == pytest.approx(plain_parameters.compute, rel=0.25)


def test_a_network_that_is_slow_here_keeps_its_own_factor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path / "mine.csv", network_rows({"": 1.0, "ResNet-50": 1.3}), NETWORK_HEADS)
    calibration, out = calibrate(read_rows(data)), tmp_path / "own.yaml"
    assert max(calibration.networks, key=lambda name: calibration.networks[name]) == "ResNet-50"
    calibrate_file(data, out)
    twin = Hardware["RaspberryPi5"].id
    monkeypatch.setenv(CALIBRATION, str(out))
    assert calibration.networks["ResNet-50"] > 1.05
    assert calibrated_network(twin, "resnet50") == pytest.approx(calibration.networks["ResNet-50"], rel=1e-3)
    assert calibrated_network(twin, "bert-base") == calibrated_network("T4", "resnet50") == 1.0
    (setting,) = calibration.settings
    assert calibrate(read_rows(data)).before == calibration.before, (
        "a file in use is no part of what a new one starts from"
    )
    assert "calibrated by measurements of this machine" in range_of(setting, twin, "resnet50").why


def test_a_number_format_that_is_slow_here_keeps_its_own_factor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes take 1.6 times what is estimated of every other network, FP32 what is estimated of the rest."""
    runtime = "TFLite CPU 2.8"  # whose bytes and FP32 are one kind of software
    rows = network_rows({"": 1.0}, software=runtime)[::2]
    rows += network_rows({"": 1.6}, precision="int8", software=runtime)[1::2]
    data, out = written(tmp_path / "mine.csv", rows, NETWORK_HEADS), tmp_path / "own.yaml"
    calibration = calibrate(read_rows(data))
    calibrate_file(data, out)
    assert calibration.formats["int8"] > 1.15 * calibration.formats["fp32"]
    (setting,), twin = calibration.settings, Hardware["RaspberryPi5"]
    answers = {}
    for name in ("fp32", "int8"):
        before = analyze(twin, network("resnet34", precision=name), software=setting, precision=name).estimate
        monkeypatch.setenv(CALIBRATION, str(out))
        after = analyze(twin, network("resnet34", precision=name), software=setting, precision=name).estimate
        monkeypatch.delenv(CALIBRATION)
        answers[name] = float((after / before).m_as(""))
    assert answers["int8"] / answers["fp32"] == pytest.approx(1.6, rel=0.15), "of a network that no row names"
    assert answers["fp32"] == pytest.approx(1.0, rel=0.15)


def test_what_the_rows_leave_open_is_said(tmp_path: Path) -> None:
    large = calibrate(read_rows(written(tmp_path / "large.csv", stream_rows(0.7))))
    assert any("the launch cost of a kernel: add a small size" in words for words in large.untold)
    assert any("the attained arithmetic rate" in words for words in large.untold)
    assert not any("the attained bandwidth" in words for words in large.untold)


def refused(tmp_path: Path, rows: list[tuple[str, ...]], heads: tuple[str, ...] = HEADS) -> str:
    path = written(tmp_path / "bad.csv", rows, heads)
    outcome = CliRunner().invoke(main, ["calibrate", str(path), "--out", str(tmp_path / "none.yaml")])
    assert outcome.exit_code == 1, outcome.output
    assert "Traceback" not in outcome.output
    assert not (tmp_path / "none.yaml").exists()
    return outcome.output


def test_rows_that_cannot_teach_are_refused_with_their_line(tmp_path: Path) -> None:
    good = stream_rows(0.7)
    assert "only 1 different measurement" in refused(tmp_path, [good[0]] * 10)
    assert "at least 3" in refused(tmp_path, good[:2])
    assert "201 measurements, at most 200 are accepted" in refused(tmp_path, (good * 21)[:201])
    other = stream_rows(0.7, device="NVIDIA T4")
    assert "line 4: `device` NVIDIA T4" in refused(tmp_path, [*good[:2], other[2]])
    wrong_unit = (*good[3][:7], "apples", good[3][8])
    assert "line 5" in refused(tmp_path, [*good[:3], wrong_unit])
    zero = (*good[3][:6], "0", *good[3][7:])
    assert "line 5: `value`" in refused(tmp_path, [*good[:3], zero])
    twice = (*good[0][:6], str(float(good[0][6]) * 5), *good[0][7:])
    assert "lines 2 and 7 measure the same and contradict" in refused(tmp_path, [*good[:5], twice])
    other_class = (good[3][0], "MCU", *good[3][2:])
    message = refused(tmp_path, [(row[0], "MCU", *row[2:]) for row in good])
    assert "line 2: `device_class` 'MCU' is not that of NVIDIA L4, a GPU: write datacenter GPU or" in message
    assert "line 5: `device_class` MCU is not datacenter GPU" in refused(tmp_path, [*good[:3], other_class, good[4]])
    slipped = (*good[3][:6], str(float(good[3][6]) * 1000), *good[3][7:])
    assert "line 5" in (result := refused(tmp_path, [*good[:3], slipped, good[4]])) and "Is the unit right" in result
    nothing = (*good[3][:4], "0 MB per array (2 loads + 1 store)", *good[3][5:])
    assert "line 5" in (result := refused(tmp_path, [*good[:3], nothing, good[4]])) and "contains no work" in result
    assert "unknown columns: colour" in refused(tmp_path, [(*row, "red") for row in good], (*HEADS, "colour"))


def test_a_file_of_one_class_is_not_graded_as_another(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", [(row[0], "toaster", *row[2:]) for row in stream_rows(0.7)])
    outcome = CliRunner().invoke(main, ["validate", "--data", str(path)])
    assert outcome.exit_code == 1 and "line 2: `device_class` 'toaster'" in outcome.output
    assert outcome.output.count("\n") == 1


def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("colour: red\n")
    monkeypatch.setenv(CALIBRATION, str(path))
    with pytest.raises(ValueError, match="not a calibration file of mlsys"):
        parameters_of("stream on GPU", "L4")
    monkeypatch.setenv(CALIBRATION, str(tmp_path / "absent.yaml"))
    with pytest.raises(ValueError, match="no file"):
        parameters_of("stream on GPU", "L4")


def test_a_version_has_its_factor_and_no_other_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the networks ran in a newer version, in 0.6 of the time."""
    rows = network_rows({"": 1.0})
    newer = [(*row[:6], str(0.6 * float(row[6])), row[7], "ncnn 2", *row[9:]) for row in rows]
    out = tmp_path / "own.yaml"
    mixed = [old if index % 2 else new for index, (old, new) in enumerate(zip(rows, newer, strict=True))]
    calibration = calibrate_file(written(tmp_path / "a.csv", mixed, NETWORK_HEADS), out)
    ((setting, factors),) = calibration.versions.items()
    assert factors["ncnn 2"] < 0.9 < 1.0 < factors["ncnn benchncnn"]

    def result() -> dict[str, float]:
        named = ("ncnn 2", "ncnn benchncnn", "")
        return {name: parameters_of(setting, calibration.device, version=name)[0].launch for name in named}

    before = result()  # a version that shipped rows measured has an effect of its own
    monkeypatch.setenv(CALIBRATION, str(out))
    after = result()
    for name, factor in factors.items():
        assert after[name] / after[""] == pytest.approx(factor * before[name] / before[""], rel=0.01)


@pytest.mark.parametrize("versions", ["[1]", "{a: 1.2}", "{a: {b: 0}}", "{a: {b: nan}}", "{a: {b: x}}", "7"])
def test_versions_that_are_none_are_refused(versions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = written(tmp_path / "mine.csv", stream_rows(0.6)), tmp_path / "own.yaml"
    calibrate_file(data, out)
    out.write_text(out.read_text() + f"versions: {versions}\n")
    monkeypatch.setenv(CALIBRATION, str(out))
    with pytest.raises(ValueError, match="not a calibration file|must be a finite number"):
        parameters_of("stream on GPU", "L4")


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Two small networks, timed a few times on one thread: how well it times is tested in tests/bench."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for cores which others hold take many times as long
    few = {"repeats": 6, "warmup": 1, "shortest": Q_(0.2, "ms")}
    monkeypatch.setattr(
        "mlsys.measure.ten_measurements.measure", lambda calls, **wanted: timing.measure(calls, **wanted | few)
    )
    monkeypatch.setitem(ten._NETWORKS, "cpu", (("squeezenet-1.1", 1), ("squeezenet-1.1", 2)))
    yield few
    torch.set_num_threads(threads)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, briefly: dict[str, Any]) -> None:
    """Nothing is run: what is said about the measurements does not hang on them."""

    def measured(calls: dict[str, Any], **wanted: Any) -> Any:
        return timing.measure(dict.fromkeys(calls, lambda: None), **wanted | briefly)

    monkeypatch.setattr("mlsys.measure.ten_measurements.measure", measured)


@pytest.mark.usefixtures("briefly")
def test_measured_rows_are_rows_that_calibrate_takes(tmp_path: Path) -> None:
    out = tmp_path / "mine.csv"
    outcome = CliRunner().invoke(main, ["measure", "--device", "Core_i7_12700H", "--out", str(out)])
    assert outcome.exit_code == 0, outcome.output
    rows = read_rows(out)
    assert len(rows) == 2 and "device" in columns_of(out)
    assert [interpret(row).setting for row in rows] == ["eager network on CPU"] * 2
    assert all("middle half" not in row.note and "after 1 warm-up calls" in row.note for row in rows)
    assert {(row.threads, row.processor, row.tf32) for row in rows} == {(1, "cpu", "")}
    busy = sum(row.spread > 0.25 for row in rows)
    assert (f"{busy} of 2 measurements scatter" in outcome.output) == bool(busy)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("held", "warned"), [(0.3, True), (0.98, False)])
def test_a_machine_that_works_for_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: float, warned: bool
) -> None:
    """Two programs that want every core get half of it each, and ten steady numbers that mean nothing."""
    import torch

    threads = torch.get_num_threads()
    monkeypatch.setattr(
        "mlsys.measure.ten_measurements.time.process_time", lambda: held * threads * time.perf_counter()
    )
    out = tmp_path / "mine.csv"
    outcome = CliRunner().invoke(main, ["measure", "--device", "Core_i7_12700H", "--out", str(out)])
    assert outcome.exit_code == 0, outcome.output
    assert ("other programs were running" in outcome.output) == warned


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("device", "warned"), [("EPYC_9654", True), ("Core_i5_5200U", False)])
def test_a_part_of_a_processor_is_told(tmp_path: Path, device: str, warned: bool) -> None:
    """Two threads of 96 cores attain little of what the processor does; two cores are a laptop's."""
    import torch

    torch.set_num_threads(2)  # the fixture sets it back
    outcome = CliRunner().invoke(main, ["measure", "--device", device, "--out", str(tmp_path / "mine.csv")])
    assert outcome.exit_code == 0, outcome.output
    assert ("2 threads, but AMD EPYC 9654 has 96 cores" in outcome.output) == warned


@pytest.mark.usefixtures("at_once")
def test_a_slow_machine_is_not_kept_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ten, "LONGEST", 0.0)
    outcome = CliRunner().invoke(main, ["measure", "--device", "Core_i7_12700H", "--out", str(tmp_path / "mine.csv")])
    assert outcome.exit_code == 0 and "1 of 2 measurements: the three minutes were up" in outcome.output
    assert len(read_rows(tmp_path / "mine.csv")) == 1


def test_a_few_cores_of_a_server_can_be_calibrated() -> None:
    """BERT-base in 157 ms on two virtual cores of a Genoa, of 22.3 GFLOP each pass: 142 GFLOP/s of 237 at 3.7 GHz."""
    words = ("EPYC_9654", "CPU", "BERT inference on CPU", "bert-base", "fp32", "1", "seq 128", "latency")
    heads = ("device", "device_class", "workload", "model", "precision", "batch", "seq_or_shape", "metric")
    empty = dict.fromkeys(("id", "source", "source_path", "quality", "group"), "")
    row = Row(**dict(zip(heads, words, strict=True)), **empty, n_devices=1, value=157.4, unit="ms", line=0,
              software="PyTorch 2.13 eager", note="98% of 2 threads")  # fmt: skip
    (result,) = validate([row]).predictions
    assert result.bound == pytest.approx(22.3e9 / (2 * 32 * 3.7e9), rel=0.05)


@pytest.mark.usefixtures("at_once")
def test_a_neighbour_that_comes_for_a_round_is_not_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four measurements, two of them disturbed, one of each network: the other one of each is the row."""
    took = iter([0.030, 0.010, 0.020, 0.040])
    timing_of = timing.Timing
    monkeypatch.setattr(
        "mlsys.measure.ten_measurements.measure", lambda *_, **__: (timing_of("run", (next(took),) * 6, warmup=3),)
    )
    rows = ten.ten_measurements("Core_i7_12700H", "CPU")
    assert [float(row["value"]) for row in rows] == [20, 10], "ms"


@pytest.mark.parametrize(
    ("on", "device", "group", "settings"),
    [
        # Of networks without convolutions the products are the library's, as torch.compile's are.
        ("cpu", "Core_i7_12700H", "CPU", {"eager network on CPU", "eager transformer network on CPU"}),
        ("cuda", "A100_80GB", "datacenter GPU", {"eager network on GPU"}),
    ],
)
def test_each_measured_network_can_be_estimated_on_the_machine(
    monkeypatch: pytest.MonkeyPatch, on: Processor, device: str, group: str, settings: set[str]
) -> None:
    """Measurements without an estimate teach nothing: each network is one of a setting that `analyze` knows."""
    torch = pytest.importorskip("torch")

    def unmade(name: str, batch: int) -> tuple[Any, Any, str]:
        sizes = {"image": 224, "sequence": 128}
        shape = [sizes[size] if isinstance(size, str) else size for size in recipe(name).shape]
        inputs = torch.zeros(batch, *shape, dtype=torch.int64 if len(shape) == 1 else torch.float32)
        return torch.nn.Identity(), inputs, name

    monkeypatch.setattr("mlsys.measure.networks.modules.ready_model", unmade)
    monkeypatch.setitem(ten._ELEMENTS, on, ())
    empty = dict.fromkeys(("id", "source", "source_path", "quality", "group", "note"), "")
    runs = list(ten._runs(on, "fp32", {"device": "cpu", "dtype": torch.float32}, 4))
    result: dict[str, Any] = {**empty, "device": device, "device_class": group, "n_devices": 1, "value": 1e3}
    result |= {"precision": "fp32", "software": "PyTorch 2.9.1 eager"}
    sizes = ({name: int(cells[name]) for name in ("image", "tokens") if name in cells} for cells, _, _ in runs)
    rows = [Row(**(result | cells | numbers)) for (cells, _, _), numbers in zip(runs, sizes, strict=True)]
    assert {interpret(row).setting for row in rows} == settings <= set(fitted())
    assert len({(row.model, row.batch) for row in rows}) == len(rows) == len(ten._NETWORKS[on])
    assert ten.count_measurements("cpu") == 10 or on == "cpu"


def test_measured_software_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks that PyTorch ran twice as slowly: it is the default of that machine."""
    rows: list[tuple[str, ...]] = []
    for words in network_rows({"": 1.0}):
        result = ("Core_i7_12700H", "CPU", *words[2:8], "PyTorch 2.9.1 eager", *words[9:])
        rows.append((*result[:6], "1000", *result[7:]))
    path = written(tmp_path / "a.csv", rows, NETWORK_HEADS)
    usual_values = [each.value for each in validate(read_rows(path)).predictions]
    twice = [(*row[:6], f"{2 * value:.6g}", *row[7:]) for row, value in zip(rows, usual_values, strict=True)]
    data, out = written(tmp_path / "mine.csv", twice, NETWORK_HEADS), tmp_path / "own.yaml"
    calibrate_file(data, out)
    command = ["analyze", "vgg16", "--device", "Core_i7_12700H", "--precision", "fp32", "--json"]

    def answer(*more: str) -> dict[str, Any]:
        result = CliRunner().invoke(main, [*command, *more])
        assert result.exit_code == 0, result.output
        return dict(json.loads(result.stdout))

    eager = ("--setting", "eager network")
    mine, usual, other = answer("--calibration", str(out)), answer(*eager), answer()
    assert not any("no measurements" in words for words in mine["assumptions"])
    assert mine["setting"] == usual["setting"] == "eager network on CPU" != other["setting"]
    assert mine["estimate_seconds"] == pytest.approx(2 * usual["estimate_seconds"], rel=0.15)
    monkeypatch.setenv("MLSYS_CALIBRATION", str(out))
    command = ["compare", "vgg16", "--devices", "Core_i7_12700H", "--precision", "fp32", "--json"]
    (beside,) = json.loads(CliRunner().invoke(main, command).stdout)
    python = analyze(Hardware["Core_i7_12700H"], as_kernels(load("vgg16")), precision="fp32")
    columns = sweep(
        SweepSpec(models=["vgg16"], devices=["Core_i7_12700H"], precisions=["fp32"]), tmp_path / "s"
    ).columns
    assert {beside["setting"], python.setting, *columns["setting"]} == {mine["setting"]}
    for seconds in (beside["estimate_seconds"], python.estimate.m_as("s"), *columns["estimate_seconds"]):
        assert seconds == pytest.approx(mine["estimate_seconds"])


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.12, 3.0), min_size=5, max_size=5), st.sampled_from(["ncnn benchncnn", "TFLite CPU 2.8"]))
def test_what_is_said_of_the_error_is_that_of_estimates_that_use_the_file(
    tmp_path_factory: pytest.TempPathFactory, factors: list[float], software: str
) -> None:
    """Also where rows ask for more than the twin has, and estimates stop at its peak."""
    names = ("ResNet-18", "VGG-16", "MobileNet-v2", "AlexNet", "")
    folder = tmp_path_factory.mktemp("said")
    rows = network_rows(dict(zip(names, factors, strict=True)), software=software)
    data, out = written(folder / "mine.csv", rows, NETWORK_HEADS), folder / "own.yaml"
    reported = calibrate_file(data, out)
    with calibrated_by(out):
        used = [abs(each.value / each.row.value - 1) for each in validate(read_rows(data)).predictions]
    assert reported.after == pytest.approx(float(np.median(used)), abs=1e-6)


@pytest.mark.parametrize(("attained", "doubted"), [(0.9, False), (1.3, True)])
def test_a_machine_that_beats_its_twin_is_told(tmp_path: Path, attained: float, doubted: bool) -> None:
    """The L4 has 300 GB/s: rows of 390 GB/s are of another machine, and no estimate follows them."""
    data = written(tmp_path / "mine.csv", stream_rows(attained, launch=0.0))
    result = CliRunner().invoke(main, ["calibrate", str(data), "--out", str(tmp_path / "own.yaml")])
    assert result.exit_code == 0, result.output
    assert ("your machine attained 390 GB/s from memory" in result.output) == doubted, result.output
    assert ("the device's limit is 300 GB/s" in result.output) == doubted
    assert ("Name another device" in result.output) == doubted
    reported = calibrate(read_rows(data))
    assert (reported.after > 0.2) == doubted and (reported.spread > 0.2) == doubted


def test_rows_that_ask_for_more_than_the_twin_has_are_told(tmp_path: Path) -> None:
    """A fifth of the estimate is above the bound in most rows, and still more than the twin's peak attains."""
    rows = network_rows({"": 0.2}, software="TFLite CPU 2.8")
    reported = calibrate(read_rows(written(tmp_path / "mine.csv", rows, NETWORK_HEADS)))
    assert reported.doubts and reported.after > 0.1
    assert not calibrate(read_rows(written(tmp_path / "b.csv", network_rows({"": 1.3}), NETWORK_HEADS))).doubts


def test_what_stands_three_times_is_learned_once(tmp_path: Path) -> None:
    """A measurement that is told by its own copy says nothing of the next."""
    rows = stream_rows(0.5, launch=0.0)
    once, thrice = (calibrate(read_rows(written(tmp_path / "a.csv", many))) for many in (rows, [*rows] * 3))
    assert (thrice.rows, thrice.spread) == (3 * once.rows, pytest.approx(once.spread))
    for name, own in once.settings.items():
        assert thrice.settings[name].vectorised() == pytest.approx(own.vectorised(), rel=1e-9)


def test_rows_that_stay_far_off_say_that_others_will(tmp_path: Path) -> None:
    """Rates that are chance, a half to a fiftieth of the peak: whoever says "within a fifth of that" has not looked."""
    parts = np.exp(np.random.default_rng(3).uniform(np.log(0.02), np.log(0.5), 10))
    odd = [
        (*row[:6], f"{float(row[6]) * part:.6g}", *row[7:])
        for row, part in zip(stream_rows(1.0, launch=0.0), parts.tolist(), strict=True)
    ]
    result = calibrate(read_rows(written(tmp_path / "a.csv", odd)))
    assert np.exp(1.28 * result.spread) > 2


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    """Blank lines count, and a cell may take two."""
    good = stream_rows(0.7)
    path = written(tmp_path / "mine.csv", [*good[:3], ("NVIDIA T4", *good[3][1:])])
    head, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rest[0] = rest[0].replace("100 MB", '"100 MB\n').replace("store)", 'store)"')
    path.write_text(head + "\n\n" + "".join(rest), encoding="utf-8")
    with pytest.raises(ValueError, match="line 8: `device` NVIDIA T4 is not NVIDIA L4 of line 4"):
        calibrate(read_rows(path), "mine.csv")


def test_what_contradicts_is_told_by_time_whatever_its_unit_and_only_of_the_same_machines(tmp_path: Path) -> None:
    good = stream_rows(0.7)
    slower = (*good[0][:6], f"{float(good[0][6]) / 3e3:.6g}", "TB/s", good[0][8])
    same = (*good[0][:6], f"{float(good[0][6]) / 1e3:.6g}", "TB/s", good[0][8])
    assert "lines 2 and 7 measure the same" in refused(tmp_path, [*good[:5], slower])
    calibrate(read_rows(written(tmp_path / "same.csv", [*good[:5], same])))
    heads = ("device", "device_class", "workload", "precision", "seq_or_shape", "metric", "value", "unit", "n_devices")
    words = ("NVIDIA A100 80GB SXM", "datacenter GPU", "all-reduce", "fp16")
    rows: list[tuple[str, ...]] = [(*words, f"{size} MB", "time", value, "us", peers)
            for size in (16, 64, 256) for peers, value in (("2", str(size * 8)), ("8", str(size * 30)))]  # fmt: skip
    assert calibrate(read_rows(written(tmp_path / "peers.csv", rows, heads))).rows == 6


def test_measurements_are_not_written_over(tmp_path: Path) -> None:
    data = written(tmp_path / "mine.csv", stream_rows(0.7))
    before = data.read_bytes()
    result = CliRunner().invoke(main, ["calibrate", str(data), "--out", str(data)])
    assert result.exit_code == 2 and "is an input of this command" in result.output
    assert data.read_bytes() == before


@pytest.mark.parametrize("value", ["1e300", "1e-300"])
def test_a_rate_that_leaves_no_time_is_no_row(tmp_path: Path, value: str) -> None:
    good = stream_rows(0.7)
    path = written(tmp_path / "mine.csv", [*good[:3], (*good[3][:6], value, *good[3][7:])])
    outcome = CliRunner().invoke(main, ["validate", "--data", str(path)])
    assert outcome.exit_code == 0 and "line" in outcome.output and "Traceback" not in outcome.output
    assert max(map(len, refused(tmp_path, [*good[:3], (*good[3][:6], value, *good[3][7:])]).splitlines())) < 300


def test_what_validate_cannot_read_is_told_with_its_line(tmp_path: Path) -> None:
    good = stream_rows(0.7)
    apples = written(tmp_path / "a.csv", [*good[:3], (*good[3][:7], "apples", good[3][8])])
    milli = written(tmp_path / "b.csv", [*good[:3], (*good[3][:7], "MB/s", good[3][8])])
    bytes_ = written(tmp_path / "c.csv", [*good[:3], (*good[3][:7], "GB", good[3][8])])
    every = written(tmp_path / "d.csv", [(*row[:7], "TB/s", row[8]) for row in good])
    misspelt = written(tmp_path / "e.csv", good, (*HEADS[:8], "softwear"))
    more = written(tmp_path / "f.csv", [(*row, "red") for row in good], (*HEADS, "colour"))
    text = (tmp_path / "b.csv").read_text(encoding="utf-8")
    semicolons = tmp_path / "g.csv"
    semicolons.write_text(text.replace(",", ";"), encoding="utf-8")
    wanted = {
        apples: (1, "line 5: `unit` must be one of"),
        milli: (0, "line 5: 209.902 MB/s takes"),
        bytes_: (0, "is not a bandwidth: write GB/s, TB/s or MB/s (line 5)"),
        every: (1, "line 2: 209.414 TB/s would take"),
        misspelt: (1, "unknown column 'softwear'. Did you mean 'software'?"),
        more: (0, "line 1: columns that are not read: colour"),
        semicolons: (1, "line 1: the cells are separated by semicolons"),
    }
    for path, (code, words) in wanted.items():
        outcome = CliRunner().invoke(main, ["validate", "--data", str(path)])
        assert (outcome.exit_code, words in outcome.output) == (code, True), outcome.output


def test_names_of_two_makers_are_not_mixed_up() -> None:
    from mlsys.calibration.case import Inexpressible

    with pytest.raises(Inexpressible):
        device_of("NVIDIA A16")
    assert device_of("Apple A16")[0].id == "Apple_A16"
    assert device_of("AWS Inferentia")[0].id == "Inferentia1"


def test_the_range_of_an_estimate_holds_it_and_keeps_above_the_bound() -> None:
    for device in ("A100", "T4", "EdgeTPU", "RaspberryPi5"):
        twin = Hardware[device]
        analysis = analyze(twin, network("mobilenet-v2", batch=1, precision="fp16"), precision=twin.headline)
        low, high = analysis.range
        assert analysis.bound <= low <= analysis.estimate <= high
        assert analysis.interval.why


def test_what_was_never_measured_has_the_widest_range() -> None:
    known, unknown = range_of("compiled network on GPU", "A100_80GB"), range_of("telepathy")
    assert unknown.high / unknown.low > known.high / known.low
    assert unknown.why.startswith("nothing similar was measured; wider: the measuring source is unknown")


def test_an_interval_cuts_the_tails_of_a_known_distribution() -> None:
    """Of normal logarithms with spread s, four in five lie within 1.2816 s of the middle."""
    from mlsys_evidence.fit.intervals import quantiles

    apart = np.random.default_rng(1).normal(0.1, 0.3, 20_000)
    low, high = quantiles(apart)
    assert low == pytest.approx(0.1 - 1.2816 * 0.3, abs=0.02)
    assert high == pytest.approx(0.1 + 1.2816 * 0.3, abs=0.02)


@settings(max_examples=60)
@given(st.floats(1e-9, 1e9))
def test_every_number_that_is_written_is_read_back_as_a_number(value: float) -> None:
    """YAML reads ``1e+03`` as text: a file of parameters with it would not load."""
    read = yaml_of(f"a: {decimal(value)}")["a"]
    assert isinstance(read, (int, float))
    assert read == pytest.approx(value, rel=5.1e-3)
