"""Every row is counted once, the roofline bounds the model, and the report adds up."""

import csv
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mlsys.calibration.case import Case
from mlsys.calibration.priors import PRIORS
from mlsys.cli import main
from mlsys.hardware import Hardware, view
from mlsys.models.estimate import MATMUL, VECTOR, CaseBatch, Kernel, Parameters, Work, bound, calibrated_times, snapshot
from mlsys.models.estimate.library import fitted, parameters_of
from mlsys_evidence import Validation, held_out_scores, score, validate
from mlsys_evidence.fit.fitting import fit, predicted
from mlsys_evidence.fit.refit import settings
from mlsys_evidence.rows import shipped_rows


@pytest.fixture(scope="module")
def all_settings() -> dict[str, list[Case]]:
    return settings()


@pytest.fixture(scope="module")
def validation() -> Validation:
    return validate(shipped_rows())


def test_no_row_is_dropped(validation: Validation) -> None:
    assert len(validation.predictions) == len(shipped_rows())
    for each in validation.predictions:
        assert (each.case is None) == bool(each.reason)
    assert sum(validation.reasons().values()) + score(validation.predictions).expressible == len(validation.predictions)


def test_the_groups_add_up(validation: Validation) -> None:
    whole = score(validation.predictions)
    for key in (lambda each: each.kind, lambda each: each.row.device_class):
        parts = validation.scores(key).values()
        assert sum(part.rows for part in parts) == whole.rows
        assert sum(part.expressible for part in parts) == whole.expressible
        assert sum(part.bound_violations for part in parts) == whole.bound_violations


