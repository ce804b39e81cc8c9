"""Sweeps of sizings: every point is the answer of ``mlsys.size``, in this process, in others and from a folder."""

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mlsys import size
from mlsys.errors import ArgumentError, SweepFileError
from mlsys.models.inference.result import NUMBERS
from mlsys.provenance import perturbed
from mlsys.sweep import SIZING_COLUMNS, SizingSpec, SizingTable, SweepSpec, load_results, load_spec, sweep
from mlsys.sweep.sizing_points import enumerate_sizings, evaluate_sizings

SPEC = SizingSpec(
    models=["llama-3-8b", "mixtral-8x7b"],
    systems=["DGX_H100", {"system": "DGX_A100", "nodes": [1, 2]}, "T4"],
    tp=[1, 8],
    replicas=[1, 2],
    batches=[1, 64],
    lengths=[4096, {"prompt": 1000, "output": 200}],
    weight_formats=["fp16", "int4"],
)


@pytest.fixture(scope="module")
def table() -> SizingTable:
    return sweep(SPEC, jobs=1)


def test_each_point_is_the_answer_of_size(table: SizingTable) -> None:
    rows = iter(table)
    machines = [("DGX_H100", None), ("DGX_A100", 1), ("DGX_A100", 2), ("T4", None)]
    lengths = [{"sequence": 4096}, {"prompt": 1000, "output": 200}]
    points = itertools.product(SPEC.models, machines, (1, 8), (1, 2), lengths, ("fp16", "int4"), (1, 64))
    for model, (system, nodes), tp, replicas, tokens, weights, batch in points:
        row = next(rows)
        try:
            wanted = size(
                model, system, nodes=nodes, tp=tp, replicas=replicas, batch=batch, weight_format=weights, **tokens
            )
        except ValueError as error:
            assert row.error == " ".join(str(error).split())
            assert row.fits is None and row.tpot_seconds is None
            continue
        assert row.error is None
        for name in NUMBERS:
            assert getattr(row, name) == getattr(wanted, name), name
        assert (row.tp, row.pp, row.ep, row.dp) == tuple(
            getattr(wanted.layout, name) for name in ("tp", "pp", "ep", "dp")
        )
        assert (row.chips, row.bound_by, row.capacity_bytes) == (wanted.chips, wanted.bound_by, wanted.capacity_bytes)
    assert next(rows, None) is None
    assert 0 < sum(error is not None for error in table.columns["error"]) < len(table)


def test_processes_and_a_folder_change_nothing(table: SizingTable, tmp_path: Path) -> None:
    kept = sweep(SPEC, tmp_path / "kept", jobs=2)
    assert kept.columns == table.columns
    shown = load_results(tmp_path / "kept")
    assert isinstance(shown, SizingTable)
    assert shown.columns == table.columns
    stored = pq.read_table(tmp_path / "kept" / "results.parquet")
    assert stored.num_rows == len(table) == SPEC.points
    assert {entry.name: entry.metadata[b"unit"].decode() for entry in stored.schema} == {
        column.name: column.unit for column in SIZING_COLUMNS
    }
    done = []
    sweep(SPEC, tmp_path / "kept", progress=lambda points, _: done.append(points))
    assert done[0] == len(table)  # nothing is computed twice
    with pytest.raises(
        ArgumentError, match="holds a sweep of sizings on systems, and this is one of networks on devices"
    ):
        sweep(SweepSpec(models=["lenet5"], devices=["A100"]), tmp_path / "kept")


def test_a_what_if_holds_in_other_processes_and_has_points_of_its_own(table: SizingTable) -> None:
    spec = SizingSpec(models=["llama-3-8b"], systems=["DGX_H100"], tp=[1, 2], batches=[1, 8])
    name = "H100_SXM/memory/HBM/bandwidth"
    plain = sweep(spec)
    with perturbed(name, 2.0):
        points = enumerate_sizings(spec)
        faster = sweep(spec)
        alone = size("llama-3-8b", "DGX_H100", tp=1, batch=1).tpot_seconds
    elsewhere = evaluate_sizings(points)  # as in a worker, where nothing is changed
    assert tuple(elsewhere["tpot_seconds"]) == faster.columns["tpot_seconds"]
    assert faster.columns["tpot_seconds"][0] == alone
    assert not set(faster.columns["id"]) & set(plain.columns["id"])
    assert all(new < old for new, old in zip(faster.column("tpot_seconds"), plain.column("tpot_seconds"), strict=True))
    assert name in {fact.name for fact in plain.quantity("tpot_seconds").facts}


