"""A sweep that is stopped, however roughly, goes on without losing or repeating a point."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mlsys.errors import ArgumentError
from mlsys.sweep import SweepSpec, SweepTable, load, points, sweep, workers

SPEC = SweepSpec(
    models=["alexnet", "vgg16", "bert-base", "gpt2"], devices=["all"], batches=[1, 8], precisions=["fp16", "int8"]
)
# The same in a process of its own, slow enough to be killed between and inside of pieces.
SLOW = """
import sys, time
from mlsys.sweep import SweepSpec, sweep
def slowly(done, whole):
    print(done, flush=True)
    time.sleep(0.05)
spec = SweepSpec(models=["alexnet", "vgg16", "bert-base", "gpt2"], devices=["all"], batches=[1, 8],
                 precisions=["fp16", "int8"])
sweep(spec, sys.argv[1], jobs=1, progress=slowly)
"""


@pytest.fixture(scope="module")
def uninterrupted() -> SweepTable:
    return sweep(SPEC, jobs=1)


def ids_of_pieces(folder: Path) -> list[str]:
    return [name for path in (folder / "pieces").glob("*.parquet") for name in pq.read_table(path)["id"].to_pylist()]


def killed_after(folder: Path, pieces: int) -> None:
    """Start the sweep in a process, and kill it once it has told of so many pieces."""
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(pieces + 1):
        assert process.stdout.readline()
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_a_killed_sweep_goes_on_and_ends_as_if_nothing_had_happened(tmp_path: Path, uninterrupted: SweepTable) -> None:
    folder = tmp_path / "out"
    killed_after(folder, 2)
    (folder / "pieces" / ".torn.parquet.x.part").write_bytes(b"PAR1 half")
    kept = ids_of_pieces(folder)
    kept_pieces = len(list((folder / "pieces").glob("*.parquet")))
    assert 0 < len(kept) < len(uninterrupted) and not (folder / "results.parquet").exists()
    with pytest.raises(ArgumentError, match="holds a sweep that is not finished. Go on with: mlsys sweep SPEC.yaml"):
        load(folder)
    told: list[str] = []
    seen: list[tuple[int, int]] = []
    found = sweep(SPEC, folder, jobs=1, note=told.append, progress=lambda *counts: seen.append(counts))
    assert found.columns == uninterrupted.columns == load(folder).columns
    assert told == [f"going on: {len(kept):,} of {len(found):,} points are there"]
    assert seen[0] == (len(kept), len(found)) and seen[-1] == (len(found), len(found))
    assert len(seen) == 1 + len(list((folder / "pieces").iterdir())) - kept_pieces  # nothing is made twice
    stored = ids_of_pieces(folder)
    assert sorted(stored) == sorted(found.columns["id"]) and len(set(stored)) == len(stored)
    assert not list(folder.rglob("*.part"))


def test_a_finished_sweep_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SweepSpec(models=["alexnet"], devices=["A100", "T4"])
    first = sweep(small, tmp_path)
    monkeypatch.setattr(workers, "evaluate", lambda *_: pytest.fail("evaluated again"))
    assert sweep(small, tmp_path).columns == first.columns


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"x" * len(raw)])
def test_a_damaged_piece_is_made_again(
    tmp_path: Path, uninterrupted: SweepTable, damage: Callable[[bytes], bytes]
) -> None:
    sweep(SPEC, tmp_path, jobs=1)
    piece = sorted((tmp_path / "pieces").glob("*.parquet"))[1]
    piece.write_bytes(damage(piece.read_bytes()))
    (tmp_path / "results.parquet").write_bytes(b"PAR1")
    told: list[str] = []
    assert sweep(SPEC, tmp_path, jobs=1, note=told.append).columns == uninterrupted.columns == load(tmp_path).columns
    assert told[0] == f"not readable and made again: {piece.name}"
    assert len(ids_of_pieces(tmp_path)) == len(uninterrupted)


def test_more_devices_take_over_the_points_that_are_the_same(tmp_path: Path) -> None:
    sweep(SweepSpec(models=["vgg16"], devices=["A100", "T4"]), tmp_path)
    told: list[str] = []
    wider = SweepSpec(models=["vgg16"], devices=["H100", "T4", "A100"])
    assert sweep(wider, tmp_path, note=told.append).columns == sweep(wider).columns
    assert told == ["going on: 2 of 3 points are there"]
    told.clear()
    narrower = SweepSpec(models=["vgg16"], devices=["H100"])
    assert len(sweep(narrower, tmp_path, note=told.append)) == len(load(tmp_path)) == 1
    assert told[0] == f"2 points in {tmp_path} are of something else (the specification changed) and are not used"


def test_changed_facts_of_a_device_are_noticed_and_its_old_points_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100", "T4"])
    before = sweep(small, tmp_path)
    original = points._target

    def slower(name: str, precision: str, setting: str | None) -> points.Target:
        target = original(name, precision, setting)
        return replace(target, bandwidth=target.bandwidth / 2) if name == "T4" else target

    monkeypatch.setattr(points, "_target", slower)
    told: list[str] = []
    after = sweep(small, tmp_path, note=told.append)
    assert told[0] == f"1 points in {tmp_path} are of something else (facts changed of T4) and are not used"
    assert told[1] == "going on: 1 of 2 points are there"
    assert after.columns["bound_seconds"][0] == before.columns["bound_seconds"][0]
    assert after.columns["bound_seconds"][1] > before.columns["bound_seconds"][1]
    assert load(tmp_path).columns == after.columns


def test_another_version_of_the_code_uses_nothing_of_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    sweep(small, tmp_path)
    for place in ("points", "run"):
        monkeypatch.setattr(f"mlsys.sweep.{place}.code_digest", lambda: "other")
    told: list[str] = []
    sweep(small, tmp_path, note=told.append)
    assert told == [
        f"1 points in {tmp_path} are of something else (the code of the evaluation changed) and are not used"
    ]


def test_processes_side_by_side_give_the_same(tmp_path: Path, uninterrupted: SweepTable) -> None:
    assert sweep(SPEC, tmp_path, jobs=2).columns == uninterrupted.columns


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ArgumentError, match="is not empty and no sweep has made it. Choose another folder"):
        sweep(small, tmp_path)
    with pytest.raises(ArgumentError, match=r"letter\.txt is a file; results go into a folder"):
        sweep(small, tmp_path / "letter.txt")
    with pytest.raises(ArgumentError, match="holds no sweep. Make one with: mlsys sweep SPEC.yaml"):
        load(tmp_path)


def test_a_worker_process_that_dies_is_told_of_and_what_was_done_is_kept(
    tmp_path: Path, uninterrupted: SweepTable
) -> None:
    def kill(done: int, whole: int) -> None:
        if done:
            for process in multiprocessing.active_children():
                process.kill()

    with pytest.raises(ArgumentError, match="a worker process died; what was finished is kept. Run the same again"):
        sweep(SPEC, tmp_path, jobs=2, progress=kill)
    assert 0 < len(ids_of_pieces(tmp_path)) < len(uninterrupted)
    assert sweep(SPEC, tmp_path, jobs=1).columns == uninterrupted.columns
