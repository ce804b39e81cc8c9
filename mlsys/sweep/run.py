"""Runs a sweep: evaluates points that are not stored yet, and stores them as they come."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError
from mlsys.gc_pause import gc_paused
from mlsys.provenance import comparing
from mlsys.sweep.kinds import OF_DEVICES, Kind, kind_of, load_spec
from mlsys.sweep.point_table import PointTable
from mlsys.sweep.points import catalogue_digest, code_digest
from mlsys.sweep.sizing_spec import SizingSpec
from mlsys.sweep.sizing_table import SizingTable
from mlsys.sweep.spec import SweepSpec
from mlsys.sweep.table import SweepTable
from mlsys.sweep.workers import evaluated, nothing
from mlsys.unit_checks import check_types, checked_count, checked_number, positive


@overload
def sweep(
    spec: SizingSpec,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = 5.0,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> SizingTable: ...
@overload
def sweep(
    spec: SweepSpec,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = 5.0,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> SweepTable: ...
@overload
def sweep(
    spec: str | Path,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = 5.0,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> SweepTable | SizingTable: ...
@check_types(
    spec=(
        (SweepSpec, SizingSpec, str, Path),
        "a SweepSpec, such as SweepSpec(models=['resnet50'], devices=['A100']), a SizingSpec, or the file of one",
    )
)
def sweep(
    spec: SweepSpec | SizingSpec | str | Path,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = 5.0,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> SweepTable | SizingTable:
    """Evaluate every point of a specification.

    Parameters
    ----------
    spec
        A specification of networks on devices or of sizings on systems, or the path of its YAML file.
    folder
        Folder in which points are stored as they are computed; a sweep that was stopped resumes from it. Points are
        identified by content: those of another specification, of other facts of a device, or of another version of the
        code are kept but not used. None stores nothing.
    jobs
        Number of processes on this machine; by default as many as pay off.
    scheduler
        Address of a Dask scheduler whose workers evaluate the points instead, such as ``"tcp://127.0.0.1:8786"``.
    patience
        Seconds to wait for the scheduler, and for one of its workers.
    progress
        Called with the number of points done and the total, first with the points found in the folder.
    note
        Called with a sentence about the contents of the folder, or about the time limit.
    seconds
        Time limit; the sweep returns the points it has, the folder keeps them, and the same call resumes.

    Returns
    -------
    SweepTable or SizingTable
        One row per point, in order; a point without an answer has the reason. After ``seconds``, only the points that
        are done, and ``provenance["stopped"]`` says how many.

    Raises
    ------
    ArgumentError
        If the folder has other contents, pyarrow or Dask is needed and not installed, no scheduler answers, or a worker
        dies. Finished points are kept.

    Examples
    --------
    >>> spec = SweepSpec(models=["resnet50"], devices=["A100", "T4"], batches=[1, 32], precisions=["fp16", "fp8"])
    >>> table = sweep(spec)
    >>> [(row.device, row.bound_by) for row in table if row.batch == 32 and row.error is None]
    [('A100_80GB', 'compute'), ('T4', 'memory')]
    >>> table.columns["error"][-1]
    'NVIDIA T4 has no fp8 peak. It has: fp64, fp32, fp16, int8, int4'
    """
    if jobs is not None:
        checked_count("sweep", "jobs", jobs)
    checked_number("sweep", "patience", patience, positive(), {})
    if seconds is not None:
        checked_number("sweep", "seconds", seconds, positive(), {})
    deadline = None if seconds is None else Deadline(seconds)
    with comparing():  # a sweep compares many answers, few of which enter any one result
        points = spec if isinstance(spec, (SweepSpec, SizingSpec)) else load_spec(spec)
        table: SweepTable | SizingTable = _swept(points, folder, jobs, scheduler, patience, progress, note, deadline)
        return table


def _swept(
    spec: SweepSpec | SizingSpec,
    folder: str | Path | None,
    jobs: int | None,
    scheduler: str | None,
    patience: float,
    progress: Callable[[int, int], None] | None,
    note: Callable[[str], None] | None,
    deadline: Deadline | None,
) -> Any:
    say = note or (lambda _: None)
    tell = progress or (lambda _done, _all: None)
    kind = kind_of(spec)
    points = kind.enumerate(spec)
    provenance = _provenance(spec, kind, points)
    if scheduler is not None:
        _refuse_calibration(provenance.get("user_overrides", ""))
    done: dict[str, tuple[Any, ...]] = {}
    keep = _Keeper(folder, kind, provenance) if folder is not None else None
    with keep.folder.held() if keep else contextlib.nullcontext():
        if keep:
            done = keep.resume(spec, points, say)
        return _completed(kind, points, done, provenance, keep, jobs, scheduler, patience, tell, say, deadline)


def _completed(
    kind: Kind,
    points: list[Any],
    done: dict[str, tuple[Any, ...]],
    provenance: dict[str, str],
    keep: _Keeper | None,
    jobs: int | None,
    scheduler: str | None,
    patience: float,
    tell: Callable[[int, int], None],
    say: Callable[[str], None],
    deadline: Deadline | None,
) -> PointTable[Any]:
    """Evaluate the points that are not done, store them, and return all rows."""
    tell(len(done), len(points))
    names = [column.name for column in kind.table.COLUMNS]
    pending = list(kind.pieces([point for point in points if point.id not in done]))
    workers = jobs or kind.jobs([point for piece in pending for point in piece])
    answers = evaluated(pending, workers, scheduler, patience, kind.evaluate) if pending else nothing()
    with contextlib.closing(answers):  # workers stop even if a piece cannot be stored
        for _, columns in answers:
            with gc_paused():
                rows = list(zip(*(columns[name] for name in names), strict=True))
                done.update((row[0], row) for row in rows)
            if keep:
                keep.folder.write(rows, provenance)
            tell(len(done), len(points))
            if deadline is not None and deadline.passed:
                break
    whole_sweep = len(done) >= len(points)
    if not whole_sweep:
        stopped = f"{len(done):,} of {len(points):,} points"
        say(f"stopped by the time limit: {stopped}" + ("; repeat the command to resume" if keep else ""))
        provenance = {**provenance, "stopped": stopped}
    with gc_paused():
        ordered = [done[point.id] for point in points if point.id in done]
        whole = dict(zip(names, zip(*ordered, strict=True), strict=True))
        table = kind.table.of(whole, provenance, kind.facts(points))
    if keep and whole_sweep:
        keep.folder.finish(table)
    return table


def load_results(folder: str | Path) -> SweepTable | SizingTable:
    """Return the results of a finished sweep from its folder.

    Raises
    ------
    ArgumentError
        If there is no sweep, or it is not finished.
    """
    from mlsys.sweep.store import Folder

    results = Folder(folder)
    table = results.finished
    if not isinstance(table, (SweepTable, SizingTable)):
        why = (
            f"holds an unfinished sweep. Resume it with: mlsys sweep SPEC.yaml --out {folder}"
            if results.manifest
            else "holds no sweep. Make one with: mlsys sweep SPEC.yaml"
        )
        raise ArgumentError(f"{folder} {why}")
    return table


class _Keeper:
    """Storage of pieces in a folder, and description of what an earlier sweep left there."""

    def __init__(self, folder: str | Path, kind: Kind, provenance: dict[str, str]) -> None:
        from mlsys.sweep.store import Folder

        self.kind = kind
        self.folder = Folder(folder, kind.table)
        self.provenance = provenance

    def resume(
        self, spec: SweepSpec | SizingSpec, points: list[Any], say: Callable[[str], None]
    ) -> dict[str, tuple[Any, ...]]:
        """Return the rows that are stored already, and write a new manifest."""
        before = self.folder.manifest
        if before and before.get("kind", OF_DEVICES.words) != self.kind.words:
            raise ArgumentError(
                f"{self.folder.path} holds a sweep of {before.get('kind', OF_DEVICES.words)}, and this is one of "
                f"{self.kind.words}. Choose another folder"
            )
        facts = self.kind.digests(points)
        rows, others, broken = self.folder.rows(point.id for point in points)
        changed = _changed(before, self.provenance, facts)
        if others:
            why = f" ({'; '.join(changed)})" if changed else ""
            say(f"{others:,} points in {self.folder.path} do not match{why} and are not used")
        elif changed and not rows and before:
            say(f"{self.folder.path} starts anew: {'; '.join(changed)}")
        if broken:
            say(f"damaged, set aside and computed again: {', '.join(broken)}")
        if rows:
            say(f"resuming: {len(rows):,} of {len(points):,} points are done")
        self.folder.describe(
            {
                **self.provenance,
                "kind": self.kind.words,
                "spec": spec.as_data(),
                "facts": facts,
                "units": {column.name: column.unit for column in self.kind.table.COLUMNS if column.unit},
                "points": len(points),
            }
        )
        return rows


def _changed(before: dict[str, Any], now: dict[str, str], facts: dict[str, str]) -> list[str]:
    """Return what has changed, in words."""
    if not before:
        return []
    changes = []
    old = before.get("facts")
    old = old if isinstance(old, dict) else {}
    other = [device for device, digest in facts.items() if device in old and old[device] != digest]
    if before.get("code") != now["code"]:
        changes.append("the evaluation code changed")
    if other:
        changes.append(f"facts of {', '.join(other[:5])}{' and others' if len(other) > 5 else ''} changed")
    if before.get("specification") != now["specification"]:
        changes.append("the specification changed")
    return changes


def _provenance(spec: SweepSpec | SizingSpec, kind: Kind, points: list[Any]) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("mlsys")
    except PackageNotFoundError:
        release = "not installed"
    provenance = {
        "version": release,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "code": code_digest(),
        "catalogue": catalogue_digest(),
        "specification": spec.digest,
        "request": json.dumps(spec.as_data(), ensure_ascii=False),
    }
    overrides = kind.overrides(points)
    return {**provenance, "user_overrides": "; ".join(overrides)} if overrides else provenance


def _refuse_calibration(overrides: str) -> None:
    """Raise if estimates are calibrated by a file of this machine, which the workers of a cluster do not have."""
    if "are calibrated by" in overrides:
        raise ArgumentError(
            f"the workers of a scheduler do not have the calibration of this machine ({overrides}). "
            "Sweep on this machine, or unset MLSYS_CALIBRATION"
        )
