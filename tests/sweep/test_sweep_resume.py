"""A sweep that is stopped, however roughly, goes on without losing or repeating a point."""

import contextlib
import multiprocessing
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mlsys.errors import ArgumentError, UnwrittenError
from mlsys.sweep import SweepSpec, SweepTable, kinds, load_results, points, store, sweep
from mlsys.sweep.store import Folder

DEVICES = ["A100", "H100_SXM", "T4", "L4", "MI250X", "TPUv5e", "JetsonOrinNano"]
SPEC = SweepSpec(  # four pieces, one a network
    models=["alexnet", "vgg16", "bert-base", "gpt2"], devices=DEVICES, batches=[1, 8], precisions=["fp16", "int8"]
)
# The same in a process of its own, which tells of so many pieces and then waits to be killed, or for our end.
STOPPED = f"""
import sys
from multiprocessing import active_children
from mlsys.sweep import SweepSpec, sweep
told = []
def tell(done, whole):
    told.append(done)
    if len(told) > int(sys.argv[2]):
        print(*(process.pid for process in active_children()), flush=True)
        sys.stdin.readline()
if __name__ == "__main__":
    spec = SweepSpec(models={list(SPEC.models)}, devices={DEVICES}, batches=[1, 8], precisions=["fp16", "int8"])
    sweep(spec, sys.argv[1], jobs=int(sys.argv[3]), progress=tell)
"""


@pytest.fixture(scope="module")
def uninterrupted() -> SweepTable:
    return sweep(SPEC, jobs=1)


def ids_of_pieces(folder: Path) -> list[str]:
    return [name for path in (folder / "pieces").glob("*.parquet") for name in pq.read_table(path)["id"].to_pylist()]


def killed_after(folder: Path, pieces: int, jobs: int = 1) -> list[int]:
    """Kill a process that sweeps once it has told of so many pieces; return the processes that it had started."""
    words = [sys.executable, "-c", STOPPED, str(folder), str(pieces), str(jobs)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    assert process.returncode == -signal.SIGKILL
    return started


def test_a_killed_sweep_goes_on_and_ends_as_if_nothing_had_happened(tmp_path: Path, uninterrupted: SweepTable) -> None:
    folder = tmp_path / "out"
    killed_after(folder, 2)
    (folder / "pieces" / ".mlsys-torn.part").write_bytes(b"PAR1 half")
    kept = ids_of_pieces(folder)
    kept_pieces = len(list((folder / "pieces").glob("*.parquet")))
    assert 0 < len(kept) < len(uninterrupted) and not (folder / "results.parquet").exists()
    with pytest.raises(ArgumentError, match="holds an unfinished sweep. Resume it with: mlsys sweep SPEC.yaml"):
        load_results(folder)
    result: list[str] = []
    seen: list[tuple[int, int]] = []
    table = sweep(SPEC, folder, jobs=1, note=result.append, progress=lambda *counts: seen.append(counts))
    assert table.columns == uninterrupted.columns == load_results(folder).columns
    assert result == [f"resuming: {len(kept):,} of {len(table):,} points are done"]
    assert seen[0] == (len(kept), len(table)) and seen[-1] == (len(table), len(table))
    assert len(seen) == 1 + len(list((folder / "pieces").iterdir())) - kept_pieces  # nothing is made twice
    stored = ids_of_pieces(folder)
    assert sorted(stored) == sorted(table.columns["id"]) and len(set(stored)) == len(stored)
    assert not list(folder.rglob("*.part"))


def test_a_finished_sweep_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SweepSpec(models=["alexnet"], devices=["A100", "T4"])
    first = sweep(small, tmp_path)
    refusing = replace(kinds.OF_DEVICES, evaluate=lambda *_: pytest.fail("evaluated again"))
    monkeypatch.setattr(kinds, "OF_DEVICES", refusing)
    assert sweep(small, tmp_path).columns == first.columns


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"x" * len(raw)])
def test_a_damaged_piece_is_made_again(
    tmp_path: Path, uninterrupted: SweepTable, damage: Callable[[bytes], bytes]
) -> None:
    sweep(SPEC, tmp_path, jobs=1)
    piece = sorted((tmp_path / "pieces").glob("*.parquet"))[1]
    piece.write_bytes(damage(piece.read_bytes()))
    (tmp_path / "results.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArgumentError, match="was modified"):
        load_results(tmp_path)
    result: list[str] = []
    assert (
        sweep(SPEC, tmp_path, jobs=1, note=result.append).columns
        == uninterrupted.columns
        == load_results(tmp_path).columns
    )
    assert result[0] == f"damaged, set aside and computed again: {piece.name}"
    assert (tmp_path / "damaged" / piece.name).is_file()
    assert len(ids_of_pieces(tmp_path)) == len(uninterrupted)


def test_more_devices_take_over_the_points_that_are_the_same(tmp_path: Path) -> None:
    sweep(SweepSpec(models=["vgg16"], devices=["A100", "T4"]), tmp_path)
    result: list[str] = []
    wider = SweepSpec(models=["vgg16"], devices=["H100", "T4", "A100"])
    assert sweep(wider, tmp_path, note=result.append).columns == sweep(wider).columns
    assert result == ["resuming: 2 of 3 points are done"]
    result.clear()
    narrower = SweepSpec(models=["vgg16"], devices=["H100"])
    assert len(sweep(narrower, tmp_path, note=result.append)) == len(load_results(tmp_path)) == 1
    assert result[0] == f"2 points in {tmp_path} do not match (the specification changed) and are not used"


def test_changed_facts_of_a_device_are_noticed_and_its_old_points_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100", "T4"])
    before = sweep(small, tmp_path)
    original = points._target

    def slower(name: str, precision: str, setting: str | None, kind: str) -> points.TimedDevice:
        target = original(name, precision, setting, kind)
        timing = target.timing
        assert timing is not None
        return replace(target, timing=replace(timing, bandwidth=timing.bandwidth / 2)) if name == "T4" else target

    monkeypatch.setattr(points, "_target", slower)
    result: list[str] = []
    after = sweep(small, tmp_path, note=result.append)
    assert result[0] == f"1 points in {tmp_path} do not match (facts of T4 changed) and are not used"
    assert result[1] == "resuming: 1 of 2 points are done"
    assert after.columns["bound_seconds"][0] == before.columns["bound_seconds"][0]
    assert after.columns["bound_seconds"][1] > before.columns["bound_seconds"][1]
    assert load_results(tmp_path).columns == after.columns


def test_another_version_of_the_code_uses_nothing_of_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    sweep(small, tmp_path)
    for module in ("points", "run"):
        monkeypatch.setattr(f"mlsys.sweep.{module}.code_digest", lambda: "other")
    result: list[str] = []
    sweep(small, tmp_path, note=result.append)
    assert result == [f"1 points in {tmp_path} do not match (the evaluation code changed) and are not used"]


def test_processes_side_by_side_give_the_same(tmp_path: Path, uninterrupted: SweepTable) -> None:
    assert sweep(SPEC, tmp_path, jobs=2).columns == uninterrupted.columns


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ArgumentError, match="is not empty and was not created by a sweep. Choose another folder"):
        sweep(small, tmp_path)
    with pytest.raises(ArgumentError, match=r"letter\.txt is a file; results go into a folder"):
        sweep(small, tmp_path / "letter.txt")
    with pytest.raises(ArgumentError, match="holds no sweep. Make one with: mlsys sweep SPEC.yaml"):
        load_results(tmp_path)