def test_errors_are_those_of_the_published_value(validation: Validation) -> None:
    done = [each for each in validation.predictions if each.case is not None]
    by_hand = sorted(abs(each.value / each.row.value - 1) for each in done)
    middle = (by_hand[(len(by_hand) - 1) // 2] + by_hand[len(by_hand) // 2]) / 2
    assert score(done).median_ape == pytest.approx(100 * middle, abs=0.01)
    for each in done:
        assert each.case is not None
        rate = each.row.unit.endswith("/s") or "/s/" in each.row.unit
        faster = each.seconds < each.case.seconds
        assert (each.value > each.row.value) == (faster == rate)


def test_every_measurement_faster_than_its_bound_is_listed(validation: Validation) -> None:
    for each in validation.predictions:
        if each.case is not None:
            assert (each.bound > each.case.seconds) == bool(each.excuse), each.row.id


def test_rows_that_contradict_themselves_are_refused(validation: Validation) -> None:
    """A rate of bytes over a rate of tokens is the size of the model; two rows name one ten times smaller."""
    refused = [each for each in validation.predictions if each.reason.startswith("mislabelled model")]
    assert sorted((each.row.model, each.row.value) for each in refused) == [
        ("Llama-2-7B", 25.25),
        ("Llama-3.1-8B", 18.04),
    ]


def test_the_length_of_a_sweep_with_impossible_rates_is_not_the_stated_one() -> None:
    """At its longest length BERT-6B would run at 1.6 times the dense peak of an A100."""
    peak = float(Hardware.Cloud.A100.peak("fp16").m_as("FLOP/s"))
    (row,) = (
        row
        for row in shipped_rows()
        if "BERT-6B" in row.model and "parallel 1, pipeline parallel 1" in row.note
        if (row.batch, row.seq_or_shape, row.value) == ("32", "seq 32", 26.36)
    )
    layers, width, tokens = 32, 4096, 32 * 32
    at_full_length = 2 * 12 * layers * width**2 * tokens / (row.value / 1e3)
    assert at_full_length > 1.5 * peak


def test_every_violation_has_an_explanation(validation: Validation) -> None:
    whole = score(validation.predictions)
    assert 0 < whole.bound_violations < 0.06 * whole.expressible
    assert whole.unexplained_violations == 0


def test_the_models_reach_what_the_page_says(validation: Validation) -> None:
    whole = score(validation.predictions)
    assert whole.expressible / whole.rows > 0.95
    assert whole.median_ape is not None
    assert whole.median_ape < 20
    assert whole.within_factor_two is not None
    assert whole.within_factor_two > 90


def test_devices_that_the_fit_has_not_seen_are_worse_but_not_lost(validation: Validation) -> None:
    unseen = held_out_scores()["device unseen, all"]
    seen = score(validation.predictions)
    assert unseen.median_ape is not None and seen.median_ape is not None
    assert seen.median_ape < unseen.median_ape < 35


def test_refitting_one_setting_gives_the_committed_parameters() -> None:
    name = "npu runtime llm decode on NPU"
    again = fit(settings()[name]).parameters
    committed = fitted()[name]
    for parameter in Parameters.names():
        assert getattr(again, parameter) == pytest.approx(getattr(committed, parameter), rel=0.05), parameter


def test_parameters_stay_within_their_physical_limits() -> None:
    assert set(PRIORS) == set(Parameters.names())
    for setting, values in fitted().items():
        for name, prior in PRIORS.items():
            assert prior.lowest * 0.99 <= getattr(values, name) <= prior.highest * 1.01, (setting, name)


def test_a_setting_never_fitted_borrows_or_expects() -> None:
    assert parameters_of("compiled network on GPU")[1] == "compiled network on GPU"
    assert parameters_of("compiled network on abacus")[1].startswith("compiled network on ")
    assert parameters_of("telepathy")[1] == "physical expectations"


def time_of(engine_name: str, kernel: Kernel, **changed: float) -> float:
    engine = snapshot(view(Hardware[engine_name], "fp16"))
    stack = CaseBatch.of([(engine, Work.of([kernel]), False)])
    return float(calibrated_times(stack, Parameters(**changed).vectorised())[0])


def product(m: int, n: int, k: int) -> Kernel:
    return Kernel(MATMUL, 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n), m=m, n=n, k=k)


@pytest.mark.parametrize("size", [64, 257, 1024, 4096])
@pytest.mark.parametrize("name", ["A100", "H100", "T4", "TPUv4", "RaspberryPi5", "STM32H743"])
def test_the_model_never_beats_the_roofline_with_all_efficiencies_at_one(name: str, size: int) -> None:
    ideal = {"compute": 1.0, "bandwidth": 1.0, "vector": 1.0, "launch": 1e-12, "ramp": 1e-9, "energy": 1e-30}
    engine = snapshot(view(Hardware[name], "fp16"))
    for kernel in (product(size, size, size), Kernel(VECTOR, 2.0 * size, 4.0 * size)):
        stack = CaseBatch.of([(engine, Work.of([kernel]), False)])
        floor = max(float(part[0]) for part in bound(stack))
        assert time_of(name, kernel, **ideal) >= floor * (1 - 1e-9)


def test_more_of_anything_takes_no_less_time() -> None:
    base = time_of("A100", product(1024, 1024, 1024))
    for m, n, k in ((2048, 1024, 1024), (1024, 2048, 1024), (1024, 1024, 2048)):
        assert time_of("A100", product(m, n, k)) >= base
    assert time_of("A100", product(1024, 1024, 1024), compute=0.4) > base
    assert time_of("A100", product(1024, 1024, 1024), launch=1e-3) > base


def test_wave_quantisation_shows_as_teeth() -> None:
    """Efficiency falls where a few tiles are left for a last wave, and rises again until it is full."""
    quiet = {"launch": 1e-9, "ramp": 1e-9, "energy": 1e-30}
    columns = range(40, 120)
    each = [time_of("A100", product(256, 256 * n, 4096), **quiet) / n for n in columns]
    steps = [after / before for before, after in itertools.pairwise(each)]
    assert max(steps) > 1.02
    assert min(steps) < 1


def test_half_precision_is_read_as_such_where_a_unit_has_only_eight_bits() -> None:
    npu = Hardware["Snapdragon8Gen3"]
    assert snapshot(view(npu, "fp16")).matmul == pytest.approx(snapshot(view(npu, "int8")).matmul / 2)


def test_the_command_prints_one_json_object_for_any_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [row for row in shipped_rows() if row.workload == "GEMM" and row.device == "NVIDIA T4"][:20]
    names = ["id", "device", "device_class", "n_devices", "workload", "model", "precision", "batch", "seq_or_shape"]
    names += ["metric", "value", "unit", "software"]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        for row in rows:
            writer.writerow([getattr(row, name) for name in names])
        writer.writerow(["x", "Abacus", "CPU", "1", "GEMM", "", "fp16", "1", "M=8,N=8,K=8", "time", "1", "ms", ""])
    out = CliRunner().invoke(main, ["validate", "--data", str(path), "--json", "--csv", str(tmp_path / "out.csv")])
    assert out.exit_code == 0, out.output
    report = json.loads(out.output)
    assert (report["rows"], report["expressible"]) == (21, 20)
    assert report["not_expressible"] == {"no twin of Abacus in the catalogue": 1}
    assert set(report["by_workload_kind"]) == {"gemm"}
    assert report["by_device_class"]["CPU"]["expressible"] == 0
    both = report["by_device_class_and_kind"]["datacenter GPU"]["gemm"]
    assert {"rows", "expressible", "median_ape", "p90_ape", "bias", "bound_violations"} <= both.keys()
    written = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [line["id"] for line in written] == [*(row.id for row in rows), "x"]


def test_the_command_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("device,value\nT4,1\n")
    out = CliRunner().invoke(main, ["validate", "--data", str(path), "--json"])
    assert out.exit_code == 1
    assert "columns missing" in out.output
    assert "Traceback" not in out.output


def test_the_command_doubts_rows_that_contradict_each_other_and_grades_them(tmp_path: Path) -> None:
    heads = ("device", "device_class", "workload", "model", "precision", "seq_or_shape", "metric", "value", "unit")
    row = ("RaspberryPi5", "edge SoC", "CNN inference", "resnet18", "fp32", "224x224 image", "latency")
    path = tmp_path / "twice.csv"
    path.write_text(
        "\n".join(",".join(cells) for cells in (heads, (*row, "50", "ms"), (*row, "55", "ms"), (*row, "500", "ms")))
    )
    out = CliRunner().invoke(main, ["validate", "--data", str(path)])
    assert out.exit_code == 0, out.output
    assert "lines 2 and 4 measure the same and contradict each other: 50 ms and 500 ms" in out.stderr
    assert "lines 2 and 3" not in out.stderr
    path.write_text("")
    assert "twice.csv: the file is empty" in CliRunner().invoke(main, ["validate", "--data", str(path)]).output


def test_figures_are_written(tmp_path: Path, validation: Validation) -> None:
    from mlsys_evidence.evaluate.pictures import save_all

    few = Validation(tuple(each for each in validation.predictions if each.kind in ("gemm", "llm decode")))
    paths = save_all(few, tmp_path / "figures")
    assert [path.name for path in paths] == ["gemm.png", "llm-decode.png"]
    assert all(path.stat().st_size > 5_000 for path in paths)


def test_cases_state_a_time_above_zero(validation: Validation) -> None:
    for each in validation.predictions:
        if each.case is not None:
            assert isinstance(each.case, Case)
            assert math.isfinite(each.case.seconds) and each.case.seconds > 0
            assert np.isfinite(each.seconds) and each.seconds > 0


def test_power_holds_back_training_on_a_machine_that_was_left_out(all_settings: dict[str, list[Case]]) -> None:
    """MosaicML's runs on an H100, told by those on A100s alone, which do not reach their ceiling of power."""
    cases = all_settings["compiled training on GPU"]
    known = fit([case for case in cases if "A100" in case.twin])
    unseen = [case for case in cases if case.twin == "H100_SXM"]
    apart = np.log(predicted(unseen, known) / [case.seconds for case in unseen])
    assert abs(np.median(apart)) < 0.12


def test_versions_of_tensorflow_are_fitted_apart(all_settings: dict[str, list[Case]]) -> None:
    """Version 1's XLA takes 1.5 times as long as version 2's or more for one BERT on one kind of GPU (NVIDIA)."""
    first, second = all_settings["TensorFlow XLA 1 network on GPU"], all_settings["TensorFlow XLA network on GPU"]
    same_runs = [
        (one, two)
        for one in first
        for two in second
        if one.twin[:4] == two.twin[:4] == "A100"
        and all(getattr(one.row, part) == getattr(two.row, part) for part in ("model", "precision", "batch"))
        and one.row.seq_or_shape == two.row.seq_or_shape
    ]
    assert len(same_runs) >= 20
    assert np.median([one.seconds / two.seconds for one, two in same_runs]) > 1.5
    assert {case.row.software[:12] for case in first} == {"TensorFlow 1"}
    assert {case.row.software[:12] for case in second} == {"TensorFlow 2"}


@pytest.mark.parametrize(
    ("written_as", "kind"),
    [
        ("rocBLAS", "ROCm library"),
        ("cuBLAS/cuDNN", "library"),
        ("gemmlowp", "gemmlowp"),
        ("Plumerai", "tuned microcontroller runtime"),
        ("X-CUBE-AI", "tuned microcontroller runtime"),
        ("microTVM", "microcontroller runtime"),
        ("TFLite v", "mobile runtime"),
        ("ncnn", "ncnn"),
        ("Hailo", "Hailo"),
        ("RKNN", "RKNN"),
        ("TensorRT 8", "compiled"),
    ],
)
def test_kinds_of_software_are_fitted_apart(all_settings: dict[str, list[Case]], written_as: str, kind: str) -> None:
    """One setting is one kind of software: what its makers call it decides, and nothing about the row's time."""
    other = {"ncnn": {"vulkan"}, "cuBLAS/cuDNN": {"CUDA 7 library"}}.get(written_as, set())
    softwares = {
        name.partition(" on ")[0].removeprefix("energy of ")
        for name, cases in all_settings.items()
        for case in cases
        if written_as in case.row.software and case.kind not in {"training", "copy and stream"}
    }
    kinds = {
        re.sub(
            r"( int\d+)?( 1 thread| first)? "
            r"(gemm|convolution|recurrent layer|network|transformer|llm \w+|softmax|gelu).*",
            "",
            name,
        )
        for name in softwares
    }
    assert kinds - other == {kind}
    vendors = {case.engine.name.split()[0] for name, cases in all_settings.items() if "ROCm" in name for case in cases}
    assert vendors == {"AMD"}


def test_the_answer_by_class_is_the_scores_of_its_rows(validation: Validation) -> None:
    from mlsys_evidence import answer_table, class_scores, held_out_predictions

    *classes, whole = class_scores()
    assert [each.fitted.rows for each in classes] == sorted((each.fitted.rows for each in classes), reverse=True)
    for part in ("fitted", "sweep", "device", "blind"):
        assert sum(getattr(each, part).rows for each in classes) == getattr(whole, part).rows
    assert whole.fitted == score(validation.predictions)
    boards = [abs(each.value / each.row.value - 1) for each in held_out_predictions("device")
              if each.row.device_class == "edge SoC"]  # fmt: skip
    (own,) = (each for each in classes if each.name == "edge SoC")
    assert own.device.median_ape == pytest.approx(100 * float(np.median(boards)), rel=1e-3)
    assert f"{own.device.median_ape:.0f}%" in str(answer_table())
