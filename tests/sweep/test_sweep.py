"""Sweeps: valid specifications, and numbers that are those of ``analyze`` for every single point."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.errors import SweepFileError, UnknownNameError
from mlsys.models import roofline
from mlsys.models.analysis import analyze
from mlsys.provenance import perturbed
from mlsys.sweep import COLUMNS, SweepSpec, SweepTable, load_results, sweep
from mlsys.sweep.networks import network_of
from mlsys.sweep.points import chunks, enumerate_points
from mlsys.sweep.workers import usual_jobs
from mlsys.units import Q_
from sampled import drawn

SMALL = SweepSpec(models=["resnet50"], devices=["A100", "T4"], batches=[1, 32], precisions=["fp16", "fp8"])


def close(first: float, other: float) -> bool:
    return abs(first - other) <= 1e-12 * abs(other)


# Valid specifications


def test_every_fault_of_a_file_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "models: [resnet5O, {model: gpt2, sequense: 3}, nowhere.module:net, lost.onnx]\n"
        "devices:\n  - H10O\n  - {class: cluod}\n  - {vendor: NVIDIA, until: 1990}\n  - 7\n"
        "batches: [1, 0, 2.5]\n"
        "precisions: [fp16, fp61]\n"
        "fusion: maybe\n"
        "settings: [egaer network]\n"
        "colour: red\n"
    )
    with pytest.raises(SweepFileError) as raised:
        SweepSpec.load(path)
    lines = str(raised.value).splitlines()
    wanted = [
        (1, "models.0: unknown network 'resnet5O'. Did you mean 'resnet50'?"),
        (1, "models.1.sequense: unknown key 'sequense'. Did you mean 'sequence'?"),
        (
            1,
            "models.2: 'nowhere.module:net': there is no module 'nowhere.module'. Run the command in the folder",
        ),
        (1, "models.3: there is no file 'lost.onnx'"),
        (3, "devices.0: unknown device 'H10O'. Did you mean 'H100'?"),
        (4, "devices.1: unknown class 'cluod'. Did you mean 'Cloud'?"),
        (5, "devices.2: no device meets these criteria"),
        (6, "devices.3: a device is a name or a mapping of criteria, got 7"),
        (7, "batches: must be a whole number from 1 to 2147483648, or a list of such; got [1, 0, 2.5]"),
        (8, "precisions.1: unknown precision 'fp61'. Did you mean 'fp6'?"),
        (9, "fusion: must be one of 'on', 'off', or a list of such; got 'maybe'"),
        (10, "settings.0: setting 'egaer network' was never fitted. Did you mean 'eager network'?"),
        (11, "colour: unknown key 'colour'. Known: models, devices"),
    ]
    for line, text in wanted:
        assert any(reported.startswith(f"{path}:{line}: {text}") for reported in lines), (line, text, lines)
    assert len(lines) == len(wanted), lines


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("models: resnet50\n", "`devices` is missing"),
        ("devices: A100\n", "`models` is missing"),
        ("models: []\ndevices: A100\n", "the list is empty"),
        ("- 1\n", "a specification of a sweep is a mapping"),
        ("models: !!python/object:os.system resnet50\ndevices: A100\n", "tag"),
        ("models: &a resnet50\ndevices: *a\n", "anchor or alias 'a' is not allowed"),
        ("models: resnet50\ndevices: A100\nbatches: [4, 4]\n", "batches.1: duplicate '4'"),
        ("models: resnet50\nmodels: vgg16\ndevices: A100\n", "duplicate key 'models'"),
        ("models: {model: lenet5, source: catalogue}\ndevices: A100\n", "source"),
        ("models: resnet50\ndevices: A100\n#" + 200_001 * "x", "the limit is 200,000 bytes"),
    ],
)
def test_what_a_file_may_not_say(tmp_path: Path, text: str, reported: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(SweepFileError, match=r"bad\.yaml") as raised:
        SweepSpec.load(path)
    assert reported in str(raised.value)


def test_one_entry_needs_no_brackets_and_on_is_no_truth_value(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("models: resnet50\ndevices: {class: tiny, kind: mcu}\nfusion: [on, off]\nprecisions: int8\n")
    spec = SweepSpec.load(path)
    assert (spec.models, spec.fusion, spec.batches) == (("resnet50",), ("on", "off"), (1,))
    assert set(spec.device_ids) == {device.id for device in Hardware.Tiny if device.kind == "MCU"}
    assert spec.points == 2 * len(spec.device_ids)


def test_devices_by_name_class_and_criteria() -> None:
    def ids(*devices: object) -> tuple[str, ...]:
        return SweepSpec(models=["resnet50"], devices=devices).device_ids

    assert ids("A100", "A100_80GB", {"text": "A100 80"})[:1] == ("A100_80GB",)
    assert ids("all") == tuple(device.id for device in Hardware)
    assert ids({"class": "generic"}) == tuple(device.id for device in Hardware.Generic)
    since = ids({"class": "cloud", "vendor": "nvidia", "precision": "fp8", "since": 2024})
    wanted = [d.id for d in Hardware.Cloud if d.vendor == "NVIDIA" and "fp8" in d.precisions and d.release_year >= 2024]
    assert list(since) == wanted


def test_more_points_than_a_machine_should_try_are_refused() -> None:
    with pytest.raises(SweepFileError, match="a sweep has at most 1,000,000"):
        SweepSpec(models=["resnet50"], devices=["all"], batches=list(range(1, 6000)))


# Points


def test_points_are_in_order_with_content_ids_of_their_own() -> None:
    first, again = enumerate_points(SMALL), enumerate_points(SMALL)
    assert [point.id for point in first] == [point.id for point in again]
    assert len({point.id for point in first}) == SMALL.points == 8
    points = [(point.case.precision, point.case.batch, point.target.device) for point in first]
    devices = ("A100_80GB", "T4")
    assert points == [(p, b, d) for p in ("fp16", "fp8") for b in (1, 32) for d in devices]


def test_an_id_follows_facts_settings_and_files(tmp_path: Path) -> None:
    target = enumerate_points(SMALL)[0].target
    timing = target.timing
    assert timing is not None
    engine = replace(timing.engine, cache=1.0)
    changes = {"bandwidth": timing.bandwidth * 1.01, "peak": timing.peak * 1.01, "engine": engine}
    for name, value in changes.items():
        assert replace(target, timing=replace(timing, **{name: value})).digest != target.digest
    assert replace(target).digest == target.digest
    path = tmp_path / "nets_for_sweep.py"
    path.write_text("net = None\n")
    spec = SweepSpec(models=["lenet5", "json:dumps"], devices=["A100"], batches=[1])
    before = [point.id for point in enumerate_points(spec)]
    eager = SweepSpec(models=["lenet5", "json:dumps"], devices=["A100"], batches=[1], settings=["eager network"])
    assert not set(before) & {point.id for point in enumerate_points(eager)}


def test_two_spellings_of_one_setting_are_one_point() -> None:
    spec = SweepSpec(models=["vgg16"], devices=["A100"], settings=["eager network", "eager network on GPU"])
    assert [row.setting for row in sweep(spec)] == ["eager network on GPU"]


def test_pieces_hold_every_point_once_and_one_network_each() -> None:
    points = enumerate_points(
        SweepSpec(models=["vgg16", "resnet50"], devices=["all"], batches=[1, 2, 4, 8, 16, 32, 64])
    )
    pieces = list(chunks(points, 500))
    assert [point for piece in pieces for point in piece] == points
    assert all(len({point.case.variant for point in piece}) == 1 and len(piece) <= 500 for piece in pieces)


# Numbers

MIXED = SweepSpec(
    models=[
        "resnet50",
        {"model": "llama-3-8b", "phase": ["prefill", "decode"], "sequence": 512},
        {"model": "mobilenet_v2", "image": 96},
        "lenet5",
        "small-cnn",
        "bloom",
    ],
    devices=["A100", "T4", "TPUv4", "EPYC_9654", "EdgeTPU", "STM32H743", {"class": "generic"}],
    batches=[1, 7],
    precisions=["fp16", "fp32", "int8"],
    fusion=["on", "off"],
)


@pytest.fixture(scope="module")
def mixed() -> SweepTable:
    return sweep(MIXED, jobs=1)


@pytest.mark.exhaustive
def test_every_point_equals_analyse_and_roofline(mixed: SweepTable) -> None:
    networks = {}
    points = list(zip(enumerate_points(MIXED), mixed, strict=True))
    for point, row in points:
        assert (row.id, row.device, row.batch) == (point.id, point.target.device, point.case.batch)
    # A sweep captures a network once for all formats; captured in another format, it has its casts as operators.
    answered = [
        (point, row)
        for point, row in points
        if not row.error and (row.source == "catalogue" or row.fusion == "on" or row.precision == "fp32")
    ]
    assert len(answered) > 120
    for point, row in drawn(answered, 24, "points of a sweep"):
        case = point.case
        network = networks.setdefault(case, network_of(case))
        kernels = network if row.fusion == "off" else None  # each operator as a kernel of its own
        analysis = analyze(Hardware[row.device], network, kernels, precision=case.precision, samples=case.batch)
        assert close(row.estimate_seconds, analysis.estimate.m_as("s"))
        assert close(row.bound_seconds, analysis.bound.m_as("s"))
        assert all(map(close, (row.low_seconds, row.high_seconds), (end.m_as("s") for end in analysis.range)))
        assert close(row.flops, analysis.flops.m_as("FLOP")) and close(row.bytes, analysis.data.m_as("byte"))
        assert close(row.weight_bytes, analysis.weights.m_as("byte"))
        assert close(row.samples_per_second, analysis.rate.m_as("1/s"))
        assert close(row.utilisation, analysis.utilisation)
        assert (row.bound_by, row.limited_by) == (analysis.roofline.bound_by, analysis.limited_by)
        assert (row.setting, row.calibration, row.operators) == (
            analysis.setting,
            analysis.calibration,
            len(analysis.operators),
        )


def test_a_point_of_the_catalogue_equals_the_roofline_of_the_same_network() -> None:
    from mlsys.mapping.fusion import as_kernels
    from mlsys.workloads import load

    (row,) = sweep(SweepSpec(models=["inception_v4"], devices=["H100"], batches=[64], precisions=["int8"]))
    result = roofline(Hardware.Cloud.H100, as_kernels(load("inception_v4", batch=64, precision="int8")))
    assert close(row.bound_seconds, result.time.m_as("s"))


def test_a_captured_network_is_fused_with_the_same_work_and_fewer_bytes_and_kernels(mixed: SweepTable) -> None:
    rows = {(row.fusion, row.batch, row.device, row.precision): row for row in mixed if row.model == "lenet5"}
    for (fusion, *rest), row in rows.items():
        other = rows["on", *rest]
        if fusion == "off" and row.error is None:
            assert close(other.flops, row.flops)
            assert other.bytes < row.bytes and other.operators < row.operators
            assert other.bound_seconds <= row.bound_seconds * (1 + 1e-12)
            assert (row.source, other.source) == ("captured", "captured, fused")


def test_a_point_without_an_answer_stays_and_says_why(mixed: SweepTable) -> None:
    assert len(mixed) == MIXED.points
    missing = [row for row in mixed if row.device == "EdgeTPU" and row.precision == "fp32"]
    assert len(missing) == len(MIXED.variants) * 2
    assert {row.error for row in missing} == {"Google Coral Edge TPU has no fp32 peak. It has: int8"}
    assert all(row.estimate_seconds is None and row.fits is None for row in missing)
    long = {"model": "gpt2", "sequence": 5000}
    (row,) = sweep(SweepSpec(models=[long], devices=["A100"]))
    assert row.error is not None and "`sequence` must be at most 1024" in row.error
    (row,) = sweep(SweepSpec(models=["json:dumps"], devices=["A100"]))
    assert row.error is not None and "'json:dumps' cannot be called without arguments" in row.error
    (row,) = sweep(SweepSpec(models=[{"model": "resnet50", "sequence": 8}], devices=["A100"]))
    assert row.error is not None and "`sequence` does not apply to 'resnet50'" in row.error


def test_what_must_lie_in_memory_is_at_least_the_weights(mixed: SweepTable) -> None:
    llama = next(row for row in mixed if row.phase == "decode" and row.precision == "fp16" and row.error is None)
    assert 8.03e9 * 2 < llama.needed_bytes < 8.03e9 * 2 * 1.1
    assert llama.device == "A100_80GB" and llama.fits is True
    spec = SweepSpec(
        models=[{"model": "llama-3-8b", "phase": "decode", "sequence": 8192}], devices=["A100"], batches=[1, 64]
    )
    alone, many = sweep(spec)
    # Keys and values: 32 layers × 8 heads × 128 × 2 × 2 byte for each token.
    assert many.needed_bytes - alone.needed_bytes == pytest.approx(63 * 8192 * 32 * 8 * 128 * 2 * 2, rel=0.02)
    assert (alone.fits, many.fits) == (True, False)


def test_design_energy_is_power_times_time_and_unknown_where_the_power_is(mixed: SweepTable) -> None:
    for row in mixed:
        power = Hardware[row.device]._tdp
        if row.error is None and power is not None:
            assert close(row.design_energy_joules, power.m_as("W") * row.estimate_seconds)
        else:
            assert row.design_energy_joules is None


# Tables


def test_best_and_pareto_against_brute_force() -> None:
    spec = SweepSpec(models=["vgg16", "bert-base"], devices=["all"], batches=[1, 16, 256], precisions=["fp16", "int8"])
    table = sweep(spec)
    usable = [row for row in table if row.error is None and row.fits is not False]
    for best in table.best():
        assert best.samples_per_second == max(row.samples_per_second for row in usable if row.model == best.model)
    for against, cost in (
        ("energy", lambda row: row.design_energy_joules and row.design_energy_joules / row.batch),
        ("price", lambda row: row.price_usd),
    ):
        points = {
            row.id: (row.estimate_seconds / row.batch, cost(row))
            for row in usable
            if row.model == "vgg16" and cost(row) is not None
        }
        front = {
            name
            for name, (time, price) in points.items()
            if not any(t <= time and p <= price and (t, p) != (time, price) for t, p in points.values())
        }
        assert {row.id for row in table.pareto("vgg16", against)} == front


def test_columns_have_units_and_missing_numbers_are_nan() -> None:
    table = sweep(SMALL)
    assert table.quantity("estimate_seconds").check("[time]")
    assert np.isnan(table.column("estimate_seconds")[[4, 5, 6, 7]]).all()
    assert len(table.answered) == 4
    with pytest.raises(UnknownNameError, match=r"unknown column 'flop'\. Did you mean 'flops'\?"):
        table.column("flop")
    with pytest.raises(UnknownNameError, match=r"no model 'vgg' in this sweep"):
        table.pareto("vgg")
    with pytest.raises(ValueError, match="`name` must be a column of numbers, got 'model'"):
        table.quantity("model")
    assert "4 answered" in table.explain() and "2 × NVIDIA T4 has no fp8 peak" in table.explain()


def test_a_column_knows_the_facts_of_the_devices_in_it_and_only_those_move_it() -> None:
    spec = SweepSpec(models=["resnet50"], devices=["A100", "T4"], batches=[32], precisions=["fp16"])
    found = sweep(spec)
    time = found.where(lambda row: row.device == "T4").quantity("estimate_seconds")
    assert {fact.name.split("/")[0] for fact in time.facts} == {"T4"}
    assert not any("/links/" in fact.name for fact in found.quantity("estimate_seconds").facts)
    moved = set()
    for name in {fact.name for fact in found.quantity("estimate_seconds").facts}:
        with perturbed(name, 0.5):
            other = sweep(spec).column("estimate_seconds")
        changed = [found.columns["device"][row] for row in np.flatnonzero(other != found.column("estimate_seconds"))]
        assert changed in ([], [name.split("/")[0]])
        moved |= {name} if changed else set()
    assert {"T4/peaks/fp16/matrix/dense", "T4/memory/GDDR/bandwidth", "A100_80GB/memory/HBM/bandwidth"} <= moved


def test_parquet_and_csv_say_the_same_with_units_and_origin(tmp_path: Path) -> None:
    import csv

    import pyarrow.parquet as pq

    swept = sweep(SMALL, tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "results.parquet")
    assert table.num_rows == len(swept) == 8
    for column in COLUMNS:
        assert table.schema.field(column.name).metadata == {b"unit": column.unit.encode()}
        assert tuple(table.column(column.name).to_pylist()) == swept.columns[column.name]
    origin = {key.decode() for key in table.schema.metadata}
    assert {"mlsys.version", "mlsys.date", "mlsys.catalogue", "mlsys.code", "mlsys.specification"} <= origin
    with (tmp_path / "out" / "results.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, line in zip(swept, rows, strict=True):
        assert {name: "" if value is None else str(value) for name, value in row._asdict().items()} == line
    assert load_results(tmp_path / "out").columns == swept.columns


def test_processes_are_started_for_many_points_and_for_networks_of_ones_own(monkeypatch, tmp_path: Path) -> None:
    """The networks of the catalogue are stored as they were captured: nothing is gained by a second process."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr("mlsys.sweep.workers._WORTH_A_PROCESS", 5)
    (tmp_path / "nets_for_jobs.py").write_text("def net():\n    pass\n\ndef other():\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    few = enumerate_points(SweepSpec(models=["resnet50", "bert-base", "gpt2", "bloom"], devices=["A100"]))
    many = enumerate_points(SweepSpec(models=["resnet50"], devices=["A100"], batches=list(range(1, 17))))
    own = enumerate_points(SweepSpec(models=["nets_for_jobs:net", "nets_for_jobs:other"], devices=["A100"]))
    assert (usual_jobs(few), usual_jobs(many), usual_jobs(own)) == (1, 3, 2)


def test_what_is_best_is_told_with_its_range() -> None:
    """Three times a line, read back from the text: the estimate, and both ends of its range."""
    table = sweep(SweepSpec(models=["vgg16", "gpt2"], devices=["A100", "T4"], batches=[1, 8]), jobs=1)
    reported = table.explain().split("Pareto front")[0]
    for row in table.best():
        (line,) = (line for line in reported.splitlines() if line.split()[:1] == [row.model])
        times = [Q_(float(number), f"{prefix}s") for number, prefix in re.findall(r"([\d.]+) ([mµn]?)s\b", line)]
        expected = (row.estimate_seconds, row.low_seconds, row.high_seconds, row.bound_seconds)
        assert [time.m_as("s") for time in times] == pytest.approx(expected, rel=0.006)