def test_a_worker_process_that_dies_is_told_of_and_what_was_done_is_kept(
    tmp_path: Path, uninterrupted: SweepTable
) -> None:
    def kill(done: int, whole: int) -> None:
        if done:
            for process in multiprocessing.active_children():
                process.kill()

    with pytest.raises(ArgumentError, match="a worker process died; finished points are kept. Repeat the command"):
        sweep(SPEC, tmp_path, jobs=2, progress=kill)
    assert 0 < len(ids_of_pieces(tmp_path)) < len(uninterrupted)
    assert sweep(SPEC, tmp_path, jobs=1).columns == uninterrupted.columns


def test_no_bit_of_a_stored_sweep_flips_unnoticed(tmp_path: Path) -> None:
    """1,000 flips anywhere in pieces and results: the values are as before, and what was damaged is put aside."""
    spec = SweepSpec(models=["alexnet", "vgg16"], devices=["A100", "T4"], batches=[1, 8])
    right = sweep(spec, tmp_path, jobs=1).columns
    source = random.Random(12)
    files = [*(tmp_path / "pieces").iterdir(), tmp_path / "results.parquet"]
    whole = {path: path.read_bytes() for path in files}
    silent = 0
    for _ in range(1000):
        path = source.choice(files)
        raw = bytearray(whole[path])
        raw[source.randrange(len(raw))] ^= 1 << source.randrange(8)
        path.write_bytes(raw)
        kept = Folder(tmp_path)
        if path.parent == tmp_path:
            with contextlib.suppress(ArgumentError):
                silent += load_results(tmp_path).columns != right
        else:
            rows, _, damaged = kept.rows(right["id"])
            silent += damaged != [path.name] or any(row != tuple(_row(right, row[0])) for row in rows.values())
            (tmp_path / "damaged" / path.name).unlink()
        path.write_bytes(whole[path])
    assert silent == 0
    piece = files[0]
    piece.write_bytes(piece.read_bytes()[:-1] + b"?")
    assert sweep(spec, tmp_path, jobs=1).columns == right


def _row(columns: Mapping[str, tuple[object, ...]], name: object) -> list[object]:
    index = columns["id"].index(name)
    return [values[index] for values in columns.values()]


def test_a_second_sweep_in_the_folder_of_the_first_is_refused(tmp_path: Path) -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    with (
        Folder(tmp_path / "out").held(),
        pytest.raises(ArgumentError, match="another sweep is using"),
    ):
        sweep(small, tmp_path / "out")
    assert len(sweep(small, tmp_path / "out")) == 1


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    workers = killed_after(tmp_path / "out", 1, jobs=2)
    assert len(workers) == 2
    while any(map(_lives, workers)):  # a hang here is the failure
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False


def test_a_disk_that_fills_ends_the_sweep_and_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second piece does not fit; with two processes, neither hangs and nothing half-written stays."""
    right = sweep(SPEC, jobs=1).columns
    pieces, written = store.write_bytes, []

    def full(path: Path, raw: bytes) -> Path:
        if len(written) == 1:
            raise UnwrittenError(f"{path} cannot be written: No space left on device")
        written.append(path)
        return pieces(path, raw)

    monkeypatch.setattr(store, "write_bytes", full)
    with pytest.raises(UnwrittenError, match="No space left"):
        sweep(SPEC, tmp_path, jobs=2)
    assert not multiprocessing.active_children() and not list(tmp_path.rglob("*.part"))
    assert len(ids_of_pieces(tmp_path)) < len(right["id"])
    monkeypatch.undo()
    assert sweep(SPEC, tmp_path, jobs=2).columns == right