def test_the_front_holds_no_point_that_another_beats(table: SizingTable) -> None:
    for against, column in (("cost", "usd_per_million_tokens"), ("chips", "chips")):
        front = table.pareto("llama-3-8b", against)  # type: ignore[arg-type]
        usable = [row for row in table if row.model == "llama-3-8b" and row.fits and getattr(row, column) is not None]
        kept = {
            (row.tpot_seconds, getattr(row, column))
            for row in usable
            if not any(
                other.tpot_seconds <= row.tpot_seconds and getattr(other, column) <= getattr(row, column)
                and (other.tpot_seconds, getattr(other, column)) != (row.tpot_seconds, getattr(row, column))
                for other in usable
            )
        }  # fmt: skip
        assert {(row.tpot_seconds, getattr(row, column)) for row in front} == kept
    fastest = table.best("latency")
    assert [row.model for row in fastest] == list(SPEC.models)
    assert fastest[0].tpot_seconds == min(row.tpot_seconds for row in table if row.model == "llama-3-8b" and row.fits)


def test_numpy_integers_and_files_of_models(tmp_path: Path) -> None:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 1000, **sizes}))
    spec = SizingSpec(models=["config.json"], systems=["T4"], batches=list(np.array([1, 2])), folder=tmp_path)
    assert [row.batch for row in sweep(spec)] == [1, 2]
    assert spec.as_data()["batches"] == [1, 2]


FAULTS = """models: [llama-3-8c, resnet50, missing/config.json]
systems:
  - DGX_H1OO
  - {system: DGX_H100, node: 2}
  - {system: Workstation_2x_RTX_4090, nodes: 2}
  - 7
tp: [1, 0]
batches: [4, 4]
lengths: [0, {promt: 5}, 1.5]
phases: encode
weight_formats: fp61
precisions: fp61
rank: fastest
layout: best
"""


def test_every_fault_of_a_file_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(FAULTS)
    with pytest.raises(SweepFileError) as raised:
        load_spec(path)
    lines = str(raised.value).splitlines()
    wanted = [
        (1, "models.0: no language model 'llama-3-8c'. Did you mean 'llama-3-8b'?"),
        (1, "models.1: 'resnet50' is a"),
        (1, "models.2:"),
        (3, "systems.0: no system or device 'DGX_H1OO'. Did you mean 'DGX_H100'?"),
        (4, "systems.1.node: unknown key 'node'. Did you mean 'nodes'?"),
        (5, "systems.2: with_nodes(): "),
        (6, "systems.3: a system is a name or a mapping with `system`, got 7"),
        (7, "tp: must be a whole number from 1 to 2147483648, or a list of such; got [1, 0]"),
        (8, "batches.1: duplicate '4'"),
        (9, "lengths.0: must be a whole number of tokens from 1"),
        (9, "lengths.1.promt: unknown key 'promt'. Did you mean 'prompt'?"),
        (9, "lengths.2: must be a whole number of tokens from 1"),
        (10, "phases: must be one of 'prefill', 'decode'"),
        (11, "weight_formats: "),
        (12, "precisions: "),
        (13, "rank: must be one of latency, throughput, got 'fastest'"),
        (14, "layout: unknown key 'layout'."),
    ]
    for line, text in wanted:
        assert any(reported.startswith(f"{path}:{line}: {text}") for reported in lines), (line, text, lines)
    assert len(lines) == len(wanted), lines


def test_devices_and_systems_are_two_sweeps(tmp_path: Path) -> None:
    path = tmp_path / "both.yaml"
    path.write_text("models: llama-3-8b\nsystems: DGX_H100\ndevices: A100\n")
    with pytest.raises(SweepFileError, match=r"both\.yaml:3: devices: `devices` and `systems` do not go together"):
        load_spec(path)
    with pytest.raises(SweepFileError, match="a sweep has at most 1,000,000"):
        SizingSpec(models=["llama-3-8b"], systems=["DGX_H100"], batches=list(range(1, 1002)), tp=list(range(1, 1002)))
