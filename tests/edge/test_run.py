"""Runs: what is made, what the files say, and that a killed run goes on."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.edge.config import Config
from mlsys.edge.run import EdgeRun, measured_of, run
from mlsys.errors import ArgumentError

SMALL: dict[str, Any] = {
    "name": "small",
    "network": "edge_task:net",
    "data": "edge_task:data",
    "training": {"epochs": 3, "finetune_epochs": 1, "learning_rate": 0.01},
    "pruning": {"structured": [0, 0.5], "unstructured": [0.5]},
    "precisions": ["fp32", "bf16", "int8-dynamic", "int8-static"],
    "clocks": [1.0, 0.5],
    "latency": {"samples": 6, "warmup": 1},
    "benchmark_repeats": 2,
    "memory_budgets_mb": [0.001, 0.1],
    "active_memory_budget_mb": 0.006,
    "power": {"static_w": 0.5, "dynamic_w": 1.5},
}

TASK = """
import torch
from sklearn.datasets import load_digits

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )

def data():
    images, classes = load_digits(return_X_y=True)
    x = torch.tensor(images.reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    y = torch.tensor(classes)
    return x[:1000], y[:1000], x[1000:1300], y[1000:1300]

def wide_data():
    x = torch.zeros(4, 3, 8, 8)
    return x, torch.zeros(4, dtype=torch.int64), x, torch.zeros(4, dtype=torch.int64)
"""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a network and a data loader of the reader's own, on the path of modules."""
    import sys

    folder = tmp_path_factory.mktemp("edge")
    (folder / "edge_task.py").write_text(TASK)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("edge_task", None)


@pytest.fixture(scope="module")
def finished(workshop: Path) -> Path:
    """The folder of a finished run of :data:`SMALL`."""
    from mlsys.cli.edge_page import write_reports
    from mlsys.edge.config import Config
    from mlsys.edge.run import run

    folder = workshop / "results"
    run(Config(SMALL), folder, write=write_reports)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_all_files_are_there(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert names >= {
        *("layerwise_breakdown.csv", "precision_tradeoffs.csv", "hardware_summary.csv", "points.csv", "samples.csv"),
        *("layerwise_activation_memory.png", "layerwise_macs.png", "precision_tradeoffs.png"),
        *("report.md", "report.html", "trained.pt", "edge.json"),
    }
    assert not finished.with_name("results.part").exists()
    assert not [name for name in names if name.endswith(".part")]
    for name in names:
        if name.endswith(".png"):
            assert (finished / name).read_bytes().startswith(b"\x89PNG")


def test_columns_are_those_of_the_source(finished: Path) -> None:
    rows = rows_of(finished / "precision_tradeoffs.csv")
    wanted = [
        "precision",
        "accuracy_mean",
        "latency_ms_mean",
        "memory_mb_mean",
        "energy_proxy_j_mean",
        "accepted_ratio",
    ]
    assert list(rows[0])[:6] == wanted
    assert [row["precision"] for row in rows] == SMALL["precisions"]
    points = rows_of(finished / "points.csv")
    for row in rows:
        here = [float(point["memory_mb"]) for point in points if point["precision"] == row["precision"]]
        assert float(row["memory_mb_mean"]) == pytest.approx(np.mean(here))
        taken = [point["accepted"] == "True" for point in points if point["precision"] == row["precision"]]
        assert float(row["accepted_ratio"]) == pytest.approx(np.mean(taken))


def test_structured_pruning_lowers_traced_operations_and_unstructured_leaves_them(finished: Path) -> None:
    points = {(row["pruning_method"], row["precision"]): row for row in rows_of(finished / "points.csv")}
    whole, cut, holes = (points[method, "fp32"] for method in ("none", "structured", "unstructured"))
    assert int(whole["macs"]) == 8 * 9 * 64 + 128 * 10
    assert int(cut["macs"]) == 4 * 9 * 64 + 64 * 10  # half of the channels, so half of both layers
    assert int(holes["macs"]) == int(whole["macs"])
    assert holes["weights_mb"] == whole["weights_mb"]
    weights = 8 * 9 + 128 * 10
    zeros = int(whole["parameters"]) - int(holes["nonzero_parameters"])
    assert zeros == pytest.approx(weights / 2, abs=1)
    assert float(holes["sparse_weights_mb"]) < float(holes["weights_mb"])
    assert float(whole["sparse_weights_mb"]) == float(whole["weights_mb"])


def test_packed_weights_of_int8_are_counted(finished: Path) -> None:
    """Source text: packed tensors vanished from the size. One byte a weight, four a bias."""
    points = {(row["pruning_method"], row["precision"]): row for row in rows_of(finished / "points.csv")}
    held = {form: round(1e6 * float(points["none", form]["weights_mb"])) for form in SMALL["precisions"]}
    conv, linear = 8 * 9, 128 * 10
    assert held["fp32"] == 4 * (conv + 8 + linear + 10)
    assert held["bf16"] == held["fp32"] / 2
    assert held["int8-dynamic"] == 4 * (conv + 8) + linear + 4 * 10
    scales = 2 * (4 + 8)  # of the input and of what the convolution makes: FP32, and a whole number of 64 bits
    assert held["int8-static"] == conv + 4 * 8 + linear + 4 * 10 + scales


def test_memory_is_weights_and_live_activations_and_reserve(finished: Path) -> None:
    """Fullest at the pooling: 8 × 64 values in, which ReLU has written in place, and a quarter of them out."""
    row = rows_of(finished / "points.csv")[0]
    assert round(1e6 * float(row["activations_mb"])) == 4 * (8 * 64 + 8 * 16)
    whole = sum(float(row[name]) for name in ("weights_mb", "activations_mb", "reserve_mb"))
    assert float(row["memory_mb"]) == pytest.approx(whole)


def test_percentiles_follow_from_the_stored_samples(finished: Path) -> None:
    samples: dict[tuple[str, ...], list[float]] = {}
    for row in rows_of(finished / "samples.csv"):
        key = (row["pruning_method"], row["pruning_level"], row["precision"])
        samples.setdefault(key, []).append(float(row["latency_ms"]))
    for point in rows_of(finished / "points.csv"):
        times = np.array(samples[point["pruning_method"], point["pruning_level"], point["precision"]])
        assert len(times) == 12 == int(point["samples"])
        memory, scale = float(point["memory_time_ms"]), float(point["clock_scale"])
        slowed = (times - np.minimum(times, memory)) / scale + np.minimum(times, memory)
        assert float(point["latency_ms"]) == pytest.approx(np.median(slowed))
        assert float(point["latency_std_ms"]) == pytest.approx(slowed.std(ddof=1))
        assert point["latency_p99_ms"] == "" == point["latency_p95_ms"]  # of 12 samples neither can be said
        assert float(point["throughput_sps"]) == pytest.approx(1e3 / np.median(slowed))


def test_energy_has_two_terms_that_sum(finished: Path) -> None:
    for row in rows_of(finished / "points.csv"):
        static, dynamic = float(row["static_energy_mj"]), float(row["dynamic_energy_mj"])
        assert float(row["energy_mj"]) == pytest.approx(static + dynamic)
        assert static == pytest.approx(0.5 * float(row["latency_ms"]))
    full, half = rows_of(finished / "points.csv")[:2]
    assert (full["clock_scale"], half["clock_scale"]) == ("1.0", "0.5")
    assert float(half["dynamic_energy_mj"]) == pytest.approx(float(full["dynamic_energy_mj"]))


def test_accepted_if_and_only_if_within_the_budget(finished: Path) -> None:
    points = rows_of(finished / "points.csv")
    assert {row["accepted"] for row in points} == {"True", "False"}
    for row in points:
        memory = float(row["memory_mb"])
        assert (row["accepted"] == "True") == (memory <= 0.006)
        assert (row["violates_0.001mb"], row["violates_0.1mb"]) == (str(memory > 0.001), str(memory > 0.1))
        assert bool(row["reason"]) == (row["accepted"] == "False")
        assert row["accepted"] == "True" or row["pareto"] == "False"


def test_front_is_that_of_brute_force_over_the_stored_points(finished: Path) -> None:
    names = ("latency_ms", "energy_mj", "memory_mb")
    taken = [row for row in rows_of(finished / "points.csv") if row["accepted"] == "True"]
    values = [(-float(row["accuracy"]), *(float(row[name]) for name in names)) for row in taken]
    for row, costs in zip(taken, values, strict=True):
        beaten = any(all(a <= b for a, b in zip(other, costs, strict=True)) and other != costs for other in values)
        assert (row["pareto"] == "True") == (not beaten)


def test_trained_network_knows_the_digits(finished: Path) -> None:
    row = rows_of(finished / "points.csv")[0]
    assert float(row["accuracy"]) > 0.75  # guessing gives 0.1


def test_html_stands_alone(finished: Path) -> None:
    text = (finished / "report.html").read_text()
    assert text.count("<svg") == 3
    for mark in ("http://", "https://", "src=", "@import"):
        assert mark not in text.replace("http://www.w3.org", "")
    assert "aria-label" in text


def test_second_run_does_nothing_and_another_configuration_is_refused(finished: Path, workshop: Path) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("nothing is to be written")

    again = run(Config(SMALL), finished, write=never)
    assert [measured.variant for measured in again] == list(Config(SMALL).variants)
    with pytest.raises(ArgumentError, match="another configuration"):
        run(Config({**SMALL, "seed": 1}), finished, write=never)
    with pytest.raises(ArgumentError, match="no finished run"):
        measured_of(Config(SMALL), workshop / "nowhere")


def test_reports_that_fail_leave_nothing_under_the_name(workshop: Path, tmp_path: Path) -> None:
    single = {**SMALL, "pruning": {"structured": [0]}, "precisions": ["fp32"], "training": {"epochs": 0}}

    def breaks(*_: Any) -> None:
        raise OSError("disk full")

    folder = tmp_path / "results"
    with pytest.raises(OSError, match="disk full"):
        run(Config(single), folder, write=breaks)
    assert not folder.exists()
    made: list[object] = []
    run(Config(single), folder, write=lambda *_: None, on_progress=lambda *step: made.append(step))
    assert folder.exists()
    assert not made  # the pieces were there


def test_broken_piece_is_made_again(workshop: Path, tmp_path: Path) -> None:
    two = {"precisions": ["fp32", "bf16"], "training": {"epochs": 0}}
    single = Config({**SMALL, **two, "pruning": {"structured": [0]}})
    folder = tmp_path / "results"

    def stops(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(single, folder, write=stops)
    pieces = sorted((folder.with_name("results.part") / "pieces").iterdir())
    pieces[0].write_text("{")
    made: list[int] = []
    run(single, folder, write=lambda *_: None, on_progress=lambda done, *_: made.append(done))
    assert len(made) == 1


def test_goes_on_after_kill_9(workshop: Path, tmp_path: Path) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(yaml.safe_dump({**SMALL, "pruning": {"structured": [0]}, "training": {"epochs": 0}}))
    killed = (
        "import os, signal, sys\n"
        "from mlsys.edge.config import Config\n"
        "from mlsys.edge.run import run\n"
        "def report(done, *_):\n"
        "    if done == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "run(Config.load(sys.argv[1]), sys.argv[2], write=lambda *_: None, on_progress=report)\n"
    )
    command = [sys.executable, "-c", killed, str(config), str(tmp_path / "edge-results")]
    environment = {**os.environ, "PYTHONPATH": f"{workshop}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    pieces = tmp_path / "edge-results.part" / "pieces"
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (tmp_path / "edge-results").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in pieces.glob("*.json")}
    assert len(kept) == 2
    made: list[int] = []
    read = Config.load(config)
    run(read, tmp_path / "edge-results", write=lambda *_: None, on_progress=lambda done, *_: made.append(done))
    assert made == [2, 3]
    assert EdgeRun(read, tmp_path / "edge-results").finished
    for name, when in kept.items():
        assert (tmp_path / "edge-results" / "pieces" / name).stat().st_mtime_ns == when


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "edge_task:nothing"}, "has no 'nothing'"),
        ({"data": "edge_task:net"}, "must return train_x"),
        ({"data": "edge_task:wide_data"}, "does not accept the data"),
        ({"network": "torch.nn:Identity"}, "score for each of 10 classes"),
        ({"quantization_backend": "onednn", "network": "no_such_place:net"}, "cannot import"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_written(
    workshop: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        run(Config({**SMALL, **change}), tmp_path / "results", write=lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_missing_kernels_are_named(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["none", "fbgemm"])
    with pytest.raises(ArgumentError, match="no 'qnnpack'. It has fbgemm"):
        run(Config({**SMALL, "quantization_backend": "qnnpack"}), tmp_path / "results", write=lambda *_: None)


def test_a_file_in_the_way_is_refused(workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ArgumentError, match="is a file"):
        run(Config(SMALL), tmp_path / "taken", write=lambda *_: None)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    with pytest.raises(ArgumentError, match="not from a run"):
        run(Config(SMALL), tmp_path / "mine", write=lambda *_: None)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "mine"


def test_report_command_reads_what_was_found(finished: Path, workshop: Path) -> None:
    config = workshop / "small.yaml"
    config.write_text(yaml.safe_dump(SMALL))
    call = ["edge", "report", str(config), "--output", str(finished), "--format"]
    text = CliRunner().invoke(main, [*call, "text"])
    assert text.exit_code == 0, text.output
    assert "of them Pareto-optimal" in text.output
    report = json.loads(CliRunner().invoke(main, [*call, "json"]).output)
    stored = rows_of(finished / "points.csv")
    assert [row["latency_ms"] for row in report["points"]] == [float(row["latency_ms"]) for row in stored]
    assert report["machine"]
    missing = CliRunner().invoke(main, ["edge", "report", str(config), "--output", str(workshop / "none")])
    assert missing.exit_code == 1
    assert "mlsys edge run" in missing.output
